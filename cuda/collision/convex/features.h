// Support features of convex shapes, polygons or discs, laid over one another: the corners of their common part, and where borders cross.
#pragma once
#include "collision/convex/shape.h"

namespace stiction {

/// Points in the frame (t1, t2, n) of the contact: x, y across, z along n.
template <class T> struct Feature {
  static constexpr int kPoints = 8;
  Vec3<T> point[kPoints];
  int count;
  T round;               // of a disc: its radius; of a polygon or a line: 0
  Vec3<T> centre, axis;  // of a disc
  static constexpr int kInner = 4;
  Vec3<T> tip[kPoints + kInner];  // of a mesh: vertices besides, which touch when it tips or are within the polygon
  int tips;
  bool whole;  // nothing else of the shape touches: of a mesh, no other vertex
};

/// Point i, the tips after the points.
template <class T> HD const Vec3<T>& corner_of(const Feature<T>& f, int i) {
  return i < f.count ? f.point[i] : f.tip[i - f.count];
}
/// The number of the point after i.
template <class T> HD int after(const Feature<T>& f, int i) { return i + 1 < f.count ? i + 1 : 0; }

/// The height of a disc's plane at x.
template <class T> HD T disc_height(const Feature<T>& f, Vec3<T> x) {
  return f.centre.z - (f.axis.x * (x.x - f.centre.x) + f.axis.y * (x.y - f.centre.y)) / f.axis.z;
}

template <class T> HD T turn(Vec3<T> a, Vec3<T> b, Vec3<T> c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

template <class T> struct Manifold {
  static constexpr int kPoints = 40;
  struct Point {
    T x, y, a, b;
    int slot;
  };  // across; heights of A's and B's surfaces along n
  Point point[kPoints];
  int count = 0;
};

/// Adds a corner; of two at the same place the deeper stays.
template <class T> HD void add_corner(Manifold<T>& m, T x, T y, T a, T b, int slot, T same) {
  for (int i = 0; i < m.count; ++i) {
    auto& p = m.point[i];
    if (!((p.x - x) * (p.x - x) + (p.y - y) * (p.y - y) < same * same)) continue;
    if (b - a < p.b - p.a) p.x = x, p.y = y, p.a = a, p.b = b;
    return;
  }
  if (m.count < Manifold<T>::kPoints) m.point[m.count++] = {x, y, a, b, slot};
}

/// Where the borders of two polygons or lines cross. Not where edges part by less than `together` as far as they run side by side: their
/// ends are corners, and the crossing between them is nowhere in particular, which a turn by a millionth takes from end to end.
template <class T>
HD_CALL void cross_edges(const Feature<T>& a, const Feature<T>& b, T same, T together, Manifold<T>& m) {
  constexpr int n = Feature<T>::kPoints;
  T of_a[n][n], of_b[n][n];  // turns of b's points about a's edges, [edge of a][point of b], and the other way round
  const int edges_a = a.count == 2 ? 1 : a.count, edges_b = b.count == 2 ? 1 : b.count;
  for (int i = 0; i < edges_a; ++i)
    for (int j = 0; j < b.count; ++j) of_a[i][j] = turn(a.point[i], a.point[after(a, i)], b.point[j]);
  for (int j = 0; j < edges_b; ++j)
    for (int i = 0; i < a.count; ++i) of_b[j][i] = turn(b.point[j], b.point[after(b, j)], a.point[i]);
  for (int i = 0; i < edges_a; ++i)
    for (int j = 0; j < edges_b; ++j) {
      const int k = after(a, i), l = after(b, j);
      const T along_r = of_a[i][j], along_s = of_a[i][l], along_p = of_b[j][i], along_q = of_b[j][k];
      if (!(along_r * along_s < 0 && along_p * along_q < 0)) continue;
      const Vec3<T>&p = a.point[i], &q = a.point[k], &r = b.point[j], &s = b.point[l];
      const T ax = q.x - p.x, ay = q.y - p.y, bx = s.x - r.x, by = s.y - r.y;
      const T near_a = together * sqrt(ax * ax + ay * ay), near_b = together * sqrt(bx * bx + by * by);
      auto ends = [&](T about_a, T about_b) { return abs(about_a) < near_b || abs(about_b) < near_a; };  // on one side
      const bool alike = ax * bx + ay * by > 0;
      if (ends(along_p, alike ? along_r : along_s) && ends(along_q, alike ? along_s : along_r)) continue;
      T t = along_p / (along_p - along_q), u = along_r / (along_r - along_s);
      add_corner(m, p.x + ax * t, p.y + ay * t, p.z + (q.z - p.z) * t, r.z + (s.z - r.z) * u, i, same);
    }
}

/// The plane of a polygon's points: Newell's normal, which way round they go, and how long its edges are across.
template <class T> struct Area {
  Vec3<T> centre, normal;
  T orient, edge[Feature<T>::kPoints];
  bool upright;  // seen along n it has no width
  T facing;      // 1: along n, -1: against it
  int top;       // of points and tips in no plane: the one furthest that way; -1: in a plane
};
/// flat: how far off their plane points are in it.
template <class T> HD_CALL Area<T> area_of(const Feature<T>& f, T facing, T flat) {
  Area<T> area;
  area.centre = area.normal = {0, 0, 0}, area.orient = 1, area.upright = true, area.top = -1, area.facing = facing;
  if (f.count < 3) return area;
  const Vec3<T> a = f.point[0];
  const T share = T(1) / f.count;
  for (int i = 0; i < f.count; ++i) {
    Vec3<T> p = f.point[i], q = f.point[after(f, i)];
    area.centre = area.centre + p * share;
    area.normal = area.normal + cross(p - a, q - a);
    area.edge[i] = sqrt((q.x - p.x) * (q.x - p.x) + (q.y - p.y) * (q.y - p.y));
  }
  area.upright = !(abs(area.normal.z) > T(1e-9) * norm(area.normal));
  area.orient = area.normal.z > 0 ? T(1) : T(-1);
  bool bent = false;
  int top = 0;
  for (int i = 0; i < f.count + f.tips; ++i) {
    const Vec3<T>& x = corner_of(f, i);
    bent |= abs(dot(x - area.centre, area.normal)) > flat * norm(area.normal);
    if (facing * (x.z - corner_of(f, top).z) > 0) top = i;
  }
  if (bent) area.top = top;
  return area;
}

/// The height at x of a feature's triangles, all of which are within the hull: of those that x is in that of the highest. Of many points and
/// tips the fan between the top and the border.
template <class T> HD_CALL T bent_height(const Feature<T>& f, const Area<T>& area, Vec3<T> x) {
  T most = T(-1e300), z = 0;
  auto offer = [&](const Vec3<T>& a, const Vec3<T>& b, const Vec3<T>& c) {
    const T whole = turn(a, b, c);
    if (whole == 0) return;
    const T u = turn(c, a, x) / whole, v = turn(a, b, x) / whole, least = min(min(u, v), 1 - u - v);
    const T height = a.z + clamp(u, T(0), T(1)) * (b.z - a.z) + clamp(v, T(0), T(1)) * (c.z - a.z);
    const T worth = least < T(-1e-9) ? T(-1e150) * (1 - least) : area.facing * height;  // in none: the nearest
    if (worth > most) most = worth, z = height;
  };
  const int n = f.count + f.tips;
  if (n > Feature<T>::kPoints) {
    for (int i = 0; i < f.count; ++i) offer(corner_of(f, area.top), f.point[i], f.point[after(f, i)]);
    return z;
  }
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j)
      for (int k = j + 1; k < n; ++k) offer(corner_of(f, i), corner_of(f, j), corner_of(f, k));
  return z;
}

/// Where edges of f cross those within the border of a bent feature, which part its faces: calls found(x, height of the other, edge of f).
template <class T, class Found>
HD_CALL void cross_inner(const Feature<T>& f, const Feature<T>& bent, const Area<T>& area, T same, Found found) {
  const int n = bent.count + bent.tips;
  if (area.top < 0 || n > Feature<T>::kPoints) return;
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j) {
      if (j < bent.count && (after(bent, i) == j || after(bent, j) == i)) continue;
      const Vec3<T>&r = corner_of(bent, i), &s = corner_of(bent, j);
      for (int k = 0; k < (f.count == 2 ? 1 : f.count); ++k) {
        const Vec3<T>&p = f.point[k], &q = f.point[after(f, k)];
        const T p_off = turn(r, s, p), q_off = turn(r, s, q), r_off = turn(p, q, r), s_off = turn(p, q, s);
        if (!(p_off * q_off < 0 && r_off * s_off < 0)) continue;
        const Vec3<T> x = p + (q - p) * (p_off / (p_off - q_off));
        const T z = r.z + (s.z - r.z) * (r_off / (r_off - s_off));
        if (area.facing * (bent_height(bent, area, x) - z) < same) found(x, z, k);
      }
    }
}

