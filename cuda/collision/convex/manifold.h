// Contact manifold of two convex shapes whose normal n and distance are known: the two support features, polygons of at
// most 8 points, are laid over one another along n and their common part's corners are the contacts.
//
// Features: box: the face most along n. Cylinder: its cap, a true disc with 4 points on the rim, the first of which is the
// nearest to the other shape, or that over which it is pushed (tipping_rim), so that a can which tips stands on the very point it
// tips over; 8 points where it is inclined by more than 0.8 degrees; or the line on its side.
// Capsule: its axis, moved by the radius. Mesh: the extreme vertices in 8 body-fixed directions, of those that touch, now or at
// the end of the step, if the support vertex does, those farther off than the smaller shape reaches by how high their faces are there; in no
// plane, the highest of their triangles, which are all within the hull; and besides, over the other feature, vertices within their outline and
// those that the body falls on when these give way.
// Sphere, ellipsoid: a point, the only contact then is that of the closest points. Corners are (1) points of A over B,
// (2) points of B over A, (3) crossings of their borders where these part, and of borders with edges within a bent one; the gap at
// each is that of both features along n, but never below the known distance. The closest points themselves join where no corner is as
// deep. A corner's slot follows from its number in its feature, so that resting contacts keep theirs. With more corners than slots: by worth
// (thin_out). Lengths that count as none are parts of the smaller shape. Source: the idea is Jolt's ManifoldBetweenTwoFaces; here both
// polygons are treated alike. Deviation from MuJoCo: it keeps other corners, and one contact where multiccd is off.
#pragma once
#include "collision/convex/features.h"

