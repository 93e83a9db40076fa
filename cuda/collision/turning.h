// What turns in a step touches with one point after another.
//
// A contact is at one point p, and closes in the step by h n.(v + w x p): of an ellipsoid's deepest point that is what its gap
// changes by, but for the square of the turn h |w|, and after half a turn it says nothing. Here p moves along the surface that is
// touched, to where n.(v + w x p) is by how much the gap really changes in the free motion: along the arc of a point x of the
// body that stands for those that are deepest one after another. With D the half sizes and d the normal in the ellipsoid's axes,
// now and at the end of the step, the ellipsoid reaches s = |D d| deep, and
//
//   x = -D^2 (d_now + d_end) / (s_now + s_end),     (d_end - d_now).x = s_now - s_end                    docs/theory.md, (3.1a)
#pragma once
#include "collision/contact.h"
#include "dynamics/gyroscopic.h"

namespace stiction {

/// The candidate of an ellipsoid that turns about `centre` by `turn` (rad) in the step; its normal points to the ellipsoid.
template <class Real>
HD Candidate<Real> turning_ellipsoid(const Candidate<Real>& c, const GeomPose<Real>& ellipsoid, Vec3<Real> centre,
                                     Vec3<Real> turn) {
  using S = Scalar<Real>;
  const Vec3<Real>&n = c.normal, &size = ellipsoid.size;
  const RootTurn<Real> on(turn, S(1)), back(-turn, S(1));
  auto scaled = [&](Vec3<Real> d) { return Vec3<Real>{d.x * size.x, d.y * size.y, d.z * size.z}; };
  const Mat3<Real>& R = ellipsoid.pose.R;
  const Vec3<Real> now = scaled(transposed_times(R, n)),
                   end = scaled(transposed_times(R, n + back.change(cross(back.axis, n))));
  const Real depth = norm(now) + norm(end);
  const Vec3<Real> x = scaled(now + end) * (Real(-1) / max(depth, Real(1e-30f)));
  const Vec3<Real> p = centre + on.mean(ellipsoid.pose.p + R * x - centre, S(1));
  return {p + n * dot(n, c.pos - p), n, c.dist};
}

}  // namespace stiction
