// Any two convex shapes: distance by GJK where the cores are apart, depth by EPA where they overlap, then a manifold.
//
// One world at a time, T = double whatever the world's Real: a simplex near a face loses all digits of a float.
// Symmetric in nothing but the result: exchanging A and B exchanges the roles in rounding. Cost on a CPU: 3-30 us
// (bench of 500 random poses, two thirds overlapping, a hull of 60 vertices). No allocation, no recursion, bounded
// loops, finite for finite input.
#pragma once
#include "collision/convex/epa.h"
#include "collision/convex/manifold.h"

namespace stiction {

/// h(n) of these is differentiable somewhere near its minima.
HD bool is_smooth(int type) { return type == GeomKind::kEllipsoid || type == GeomKind::kCylinder; }

/// Where a face of a box is touched, its own normal: of a box of hundreds of metres one that is off by 1e-8 makes the far edge the
/// deepest, and of one of some metres depth is found to micrometres only, at edges with a normal off by 1e-3. Within 1e-5 of the
/// face's own it is that, if the other shape's support point is over the face, and where shapes overlap less along it. `out`: from
/// the box, 1 or -1 times s.normal.
template <class T, class S>
HD_CALL void snap_to_face(ConvexShape<T, S>& box, ConvexShape<T, S>& other, T out, Penetration<T>& s) {
  const Vec3<T> l = transposed_times(box.pose.R, s.normal) * out, h = box.size;
  const T x = abs(l.x), y = abs(l.y), z = abs(l.z);
  const int k = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
  const Vec3<T> face = {k == 0 ? (l.x < 0 ? T(-1) : T(1)) : T(0), k == 1 ? (l.y < 0 ? T(-1) : T(1)) : T(0),
                        k == 2 ? (l.z < 0 ? T(-1) : T(1)) : T(0)};
  const T off = dot(l - face, l - face);
  if (!(off < T(1e-10)) && !(s.depth > 0 && off < T(1e-2))) return;
  const Vec3<T> n = box.pose.R * face, p = support(other, -n);
  const Vec3<T> at = transposed_times(box.pose.R, p - box.pose.p);
  const T height = dot(face, at) - (k == 0 ? h.x : k == 1 ? h.y : h.z);
  if (!(off < T(1e-10))) {
    if (!(s.depth > -height)) return;
  } else if ((k != 0 && abs(at.x) > h.x) || (k != 1 && abs(at.y) > h.y) || (k != 2 && abs(at.z) > h.z)) {
    return;
  }
  const Vec3<T> under = p - n * height;
  s.normal = n * out, s.depth = -height;
  s.on_a = out > 0 ? under : p, s.on_b = out > 0 ? p : under;
}

/// False where the shapes are more than `reach` apart, which a few steps of GJK mostly show; reach^2 must be finite.
template <class T, class S>
HD_CALL bool touch(ConvexShape<T, S>& a, ConvexShape<T, S>& b, T reach, Touch<T>& found) {
  Penetration<T> s;
  const T ra = radius(a), rb = radius(b);
  const Distance distance = closest_points(a, b, T(0), ra + rb + reach, s.on_a, s.on_b);
  if (distance == Distance::kBeyond) return false;
  // Rounding grows with the larger shape; what counts as one point, or as on a face, with the smaller.
  const T one = extent(a), other = extent(b), scale = max(one, other), size = min(one, other);
  if (distance == Distance::kApart && norm(s.on_b - s.on_a) > scale * T(1e-9)) {
    s.normal = s.on_b - s.on_a;
    s.depth = -norm(s.normal);
    s.normal = s.normal * (T(-1) / s.depth);
  } else {
    // Polish sharpens smooth minima; a tolerance of 1e-3 left errors of 1e-3 where one of the shapes has kinks.
    s = penetration(a, b, scale, scale * T(is_smooth(a.type) || is_smooth(b.type) ? 1e-6 : 1e-9));
  }
  if (is_smooth(a.type) || is_smooth(b.type)) polish(a, b, scale, s);
  // The support point of an ellipsoid is its closest or deepest point; others may have many.
  if (a.type == GeomKind::kEllipsoid) s.on_a = support(a, s.normal), s.on_b = s.on_a - s.normal * s.depth;
  else if (b.type == GeomKind::kEllipsoid) s.on_b = support(b, -s.normal), s.on_a = s.on_b + s.normal * s.depth;
  if (a.type == GeomKind::kBox) snap_to_face(a, b, T(1), s);
  else if (b.type == GeomKind::kBox) snap_to_face(b, a, T(-1), s);
  const Vec3<T> middle = (s.on_a + s.normal * ra + s.on_b - s.normal * rb) * T(0.5);
  const T noise = size * T(a.type == GeomKind::kCylinder || b.type == GeomKind::kCylinder ? 1e-5 : 1e-7);
  found = {s.normal, middle, -s.depth - ra - rb, size, noise + scale * T(2e-9)};
  return true;
}

/// Where shapes go in the step, and how near they must be then.
template <class T> struct StepEnd {
  Closing<T> way = {};
  T gap = T(kFar);  // m
  /// Whether some contact of shapes that touch so may be as near: all have that normal, and lie on the smaller shape, which reaches as
  /// far as a cube's corners do.
  HD bool counts(const Touch<T>& t) const {
    const T turns = norm(cross(way.w, t.normal)) * (T(3.47) * t.size);
    return t.gap - max(T(0), turns - dot(t.normal, velocity_at(way, t.middle))) <= gap;
  }
};

/// Contacts 0 .. room - 1 of A (geom 1) and B (geom 2); room <= 8. None where the shapes are more than `reach` apart, or no contact
/// counts in the end.
template <class T, class S>
HD_CALL void convex_pair(ConvexShape<T, S>& a, ConvexShape<T, S>& b, int room, T reach, const Tipping<T>& tips,
                         const Closing<T>& closing, const StepEnd<T>& end, Candidate<T>* out) {
  Touch<T> t;
  if (touch(a, b, reach, t) && end.counts(t)) {
    make_manifold(a, b, t, tips, closing, room, out);
    return;
  }
  for (int k = 0; k < room; ++k) out[k] = absent<T>();
}

}  // namespace stiction