namespace stiction {

/// How two shapes close on each other in the step, in place of Closing: at x by slope . x and what all of it closes by, which brings the
/// lowest down first. Counted is what is more than `lowest`: by how much the lowest now is above the lowest at the end, at most what the
/// smaller of them closes anywhere.   m
template <class T> struct Approach {
  Vec3<T> slope;
  T most, tips;  // tips: how far what is pushed may tip
  T level;       // see alike_above
  Push<T> push;
  Vec3<T> middle;  // of what touches, which reaches that far: vertices beyond count by how high the hull is there
  T reach;
  /// The part of its height above a plane along l that a vertex x counts by.
  HD T part_of(Vec3<T> x, Vec3<T> l) const {
    const Vec3<T> d = x - middle, across = d - l * dot(l, d);
    return reach / max(reach, norm(across));
  }
  HD T at(Vec3<T> x, T lowest) const { return clamp(dot(slope, x) - lowest, T(0), most); }
};
template <class T> HD Approach<T> approach_along(const Closing<T>& closing, const Tipping<T>& tips,
                                                 const Touch<T>& touch) {
  const Vec3<T> slope = cross(closing.w, touch.normal);
  return {slope,         norm(slope) * (2 * touch.size),
          tips.most,     alike_above(touch.gap, touch.size),
          tips.push,     touch.middle,
          2 * touch.size};
}
/// The same for points in the frame `pose`.
template <class T> HD Approach<T> seen_from(const Approach<T>& approach, const Pose<T>& pose) {
  return {
      transposed_times(pose.R, approach.slope),           approach.most, approach.tips, approach.level, approach.push,
      transposed_times(pose.R, approach.middle - pose.p), approach.reach};
}

template <class T> HD Vec3<T> octagon_direction(Vec3<T> t1, Vec3<T> t2, int k) {
  constexpr double kCos[8] = {1,  0.70710678118654752,  0, -0.70710678118654752,
                              -1, -0.70710678118654752, 0, 0.70710678118654752};
  return t1 * T(kCos[k]) + t2 * T(kCos[(k + 6) % 8]);
}

/// The corners of the convex hull of n <= 8 numbered places, counter-clockwise, the lowest number first. Returns how many.
template <class T> HD int convex_corners(const T (&x)[8], const T (&y)[8], const int (&number)[8], int n,
                                         int (&corner)[8]) {
  int ring[8], count = 0, start = 0;
  for (int i = 1; i < n; ++i)
    if (x[i] > x[start] || (x[i] == x[start] && y[i] > y[start])) start = i;
  for (int at = start; count < n;) {
    ring[count++] = at;
    int next = at == 0 ? 1 % n : 0;
    for (int i = 0; i < n; ++i) {
      if (i == at || i == next) continue;
      const T side = (x[next] - x[at]) * (y[i] - y[at]) - (y[next] - y[at]) * (x[i] - x[at]);
      const T far = (x[i] - x[at]) * (x[i] - x[at]) + (y[i] - y[at]) * (y[i] - y[at]);
      const T now = (x[next] - x[at]) * (x[next] - x[at]) + (y[next] - y[at]) * (y[next] - y[at]);
      if (side < 0 || (side == 0 && far > now)) next = i;
    }
    if (next == start || next == at) break;
    at = next;
  }
  int first = 0;
  for (int i = 1; i < count; ++i)
    if (number[ring[i]] < number[ring[first]]) first = i;
  for (int i = 0; i < count; ++i) corner[i] = number[ring[(first + i) % count]];
  return count;
}

/// Of the hull's vertices those that are extreme in one of 8 body-fixed directions across l, less their height_cost below the
/// support plane along l, approach.level lower, and those that are when the body tips; in the hull's frame. top: the vertex of support.
template <class T, class S>
HD_CALL void hull_feature(const HullView<S>& hull, Vec3<T> l, int top, const Approach<T>& approach, Feature<T>& f) {
  const T highest = dot(l, hull_vertex<T>(hull, top));
  const Mat3<T> frame = frame_of_normal(l);
  struct Extremes {
    int pick[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    T reach[8];
  } touching, tipping;
  Vec3<T> way[8];
  for (int k = 0; k < 8; ++k) way[k] = octagon_direction(frame.row[0], frame.row[1], k);
  const T costly = 2;                       // radii; what costs more is extreme in no direction
  const T same = T(hull.radius) * T(1e-3);  // of those worth as much the first is taken
  const Vec3<T>&slope = approach.slope, later = l + slope;
  const T lowest = dot(later, hull_vertex<T>(hull, hull_support(hull, later, top))) - highest;
  const SomeVertices low = low_vertices(hull, -l, top, costly, approach.tips + approach.level, -lowest, slope);
  auto cost_of = [&](Vec3<T> x, T tilt) {
    const T height = (highest - dot(l, x)) * approach.part_of(x, l);
    return height_cost(height, approach.level, approach.at(x, lowest), tilt);
  };
  const T tilt = tipping_tilt(approach.tips, T(hull.radius));
  SomeVertices inner;  // that cost at most a radius, if there is room for all
  low.each(hull, [&](int i) {
    const Vec3<T> x = hull_vertex<T>(hull, i);
    const T own = cost_of(x, T(kTilt));
    auto offer = [&](Extremes& e, T cost, T most) {
      if (cost > T(hull.radius) * most) return;
      for (int k = 0; k < 8; ++k) {
        const T along = dot(way[k], x) - cost;
        if (e.pick[k] < 0 || along > e.reach[k] + same) e.reach[k] = along, e.pick[k] = i;
      }
    };
    offer(touching, own, costly * T(1.001));
    offer(tipping, cost_of(x, tilt), T(1));
    if (own > T(hull.radius)) return;
    if (inner.count++ < SomeVertices::kMost) inner.vertex[inner.count - 1] = i;
  });
  const SomeVertices& flat = inner.count > SomeVertices::kMost ? low : inner;
  const int (&pick)[8] = touching.pick;
  int number[8], corner[8], n = 0;
  T x[8], y[8];
  for (int k = 0; k < 8; ++k) {
    bool known = false;
    for (int j = 0; j < n; ++j) known |= number[j] == pick[k];
    if (known) continue;
    const Vec3<T> v = hull_vertex<T>(hull, pick[k]);
    number[n] = pick[k], x[n] = dot(frame.row[0], v), y[n] = dot(frame.row[1], v), ++n;
  }
  f.count = convex_corners(x, y, number, n, corner);
  for (int i = 0; i < f.count; ++i) f.point[i] = hull_vertex<T>(hull, corner[i]);
  f.whole = inner.count <= f.count;
  for (int i = 0; f.whole && i < inner.count; ++i) {
    f.whole = false;
    for (int j = 0; j < f.count; ++j) f.whole |= corner[j] == inner.vertex[i];
  }
  for (int k = 0; k < 8; ++k) {
    const int tip = tipping.pick[k];
    bool known = tip < 0;
    for (int j = 0; j < f.count; ++j) known |= corner[j] == tip;
    for (int j = 0; j < k; ++j) known |= tipping.pick[j] == tip;
    if (!known) f.tip[f.tips++] = hull_vertex<T>(hull, tip);
  }
  for (int k = 0; k < Feature<T>::kInner; ++k) {
    T best = T(hull.radius) * T(0.05);
    const int tips = f.tips;
    flat.each(hull, [&](int i) {
      const Vec3<T> x = hull_vertex<T>(hull, i);
      const T cost = cost_of(x, T(kTilt));
      T far = T(1e300);
      if (cost > T(hull.radius)) return;
      auto from = [&](Vec3<T> p) { far = min(far, dot(x - p, x - p)); };
      for (int j = 0; j < f.count; ++j) from(f.point[j]);
      for (int j = 0; j < tips; ++j) from(f.tip[j]);
      const T worth = sqrt(far) - cost;
      if (worth > best + same) best = worth, f.tip[tips] = x, f.tips = tips + 1;
    });
    if (f.tips == tips) break;
  }
}

/// The feature of the surface of s that faces along n; frame rows (t1, t2, e), origin o.
template <class T, class S>
HD_CALL void support_feature(ConvexShape<T, S>& s, Vec3<T> n, const Mat3<T>& frame, Vec3<T> o,
                             const Approach<T>& approach, Feature<T>& f) {
  Vec3<T> l = transposed_times(s.pose.R, n), h = s.size;
  f.count = f.tips = 0, f.round = 0, f.whole = true;
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
      const bool tilted = rho > T(1e-5);  // less is the noise of rest
      T x = h.x * (tilted ? l.x / rho : T(1)), y = h.x * (tilted ? l.y / rho : T(0));
      if (rho < T(kLevel)) {
        const Vec3<T> middle = s.pose * Vec3<T>{0, 0, z};
        const TippingRim<T> rim = tipping_rim(approach.push, middle, column(s.pose.R, 2), h.x);
        const Vec3<T> out = transposed_times(s.pose.R, rim.point - middle);
        if (rim.is) x = out.x, y = out.y;
      }
      for (int k = 0; k < 8; k += rho < T(kLevel) ? 2 : 1) {
        Vec3<T> d = octagon_direction<T>({x, y, 0}, {-y, x, 0}, k);
        add(d.x, d.y, z);
      }
      f.round = h.x, f.axis = frame * column(s.pose.R, 2), f.centre = frame * (s.pose * Vec3<T>{0, 0, z} - o);
    } else {
      T scale = h.x / rho;
      add(l.x * scale, l.y * scale, -h.y), add(l.x * scale, l.y * scale, h.y);
    }
  } else if (s.type == GeomKind::kMesh) {
    hull_feature(s.hull, l, hull_support(s.hull, l, s.start), seen_from(approach, s.pose), f);
  }
  Vec3<T> grow = n * radius(s) - o;
  for (int i = 0; i < f.count; ++i) f.point[i] = frame * (s.pose * f.point[i] + grow);
  for (int i = 0; i < f.tips; ++i) f.tip[i] = frame * (s.pose * f.tip[i] + grow);
}

