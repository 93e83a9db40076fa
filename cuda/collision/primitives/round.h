// Sphere-sphere, sphere-capsule, capsule-capsule: distances between points and segments, grown by radii.
//
// capsule-capsule: the closest points of two segments are the foot points of the common perpendicular if both lie on
// the segments, else the best of the four (end, segment) pairs (the squared distance is convex on the rectangle of
// parameters). The perpendicular comes from cross products, which stay exact in float for nearly parallel axes. Two
// candidates: axes within 0.1 rad that overlap lengthwise also touch at the far end of the overlap. Candidate 0 is then
// the one lower on the axis of capsule 1, candidate 1 the upper; otherwise candidate 0 is the closest pair and
// candidate 1 absent. Deviation from MuJoCo: it makes two contacts only of exactly parallel capsules, and where axes
// meet its normal is arbitrary; here it is perpendicular to both. Coincident centres: see each function.
#pragma once
#include "collision/contact.h"

namespace stiction {

/// Two balls around a and b; `fallback` (unit) is the normal where a and b coincide to rounding.
template <class Real>
HD Candidate<Real> ball_contact(Vec3<Real> a, Real ra, Vec3<Real> b, Real rb, Vec3<Real> fallback) {
  Vec3<Real> d = b - a;
  Real square = dot(d, d), tiny = (ra + rb) * Real(kLengthNoise<Real>);
  Mask<Real> same = square <= tiny * tiny + Real(1e-30f);
  Real length = sqrt(select(same, Real(1), square));
  Vec3<Real> n = select(same, fallback, d * (Real(1) / length));
  Real dist = select(same, Real(0), length) - ra - rb;
  return {a + n * (ra + dist * Real(0.5f)), n, dist};
}

/// Coincident centres: the normal is z of sphere 1.
template <class Real>
HD void sphere_sphere(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  out[0] = ball_contact(a.pose.p, a.size.x, b.pose.p, b.size.x, column(a.pose.R, 2));
}

/// Of spheres that are apart, b going by `way` against a in the step: the normal where they meet on it, or are nearest, which of those that
/// glance is another than now, and what there is to that along it.
template <class Real>
HD void meet_on_way(const GeomPose<Real>& a, const GeomPose<Real>& b, Vec3<Real> way, Candidate<Real>& c) {
  const Real zero(0), one(1), radii = a.size.x + b.size.x;
  const Vec3<Real> d = b.pose.p - a.pose.p;
  const Real closes = -dot(d, way), open = dot(d, d) - radii * radii, far = dot(way, way),
             square = closes * closes - far * open;
  const Mask<Real> near = (open > zero) & (closes > zero), hits = square > zero;
  if (!any(near)) return;
  const Real until = select(hits, closes + sqrt(max(square, zero)), far);
  const Real when = min(select(hits, open, closes) / select(near, until, one), one);
  const Vec3<Real> there = d + way * when, n = there * (one / select(near, norm(there), one));
  const Real gap = dot(d, n) - radii;
  c = select<Real>(near, Candidate<Real>{a.pose.p + n * (a.size.x + gap * Real(0.5f)), n, gap}, c);
}

/// A centre on the axis: the normal is x of the capsule.
template <class Real>
HD void sphere_capsule(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> u = column(b.pose.R, 2);
  Real s = clamp(dot(u, a.pose.p - b.pose.p), -b.size.y, b.size.y);
  out[0] = ball_contact(a.pose.p, a.size.x, b.pose.p + u * s, b.size.x, column(b.pose.R, 0));
}

/// Of the closest points s u and w + t v of two segments.
template <class Real> struct Closest { Real s, t; };
/// |s| <= hs, |t| <= ht; n = u x v, n2 = |n|^2.
template <class Real>
HD Closest<Real> closest_on_segments(Vec3<Real> u, Real hs, Vec3<Real> w, Vec3<Real> v, Real ht, Vec3<Real> n,
                                     Real n2) {
  Real uv = dot(u, v), uw = dot(u, w), vw = dot(v, w), best(1e30f), s = -hs, t = -ht;
  auto offer = [&](Real si, Real ti) {
    Vec3<Real> d = w + v * ti - u * si;
    Real square = dot(d, d);
    Mask<Real> take = square < best;
    best = select(take, square, best), s = select(take, si, s), t = select(take, ti, t);
  };
  UNROLL for (int end = 0; end < 4; ++end) {
    Real sign((end & 1) != 0 ? 1 : -1);
    Real si = end < 2 ? hs * sign : clamp(uw + ht * sign * uv, -hs, hs);
    offer(si, end < 2 ? clamp(si * uv - vw, -ht, ht) : ht * sign);
  }
  Mask<Real> skew = n2 > Real(1e-12f);
  Real inverse = Real(1) / select(skew, n2, Real(1));
  Real si = dot(cross(w, v), n) * inverse, ti = dot(cross(w, u), n) * inverse;
  Mask<Real> inside = skew & (abs(si) <= hs) & (abs(ti) <= ht);
  return {select(inside, si, s), select(inside, ti, t)};
}

template <class Real>
HD void capsule_capsule(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> u = column(a.pose.R, 2), v = column(b.pose.R, 2), w = b.pose.p - a.pose.p, n = cross(u, v);
  Real ha = a.size.y, hb = b.size.y, n2 = dot(n, n), uv = dot(u, v);
  const auto [s, t] = closest_on_segments(u, ha, w, v, hb, n, n2);

  Mask<Real> skew = n2 > Real(1e-8f);
  Real flip = select(dot(n, w) < Real(0), Real(-1), Real(1)) / sqrt(select(skew, n2, Real(1)));
  Vec3<Real> fallback = select(skew, n * flip, column(a.pose.R, 0));
  Candidate<Real> near = ball_contact(a.pose.p + u * s, a.size.x, b.pose.p + v * t, b.size.x, fallback);

  Real middle = dot(u, w), reach = hb * abs(uv), low = max(-ha, middle - reach), high = min(ha, middle + reach);
  Mask<Real> lower = s - low < high - s;
  Real far = select(lower, high, low), far_t = clamp(far * uv - dot(v, w), -hb, hb);
  Candidate<Real> other = ball_contact(a.pose.p + u * far, a.size.x, b.pose.p + v * far_t, b.size.x, fallback);
  Mask<Real> two = (n2 < Real(0.01f)) & (high > low) & (abs(far - s) > (a.size.x + b.size.x) * Real(0.1f));
  other = select<Real>(two, other, absent<Real>());
  Mask<Real> swap = two & negate(lower);
  out[0] = select<Real>(swap, other, near);
  out[1] = select<Real>(swap, near, other);
}

}  // namespace stiction
