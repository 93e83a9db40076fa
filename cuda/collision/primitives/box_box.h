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
  const Vec3<T> d = b.pose.p - a.pose.p;
  T da[3], db[3], c[3][3], turned[3][3];  // d in the axes of each, and the cosines between these: c, |c|
  for (int i = 0; i < 3; ++i) da[i] = dot(column(a.pose.R, i), d), db[i] = dot(column(b.pose.R, i), d);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) c[i][j] = dot(column(a.pose.R, i), column(b.pose.R, j)), turned[i][j] = abs(c[i][j]);
  Separation<T> best = {{0, 0, 1}, T(-1e300), -1, -1};
  T along = 0;  // d along its normal, which may point from B to A till the end
  const T tie = (ha[0] + ha[1] + ha[2] + hb[0] + hb[1] + hb[2]) * T(1e-9);
  int face = -1;
  auto offer = [&](T way, T gap, int of_face, int i, int j) {
    if (gap > best.gap + tie) along = way, best.gap = gap, face = of_face, best.edge_a = i, best.edge_b = j;
  };
  for (int i = 0; i < 3; ++i)
    offer(da[i], abs(da[i]) - (ha[i] + hb[0] * turned[i][0] + hb[1] * turned[i][1] + hb[2] * turned[i][2]), i, -1, -1);
  for (int j = 0; j < 3; ++j)
    offer(db[j], abs(db[j]) - (hb[j] + ha[0] * turned[0][j] + ha[1] * turned[1][j] + ha[2] * turned[2][j]), 3 + j, -1,
          -1);
  for (int i = 0; i < 3 && best.gap < reach; ++i)
    for (int j = 0; j < 3; ++j) {  // a_i x b_j; a_u x a_v = a_i, b_s x b_t = b_j
      const int u = (i + 1) % 3, v = (i + 2) % 3, s = (j + 1) % 3, t = (j + 2) % 3;
      const T square = c[u][j] * c[u][j] + c[v][j] * c[v][j];
      if (square <= T(1e-12)) continue;
      const T way = c[u][j] * da[v] - c[v][j] * da[u], one = T(1) / sqrt(square);
      const T reaches = ha[u] * turned[v][j] + ha[v] * turned[u][j] + hb[s] * turned[i][t] + hb[t] * turned[i][s];
      offer(way * one, (abs(way) - reaches) * one, -1, i, j);
    }
  const Vec3<T> n = face >= 0 ? column(face < 3 ? a.pose.R : b.pose.R, face % 3)
                              : cross(column(a.pose.R, best.edge_a), column(b.pose.R, best.edge_b));
  best.normal = n * ((along < 0 ? T(-1) : T(1)) / norm(n));
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
    make_manifold(sa, sb, {n * (T(1) / gap), (p + q) * T(0.5), gap, size, noise}, {T(0)}, closing, 8, out);
  } else {
    make_manifold(sa, sb, {s.normal, deepest_middle(sa, sb, s), s.gap, size, noise}, {T(0)}, closing, 8, out);
  }
}

}  // namespace stiction