/// Whether a feature is known by all of its points that may be corners with `other`: a cap's rim is known by some, and has none where all of
/// the other lies within it.
template <class T> HD bool is_whole(const Feature<T>& f, const Feature<T>& other) {
  for (int i = 0; f.round > 0 && i < other.count; ++i) {
    const T x = other.point[i].x - f.centre.x, y = other.point[i].y - f.centre.y;
    if (x * x + y * y > f.round * f.round) return false;
  }
  return f.whole;
}

/// True and the height of the feature where it is over or under x, within `slack` across.
template <class T> HD_CALL bool height_of(const Feature<T>& f, const Area<T>& area, Vec3<T> x, T slack, T& z) {
  if (f.round > 0) {
    z = disc_height(f, x);
    const Vec3<T> d = Vec3<T>{x.x, x.y, z} - f.centre;
    return dot(d, d) <= (f.round + slack) * (f.round + slack);
  }
  Vec3<T> a = f.point[0];
  if (f.count == 2) {
    Vec3<T> e = f.point[1] - a;
    T length2 = e.x * e.x + e.y * e.y, t = length2 > 0 ? ((x.x - a.x) * e.x + (x.y - a.y) * e.y) / length2 : T(0);
    t = clamp(t, T(0), T(1));
    T dx = a.x + e.x * t - x.x, dy = a.y + e.y * t - x.y;
    z = a.z + e.z * t;
    return dx * dx + dy * dy <= slack * slack;
  }
  if (area.upright) return false;
  for (int i = 0; i < f.count; ++i)
    if (area.orient * turn(f.point[i], f.point[after(f, i)], x) < -slack * area.edge[i]) return false;
  if (area.top >= 0) return z = bent_height(f, area, x), true;
  const Vec3<T> n = area.normal, c = area.centre;
  z = c.z - (n.x * (x.x - c.x) + n.y * (x.y - c.y)) / n.z;
  return true;
}

