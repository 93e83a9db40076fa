// From a world's slots, bonds, limits, dry friction and ties to the half-solved rows that solvers read (contact/row_problem.h).
//
// Every world of a pack has other rows active. They take places in the fixed order of world slots (limb by limb), pair slots; bonds,
// limits (trunk first), dry friction, ties; where Y has blocks a limb has as many places as it needs in any world of the pack, so that a
// place belongs to one limb, whose columns its rows fill. What a world computes does not depend on its neighbours: a place that it
// does not use holds zeros. Contacts that the free motion does not close come behind the others.
//
// A row is half a solve of A, y = D^-1/2 L^-T J', which lives on the way from its link to the root; it is made on the way that
// W_ii takes anyhow (linalg/ltdl.h, `visit`). On a tile a lane writes the rows of its own limbs, and of rows that several limbs
// share its own limbs' part; the numbers lie in memory that the lanes share.
#pragma once
#include "contact/impulses.h"
#include "linalg/ltdl.h"

namespace stiction {

/// Where each limb's rows begin, from how many it has in each world: behind each other. `apart`: with room for the most of any
/// world, so that a place belongs to one limb. `total` grows by all.
template <class L, class Real = typename L::Real>
HD void number_limbs(const typename L::Group& g, const typename L::Model& m, bool apart, Real (&of_limb)[L::kLimbs],
                     Real& total) {
  for (int l = 0; l < m.limbs(); ++l) {
    const bool mine = l % L::Group::kSize == g.rank();
    Real& here = of_limb[mine ? l / L::Group::kSize : 0];
    const Real count = g.sum(mine ? here : Real(0));
    if (mine) here = total;
    total = total + (apart ? Real(static_cast<Scalar<Real>>(largest_lane(count))) : count);
  }
}

/// Rows for so many contacts, those that close before those that stay open, and other rows: all numbers 0, and the roots of D.
template <class L>
HD void begin_rows(const typename L::Group& g, const typename L::Model& m, int near, int later, int scalars,
                   ContactProblem<L>& problem) {
  using Real = typename L::Real;
  RowTable<L>& table = problem.table;
  RowCounts counts = most_rows<Real>(m);
  counts.contacts = near + later, counts.scalars = scalars;
  counts.spins = m.has_spin ? counts.contacts : 0;
  table.rows = RowArrays<Real>(counts);
  table.rows.near = near, table.rows.blocks = row_blocks(m);
  table.trunk = table.rows.width - m.trunk_dofs();
  Arena<Real> arena(table.memory);
  table.rows.carve(arena);
  g.sync();  // the rows of the step before have been read, and what pairs were looked for with
  table.rows.clear(g);
  g.sync();
  each_dof<L>(g, m, [](Real& root) { root = Real(0); }, table.root);
  for (int t = 0; t < m.trunk_dofs(); ++t) table.root.trunk[t] = sqrt(problem.factor.trunk[t][t]);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k)
      table.root.limb[at.link + k] = sqrt(problem.factor.limb[at.entry + entry_of(k, k)]);
  });
}

/// Worlds in which no link has two of the contacts that have a place from 0 on, and none is between links: `pairs` of those.
template <class L, class Real = typename L::Real>
HD Mask<Real> have_lone_contacts(const typename L::Group& g, const typename L::Model& m, const Contacts<L>& contacts,
                                 const RowTable<L>& table, const Real& pairs) {
  const Real zero(0), one(1);
  Mask<Real> lone = pairs <= zero;
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int s = 0; s <= limb.links(); ++s) {
      Real own(0);
      each_station_slot<L>(limb, at, s, contacts,
                           [&](int c) { own = own + select(table.slot.slot[c] >= zero, one, zero); });
      lone = lone & (own <= one);
    }
  });
  return lone;
}

