// Capsule (geom 1) against box (geom 2): the capsule's axis against the box, grown by the radius. Two candidates.
//
// In the box's frame the axis is x(s) = c + s u, |s| <= l. Its squared distance to the box is convex, and half its
// derivative g(s) = u . (x(s) - clamp(x(s))) is piecewise linear with bends where x(s) crosses a face's plane: g is
// evaluated at the bends and the ends, and the root interpolated, which is exact. Where the axis pierces the box, the
// least translation that frees it is along one of 3 face normals or 3 products u x e_i (the facets of box + segment). A
// second candidate exists where the axis is within 0.1 rad of the tangent plane, or has the same one there, as what tips onto a face: the
// far end of the part of the axis that lies beside the face or edge touched. Within 0.1 rad candidate 0 is the one lower on the axis, else
// the nearer one; otherwise candidate 1 is absent. Deviation from MuJoCo: its second point follows other rules; the deeper one agrees where
// the axis is outside the box.
#pragma once
#include "collision/primitives/sphere_solid.h"

namespace stiction {

/// Where the axis comes closest to the box: in [-l, l], the lowest s of all closest.
template <class Real> HD Real closest_on_axis(const Real (&c)[3], const Real (&u)[3], Real l, const Real (&h)[3]) {
  Real zero(0), low = -l, high = l, g_low(0), g_high(0);
  auto offer = [&](Real s) {
    Real g(0);
  UNROLL for (int i = 0; i < 3; ++i) {
      Real x = c[i] + s * u[i];
      g = g + u[i] * (x - clamp(x, -h[i], h[i]));
    }
    Mask<Real> falls = g < zero, above = (s >= low) & falls, below = (s <= high) & negate(falls);
    low = select(above, s, low), g_low = select(above, g, g_low);
    high = select(below, s, high), g_high = select(below, g, g_high);
  };
  UNROLL for (int k = 0; k < 8; ++k) {
    Real side((k & 1) != 0 ? 1 : -1), s = l * side;
    if (k >= 2) {
      int i = (k - 2) / 2;
      Mask<Real> moves = abs(u[i]) > Real(1e-8f);
      s = select(moves, clamp((h[i] * side - c[i]) / select(moves, u[i], Real(1)), -l, l), l);
    }
    offer(s);
  }
  // Nothing falls: the lowest end. Falls to the end: the highest.
  Real rise = g_high - g_low;
  Mask<Real> crosses = (g_low < zero) & (rise > zero);
  Real t = clamp(-g_low / select(crosses, rise, Real(1)), zero, Real(1));
  return select(crosses, low + (high - low) * t, select(g_low < zero, high, -l));
}

/// Parts of the radius. What lies beyond a face's end by more than kAtEdge touches the edge there, and goes on touching it where it lies
/// further out by up to kBesideEdge: its gap grows by less than a part of its own.
inline constexpr float kAtEdge = 1e-4f, kBesideEdge = 0.02f;
/// The part [low, high] of the axis beside the box: within the slabs whose faces the normal n does not mean. May be empty. What touches
/// an edge is closest beyond a slab, at s. r: the radius; 0 where the axis pierces the box.
template <class Real>
HD void clip_axis(const Real (&c)[3], const Real (&u)[3], Real l, const Real (&h)[3], const Real (&n)[3], Real s, Real r,
                  Real& low, Real& high) {
  low = -l, high = l;
  UNROLL for (int i = 0; i < 3; ++i) {
    Mask<Real> clips = (abs(n[i]) < Real(0.5f)) & (abs(u[i]) > Real(1e-6f));
    const Real x = abs(c[i] + s * u[i]);
    const Mask<Real> passes = (r > Real(0)) & (x > h[i] + r * Real(kAtEdge));
    const Real end = select(passes, x + r * Real(kBesideEdge), h[i]);
    Real inverse = Real(1) / select(clips, u[i], Real(1)), p = (-end - c[i]) * inverse, q = (end - c[i]) * inverse;
    low = select(clips, max(low, min(p, q)), low);
    high = select(clips, min(high, max(p, q)), high);
  }
}

/// How an axis that pierces the box leaves it: outward normal n, its depth, and the parameter s of the deepest point.
/// `edge`: along u x e_i, where there is but one contact.
template <class Real>
HD void pierced(const Real (&c)[3], const Real (&u)[3], Real l, const Real (&h)[3], Real (&n)[3], Real& depth, Real& s,
                Mask<Real>& edge) {
  Real zero(0), one(1);
  depth = Real(1e30f), s = zero, edge = mask_of<Real>(false);
  UNROLL for (int i = 0; i < 3; ++i) {
    Real out = select(c[i] < zero, -one, one), d = h[i] + l * abs(u[i]) - abs(c[i]);
    Mask<Real> take = d < depth;
    depth = select(take, d, depth), s = select(take, select(u[i] * out > zero, -l, l), s);
    UNROLL for (int j = 0; j < 3; ++j) n[j] = select(take, j == i ? out : zero, n[j]);
  }
  UNROLL for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;  // u x e_i = (0, u_k, -u_j) in (i, j, k)
    Real square = u[j] * u[j] + u[k] * u[k];
    Mask<Real> skew = square > Real(1e-6f);
    Real inverse = one / sqrt(select(skew, square, one)), nj = u[k] * inverse, nk = -u[j] * inverse;
    Real along = nj * c[j] + nk * c[k], sign = select(along < zero, -one, one);
    nj = nj * sign, nk = nk * sign;
    Real d = h[j] * abs(nj) + h[k] * abs(nk) - abs(along);
    Real wj = select(nj < zero, -h[j], h[j]) - c[j], wk = select(nk < zero, -h[k], h[k]) - c[k];
    Mask<Real> take = skew & (d < depth * Real(0.9999999f));
    Real foot = clamp((u[j] * wj + u[k] * wk) / select(skew, square, one), -l, l);
    depth = select(take, d, depth), s = select(take, foot, s), edge = edge | take;
    n[i] = select(take, zero, n[i]), n[j] = select(take, nj, n[j]), n[k] = select(take, nk, n[k]);
  }
}

