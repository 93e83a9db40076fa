// Distance between two disjoint convex cores: Gilbert, Johnson, Keerthi [GJK1988], with closest points on the simplex by
// Voronoi regions ([Ericson2005] ch. 5.1 and 9.5).
//
// Stops when |v|^2 - v.w <= 1e-13 |v|^2 (the distance is then exact to 1e-13), when no progress is made, or after 128
// steps with the best distance so far. Deterministic; fixed arrays; NaN ends the loop.
#pragma once
#include "collision/convex/shape.h"

namespace stiction {

/// The point of a segment or triangle nearest to the origin, as weights; weights that are 0 leave the simplex.
template <class T> HD void nearest_on_segment(Vec3<T> a, Vec3<T> b, T* weight) {
  Vec3<T> ab = b - a;
  T square = dot(ab, ab), t = square > 0 ? clamp(-dot(a, ab) / square, T(0), T(1)) : T(0);
  weight[0] = 1 - t, weight[1] = t;
}
template <class T> HD_CALL void nearest_on_triangle(Vec3<T> a, Vec3<T> b, Vec3<T> c, T* weight) {
  Vec3<T> ab = b - a, ac = c - a;
  T d1 = -dot(ab, a), d2 = -dot(ac, a), d3 = -dot(ab, b), d4 = -dot(ac, b), d5 = -dot(ab, c), d6 = -dot(ac, c);
  T va = d3 * d6 - d5 * d4, vb = d5 * d2 - d1 * d6, vc = d1 * d4 - d3 * d2, total = va + vb + vc;
  weight[0] = weight[1] = weight[2] = 0;
  if (va > 0 && vb > 0 && vc > 0 && total > 0) {
    weight[0] = va / total, weight[1] = vb / total, weight[2] = vc / total;
    return;
  }
  // On the border: the best of three segments.
  T best = T(1e300), pair[2];
  const Vec3<T> corner[3] = {a, b, c};
  for (int i = 0; i < 3; ++i) {
    int j = (i + 1) % 3;
    nearest_on_segment(corner[i], corner[j], pair);
    Vec3<T> v = corner[i] * pair[0] + corner[j] * pair[1];
    if (dot(v, v) < best) {
      best = dot(v, v);
      weight[i] = pair[0], weight[j] = pair[1], weight[(i + 2) % 3] = 0;
    }
  }
}

template <class T> struct Simplex {
  SupportPoint<T> point[4];
  T weight[4];
  int count;
};

/// Reduces the simplex to the face nearest to the origin. False: the origin is inside.
template <class T> HD_CALL bool reduce_simplex(Simplex<T>& s) {
  T weight[4] = {0, 0, 0, 0};
  if (s.count == 1) weight[0] = 1;
  if (s.count == 2) nearest_on_segment(s.point[0].w, s.point[1].w, weight);
  if (s.count == 3) nearest_on_triangle(s.point[0].w, s.point[1].w, s.point[2].w, weight);
  if (s.count == 4) {
    T best = T(1e300);
    bool outside = false;
    for (int skip = 0; skip < 4; ++skip) {
      int i = (skip + 1) % 4, j = (skip + 2) % 4, k = (skip + 3) % 4;
      Vec3<T> a = s.point[i].w, n = cross(s.point[j].w - a, s.point[k].w - a);
      T apex = dot(n, s.point[skip].w - a), origin = -dot(n, a);
      if (apex * origin > 0) continue;
      outside = true;
      T face[3];
      nearest_on_triangle(a, s.point[j].w, s.point[k].w, face);
      Vec3<T> v = a * face[0] + s.point[j].w * face[1] + s.point[k].w * face[2];
      if (dot(v, v) < best) {
        best = dot(v, v);
        weight[i] = face[0], weight[j] = face[1], weight[k] = face[2], weight[skip] = 0;
      }
    }
    if (!outside) return false;
  }
  int kept = 0;
  for (int i = 0; i < s.count; ++i) {
    if (!(weight[i] > 0)) continue;
    s.point[kept] = s.point[i], s.weight[kept] = weight[i], ++kept;
  }
  s.count = kept;
  return kept > 0;
}

/// What closest_points() finds.
enum class Distance { kTouching, kApart, kBeyond };

/// kApart and the closest points of both cores if they are more than `touching` apart. kBeyond, and points that say nothing,
/// as soon as a direction shows that they are more than `reach` apart.
template <class T, class S>
HD_CALL Distance closest_points(ConvexShape<T, S>& a, ConvexShape<T, S>& b, T touching, T reach, Vec3<T>& on_a,
                                Vec3<T>& on_b) {
  constexpr int kSteps = 128;
  Simplex<T> s;
  s.count = 1, s.weight[0] = 1;
  s.point[0] = support_difference(a, b, b.pose.p - a.pose.p);
  Vec3<T> v = s.point[0].w;
  on_a = s.point[0].a, on_b = s.point[0].b;
  for (int step = 0; step < kSteps; ++step) {
    T square = dot(v, v);
    if (!(square > touching * touching)) return Distance::kTouching;
    SupportPoint<T> next = support_difference(a, b, -v);
    const T height = dot(v, next.w);  // |v| times a lower bound of the distance
    if (height > 0 && height * height > reach * reach * square) return Distance::kBeyond;
    if (!(square - height > T(1e-13) * square)) break;
    Simplex<T> grown = s;
    grown.point[grown.count++] = next;
    if (!reduce_simplex(grown)) return Distance::kTouching;
    Vec3<T> p = {0, 0, 0}, q = p;
    for (int i = 0; i < grown.count; ++i) {
      p = p + grown.point[i].a * grown.weight[i];
      q = q + grown.point[i].b * grown.weight[i];
    }
    Vec3<T> d = p - q;
    if (!(dot(d, d) < square)) break;
    s = grown, v = d, on_a = p, on_b = q;
  }
  return Distance::kApart;
}

}  // namespace stiction
