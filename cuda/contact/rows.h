// The live rows of a contact problem in one list, and their dense form: for users who look at the problem. Serial groups only.
//
// Order: world slots (limb by limb), pair slots; then bonds, limits, dry friction (trunk first), ties.
#pragma once
#include "contact/dense.h"
#include "contact/impulses.h"
#include "core/arena.h"

namespace stiction {

template <class L>
struct RowList {
  using Real = typename L::Real;
  using Shape = typename L::Shape;
  static constexpr int kContacts = Shape::kSlots + at_least_one(Shape::kPairs);
  static constexpr int kRows = 2 * Shape::kDofs + at_least_one(Shape::kTies) + 3 * Shape::kBonds;

  int contacts = 0, rows = 0;
  const ContactPoint<Real>* point[kContacts];
  const ContactRow<Real>* contact[kContacts];
  const ScalarRow<Real>* row[kRows];
  int link[kContacts];                    // flat; of a pair slot: -1, see `pair`
  const PairContact<L>* pair[kContacts];  // null for a world slot
  int dof_link[kRows];  // flat link whose dof the row is about; of a tie: -1 - its number; else kOfBond
  static constexpr int kOfBond = -1 - at_least_one(Shape::kTies);  // these rows are the first, in order
  const Vec3<Real>*contact_impulse[kContacts], *spin_impulse[kContacts];
  const Real* row_impulse[kRows];

  void build(const typename L::Model& m, const Contacts<L>& contacts_found, const ContactProblem<L>& problem,
             const Impulses<L>& l) {
    const typename L::Group g;
    contacts = rows = 0;
    auto add_contact = [&](const ContactPoint<Real>& p, const ContactRow<Real>& r, const Vec3<Real>& li,
                           const Vec3<Real>& spin, int flat, const PairContact<L>* moving) {
      link[contacts] = flat, pair[contacts] = moving, spin_impulse[contacts] = &spin;
      point[contacts] = &p, contact[contacts] = &r, contact_impulse[contacts++] = &li;
    };
    each_slot<L>(g, m, contacts_found, [&](const auto& limb, Place at, int s, int c) {
      const int flat = s == 0 ? limb.attach() : flat_link<Shape>(at.link + s - 1);
      add_contact(contacts_found.point.slot[c], problem.row.slot[c], l.slot.slot[c], l.spin.slot[c], flat, nullptr);
    });
    for (int s = 0; s < contacts_found.pairs; ++s)
      add_contact(contacts_found.pair[s].point, problem.pair_row[s], l.pair[s], l.pair_spin[s], -1,
                  &contacts_found.pair[s]);
    auto add_row = [&](const ScalarRow<Real>& r, const Real& li, int flat) {
      row[rows] = &r, row_impulse[rows] = &li, dof_link[rows++] = flat;
    };
    for (int i = 0; i < m.bonds; ++i) {
      const Vec3<Real>& li = l.bond[i];
      const Real* each[3] = {&li.x, &li.y, &li.z};
      for (int k = 0; k < 3; ++k) add_row(problem.bond[i].row[k], *each[k], kOfBond);
    }
    PerDof<L, int> flat;
    for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) flat.trunk[t] = m.link_of_dof(t);
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int i = at.link; i < at.link + limb.links(); ++i) flat.limb[i] = flat_link<Shape>(i);
    });
    each_dof_row<L>(g, m, problem, [&](bool, const auto& r, const Real& li, int f) { add_row(r, li, f); }, l.dof, flat);
    for (int i = 0; i < m.ties; ++i)
      if (problem.tie_live[i]) add_row(problem.tie[i], l.tie[i], -1 - i);
  }
};

// ---- dense, one world, MuJoCo's dofs -------------------------------------------------------------------------------------

/// visit(dof, entry of x) for every dof; the free base's angular part (body axes) is turned by the caller.
template <class L, class Visit>
HD void each_named_dof(const typename L::Model& m, Visit visit) {
  const typename L::Group g;
  if (m.free_base())
    for (int t = 0; t < 6; ++t) visit(m.trunk[0].dof + (t < 3 ? t + 3 : t - 3), true, t);
  for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) visit(m.trunk[m.link_of_dof(t)].dof, true, t);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) visit(limb.link(k).dof, false, at.link + k);
  });
}

