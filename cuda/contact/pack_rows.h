// Fills PackedRows: places, half-solved rows, and what else a solver needs of every row. See contact/packed_rows.h.
#pragma once
#include "contact/impulses.h"
#include "linalg/ltdl.h"

namespace stiction {

template <class Real>
HD void blend(Mask<Real> is, Real from, Real& to) {
  to = select(is, from, to);
}

/// Gives every active row its place and clears all. Needs which rows are live and active and, with `reserve` >= 0 (m), the
/// contacts' free velocities: contacts that keep a gap of more than that in the free motion are left for later.
template <class L, class S = Scalar<typename L::Real>>
void number_rows(const typename L::Model& m, const Contacts<L>& contacts, S h, S reserve, ContactProblem<L>& problem) {
  using Real = typename L::Real;
  PackedRows<L>& packed = problem.packed;
  const typename L::Group g;
  const Real none(-1), one(1), zero(0);
  Real near_count(0), later_count(0), scalar_count(0);
  auto each_contact = [&](auto visit) {
    each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) {
      visit(contacts.point.slot[c], problem.row.slot[c], packed.slot.slot[c]);
    });
    for (int i = 0; i < contacts.pairs; ++i) visit(contacts.pair[i].point, problem.pair_row[i], packed.pair[i]);
  };
  each_contact([&](const ContactPoint<Real>& x, const ContactRow<Real>& row, Real& place) {
    Mask<Real> near = x.active;
    if (reserve >= 0) near = near & (x.gap < max(-row.free.z, zero) * h + reserve);
    const Mask<Real> later = x.active & negate(near);
    place = select(near, near_count, select(later, Real(-2) - later_count, none));
    near_count = select(near, near_count + one, near_count);
    later_count = select(later, later_count + one, later_count);
  });
  auto take = [&](bool, const ScalarRow<Real>& r, Real& place) {
    place = select(r.active, scalar_count, none), scalar_count = select(r.active, scalar_count + one, scalar_count);
  };
  each_dof_row<L>(g, m, problem.limit_live, take, problem.limit, packed.limit);
  each_dof_row<L>(g, m, problem.friction_live, take, problem.friction, packed.friction);
  for (int i = 0; i < m.ties; ++i)
    if (problem.tie_live[i]) take(true, problem.tie[i], packed.tie[i]);

  packed.fits = (near_count + later_count <= Real(static_cast<S>(packed.most_contacts(m)))) &
                (scalar_count <= Real(static_cast<S>(packed.most_scalars(m))));
  auto most = [&](const Real& count) {
    int n = 0;
    for (int w = 0; w < kWidth<Real>; ++w)
      if (lane(packed.fits, w)) n = max(n, static_cast<int>(lane(count, w)));
    return n;
  };
  packed.near = most(near_count), packed.contacts = packed.near + most(later_count);
  packed.scalars = most(scalar_count);
  const Real behind(static_cast<S>(packed.near - 2));
  each_contact([&](const ContactPoint<Real>&, const ContactRow<Real>&, Real& place) {
    place = select(packed.fits, select(place < none, behind - place, place), none);
  });
  auto keep = [&](bool, Real& place) { place = select(packed.fits, place, none); };
  each_dof_row<L>(g, m, problem.limit_live, keep, packed.limit);
  each_dof_row<L>(g, m, problem.friction_live, keep, packed.friction);
  for (int i = 0; i < m.ties; ++i)
    if (problem.tie_live[i]) keep(true, packed.tie[i]);
  packed.carve(m);
  for (int t = 0; t < m.trunk_dofs(); ++t) packed.root[t] = sqrt(problem.factor.trunk[t][t]);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k)
      packed.root[m.trunk_dofs() + at.link + k] = sqrt(problem.factor.limb[at.entry + entry_of(k, k)]);
  });
}

/// A visitor of compliance() and its kin that writes what it sees into Y: the three rows of a contact, or another row.
template <class L>
struct PackedVisit {
  using Real = typename L::Real;
  const PackedRows<L>& packed;
  const PackedPlaces<Real>& places;
  int trunk;
  Real sign;

  HD void operator()(bool on_trunk, int i, Real y) const {
    const int column = on_trunk ? i : trunk + i;
    const Real entry = y * packed.root[column] * sign;
    places.each(
        [&](int k, const Mask<Real>& is) { blend(is, entry, packed.Y[packed.scalar_row(k) * packed.width + column]); });
  }
  HD void operator()(bool on_trunk, int i, const Vec3<Real>& y) const {
    const int column = on_trunk ? i : trunk + i;
    const Vec3<Real> entry = y * packed.root[column];
    places.each([&](int k, const Mask<Real>& is) {
      Real* at = packed.Y + packed.contact_row(k) * packed.width + column;
      blend(is, entry.x, at[0]), blend(is, entry.y, at[packed.width]), blend(is, entry.z, at[2 * packed.width]);
    });
  }
};