/// Gives every active row its place and clears all numbers. Needs which rows are live and active and, with `reserve` >= 0 (m), the
/// contacts' free velocities: contacts that keep a gap of more than that in the free motion are put behind.
template <class L, class S = Scalar<typename L::Real>>
HD void number_rows(const typename L::Group& g, const typename L::Model& m, const Contacts<L>& contacts, S h, S reserve,
                    ContactProblem<L>& problem) {
  using Real = typename L::Real;
  RowTable<L>& table = problem.table;
  const Real none(-1), one(1), zero(0);
  Real near_of[L::kLimbs], later_of[L::kLimbs];
  // Of a group, first its own count: from 0 what closes, from -2 downward what stays open.
  auto take = [&](const ContactPoint<Real>& x, const ContactRow<Real>& row, Real& place, Real& nears, Real& laters) {
    Mask<Real> closes = x.active;
    if (reserve >= 0) closes = closes & (x.gap < max(-row.free.z, zero) * h + reserve);
    const Mask<Real> open = x.active & negate(closes);
    place = select(closes, nears, select(open, Real(-2) - laters, none));
    nears = select(closes, nears + one, nears), laters = select(open, laters + one, laters);
  };
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    Real nears(0), laters(0);
    contacts.live.each(at.slot, at.slot + limb.slots(), [&](int c) {
      take(contacts.point.slot[c], problem.row.slot[c], table.slot.slot[c], nears, laters);
    });
    near_of[at.limb] = nears, later_of[at.limb] = laters;
  });
  Real pair_nears(0), pair_laters(0);
  for (int i = 0; i < contacts.pairs; ++i)
    take(contacts.pair[i].point, problem.pair_row[i], table.pair[i], pair_nears, pair_laters);

  Mask<Real> lone = mask_of<Real>(false);
  if constexpr (L::Group::kSize == 1) lone = have_lone_contacts<L>(g, m, contacts, table, pair_nears);
  const bool apart = most_rows<Real>(m).apart;
  Real near_limbs(0), later_limbs(0);
  number_limbs<L>(g, m, apart, near_of, near_limbs), number_limbs<L>(g, m, apart, later_of, later_limbs);
  const int near = largest_lane(near_limbs + pair_nears), later = largest_lane(later_limbs + pair_laters);
  auto real = [](int n) { return Real(static_cast<S>(n)); };
  auto settle = [&](Real& place, Real near_begin, Real later_begin) {
    const Real behind = real(near - 2) + later_begin - place;
    place = select(place < none, behind, select(place > none, place + near_begin, none));
  };
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    contacts.live.each(at.slot, at.slot + limb.slots(),
                       [&](int c) { settle(table.slot.slot[c], near_of[at.limb], later_of[at.limb]); });
  });
  for (int i = 0; i < contacts.pairs; ++i) settle(table.pair[i], near_limbs, later_limbs);

  Real scalars = real(3 * m.bonds), count;
  auto number = [&](const ScalarRow<Real>& r, Real& place) {
    place = select(r.active, count, none), count = select(r.active, count + one, count);
  };
  auto begin_at = [&](Real first, Real& place) { place = select(place > none, place + first, none); };
  for (int kind = 0; kind < kDofRows; ++kind) {
    if (!has_rows(m, kind)) continue;
    const DofRows<L>& of = problem.dof[kind];
    PerDof<L, Real>& place = table.dof[kind];
    count = scalars;
    for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t)
      if (of.live.trunk[t]) number(of.row.trunk[t], place.trunk[t]);
    scalars = apart ? real(largest_lane(count)) : count;
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      count = zero;
      for (int i = at.link; i < at.link + limb.links(); ++i)
        if (of.live.limb[i]) number(of.row.limb[i], place.limb[i]);
      near_of[at.limb] = count;
    });
    number_limbs<L>(g, m, apart, near_of, scalars);
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int i = at.link; i < at.link + limb.links(); ++i)
        if (of.live.limb[i]) begin_at(near_of[at.limb], place.limb[i]);
    });
  }
  count = scalars;
  for (int i = 0; i < m.ties; ++i)
    if (problem.tie_live[i]) number(problem.tie[i], table.tie[i]);

  begin_rows<L>(g, m, near, later, largest_lane(count), problem);
  table.rows.lone = lone;
}

