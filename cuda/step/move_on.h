// How a step moves the state, once its velocities are known.
#pragma once
#include "contact/workspace.h"
#include "dynamics/integrate.h"
#include "dynamics/late_turn.h"

namespace stiction {

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

}  // namespace stiction