/// W_kk of the three rows of a contact between two links, the same in all worlds.
template <class L, class Visit, class Real = typename L::Real>
Vec3<Real> pair_compliance(const typename L::Model& m, const TreeMatrix<L>& H, const PerDof<L, Motion<Real>>& S,
                           int link1, const AxisForces<Real>& F1, int link2, const AxisForces<Real>& F2, Visit visit) {
  const typename L::Group g;
  using V = Vec3<Real>;
  V y[L::kTrunkDofs], w{};
  for (int t = 0; t < m.trunk_dofs(); ++t) y[t] = V{};
  int trunk_dofs = 0;  // that move one of the links
  auto on_trunk = [&](int link, const AxisForces<Real>& F) {
    if (m.free_base()) {
      V base[6];
      put(F, base);
      for (int t = 0; t < 6; ++t) y[t] = y[t] + base[t];
      trunk_dofs = max(trunk_dofs, 6);
    }
    for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t)
      if (m.link_of_dof(t) <= link) y[t] = y[t] + dot(S.trunk[t], F), trunk_dofs = max(trunk_dofs, t + 1);
  };
  if (link1 < L::kTrunkLinks) on_trunk(link1, F1);
  if (link2 < L::kTrunkLinks) on_trunk(link2, F2);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    auto inside = [&](int link) {
      const int k = link - L::kTrunkLinks - at.link;
      return k >= 0 && k < limb.links() ? k : -1;
    };
    const int k1 = inside(link1), k2 = inside(link2);
    if (k1 < 0 && k2 < 0) return;
    if (limb.on_trunk() && k1 >= 0) on_trunk(limb.attach(), F1);
    if (limb.on_trunk() && k2 >= 0) on_trunk(limb.attach(), F2);
    V x[L::kLimbLinks];
    bool moved[L::kLimbLinks] = {};
    auto add = [&](int k, const AxisForces<Real>& F) {
      const V f = dot(S.limb[at.link + k], F);
      x[k] = moved[k] ? x[k] + f : f, moved[k] = true;
    };
    for (int k = k1; k >= 0; k = limb.parent(k)) add(k, F1);
    for (int k = k2; k >= 0; k = limb.parent(k)) add(k, F2);
    for (int k = max(k1, k2); k >= 0; --k)
      if (moved[k]) eliminate_link<L>(limb, at, H, k, x, y, w, visit);
  });
  eliminate_trunk<L>(H, trunk_dofs, y, w, visit);
  return w;
}

/// Everything but the contacts' rows of Y, once the problem is complete.
template <class L>
void pack_rows(const typename L::Model& m, const Contacts<L>& contacts, ContactProblem<L>& problem) {
  using Real = typename L::Real;
  using Places = PackedPlaces<Real>;
  PackedRows<L>& packed = problem.packed;
  const typename L::Group g;
  const int trunk = m.trunk_dofs();
  auto contact = [&](const ContactPoint<Real>& x, const ContactRow<Real>& r, Real place) {
    Places(place).each([&](int k, const Mask<Real>& is) {
      const int i = packed.contact_row(k);
      blend(is, r.free.x, packed.free[i]), blend(is, r.free.y, packed.free[i + 1]),
          blend(is, r.free.z, packed.free[i + 2]);
      blend(is, r.R_t, packed.R[i]), blend(is, r.R_t, packed.R[i + 1]), blend(is, r.R_n, packed.R[i + 2]);
      blend(is, r.W_t, packed.W[i]), blend(is, r.W_t, packed.W[i + 1]), blend(is, r.W_n, packed.W[i + 2]);
      blend(is, r.e, packed.e[i + 2]), blend(is, x.mu, packed.mu[k]);
    });
  };
  each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) {
    contact(contacts.point.slot[c], problem.row.slot[c], packed.slot.slot[c]);
  });
  for (int i = 0; i < contacts.pairs; ++i) contact(contacts.pair[i].point, problem.pair_row[i], packed.pair[i]);

  auto scalar = [&](const ScalarRow<Real>& r, const Places& places) {
    places.each([&](int k, const Mask<Real>& is) {
      const int i = packed.scalar_row(k);
      blend(is, r.free, packed.free[i]), blend(is, r.R, packed.R[i]), blend(is, r.W, packed.W[i]);
      blend(is, r.e, packed.e[i]), blend(is, r.lower, packed.lower[k]), blend(is, r.upper, packed.upper[k]);
    });
  };
  auto visit = [&](const Places& places, Real sign) { return PackedVisit<L>{packed, places, trunk, sign}; };
  auto dofs = [&](const PerDof<L, int>& live, const PerDof<L, ScalarRow<Real>>& rows, const PerDof<L, Real>& place) {
    for (int t = m.base_dofs(); t < trunk; ++t) {
      if (!live.trunk[t]) continue;
      const Places at(place.trunk[t]);
      scalar(rows.trunk[t], at), trunk_dof_compliance<L>(problem.factor, t, visit(at, rows.trunk[t].sign));
    }
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int k = 0; k < limb.links(); ++k) {
        const int i = at.link + k;
        if (!live.limb[i]) continue;
        const Places places(place.limb[i]);
        scalar(rows.limb[i], places);
        dof_compliance<L>(limb, at, problem.factor, k, visit(places, rows.limb[i].sign));
      }
    });
  };
  dofs(problem.limit_live, problem.limit, packed.limit);
  dofs(problem.friction_live, problem.friction, packed.friction);
  for (int i = 0; i < m.ties; ++i) {
    if (!problem.tie_live[i]) continue;
    const Places places(packed.tie[i]);
    scalar(problem.tie[i], places);
    TreeVector<L> x;
    Real share[L::kTrunkDofs];
    each_dof<L>(g, m, [](Real& a) { a = Real(0); }, x);
    for (int t = 0; t < trunk; ++t) share[t] = Real(0);
    for (int j = 0; j < m.tie[i].terms; ++j) add_to_dof<L>(g, m, x, m.tie[i].link[j], problem.tie_coef[i][j]);
    solve_inward<L>(g, m, problem.factor, x, share);
    const PackedVisit<L> put = visit(places, Real(1));
    for (int t = 0; t < trunk; ++t) put(true, t, x.trunk[t]);
    for (int k = 0; k < packed.width - trunk; ++k) put(false, k, x.limb[k]);
  }
}

}  // namespace stiction