/// Y of three rows between two links, the same in all worlds, on which they push by F[0] and F[1] along each axis, and their W: on the ways
/// from both links to the root, which lanes have a limb each of.
template <class L, class Real = typename L::Real>
HD_ONCE Vec3<Real> pair_compliance(const typename L::Group& g, const typename L::Model& m, const TreeMatrix<L>& H,
                                   const PerDof<L, Motion<Real>>& S, const int (&link)[2],
                                   const AxisForces<Real> (&F)[2], const RowTable<L>& table,
                                   const Places<Real>& places) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(H, S, table);
  using V = Vec3<Real>;
  V y[L::kTrunkDofs], w{};
  for (int t = 0; t < m.trunk_dofs(); ++t) y[t] = V{};
  int trunk_dofs = 0;  // that move one of the links
  auto on_trunk = [&](int number, const AxisForces<Real>& force) {
    if (m.free_base()) {
      V base[6];
      put(force, base);
      for (int t = 0; t < 6; ++t) y[t] = y[t] + base[t];
      trunk_dofs = max(trunk_dofs, 6);
    }
    for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t)
      if (m.link_of_dof(t) <= number) y[t] = y[t] + dot(S.trunk[t], force), trunk_dofs = max(trunk_dofs, t + 1);
  };
  for (int end = 0; end < 2; ++end)
    if (link[end] < L::kLimbsFrom && g.rank() == 0) on_trunk(link[end], F[end]);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    int pushed[2];  // the link of this limb that is; -1: none
    for (int end = 0; end < 2; ++end) {
      const int k = link[end] - L::kLimbsFrom - limb.t.first_link;
      pushed[end] = k >= 0 && k < limb.links() ? k : -1;
    }
    const int last = max(pushed[0], pushed[1]);
    if (last < 0) return;
    V x[L::kLimbLinks];
    bool moved[L::kLimbLinks] = {};
    for (int end = 0; end < 2; ++end) {
      if (limb.on_trunk() && pushed[end] >= 0) on_trunk(limb.attach(), F[end]);
      for (int k = pushed[end]; k >= 0; k = limb.parent(k)) {
        const V f = dot(S.limb[at.link + k], F[end]);
        x[k] = moved[k] ? x[k] + f : f, moved[k] = true;
      }
    }
    const RowVisit<L> visit = table.visit(limb, at, places);
    for (int k = last; k >= 0; --k)
      if (moved[k]) eliminate_link<L>(limb, at, H, k, x, y, w, visit);
  });
  if constexpr (!L::kAlone) {
    auto sum = [&](const V& v) { return V{g.sum(v.x), g.sum(v.y), g.sum(v.z)}; };
    trunk_dofs = static_cast<int>(g.max(Real(static_cast<Scalar<Real>>(trunk_dofs))));
    for (int t = 0; t < trunk_dofs; ++t) y[t] = sum(y[t]);
    w = sum(w);
  }
  const RowVisit<L> visit = table.visit(places);
  eliminate_trunk<L>(H, trunk_dofs, y, w, [&](bool on_trunk, int i, const V& of) {
    if (g.rank() == 0) visit(on_trunk, i, of);
  });
  return w;
}

/// Everything but the contacts' rows of Y, once the problem is complete.
template <class L>
HD void fill_rows(const typename L::Group& g, const typename L::Model& m, const Contacts<L>& contacts,
                  ContactProblem<L>& problem) {
  using Real = typename L::Real;
  RowTable<L>& table = problem.table;
  const RowArrays<Real>& rows = table.rows;
  const Real zero(0);
  auto contact = [&](const ContactPoint<Real>& x, const ContactRow<Real>& r, Real place, uint32_t touched) {
    Places<Real>(place).each([&](int k, const Mask<Real>& is) {
      const int i = 3 * k;
      rows.touched[k] |= touched;
      blend(is, r.free.x, rows.free[i]), blend(is, r.free.y, rows.free[i + 1]), blend(is, r.free.z, rows.free[i + 2]);
      blend(is, r.R_t, rows.R[i]), blend(is, r.R_t, rows.R[i + 1]), blend(is, r.R_n, rows.R[i + 2]);
      blend(is, r.W_t, rows.W[i]), blend(is, r.W_t, rows.W[i + 1]), blend(is, r.W_n, rows.W[i + 2]);
      blend(is, r.bend.x, rows.e[i]), blend(is, r.bend.y, rows.e[i + 1]), blend(is, r.e, rows.e[i + 2]);
      blend(is, x.mu, rows.mu[k]), blend(is, r.bend.z, rows.bend[k]);
      if (!m.has_spin) return;
      Real *free = rows.free + rows.spin_row(k), *W = rows.W + rows.spin_row(k);
      blend(is & (r.spin_W.x > zero), r.spin_free.x, free[0]), blend(is, r.spin_W.x, W[0]);
      blend(is & (r.spin_W.y > zero), r.spin_free.y, free[1]), blend(is, r.spin_W.y, W[1]);
      blend(is & (r.spin_W.z > zero), r.spin_free.z, free[2]), blend(is, r.spin_W.z, W[2]);
    });
  };
  auto scalar = [&](const ScalarRow<Real>& r, const Places<Real>& places, uint32_t touched, const Real& bend) {
    places.each([&](int k, const Mask<Real>& is) {
      const int i = 3 * rows.contacts + k;
      rows.touched[rows.contacts + k] |= touched, blend(is, bend, rows.bend[rows.contacts + k]);
      blend(is, r.free, rows.free[i]), blend(is, r.R, rows.R[i]), blend(is, r.W, rows.W[i]);
      blend(is, r.e, rows.e[i]), blend(is, r.lower, rows.lower[k]), blend(is, r.upper, rows.upper[k]);
    });
  };
  each_slot<L>(g, m, contacts, [&](const auto& limb, Place, int s, int c) {
    contact(contacts.point.slot[c], problem.row.slot[c], table.slot.slot[c],
            s == 0 ? trunk_touched(m, limb.attach()) : limb_touched(m, limb.number));
  });
  for (int kind = 0; kind < kDofRows; ++kind) {
    if (!has_rows(m, kind)) continue;
    DofRows<L>& of = problem.dof[kind];
    for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) {
      if (!of.live.trunk[t]) continue;
      ScalarRow<Real>& row = of.row.trunk[t];
      if (g.rank() != 0) {
        row.W = trunk_dof_compliance<L>(problem.factor, t);
        continue;
      }
      const Places<Real> places(table.dof[kind].trunk[t]);
      row.W = trunk_dof_compliance<L>(problem.factor, t, table.visit(places, row.sign));
      scalar(row, places, trunk_touched(m, 0), zero);
    }
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int k = 0; k < limb.links(); ++k) {
        const int i = at.link + k;
        if (!of.live.limb[i]) continue;
        ScalarRow<Real>& row = of.row.limb[i];
        const Places<Real> places(table.dof[kind].limb[i]);
        row.W = dof_compliance<L>(limb, at, problem.factor, k, table.visit(limb, at, places, row.sign));
        scalar(row, places, limb_touched(m, limb.number), zero);
      }
    });
  }
  if (g.rank() == 0) {  // what all lanes know
    for (int i = 0; i < contacts.pairs; ++i) {
      const PairContact<L>& c = contacts.pair[i];
      uint32_t touched = 0;
      for_each_lane<Real>(c.point.active, [&](int w) {
        touched |= link_touched(m, lane(c.link1, w)) | link_touched(m, lane(c.link2, w));
      });
      contact(c.point, problem.pair_row[i], table.pair[i], touched);
    }
    for (int i = 0; i < m.bonds; ++i) {
      const Real bend[3] = {problem.bond[i].bend.x, problem.bond[i].bend.y, problem.bond[i].bend.z};
      for (int k = 0; k < 3; ++k)
        scalar(problem.bond[i].row[k], Places<Real>(Real(static_cast<Scalar<Real>>(3 * i + k))),
               link_touched(m, m.bond[i].link[0]) | link_touched(m, m.bond[i].link[1]), bend[k]);
    }
    for (int i = 0; i < m.ties; ++i) {
      if (!problem.tie_live[i]) continue;
      uint32_t touched = 0;
      for (int j = 0; j < m.tie[i].terms; ++j) touched |= link_touched(m, m.tie[i].link[j]);
      scalar(problem.tie[i], Places<Real>(table.tie[i]), touched,
             m.tie[i].kind == kTieEquality ? problem.tie_bend[i] : zero);
    }
  }
}