/// All corners of the common part of both features. size: of the smaller shape.
template <class T> HD_CALL void overlay(const Feature<T>& a, const Feature<T>& b, T size, Manifold<T>& m) {
  T same = size * T(2e-3), z;
  // Lines have no width: give them some. A border of 0.1 % lets equal faces, stacked flush, keep the corners of A.
  T slack_a = size * T(a.count == 2 ? 1e-2 : 1e-3), slack_b = size * T(b.count == 2 ? 1e-2 : 1e-3);
  const Area<T> area_a = area_of(a, T(1), size * T(1e-3)), area_b = area_of(b, T(-1), size * T(1e-3));
  for (int i = 0; i < a.count; ++i)
    if (height_of(b, area_b, a.point[i], slack_b, z))
      add_corner(m, a.point[i].x, a.point[i].y, a.point[i].z, z, i, same);
  for (int i = 0; i < b.count; ++i)
    if (height_of(a, area_a, b.point[i], slack_a, z))
      add_corner(m, b.point[i].x, b.point[i].y, z, b.point[i].z, 4 + i, same);
  if (a.round > 0 && b.round > 0 && abs(a.axis.z) > T(0.9999) && abs(b.axis.z) > T(0.9999)) {
    cross_discs(a, b, same, m);
  } else if (a.round > 0) {
    cross_rim(a, b, [&](Vec3<T> p, int j) { add_corner(m, p.x, p.y, disc_height(a, p), p.z, 4 + j, same); });
  } else if (b.round > 0) {
    cross_rim(b, a, [&](Vec3<T> p, int i) { add_corner(m, p.x, p.y, p.z, disc_height(b, p), i, same); });
  } else {
    cross_edges(a, b, same, size * T(1e-3), m);
    const T level = size * T(1e-6);
    cross_inner(a, b, area_b, level, [&](Vec3<T> p, T h, int i) { add_corner(m, p.x, p.y, p.z, h, i, same); });
    cross_inner(b, a, area_a, level, [&](Vec3<T> p, T h, int j) { add_corner(m, p.x, p.y, h, p.z, 4 + j, same); });
  }
  for (int i = 0; i < a.tips; ++i)
    if (height_of(b, area_b, a.tip[i], slack_b, z)) add_corner(m, a.tip[i].x, a.tip[i].y, a.tip[i].z, z, i, same);
  for (int i = 0; i < b.tips; ++i)
    if (height_of(a, area_a, b.tip[i], slack_a, z)) add_corner(m, b.tip[i].x, b.tip[i].y, z, b.tip[i].z, 4 + i, same);
}

