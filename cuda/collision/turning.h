// What turns in a step: where its contacts are.
//
// A contact is at one point p, and closes in the step by h n.(v + w x p): of a point of the body that is what its height changes by
// but for the square of the turn h |w|, and of an ellipsoid's deepest point after half a turn nothing at all. Here p is moved
// across n to where it is by how much the gap changes in the free motion, however far that turns: from a point x of the body to
// its mean over the turn, (3.1a). An ellipsoid's x stands for those that are deepest one after another: with D the half sizes and d the
// normal in its axes, now and at the end of the step, it is s = |D d| deep, and
//
//   x = -D^2 (d_now + d_end) / (s_now + s_end),     (d_end - d_now).x = s_now - s_end                    docs/theory.md, (3.1b)
#pragma once
#include "collision/contact.h"
#include "dynamics/gyroscopic.h"

namespace stiction {

/// Turns (rad) up to this leave contacts where they are, those above twice that move them wholly. Contacts at the middle of a
/// turn hold what spins on the floor, but damp what rocks and rolls; at the beginning of small turns they do neither.
inline constexpr float kLeastTurn = 0.05f;

/// Of a body in the free motion of a step.
template <class Real>
struct Turning {
  Vec3<Real> turn;    // about its axis                                                                    rad
  Vec3<Real> centre;  // goes straight                                                                     m
  bool straight;      // it does: the body is on its own

  /// How much of the way its contacts move.
  HD Real part() const { return clamp(norm(turn) * Scalar<Real>(1 / kLeastTurn) - Real(1), Real(0), Real(1)); }
};

/// The candidate c of a point x of the body. Where it gets less deep than it seems from its velocity that is left as it is: a blow
/// that takes the turn away takes this, too.
template <class Real>
HD Candidate<Real> turning_point(const Candidate<Real>& c, Vec3<Real> x, const Turning<Real>& body) {
  using S = Scalar<Real>;
  if (!body.straight) return c;
  const Real part = body.part();
  if (!any(part > Real(0))) return c;
  const Vec3<Real> arm = x - body.centre;
  const Vec3<Real> off = (RootTurn<Real>(body.turn, S(1)).mean(arm, S(1)) - arm) * part;
  const Mask<Real> deeper = dot(c.normal, cross(body.turn, off)) < Real(0);
  return {select(deeper, c.pos + off - c.normal * dot(c.normal, off), c.pos), c.normal, c.dist};
}

/// The candidate c of an ellipsoid; the normal points to it.
template <class Real>
HD Candidate<Real> turning_ellipsoid(const Candidate<Real>& c, const GeomPose<Real>& ellipsoid,
                                     const Turning<Real>& body) {
  using S = Scalar<Real>;
  const Real part = body.part();
  if (!any(part > Real(0))) return c;
  const Vec3<Real>&n = c.normal, &size = ellipsoid.size;
  const RootTurn<Real> on(body.turn, S(1)), back(-body.turn, S(1));
  auto scaled = [&](Vec3<Real> d) { return Vec3<Real>{d.x * size.x, d.y * size.y, d.z * size.z}; };
  const Mat3<Real>& R = ellipsoid.pose.R;
  const Vec3<Real> now = scaled(transposed_times(R, n)),
                   end = scaled(transposed_times(R, n + back.change(cross(back.axis, n))));
  const Vec3<Real> x = R * scaled(now + end) * (Real(-1) / max(norm(now) + norm(end), Real(1e-30f)));
  const Vec3<Real> centre = body.straight ? body.centre : ellipsoid.pose.p;
  const Vec3<Real> p = centre + on.mean(ellipsoid.pose.p + x - centre, S(1));
  const Vec3<Real> off = p - c.pos;
  return {c.pos + (off - n * dot(n, off)) * part, n, c.dist};
}

}  // namespace stiction
