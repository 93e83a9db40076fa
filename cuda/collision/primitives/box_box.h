// Box-box: up to 8 contacts, one world at a time.
//
// Overlapping: the least overlap along the 15 axes of the separating axis theorem (6 face normals, 9 products of edges)
// is the exact penetration depth ([Gottschalk1996]). Faces win ties, so resting boxes keep their faces. Apart:
// the distance and normal of the closest points (convex/gjk.h); separating axes alone would underestimate it at
// corners. Then the manifold of both support faces (convex/manifold.h): up to 8 corners, slots 0..3 from A's corners
// and edges, 4..7 from B's corners. Deviation from MuJoCo: apart, it uses the separating axis; its choice of corners
// differs where more than 4 are within margin.
#pragma once
#include "collision/convex/gjk.h"
#include "collision/convex/manifold.h"

namespace stiction {

template <class T> struct Separation {
  Vec3<T> normal;      // from A to B
  T gap;               // largest signed gap of all axes
  int edge_a, edge_b;  // axes whose product is the normal, or -1
};

/// Of boxes that a face keeps `reach` apart not the largest, but one at least as large as reach.
template <class T>
HD_CALL Separation<T> largest_separation(const GeomPose<T>& a, const GeomPose<T>& b, T reach) {
  const T ha[3] = {a.size.x, a.size.y, a.size.z}, hb[3] = {b.size.x, b.size.y, b.size.z};
  Vec3<T> d = b.pose.p - a.pose.p;
  Separation<T> best = {{0, 0, 1}, T(-1e300), -1, -1};
  T tie = (ha[0] + ha[1] + ha[2] + hb[0] + hb[1] + hb[2]) * T(1e-9);
  auto offer = [&](Vec3<T> n, int i, int j) {
    T reach = 0, along = dot(n, d);
    for (int k = 0; k < 3; ++k)
      reach += ha[k] * abs(dot(n, column(a.pose.R, k))) + hb[k] * abs(dot(n, column(b.pose.R, k)));
    if (abs(along) - reach > best.gap + tie) best = {along < 0 ? -n : n, abs(along) - reach, i, j};
  };
  for (int k = 0; k < 6; ++k) offer(column(k < 3 ? a.pose.R : b.pose.R, k % 3), -1, -1);
  if (best.gap >= reach) return best;
  for (int k = 0; k < 9; ++k) {
    Vec3<T> n = cross(column(a.pose.R, k / 3), column(b.pose.R, k % 3));
    T square = dot(n, n);
    if (square > T(1e-12)) offer(n * (T(1) / sqrt(square)), k / 3, k % 3);
  }
  return best;
}

/// The middle of the deepest place: between the two edges, or at a corner of the box whose face it is not.
template <class T, class S> HD Vec3<T> deepest_middle(ConvexShape<T, S>& a, ConvexShape<T, S>& b,
                                                      const Separation<T>& s) {
  Vec3<T> p = support(a, s.normal), q = support(b, -s.normal);
  if (s.edge_a >= 0) {  // p + x u and q + y v, closest
    Vec3<T> u = column(a.pose.R, s.edge_a), v = column(b.pose.R, s.edge_b), w = q - p, n = cross(u, v);
    T square = dot(n, n);
    p = p + u * (dot(cross(w, v), n) / square), q = q + v * (dot(cross(w, u), n) / square);
    return (p + q) * T(0.5);
  }
  bool face_of_a = false;
  for (int k = 0; k < 3; ++k) face_of_a |= abs(dot(s.normal, column(a.pose.R, k))) > T(1 - 1e-12);
  return face_of_a ? q - s.normal * (s.gap * T(0.5)) : p + s.normal * (s.gap * T(0.5));
}

/// S: that of the hulls elsewhere, so that both share the routines of convex/. None where the boxes are `reach` apart or more.
template <class T, class S>
HD_CALL void box_box(const GeomPose<T>& a, const GeomPose<T>& b, T reach, const Closing<T>& closing,
                     Candidate<T>* out) {
  ConvexShape<T, S> sa = {GeomKind::kBox, a.size, a.pose, {nullptr, nullptr, nullptr, 0, 0}, 0}, sb = sa;
  sb.size = b.size, sb.pose = b.pose;
  const T scale = max(norm(a.size), norm(b.size)), size = min(norm(a.size), norm(b.size));
  const T noise = size * T(1e-7) + scale * T(2e-9);
  Separation<T> s = largest_separation(a, b, reach);
  if (s.gap >= reach) {
    for (int k = 0; k < 8; ++k) out[k] = absent<T>();
    return;
  }
  Vec3<T> p, q;
  if (s.gap > scale * T(1e-9) && closest_points(sa, sb, scale * T(1e-9), T(kFar), p, q) == Distance::kApart) {
    Vec3<T> n = q - p;
    T gap = norm(n);
    make_manifold(sa, sb, {n * (T(1) / gap), (p + q) * T(0.5), gap, size, noise}, T(0), closing, 8, out);
  } else {
    make_manifold(sa, sb, {s.normal, deepest_middle(sa, sb, s), s.gap, size, noise}, T(0), closing, 8, out);
  }
}

}  // namespace stiction
