// How a step moves the state, once its velocities are known.
#pragma once
#include "step/mid_turn.h"

namespace stiction {

/// By which part each lone body of a lane's limbs rolls with bends: not at all where it touches what moves.
template <class L>
struct RollingParts {
  using Real = typename L::Real;
  Real of[L::kLimbs];
  Mask<Real> some = mask_of<Real>(false);
};
template <class L, class Real = typename L::Real>
HD RollingParts<L> rolling_parts(const typename L::Group& g, const typename L::Model& m, const Contacts<L>& contacts) {
  RollingParts<L> parts;
  auto rolls = [&](Place at) {
    parts.of[at.limb] = Real(0);
    return any(contacts.rolls[at.limb] > Real(0));
  };
  each_on_statics<L>(g, m, contacts, rolls, [&](Place at, const Mask<Real>& is) {
    Real& part = parts.of[at.limb];
    part = select(is, contacts.rolls[at.limb], Real(0)), parts.some = parts.some | (part > Real(0));
  });
  return parts;
}

/// Integrates the worlds that move: positions with `along`, to the velocity v. Tells whether w.kin and w.I are those of x then.
template <class L, class Real = typename L::Real>
HD bool move_on(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                const Mask<Real>& moving, Workspace<L>& w, TreeVector<L>& along, const TreeVector<L>& v, State<L>& x) {
  const Scalar<Real> before = 1 - opt.theta_vq;  // of the velocity before
  const Mat3<Real> R = w.kin.pose.trunk[0].R;
  if (opt.moves_centres()) {
    const bool placed = move_centres<L>(g, m, opt.h, w.problem.A, moving, along, v, w.kin, w.I, w.motions, x);
    turn_spin<L>(m, R, rotation(x.orientation), x.owed);
    return placed;
  }
  const TreeVector<L> end = v;  // which `along` may be
  if (before != 0)
    each_dof<L>(g, m, [&](Real v0, Real vi, Real& to) { to = to + (v0 - vi) * before; }, x.v, end, along);
  integrate<L>(g, m, opt.h, R, along, end, moving, x);
  if (before != 0) keep_spin<L>(m, R, end, moving, x);
  return false;
}

/// Positions that move with the velocity before, too, would go on into what a step hits, by a part of how fast: there they are to
/// come out again, as of an overlap. Returns the worlds in which contacts change velocities by more than gravity does.
template <class L, class Real = typename L::Real>
HD_ONCE Mask<Real> hold_back(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                             const State<L>& x, Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(x, w);
  ContactProblem<L>& problem = w.problem;
  TreeVector<L> lag;
  each_dof<L>(g, m, [&](Real v0, Real v, Real& to) { to = (v0 - v) * (1 - opt.theta_vq); }, x.v, w.v, lag);
  const Real zero(0), least = norm(vec<Real>(m.gravity)) * -opt.h;
  Mask<Real> hits = mask_of<Real>(false);
  auto take = [&](const ContactPoint<Real>& point, Real closing, Real impulse, ContactRow<Real>& row) {
    const Mask<Real> held = point.active & (point.stiffness <= zero) & (closing < zero);
    row.e = select(held, row.e + closing, row.e), hits = hits | (held & (impulse > zero) & (closing < least));
  };
  row_velocities<L>(
      g, m, w.kin, w.contacts, lag, w.motions,
      [&](const auto&, int c, const Motion<Real>& V) {
        take(w.contacts.point.slot[c], V.v.z, w.impulses.slot.slot[c].z, problem.row.slot[c]);
      },
      [&](int i, const Motion<Real>& V1, const Motion<Real>& V2) {
        take(w.contacts.pair[i].point, V2.v.z - V1.v.z, w.impulses.pair[i].z, problem.pair_row[i]);
      });
  return hits;
}

}  // namespace stiction
