// What a world carries from step to step while a kernel holds it, and the user's arrays it is loaded from.
#pragma once
#include "model/tree.h"

namespace stiction {

/// Whether poses are summed with what rounding took from them: in float an arm that turns by less than half a last digit in a
/// step would stand still, and gaps would be rounded to what a last digit is in a step, 1e-5 m/s. Else `low` is 0.
template <class Real>
inline constexpr bool kCompensated = sizeof(Scalar<Real>) == 4;

/// q of a ball joint: x, y, z of its quaternion in its three dofs, w in `qw` at the first. q of a free base is not used.
template <class L>
struct State {
  using Real = typename L::Real;
  Vec3<Real> position;  // of a free base                                        m
  Quat<Real> orientation;
  TreeVector<L> q, v;  //                                                       rad, m; rad/s, m/s
  TreeVector<L> qw;
  TreeVector<L> low;  // what rounding took from the pose, as a motion from there, of a free base as v   rad, m
  TreeVector<L>
      owed;  // impulses that the last step's Coriolis forces lack, dynamics/coriolis.h; turning of a free base as v   N s, N m s
};

/// at(i, k): entry i of qpos is q of the link's dof + k; k = -1: w of its quaternion. For all entries that the link has.
template <class Link, class At>
HD void each_coordinate(const Link& link, At at) {
  if (link.kind == kBallNextLink) return;
  if (link.kind != kBallLink) return at(link.qpos, 0);
  UNROLL for (int k = -1; k < 3; ++k) at(link.qpos + 1 + k, k);
}

}  // namespace stiction