/// Where the border of a disc crosses the edges of a polygon or line: calls found(x, height of the edge, edge).
template <class T, class Found> HD void cross_rim(const Feature<T>& disc, const Feature<T>& f, Found found) {
  for (int j = 0; j < (f.count == 2 ? 1 : f.count); ++j) {
    Vec3<T> r = f.point[j], s = f.point[after(f, j)], p = r, q = s;
    p.z = disc_height(disc, r), q.z = disc_height(disc, s);  // the edge in the disc's plane
    p = p - disc.centre, q = q - disc.centre - p;
    const T square = dot(q, q), half = dot(p, q), root = half * half - square * (dot(p, p) - disc.round * disc.round);
    if (!(root > 0)) continue;
    for (int side = -1; side <= 1; side += 2) {
      const T u = (side * sqrt(root) - half) / square;
      if (u > 0 && u < 1) found(r + (s - r) * u, j);
    }
  }
}

/// Where two rims cross that are level to 0.8 degrees; more inclined, one is taken as an octagon.
template <class T> HD_CALL void cross_discs(const Feature<T>& a, const Feature<T>& b, T same, Manifold<T>& m) {
  const T x = b.centre.x - a.centre.x, y = b.centre.y - a.centre.y, square = x * x + y * y;
  if (!(square > 0)) return;
  const T along = (square + a.round * a.round - b.round * b.round) / (2 * square);
  const T root = a.round * a.round / square - along * along;
  if (!(root > 0)) return;
  for (int side = -1; side <= 1; side += 2) {
    const T aside = side * sqrt(root);
    const Vec3<T> p = {a.centre.x + x * along - y * aside, a.centre.y + y * along + x * aside, 0};
    add_corner(m, p.x, p.y, disc_height(a, p), disc_height(b, p), side < 0 ? 1 : 3, same);
  }
}

}  // namespace stiction
