// Contact manifold of two convex shapes whose normal n and distance are known: the two support features, polygons of at
// most 8 points, are laid over one another along n and their common part's corners are the contacts.
//
// Features: box: the face most along n. Cylinder: a body-fixed octagon on the cap, or the line on its side. Capsule:
// its axis, moved by the radius. Mesh: of the vertices within 0.5 % of the size of the support plane, the extreme ones
// in 8 body-fixed directions. Sphere, ellipsoid: a point, the only contact then is that of the closest points. Corners
// are (1) points of A over B, (2) points of B over A, (3) crossings of their edges; the gap at each is that of both
// features along n, but never below the known distance. The closest points themselves join where no corner is as deep.
// A corner's slot follows from its number in its feature, so that resting contacts keep theirs. With more corners than
// slots: the deepest (to 1e-5 of the size), then those farthest from the chosen, in order. Source: the idea is Jolt's
// ManifoldBetweenTwoFaces; here both polygons are treated alike. Deviation from MuJoCo: it keeps other corners, and one
// contact where multiccd is off.
#pragma once
#include "collision/convex/shape.h"

namespace stiction {

/// Points in the frame (t1, t2, n) of the contact: x, y across, z along n.
template <class T> struct Feature {
  static constexpr int kPoints = 8;
  Vec3<T> point[kPoints];
  int count;
};

template <class T> HD Vec3<T> octagon_direction(Vec3<T> t1, Vec3<T> t2, int k) {
  constexpr double kCos[8] = {1,  0.70710678118654752,  0, -0.70710678118654752,
                              -1, -0.70710678118654752, 0, 0.70710678118654752};
  return t1 * T(kCos[k]) + t2 * T(kCos[(k + 6) % 8]);
}

/// The extreme vertices of the hull near its support plane along l, in the hull's frame.
template <class T, class S> HD_CALL void hull_feature(const HullView<S>& hull, Vec3<T> l, int top, Feature<T>& f) {
  T radius2 = 0;
  for (int i = 0; i < hull.count; ++i) radius2 = max(radius2, dot(hull_vertex<T>(hull, i), hull_vertex<T>(hull, i)));
  T skin = dot(l, hull_vertex<T>(hull, top)) - T(0.005) * sqrt(radius2), reach[8];
  Mat3<T> frame = frame_of_normal(l);
  int pick[8];
  for (int k = 0; k < 8; ++k) pick[k] = -1;
  for (int i = 0; i < hull.count; ++i) {
    Vec3<T> x = hull_vertex<T>(hull, i);
    if (dot(l, x) < skin) continue;
    for (int k = 0; k < 8; ++k) {
      T along = dot(octagon_direction(frame.row[0], frame.row[1], k), x);
      if (pick[k] < 0 || along > reach[k]) reach[k] = along, pick[k] = i;
    }
  }
  int first = 0;  // starts at the lowest number: equal extremes may be found from either direction
  for (int k = 1; k < 8; ++k)
    if (pick[k] < pick[first]) first = k;
  f.count = 0;
  for (int k = 0; k < 8; ++k) {
    int i = pick[(first + k) % 8];
    if (i < 0 || (k > 0 && i == pick[(first + k + 7) % 8]) || (f.count > 1 && i == pick[first])) continue;
    f.point[f.count++] = hull_vertex<T>(hull, i);
  }
}

/// The feature of the surface of s that faces along n; frame rows (t1, t2, e), origin o.
template <class T, class S>
HD_CALL void support_feature(ConvexShape<T, S>& s, Vec3<T> n, const Mat3<T>& frame, Vec3<T> o, Feature<T>& f) {
  Vec3<T> l = transposed_times(s.pose.R, n), h = s.size;
  f.count = 0;
  auto add = [&](T x, T y, T z) { f.point[f.count++] = {x, y, z}; };
  if (s.type == GeomKind::kCapsule) {
    add(0, 0, -h.y), add(0, 0, h.y);
  } else if (s.type == GeomKind::kBox) {
    T x = abs(l.x), y = abs(l.y), z = abs(l.z);
    for (int k = 0; k < 4; ++k) {
      T p = k == 0 || k == 3 ? T(-1) : T(1), q = k < 2 ? T(-1) : T(1);
      if (z >= x && z >= y) add(p * h.x, q * h.y, l.z < 0 ? -h.z : h.z);
      else if (y >= x) add(p * h.x, l.y < 0 ? -h.y : h.y, q * h.z);
      else add(l.x < 0 ? -h.x : h.x, p * h.y, q * h.z);
    }
  } else if (s.type == GeomKind::kCylinder) {
    T rho = sqrt(l.x * l.x + l.y * l.y), z = l.z < 0 ? -h.y : h.y;
    if (abs(l.z) > T(0.7)) {
      for (int k = 0; k < 8; ++k) {
        Vec3<T> d = octagon_direction<T>({h.x, 0, 0}, {0, h.x, 0}, k);
        add(d.x, d.y, z);
      }
    } else {
      T scale = h.x / rho;
      add(l.x * scale, l.y * scale, -h.y), add(l.x * scale, l.y * scale, h.y);
    }
  } else if (s.type == GeomKind::kMesh) {
    hull_feature(s.hull, l, hull_support(s.hull, l, s.start), f);
  }
  Vec3<T> grow = n * radius(s) - o;
  for (int i = 0; i < f.count; ++i) f.point[i] = frame * (s.pose * f.point[i] + grow);
}

template <class T> HD T turn(Vec3<T> a, Vec3<T> b, Vec3<T> c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/// True and the height of the feature where it is over or under x, within `slack` across.
template <class T> HD_CALL bool height_of(const Feature<T>& f, Vec3<T> x, T slack, T& z) {
  Vec3<T> a = f.point[0];
  if (f.count == 2) {
    Vec3<T> e = f.point[1] - a;
    T length2 = e.x * e.x + e.y * e.y, t = length2 > 0 ? ((x.x - a.x) * e.x + (x.y - a.y) * e.y) / length2 : T(0);
    t = clamp(t, T(0), T(1));
    T dx = a.x + e.x * t - x.x, dy = a.y + e.y * t - x.y;
    z = a.z + e.z * t;
    return dx * dx + dy * dy <= slack * slack;
  }
  // Newell's normal and the signs of all turns.
  Vec3<T> centre = {0, 0, 0}, normal = {0, 0, 0};
  for (int i = 0; i < f.count; ++i) {
    Vec3<T> p = f.point[i], q = f.point[(i + 1) % f.count];
    centre = centre + p * (T(1) / f.count);
    normal = normal + cross(p - a, q - a);
  }
  if (!(abs(normal.z) > T(1e-9) * norm(normal))) return false;
  T orient = normal.z > 0 ? T(1) : T(-1);
  for (int i = 0; i < f.count; ++i) {
    Vec3<T> p = f.point[i], q = f.point[(i + 1) % f.count];
    T length = sqrt((q.x - p.x) * (q.x - p.x) + (q.y - p.y) * (q.y - p.y));
    if (orient * turn(p, q, x) < -slack * length) return false;
  }
  z = centre.z - (normal.x * (x.x - centre.x) + normal.y * (x.y - centre.y)) / normal.z;
  return true;
}

template <class T> struct Manifold {
  static constexpr int kPoints = 32;
  struct Point {
    T x, y, a, b;
    int slot;
  };  // across; heights of A's and B's surfaces along n
  Point point[kPoints];
  int count;
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

/// All corners of the common part of both features.
template <class T> HD_CALL void overlay(const Feature<T>& a, const Feature<T>& b, T scale, Manifold<T>& m) {
  T same = scale * T(2e-3), z;
  // Lines have no width: give them some. A border of 0.1 % lets equal faces, stacked flush, keep the corners of A.
  T slack_a = scale * T(a.count == 2 ? 1e-2 : 1e-3), slack_b = scale * T(b.count == 2 ? 1e-2 : 1e-3);
  for (int i = 0; i < a.count; ++i)
    if (height_of(b, a.point[i], slack_b, z)) add_corner(m, a.point[i].x, a.point[i].y, a.point[i].z, z, i, same);
  for (int i = 0; i < b.count; ++i)
    if (height_of(a, b.point[i], slack_a, z)) add_corner(m, b.point[i].x, b.point[i].y, z, b.point[i].z, 4 + i, same);
  for (int i = 0; i < (a.count == 2 ? 1 : a.count); ++i)
    for (int j = 0; j < (b.count == 2 ? 1 : b.count); ++j) {
      Vec3<T> p = a.point[i], q = a.point[(i + 1) % a.count], r = b.point[j], s = b.point[(j + 1) % b.count];
      T along_r = turn(p, q, r), along_s = turn(p, q, s), along_p = turn(r, s, p), along_q = turn(r, s, q);
      if (!(along_r * along_s < 0 && along_p * along_q < 0)) continue;
      T t = along_p / (along_p - along_q), u = along_r / (along_r - along_s);
      add_corner(m, p.x + (q.x - p.x) * t, p.y + (q.y - p.y) * t, p.z + (q.z - p.z) * t, r.z + (s.z - r.z) * u, i,
                 same);
    }
}

/// Keeps `room` points: the deepest, then those farthest from the kept; in order.
template <class T> HD_CALL void thin_out(Manifold<T>& m, int room, T scale) {
  if (m.count <= room) return;
  bool keep[Manifold<T>::kPoints] = {};
  for (int k = 0; k < room; ++k) {
    int best = -1;
    T score = T(-1e300);
    for (int i = 0; i < m.count; ++i) {
      if (keep[i]) continue;
      const auto& p = m.point[i];
      T worth = k == 0 ? p.a - p.b : T(1e300);
      for (int j = 0; j < m.count; ++j)
        if (keep[j])
          worth = min(worth, (p.x - m.point[j].x) * (p.x - m.point[j].x) + (p.y - m.point[j].y) * (p.y - m.point[j].y));
      if (best < 0 || worth > score + (k == 0 ? scale * T(1e-5) : score * T(0.01))) best = i, score = worth;
    }
    keep[best] = true;
  }
  int kept = 0;
  for (int i = 0; i < m.count; ++i)
    if (keep[i]) m.point[kept++] = m.point[i];
  m.count = kept;
}

/// The contacts of shapes A and B with normal n from A to B and distance `dist` at the closest points, halfway between
/// which is `middle`. Writes out[0 .. room).
template <class T, class S>
HD_CALL void make_manifold(ConvexShape<T, S>& a, ConvexShape<T, S>& b, Vec3<T> n, T dist, Vec3<T> middle, T scale,
                           int room, Candidate<T>* out) {
  for (int k = 0; k < room; ++k) out[k] = absent<T>();
  Mat3<T> frame = frame_of_normal(n);
  Feature<T> fa, fb;
  Manifold<T> m;
  m.count = 0;
  if (room > 1) {
    support_feature(a, n, frame, middle, fa);
    support_feature(b, -n, frame, middle, fb);
    if (fa.count >= 2 && fb.count >= 2) overlay(fa, fb, scale, m);
  }
  T deepest = T(1e300);
  for (int i = 0; i < m.count; ++i) {
    auto& p = m.point[i];
    T lift = (dist - (p.b - p.a)) * T(0.5);
    if (lift > 0) p.a = p.a - lift, p.b = p.b + lift;
    deepest = min(deepest, p.b - p.a);
  }
  bool octagon =
      a.type == GeomKind::kCylinder || b.type == GeomKind::kCylinder;  // whose corners miss the rim's lowest point
  if (!(deepest <= dist + scale * T(octagon ? 1e-5 : 1e-7))) {
    if (m.count == Manifold<T>::kPoints) --m.count;
    m.point[m.count++] = {0, 0, dist * T(-0.5), dist * T(0.5), 0};
  }
  thin_out(m, room, scale);
  bool taken[8] = {};
  for (int i = 0; i < m.count; ++i) {
    const auto& p = m.point[i];
    int slot = p.slot % room;
    while (taken[slot]) slot = (slot + 1) % room;
    taken[slot] = true;
    out[slot] = {middle + frame.row[0] * p.x + frame.row[1] * p.y + n * ((p.a + p.b) * T(0.5)), n, p.b - p.a};
  }
}

}  // namespace stiction