/// A covector of world `w` in MuJoCo's order.
template <class L, class T>
HD void dense_covector(const typename L::Model& m, const Kinematics<L>& kin, const TreeVector<L>& x, int w, T* out) {
  each_named_dof<L>(m, [&](int dof, bool trunk, int i) { out[dof] = lane(trunk ? x.trunk[i] : x.limb[i], w); });
  if (!m.free_base()) return;
  const auto& R = kin.pose.trunk[0].R;
  T* a = out + m.trunk[0].dof + 3;
  T world[3] = {a[0], a[1], a[2]};
  for (int i = 0; i < 3; ++i) {
    a[i] = 0;
    for (int j = 0; j < 3; ++j) {
      auto column_i = column(R, i);
      a[i] += T(lane(j == 0 ? column_i.x : j == 1 ? column_i.y : column_i.z, w)) * world[j];
    }
  }
}

/// A of world `w`, (nv, nv).
template <class L, class T>
HD void dense_matrix(const typename L::Model& m, const Kinematics<L>& kin, const TreeMatrix<L>& A, int w, T* out) {
  using Real = typename L::Real;
  const typename L::Group g;
  const int n = m.nv;
  for (int i = 0; i < n * n; ++i) out[i] = 0;
  int trunk_dof[L::kTrunkDofs];
  each_named_dof<L>(m, [&](int dof, bool trunk, int i) {
    if (trunk) trunk_dof[i] = dof;
  });
  auto put = [&](int i, int j, const Real& a) { out[i * n + j] = out[j * n + i] = lane(a, w); };
  for (int t = 0; t < m.trunk_dofs(); ++t)
    for (int u = 0; u <= t; ++u) put(trunk_dof[t], trunk_dof[u], A.trunk[t][u]);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) {
      int dof = limb.link(k).dof;
      for (int t = 0; t < limb.trunk_dofs(); ++t) put(dof, trunk_dof[t], A.cross[at.link + k][t]);
      for (int j = k; j >= 0; j = limb.parent(j)) put(dof, limb.link(j).dof, A.limb[at.entry + entry_of(k, j)]);
    }
  });
  if (!m.free_base()) return;
  const int a = m.trunk[0].dof + 3;  // rows and columns of the angular part: A <- T' A T, T = R there
  auto turn = [&](T* first, int stride) {
    T x[3] = {first[0], first[stride], first[2 * stride]};
    for (int i = 0; i < 3; ++i) {
      auto c = column(kin.pose.trunk[0].R, i);
      first[i * stride] = T(lane(c.x, w)) * x[0] + T(lane(c.y, w)) * x[1] + T(lane(c.z, w)) * x[2];
    }
  };
  for (int j = 0; j < n; ++j) turn(out + a * n + j, n);
  for (int i = 0; i < n; ++i) turn(out + i * n + a, 1);
}

/// visit(dof, S) for the dofs that move a flat link in world `w`, from the link to the root; S = (w, v) in T.
template <class L, class T, class Visit>
HD void each_mover(const typename L::Model& m, const Kinematics<L>& kin, int flat, int w, Visit visit) {
  auto motion = [w](const auto& S) {
    return Motion<T>{{T(lane(S.w.x, w)), T(lane(S.w.y, w)), T(lane(S.w.z, w))},
                     {T(lane(S.v.x, w)), T(lane(S.v.y, w)), T(lane(S.v.z, w))}};
  };
  int trunk_link = flat;
  if (flat >= L::kLimbsFrom) {
    int l = 0;
    while (flat - L::kLimbsFrom >= m.limb[l].first_link + m.limb[l].links) ++l;
    const int first = m.limb[l].first_link;
    for (int k = flat - L::kLimbsFrom - first; k >= 0; k = m.link[first + k].parent)
      visit(m.link[first + k].dof, motion(kin.S.limb[first + k]));
    trunk_link = m.limb[l].attach;
  }
  for (int t = trunk_link; t >= m.base_links(); --t)
    visit(m.trunk[t].dof, motion(kin.S.trunk[t + m.base_dofs() - m.base_links()]));
  if (!m.free_base() || trunk_link < 0) return;
  const int d = m.trunk[0].dof;
  for (int i = 0; i < 3; ++i) {
    const Vec3<T> none{T(0), T(0), T(0)}, axis{T(i == 0), T(i == 1), T(i == 2)};
    const auto c = column(kin.pose.trunk[0].R, i);  // MuJoCo's angular dofs are about the body's axes
    visit(d + i, Motion<T>{none, axis});
    visit(d + 3 + i, Motion<T>{{T(lane(c.x, w)), T(lane(c.y, w)), T(lane(c.z, w))}, none});
  }
}

