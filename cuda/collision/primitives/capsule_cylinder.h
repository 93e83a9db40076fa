// Capsule (geom 1) against cylinder (geom 2): the capsule's axis against the cylinder, grown by the radius. Two candidates.
//
// In the cylinder's frame the axis is x(s) = c + s u, |s| <= l. Its squared distance to the cylinder is convex; half its
// derivative g(s) never falls, and its root is found by Newton steps kept between the ends where it has either sign. A
// second candidate exists where the axis is within 0.1 rad of the tangent plane, or has the same one there, as what tips onto a cap: the
// far end of the part of the axis that lies beside the cap or the side touched. Within 0.1 rad candidate 0 is the one lower on the
// axis, else the nearer one; otherwise candidate 1 is absent.
// Where the axis comes within 1 % of the radius of the cylinder nothing is said: the deepest point of a rim swept along an
// axis has no short formula, and convex/ has it. Deviation from MuJoCo: it finds both by support functions.
#pragma once
#include "collision/primitives/sphere_solid.h"

namespace stiction {

/// Newton steps to the closest point of an axis.
inline constexpr int kAxisSteps = 16;

/// At a point of an axis: half the derivative of its squared distance to a cylinder, and where Newton's step leads.
template <class Real> struct AxisStep { Real g, next; };
/// At c + s u, of a cylinder (r, h) along z. Beside the side the step is exact.
template <class Real> HD AxisStep<Real> step_on_axis(Vec3<Real> c, Vec3<Real> u, Real s, Real r, Real h) {
  const Real zero(0), one(1), tiny(1e-12f);
  const Vec3<Real> x = c + u * s;
  const Real square = x.x * x.x + x.y * x.y, flat = u.x * u.x + u.y * u.y, along = x.x * u.x + x.y * u.y;
  const Mask<Real> beside = square > max(r * r, Real(1e-30f)), beyond = abs(x.z) > h;
  const Real inverse = one / sqrt(select(beside, square, one)), turn = along * inverse, shrink = one - r * inverse;
  const Real cap = select(x.z < zero, x.z + h, x.z - h);
  const Real side_g = select(beside, shrink * along, zero), cap_g = select(beyond, cap * u.z, zero);
  const Real side_rise = select(beside, turn * turn + shrink * (flat - turn * turn), zero);
  const Real rise = select(beyond, side_rise + u.z * u.z, flat), g = side_g + cap_g;
  return {g, s - select(beyond, g, select(beside, along, zero)) / max(rise, tiny)};
}

/// The s in [-l, l] that is closest, of many any; of an axis that pierces the cylinder one inside.
template <class Real> HD Real closest_to_cylinder(Vec3<Real> c, Vec3<Real> u, Real l, Real r, Real h) {
  const Real zero(0), half(0.5f);
  const Mask<Real> first = step_on_axis(c, u, -l, r, h).g >= zero, last = step_on_axis(c, u, l, r, h).g < zero;
  auto settled = mask_of<Real>(false);
  Real low = -l, high = l, s = clamp(-dot(c, u), -l, l);
  for (int k = 0; k < kAxisSteps && !all(settled); ++k) {
    const AxisStep<Real> step = step_on_axis(c, u, s, r, h);
    const Mask<Real> falls = step.g < zero;
    low = select(falls, s, low), high = select(falls, high, s);
    const Mask<Real> here = abs(step.next - s) <= l * Real(kLengthNoise<Real>);
    const Mask<Real> within = here | ((step.next > low) & (step.next < high));
    s = select(settled, s, select(within, step.next, (low + high) * half));
    settled = settled | here;
  }
  return select(first, -l, select(last, l, s));
}

/// The part [low, high] of the axis beside the cap or the side that the normal n means; empty (low > high) at most where
/// the axis passes by.
template <class Real>
HD void clip_to_face(Vec3<Real> c, Vec3<Real> u, Real l, Real r, Real h, Vec3<Real> n, Real& low, Real& high) {
  const Real zero(0), one(1), a = u.x * u.x + u.y * u.y, b = u.x * c.x + u.y * c.y;
  const Mask<Real> on_cap = abs(n.z) > Real(0.7f);
  const Mask<Real> clips = select(on_cap, a, u.z * u.z) > Real(1e-12f);
  const Real inverse = one / select(clips, select(on_cap, a, u.z), one);
  const Real root = sqrt(max(b * b - a * (c.x * c.x + c.y * c.y - r * r), zero));
  const Real p = select(on_cap, -b - root, -h - c.z) * inverse, q = select(on_cap, root - b, h - c.z) * inverse;
  low = select(clips, max(-l, min(p, q)), -l), high = select(clips, min(l, max(p, q)), l);
}

/// The candidates of the worlds that are not returned.
template <class Real>
HD Mask<Real> capsule_cylinder(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  const Vec3<Real> c = transposed_times(b.pose.R, a.pose.p - b.pose.p),
                   u = transposed_times(b.pose.R, column(a.pose.R, 2));
  const Real r = b.size.x, h = b.size.y, radius = a.size.x, l = a.size.y;
  const Real noise = (r + h + l) * Real(4 * kLengthNoise<Real>);
  auto end_at = [&](Real s, Vec3<Real>& n) { return cylinder_distance(c + u * s, r, h, n); };

  Vec3<Real> n, low_n, high_n;
  Real s = closest_to_cylinder(c, u, l, r, h), low, high, core = end_at(s, n);
  clip_to_face(c, u, l, r, h, n, low, high);
  low = min(low, s), high = max(high, s);
  const Real low_core = end_at(low, low_n), high_core = end_at(high, high_n);
  // Of a part that is all closest, an end.
  const Mask<Real> at_low = low_core <= core + noise, at_high = negate(at_low) & (high_core <= core + noise);
  s = select(at_low, low, select(at_high, high, s));
  core = select(at_low, low_core, select(at_high, high_core, core));
  n = select(at_low, low_n, select(at_high, high_n, n));

  const Mask<Real> lower = s - low < high - s;
  const Real far = select(lower, high, low), far_core = select(lower, high_core, low_core);
  const Vec3<Real> far_n = select(lower, high_n, low_n);
  const Mask<Real> along = abs(dot(u, n)) < Real(0.1f);
  const Mask<Real> same = dot(far_n, n) > Real(0.9999f);
  const Mask<Real> two = (along | same) & (abs(far - s) > radius * Real(0.1f));
  const Candidate<Real> near = ball_solid_contact(b.pose, c + u * s, radius, n, core);
  Candidate<Real> other = ball_solid_contact(b.pose, c + u * far, radius, far_n, far_core);
  other = select<Real>(two, other, absent<Real>());
  const Mask<Real> swap = two & along & negate(lower);
  out[0] = select<Real>(swap, other, near);
  out[1] = select<Real>(swap, near, other);
  return core <= radius * Real(0.01f) + noise;
}

}  // namespace stiction