/// Marks `room` points by worth, in order: first the deepest, of several the outermost in a fixed direction, the farthest from
/// it, the farthest from their line, the farthest on its other side, then those farthest from all marked; less their height_cost.
/// closed[i]: what closes at point i in the step, which the first is not forgiven. size: of the smaller shape.
template <class T>
HD_CALL void mark_spread(const Manifold<T>& m, int room, T size, T deepest, const T* closed, T tilt, bool* keep) {
  T cost[Manifold<T>::kPoints], height[Manifold<T>::kPoints];
  for (int i = 0; i < m.count; ++i) {
    const T gap = m.point[i].b - m.point[i].a;
    height[i] = height_cost(gap, deepest, T(0)), cost[i] = height_cost(gap, deepest, closed[i], tilt), keep[i] = false;
  }
  T line[3] = {0, 0, 0}, third = 0;  // through the first two; off it by how much the third is
  auto off_line = [&](const auto& p) { return line[0] * p.x + line[1] * p.y + line[2]; };
  int chosen[2] = {0, 0};
  for (int k = 0; k < room && k < m.count; ++k) {
    bool beyond = false;  // some point that is low is on the line's other side
    for (int i = 0; i < m.count && k == 3; ++i)
      beyond = beyond || (!keep[i] && off_line(m.point[i]) * (third > 0 ? -1 : 1) - cost[i] > size * T(1e-3));
    int best = -1;
    T score = 0;
    for (int i = 0; i < m.count; ++i) {
      if (keep[i]) continue;
      const auto& p = m.point[i];
      T far = k == 0 ? p.x : T(1e300);
      for (int j = 0; j < m.count; ++j) {
        const T x = p.x - m.point[j].x, y = p.y - m.point[j].y;
        if (keep[j]) far = min(far, sqrt(x * x + y * y));
      }
      if (k == 2) far = abs(off_line(p));
      if (beyond) far = off_line(p) * (third > 0 ? -1 : 1);
      const T worth = far - (k == 0 ? height[i] : cost[i]);
      if (best < 0 || worth > score + size * T(0.01)) best = i, score = worth;
    }
    keep[best] = true;
    if (k < 2) chosen[k] = best;
    if (k == 1) {
      const auto &p = m.point[chosen[0]], &q = m.point[chosen[1]];
      const T x = q.x - p.x, y = q.y - p.y, length = sqrt(x * x + y * y), scale = length > 0 ? 1 / length : T(0);
      line[0] = -y * scale, line[1] = x * scale, line[2] = (y * p.x - x * p.y) * scale;
    }
    if (k == 2) third = off_line(m.point[best]);
  }
}

/// Marks one more: that which stands out most beside those marked, by more than a third of the size, less its height_cost above the
/// deepest. False where there is none.
template <class T>
HD_CALL bool mark_outstanding(const Manifold<T>& m, T size, T deepest, const T* closed, T tilt, bool* keep) {
  T reach[8];
  for (int k = 0; k < 8; ++k) {
    const Vec3<T> way = octagon_direction<T>({1, 0, 0}, {0, 1, 0}, k);
    reach[k] = T(-1e300);
    for (int i = 0; i < m.count; ++i)
      if (keep[i]) reach[k] = max(reach[k], way.x * m.point[i].x + way.y * m.point[i].y);
  }
  int best = -1;
  T most = size * T(1) / 3;
  for (int i = 0; i < m.count; ++i) {
    if (keep[i]) continue;
    const auto& p = m.point[i];
    T out = 0;
    for (int k = 0; k < 8; ++k) {
      const Vec3<T> way = octagon_direction<T>({1, 0, 0}, {0, 1, 0}, k);
      out = max(out, way.x * p.x + way.y * p.y - reach[k]);
    }
    out = out - height_cost(p.b - p.a, deepest, closed[i], tilt);
    if (out > most + (best < 0 ? T(0) : size * T(0.01))) most = out, best = i;
  }
  if (best >= 0) keep[best] = true;
  return best >= 0;
}

/// Marks all points that cost at most one size, if there are no more than `room` with those marked. Returns how many are marked.
template <class T>
HD_CALL int mark_touching(const Manifold<T>& m, int room, T size, T deepest, const T* closed, bool* keep) {
  auto touches = [&](int i) { return keep[i] || height_cost(m.point[i].b - m.point[i].a, deepest, closed[i]) <= size; };
  int kept = 0, all = 0;
  for (int i = 0; i < m.count; ++i) kept += keep[i], all += touches(i);
  if (all > room) return kept;
  for (int i = 0; i < m.count; ++i) keep[i] = touches(i);
  return all;
}