/// visit(is, i, f) for every row: place i of worlds `is` is the entry f of l. The lane that holds f does, or all that hold it alike.
template <class L, class Visit>
HD void each_row(const typename L::Group& g, const typename L::Model& m, const Contacts<L>& contacts,
                 const ContactProblem<L>& problem, Impulses<L>& l, Visit visit) {
  using Real = typename L::Real;
  const RowTable<L>& table = problem.table;
  auto contact = [&](Real place, Vec3<Real>& f, Vec3<Real>& c) {
    Places<Real>(place).each([&](int k, const Mask<Real>& is) {
      visit(is, 3 * k, f.x), visit(is, 3 * k + 1, f.y), visit(is, 3 * k + 2, f.z);
      if (!m.has_spin) return;
      const int i = table.rows.spin_row(k);
      visit(is, i, c.x), visit(is, i + 1, c.y), visit(is, i + 2, c.z);
    });
  };
  auto scalar = [&](const Real& place, Real& f) {
    Places<Real>(place).each([&](int k, const Mask<Real>& is) { visit(is, 3 * table.rows.contacts + k, f); });
  };
  each_slot<L>(g, m, contacts,
               [&](const auto&, Place, int, int c) { contact(table.slot.slot[c], l.slot.slot[c], l.spin.slot[c]); });
  for (int i = 0; i < contacts.pairs; ++i) contact(table.pair[i], l.pair[i], l.pair_spin[i]);
  for (int i = 0; i < m.bonds; ++i)
    table.bond(i).each([&](int k, const Mask<Real>& is) {
      visit(is, 3 * k, l.bond[i].x), visit(is, 3 * k + 1, l.bond[i].y), visit(is, 3 * k + 2, l.bond[i].z);
    });
  each_dof_row<L>(
      g, m, problem, [&](bool, const auto&, const Real& place, Real& f) { scalar(place, f); }, table.dof, l.dof);
  for (int i = 0; i < m.ties; ++i)
    if (problem.tie_live[i]) scalar(table.tie[i], l.tie[i]);
}

}  // namespace stiction
