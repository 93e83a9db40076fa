// The impulses of all rows of a contact problem, and passes over rows.
#pragma once
#include "contact/problem.h"

namespace stiction {

/// l of every row: warm start on a solver's entry, its answer on exit. Contact impulses are (t1, t2, n) on body 2; spin: of
/// their couples, in the same units (spin_arms), where the model has any.                                                 N s
template <class L>
struct Impulses {
  using Real = typename L::Real;
  using Shape = typename L::Shape;
  PerSlot<L, Vec3<Real>> slot, spin;
  Vec3<Real> pair[at_least_one(Shape::kPairs)], pair_spin[at_least_one(Shape::kPairs)];
  PerDofRow<L> dof;
  Real tie[at_least_one(Shape::kTies)];
  Vec3<Real> bond[at_least_one(Shape::kBonds)];
};

template <class Vector>
HD Vector& of_kind(Vector& x, int) {
  return x;
}
template <class Vector>
HD Vector& of_kind(Vector (&x)[kDofRows], int kind) {
  return x[kind];
}
/// visit(own, row, x...) for every live limit, then every live dry friction; x: entries of PerDofRows and TreeVectors; own:
/// held by this lane alone (not on the trunk).
template <class L, class Visit, class... Vectors>
HD void each_dof_row(const typename L::Group& g, const typename L::Model& m, const ContactProblem<L>& problem,
                     Visit visit, Vectors&... x) {
  for (int kind = 0; kind < kDofRows; ++kind) {
    if (!has_rows(m, kind)) continue;
    const DofRows<L>& of = problem.dof[kind];
  UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t)
      if (of.live.trunk[t]) visit(false, of.row.trunk[t], of_kind(x, kind).trunk[t]...);
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      UNROLL for (int k = 0; k < limb.links(); ++k)
        if (const int i = at.link + k; of.live.limb[i]) visit(true, of.row.limb[i], of_kind(x, kind).limb[i]...);
    });
  }
}

template <class L, class Real>
HD void clear_forces(const typename L::Group& g, const typename L::Model& m, PerLink<L, Force<Real>>& F) {
  UNROLL for (int t = 0; t < m.trunk_links(); ++t) F.trunk[t] = zero_force<Real>();
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k) F.limb[at.link + k] = zero_force<Real>();
  });
}

/// World axes to the frame of a world slot, and back.
template <class Model, class Real>
HD Vec3<Real> to_slot(const Model& m, const ContactPoint<Real>& p, Vec3<Real> a) {
  return m.level ? a : p.frame * a;
}
template <class Model, class Real>
HD Vec3<Real> from_slot(const Model& m, const ContactPoint<Real>& p, Vec3<Real> a) {
  return m.level ? a : transposed_times(p.frame, a);
}

/// J v in the frames of the rows: slot(limb, c, V), pair(s, V1, V2) (of both points, not their difference), V.v the velocity of the
/// point, V.w that of turning, 0 unless some contact has a couple;
/// then limits and friction read v themselves. V: scratch for contacts between moving links; with bonds, the links' twists.
template <class L, class Slot, class Pair, class Real = typename L::Real>
HD void row_velocities(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                       const Contacts<L>& contacts, const TreeVector<L>& v, PerLink<L, Motion<Real>>& V, Slot slot,
                       Pair pair) {
  bool moving = contacts.pairs > 0 || m.bonds > 0;
  const Vec3<Real> still{Real(0), Real(0), Real(0)};
  visit_motions<L>(
      g, m, kin, v,
      [&](int t, const Motion<Real>& x) {
        if (moving) V.trunk[t] = x;
      },
      [&](const auto& limb, Place at, int s, const Motion<Real>& x) {
        if (moving && s > 0) V.limb[at.link + s - 1] = x;
        each_station_slot<L>(limb, at, s, contacts, [&](int c) {
          const ContactPoint<Real>& p = contacts.point.slot[c];
          slot(limb, c, Motion<Real>{m.has_spin ? to_slot(m, p, x.w) : still, to_slot(m, p, velocity_at(x, p.p))});
        });
      });
  for (int s = 0; s < contacts.pairs; ++s) {
    const PairContact<L>& c = contacts.pair[s];
    Motion<Real> V1 = gather<L>(g, m, V, c.link1), V2 = gather<L>(g, m, V, c.link2);
    const Mat3<Real>& F = c.point.frame;
    pair(s, Motion<Real>{m.has_spin ? F * V1.w : still, F * velocity_at(V1, c.p1)},
         Motion<Real>{m.has_spin ? F * V2.w : still, F * velocity_at(V2, c.point.p)});
  }
}

/// Gaps of contacts are those of the pose with its low part, phi + n'J low, which rounding of gaps does not drown. V: scratch.
template <class L, class Real = typename L::Real>
HD void refine_gaps(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                    const TreeVector<L>& low, PerLink<L, Motion<Real>>& V, Contacts<L>& contacts) {
  if constexpr (!kCompensated<Real>) return;
  row_velocities<L>(
      g, m, kin, contacts, low, V,
      [&](const auto&, int c, const Motion<Real>& part) {
        Real& gap = contacts.point.slot[c].gap;
        gap = gap + part.v.z;
      },
      [&](int i, const Motion<Real>& part1, const Motion<Real>& part2) {
        Real& gap = contacts.pair[i].point.gap;
        gap = gap + (part2.v.z - part1.v.z);
      });
}

/// The part that an end has of J v of a bond, from the twists of the links; J v is the sum of both.
template <class L, class Real = typename L::Real>
HD Vec3<Real> bond_end_velocity(const typename L::Group& g, const typename L::Model& m,
                                const ContactProblem<L>& problem, const PerLink<L, Motion<Real>>& V, int i, int end) {
  return dot(gather_at<L>(g, m, V, m.bond[i].link[end]), problem.bond[i].F[end]);
}

}  // namespace stiction