/// Keeps `room` points that touch or close in the step; with twice half as many and as many that do when these give way and the body
/// tips: at rest the same. whole: all that touch are there, and kept if there is room.
template <class T, class Closed>
HD void thin_out(Manifold<T>& m, int room, bool twice, bool whole, T size, T tips, Closed closed) {
  const int each = twice ? room / 2 : room;
  if (m.count <= each) return;
  bool keep[Manifold<T>::kPoints], tipping[Manifold<T>::kPoints] = {};
  T closes[Manifold<T>::kPoints] = {}, deepest = T(1e300), end = T(1e300);  // end: the deepest when the step ends
  for (int i = 0; i < m.count; ++i) {
    const T gap = m.point[i].b - m.point[i].a;
    deepest = min(deepest, gap), end = min(end, gap - closed(m.point[i]));
  }
  for (int i = 0; i < m.count; ++i) closes[i] = max(T(0), closed(m.point[i]) - (deepest - end));
  deepest = deepest + alike_above(deepest, size);
  mark_spread(m, each, size, deepest, closes, T(kTilt), keep);
  if (twice) mark_spread(m, each, size, deepest, closes, tipping_tilt(tips, size), tipping);
  for (int i = 0; i < m.count; ++i) keep[i] = keep[i] || tipping[i];
  int kept = mark_touching(m, whole ? room : 0, size, deepest, closes, keep);
  while (twice && kept < room && mark_outstanding(m, size, deepest, closes, tipping_tilt(tips, size), keep)) ++kept;
  kept = 0;
  for (int i = 0; i < m.count; ++i)
    if (keep[i]) m.point[kept++] = m.point[i];
  m.count = kept;
}

/// The contacts of shapes A and B that touch so. Writes out[0 .. room).
template <class T, class S>
HD_CALL void make_manifold(ConvexShape<T, S>& a, ConvexShape<T, S>& b, const Touch<T>& touch, const Tipping<T>& tips,
                           const Closing<T>& closing, int room, Candidate<T>* out) {
  const Vec3<T>&n = touch.normal, &middle = touch.middle;
  const T dist = touch.gap, size = touch.size, noise = touch.noise;
  for (int k = 0; k < room; ++k) out[k] = absent<T>();
  Mat3<T> frame = frame_of_normal(n);
  Feature<T> fa, fb;
  Manifold<T> m;
  const Approach<T> approach = approach_along(closing, tips, touch);
  if (room > 1) {
    support_feature(a, n, frame, middle, approach, fa);
    support_feature(b, -n, frame, middle, approach, fb);
    if (fa.count + fa.tips >= 2 && fb.count + fb.tips >= 2) overlay(fa, fb, size, m);
  }
  T deepest = T(1e300);
  for (int i = 0; i < m.count; ++i) {
    auto& p = m.point[i];
    T lift = (dist - (p.b - p.a)) * T(0.5);
    if (lift > 0) p.a = p.a - lift, p.b = p.b + lift;
    deepest = min(deepest, p.b - p.a);
  }
  if (!(deepest <= dist + noise)) {
    if (m.count == Manifold<T>::kPoints) --m.count;
    add_corner(m, T(0), T(0), dist * T(-0.5), dist * T(0.5), 0, size * T(2e-3));
  }
  auto place = [&](const auto& p) {
    return middle + frame.row[0] * p.x + frame.row[1] * p.y + n * ((p.a + p.b) * T(0.5));
  };
  const bool twice = room == 8 && (a.type == GeomKind::kMesh || b.type == GeomKind::kMesh);
  thin_out(m, room, twice, twice && is_whole(fa, fb) && is_whole(fb, fa), size, tips.most,
           [&](const auto& p) { return dot(approach.slope, place(p)); });
  bool taken[8] = {};
  for (int i = 0; i < m.count; ++i) {
    const auto& p = m.point[i];
    int slot = p.slot % room;
    while (taken[slot]) slot = (slot + 1) % room;
    taken[slot] = true;
    out[slot] = {place(p), n, p.b - p.a};
  }
}

}  // namespace stiction