/// J (3, nv) of a contact of world `w` += sign F X(p) for the link `flat`.
template <class L, class T, class Real = typename L::Real>
HD void add_contact_rows(const typename L::Model& m, const Kinematics<L>& kin, const ContactPoint<Real>& x, int flat,
                         const Vec3<Real>& p, T sign, int w, T* J) {
  auto one = [w](const Vec3<Real>& a) { return Vec3<T>{T(lane(a.x, w)), T(lane(a.y, w)), T(lane(a.z, w))}; };
  const Vec3<T> at = one(p), t1 = one(x.frame.row[0]), t2 = one(x.frame.row[1]), n = one(x.frame.row[2]);
  each_mover<L, T>(m, kin, flat, w, [&](int dof, const Motion<T>& S) {
    const Vec3<T> u = velocity_at(S, at);
    J[dof] += sign * dot(t1, u), J[m.nv + dof] += sign * dot(t2, u), J[2 * m.nv + dof] += sign * dot(n, u);
  });
}

/// J_spin (3, nv) of a contact of world `w` += sign turning of the link `flat`, by the arms of those axes that have such friction.
template <class L, class T, class Real = typename L::Real>
HD void add_spin_rows(const typename L::Model& m, const Kinematics<L>& kin, const ContactPoint<Real>& x,
                      const ContactRow<Real>& r, int flat, T sign, int w, T* J) {
  const Vec3<Real> arms = spin_arms(x), &W = r.spin_W;
  const T arm[3] = {lane(W.x, w) > 0 ? T(lane(arms.x, w)) : 0, lane(W.y, w) > 0 ? T(lane(arms.y, w)) : 0,
                    lane(W.z, w) > 0 ? T(lane(arms.z, w)) : 0};
  each_mover<L, T>(m, kin, flat, w, [&](int dof, const Motion<T>& S) {
    for (int k = 0; k < 3; ++k) {
      const Vec3<Real>& axis = x.frame.row[k];
      J[k * m.nv + dof] +=
          sign * arm[k] * dot(Vec3<T>{T(lane(axis.x, w)), T(lane(axis.y, w)), T(lane(axis.z, w))}, S.w);
    }
  });
}

/// A row of world `w` other than a contact's, (nv).
template <class L, class T>
HD void dense_row(const typename L::Model& m, const Kinematics<L>& kin, const ContactProblem<L>& problem,
                  const RowList<L>& list, int i, int w, T* J) {
  if (list.dof_link[i] == RowList<L>::kOfBond) {
    for (int end = 0; end < 2; ++end) {
      const auto& F = problem.bond[i / 3].F[end].axis[i % 3];
      auto one = [w](const auto& a) { return Vec3<T>{T(lane(a.x, w)), T(lane(a.y, w)), T(lane(a.z, w))}; };
      const Force<T> f{one(F.n), one(F.f)};
      each_mover<L, T>(m, kin, m.bond[i / 3].link[end], w, [&](int dof, const Motion<T>& S) { J[dof] += dot(S, f); });
    }
    return;
  }
  auto dof = [&](int flat) { return flat < L::kLimbsFrom ? m.trunk[flat].dof : m.link[flat - L::kLimbsFrom].dof; };
  if (const int flat = list.dof_link[i]; flat >= 0) {
    J[dof(flat)] = T(lane(list.row[i]->sign, w));
    return;
  }
  const int tie = -1 - list.dof_link[i];
  for (int j = 0; j < m.tie[tie].terms; ++j) J[dof(m.tie[tie].link[j])] += T(lane(problem.tie_coef[tie][j], w));
}