template <class Real>
HD void capsule_box(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> centre = transposed_times(b.pose.R, a.pose.p - b.pose.p);
  Vec3<Real> axis = transposed_times(b.pose.R, column(a.pose.R, 2));
  Real c[3] = {centre.x, centre.y, centre.z}, u[3] = {axis.x, axis.y, axis.z}, h[3] = {b.size.x, b.size.y, b.size.z};
  Real r = a.size.x, l = a.size.y, s = closest_on_axis(c, u, l, h), depth, inner_s, low, high, n[3];
  Vec3<Real> outward;
  Real core = box_distance(centre + axis * s, b.size, outward);
  Real on_surface = (h[0] + h[1] + h[2]) * Real(kLengthNoise<Real>);  // where a piercing axis enters
  Mask<Real> inside = core <= on_surface, edge;
  pierced(c, u, l, h, n, depth, inner_s, edge);
  edge = edge & inside;
  outward = select(inside, Vec3<Real>{n[0], n[1], n[2]}, outward);
  n[0] = outward.x, n[1] = outward.y, n[2] = outward.z;
  core = select(inside, -depth, core), s = select(inside, inner_s, s);

  // The deepest end is beside its face, but where the axis is parallel to it both ends are deepest and may stick out.
  clip_axis(c, u, l, h, n, s, select(inside, Real(0), r), low, high);
  Real slope = dot(axis, outward), beside = select(inside & negate(edge) & (low <= high), clamp(s, low, high), s);
  core = core + (beside - s) * slope, s = beside;
  Candidate<Real> near = ball_solid_contact(b.pose, centre + axis * s, r, outward, core);

  low = min(low, s), high = max(high, s);
  Mask<Real> lower = s - low < high - s;
  Real far = select(lower, high, low);
  Vec3<Real> x = centre + axis * far, far_outward;
  Real far_core = box_distance(x, b.size, far_outward);
  far_core = select(inside, core + (far - s) * slope, far_core);
  far_outward = select(inside, outward, far_outward);
  const Mask<Real> along = abs(slope) < Real(0.1f), same = dot(far_outward, outward) > Real(0.9999f);
  Mask<Real> two = (along | same) & (abs(far - s) > r * Real(0.1f)) & negate(edge);
  Candidate<Real> other = select<Real>(two, ball_solid_contact(b.pose, x, r, far_outward, far_core), absent<Real>());
  Mask<Real> swap = two & along & negate(lower);
  out[0] = select<Real>(swap, other, near);
  out[1] = select<Real>(swap, near, other);
}

}  // namespace stiction