/// A problem with room for so many contacts and rows.
template <class T>
HD DenseProblem<T> carve_dense(Arena<T>& arena, int nv, int contacts, int rows, int spins) {
  DenseProblem<T> d;
  d.nv = nv, d.contacts = contacts, d.rows = rows, d.spins = spins;
  d.A = arena.take(int64_t{nv} * nv), d.b = arena.take(nv), d.J = arena.take(3ll * contacts * nv);
  d.e = arena.take(3 * contacts), d.R = arena.take(3 * contacts), d.mu = arena.take(contacts);
  d.impulse = arena.take(3 * contacts), d.J_row = arena.take(int64_t{rows} * nv);
  d.e_row = arena.take(rows), d.R_row = arena.take(rows), d.lower = arena.take(rows), d.upper = arena.take(rows);
  d.row_impulse = arena.take(rows);
  d.J_spin = arena.take(3ll * spins * nv), d.spin_impulse = arena.take(3 * spins);
  return d;
}
/// The numbers that it takes.
HD int64_t dense_problem_size(int nv, int contacts, int rows, int spins) {
  Arena<double> arena;
  carve_dense(arena, nv, contacts, rows, spins);
  return arena.used();
}

/// World w's problem: its active contacts and rows only. `memory` must have room for all of the list.
template <class L, class T, class Real = typename L::Real>
HD_CALL DenseProblem<T> dense_problem(const typename L::Model& m, const Kinematics<L>& kin,
                                      const ContactProblem<L>& problem, const RowList<L>& list, int w, T* memory) {
  int nc = 0, nr = 0;
  for (int i = 0; i < list.contacts; ++i) nc += lane(list.point[i]->active, w) ? 1 : 0;
  for (int i = 0; i < list.rows; ++i) nr += lane(list.row[i]->active, w) ? 1 : 0;
  Arena<T> arena(memory);
  const DenseProblem<T> d = carve_dense(arena, m.nv, nc, nr, m.has_spin ? nc : 0);
  for (int i = 0; i < 3 * nc * m.nv; ++i) d.J[i] = 0;
  for (int i = 0; i < nr * m.nv; ++i) d.J_row[i] = 0;
  for (int i = 0; i < 3 * d.spins * m.nv; ++i) d.J_spin[i] = 0;
  dense_matrix<L>(m, kin, problem.A, w, d.A);
  dense_covector<L>(m, kin, problem.b, w, d.b);
  nc = nr = 0;
  for (int i = 0; i < list.contacts; ++i) {
    const ContactPoint<Real>& x = *list.point[i];
    if (!lane(x.active, w)) continue;
    const ContactRow<Real>& r = *list.contact[i];
    const Vec3<Real>&l = *list.contact_impulse[i], &spin = *list.spin_impulse[i];
    auto add_side = [&](int flat, const Vec3<Real>& p, T sign) {
      add_contact_rows<L, T>(m, kin, x, flat, p, sign, w, d.J + 3 * nc * m.nv);
      if (d.spins > 0) add_spin_rows<L, T>(m, kin, x, r, flat, sign, w, d.J_spin + 3 * nc * m.nv);
    };
    if (const PairContact<L>* pair = list.pair[i]) {
      add_side(lane(pair->link2, w), x.p, T(1));
      add_side(lane(pair->link1, w), pair->p1, T(-1));
    } else {
      add_side(list.link[i], x.p, T(1));
    }
    for (int k = 0; k < 3 && d.spins > 0; ++k)
      d.spin_impulse[3 * nc + k] = lane(k == 0 ? spin.x : k == 1 ? spin.y : spin.z, w);
    for (int k = 0; k < 3; ++k) {
      d.e[3 * nc + k] = lane(k == 0 ? r.bend.x : k == 1 ? r.bend.y : r.e, w);
      d.R[3 * nc + k] = lane(k == 2 ? r.R_n : r.R_t, w);
      d.impulse[3 * nc + k] = lane(k == 0 ? l.x : k == 1 ? l.y : l.z, w);
    }
    d.mu[nc++] = lane(x.mu, w);
  }
  for (int i = 0; i < list.rows; ++i) {
    const ScalarRow<Real>& r = *list.row[i];
    if (!lane(r.active, w)) continue;
    dense_row<L, T>(m, kin, problem, list, i, w, d.J_row + nr * m.nv);
    d.e_row[nr] = lane(r.e, w), d.R_row[nr] = lane(r.R, w), d.lower[nr] = lane(r.lower, w),
    d.upper[nr] = lane(r.upper, w);
    d.row_impulse[nr++] = lane(*list.row_impulse[i], w);
  }
  return d;
}

}  // namespace stiction
