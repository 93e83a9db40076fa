// A plane (geom 1, infinite, its z is the normal) against everything: points of the other geometry and their heights.
//
//   sphere     0: its lowest point
//   capsule    0, 1: its ends at -z, +z
//   ellipsoid  0: its lowest point
//   cylinder   0, 1: the lowest points of the rims at -z, +z; 2, 3: with the lower of these a triangle on the lower cap
//              (of one that stands and is pushed: stand_on_tipping of narrow_phase.h)
//   box        0..7: its corners, bit k of the index = the sign of axis k
//   mesh       0..7: vertices, the lowest and those that close in the step first, spread most, and those that fall on when
//              these give way, at rest on a face the same four; of up to eight that touch all. A vertex keeps its slot while
//              the others stay. One world at a time.
// Deviations from MuJoCo: it keeps at most 4 corners of a box and 3 vertices of a mesh; the cylinder's rims are ordered
// by height.
#pragma once
#include "collision/convex/shape.h"

namespace stiction {

/// The contact of the plane's normal n through o with the surface point x.
template <class Real> HD Candidate<Real> plane_point(Vec3<Real> n, Vec3<Real> o, Vec3<Real> x) {
  Real dist = dot(n, x - o);
  return {x - n * (dist * Real(0.5f)), n, dist};
}

template <class Real>
HD void plane_sphere(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> n = column(a.pose.R, 2);
  out[0] = plane_point(n, a.pose.p, b.pose.p - n * b.size.x);
}

template <class Real>
HD void plane_capsule(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> n = column(a.pose.R, 2), h = column(b.pose.R, 2) * b.size.y, lowest = b.pose.p - n * b.size.x;
  out[0] = plane_point(n, a.pose.p, lowest - h);
  out[1] = plane_point(n, a.pose.p, lowest + h);
}

template <class Real>
HD void plane_ellipsoid(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> n = column(a.pose.R, 2), d = transposed_times(b.pose.R, n);
  Vec3<Real> scaled = {d.x * b.size.x, d.y * b.size.y, d.z * b.size.z};
  Real inverse = Real(1) / sqrt(max(dot(scaled, scaled), Real(1e-30f)));
  Vec3<Real> x = {scaled.x * b.size.x, scaled.y * b.size.y, scaled.z * b.size.z};
  out[0] = plane_point(n, a.pose.p, b.pose.p - b.pose.R * (x * inverse));
}

template <class Real>
HD void plane_cylinder(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> n = column(a.pose.R, 2), x = column(b.pose.R, 0), y = column(b.pose.R, 1), z = column(b.pose.R, 2);
  // The lowest direction within the caps, by the caps' axes: of z (n . z) - n the part along n would be the square of the tilt,
  // which single precision loses below 3e-4.
  Real up = dot(n, z), along_x = dot(n, x), along_y = dot(n, y), square = along_x * along_x + along_y * along_y;
  Mask<Real> upright = square < Real(1e-13f);
  Vec3<Real> down =
      select(upright, x, (x * along_x + y * along_y) * (Real(-1) / sqrt(select(upright, Real(1), square)))) * b.size.x;
  Vec3<Real> h = z * b.size.y, aside = cross(z, down) * Real(0.8660254037844386);
  Vec3<Real> back = b.pose.p + h * select(up > Real(0), Real(-1), Real(1)) - down * Real(0.5f);
  out[0] = plane_point(n, a.pose.p, b.pose.p - h + down);
  out[1] = plane_point(n, a.pose.p, b.pose.p + h + down);
  out[2] = plane_point(n, a.pose.p, back - aside);
  out[3] = plane_point(n, a.pose.p, back + aside);
}

template <class Real>
HD void plane_box(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> n = column(a.pose.R, 2), x = column(b.pose.R, 0) * b.size.x, y = column(b.pose.R, 1) * b.size.y,
             z = column(b.pose.R, 2) * b.size.z;
  UNROLL for (int i = 0; i < 8; ++i) {
    Vec3<Real> p = (i & 1) != 0 ? b.pose.p + x : b.pose.p - x;
    p = (i & 2) != 0 ? p + y : p - y;
    out[i] = plane_point(n, a.pose.p, (i & 4) != 0 ? p + z : p - z);
  }
}

/// Four vertices of a hull at most, chosen by worth (see height_cost, alike_above): the lowest, of several the outermost, the one
/// farthest from it, the one farthest from their line, and the one farthest to the other side of it.
template <class T, class Closed> struct SpreadVertices {
  const HullView<T>& hull;
  Vec3<T> up;  // in the hull's frame
  T lowest;    // along it; what is lower counts as no lower
  const SomeVertices& low;
  T costly;       // radii; what costs more than that is worth less than 2 - costly of them
  T tilt;         // see height_cost
  bool reached;   // only what costs at most one radius
  Closed closed;  // how far vertex x counts as lower, which the first is not forgiven
  int chosen[4] = {-1, -1, -1, -1}, count = 0;
  Vec3<T> p[4] = {};

  /// The vertex of most worth, `far` metres apart in a way: of the low ones, unless another may be worth more. Returns its worth.
  template <class Far> HD T choose(Far far_of) {
    const T radius = hull.radius, step = radius * T(1e-3), tiny = radius * T(1e-6);
    T best = T(-1e30);
    SomeVertices all;
    const SomeVertices* const tried[] = {&low, &all};
    for (const SomeVertices* some : tried) {
      some->each(hull, [&](int i) {
        const Vec3<T> x = hull_vertex<T>(hull, i);
        const T far = far_of(x);
        if (count > 0 && !(far > tiny)) return;
        const T cost = height_cost(dot(up, x), lowest, count == 0 ? T(0) : closed(x), tilt), worth = far - cost;
        if (reached && cost > radius) return;
        if (worth > best + step) best = worth, chosen[count] = i, p[count] = x;
      });
      if (low.count == 0 || reached || best > (2 - costly) * radius) break;
    }
    return best;
  }

  /// first: the lowest, where it is known.
  HD void run(int first = -1) {
    if (first >= 0) chosen[0] = first, p[0] = hull_vertex<T>(hull, first), count = 1;
    const T tiny = T(hull.radius) * T(1e-6);
    const Vec3<T> out_first = frame_of_normal(up).row[0];
    for (; count < 4; ++count) {
      Vec3<T> across = count >= 2 ? cross(p[1] - p[0], up) : Vec3<T>{};
      if (count >= 2) across = across * (T(1) / max(norm(across), tiny));
      const T side = count == 3 && dot(across, p[2] - p[0]) > 0 ? T(-1) : T(1);
      const T worth = choose([&](Vec3<T> x) {
        const Vec3<T> r = count == 0 ? x : x - p[0];
        const T off = dot(across, r);
        return count == 0 ? dot(out_first, x) : count == 1 ? norm(r) : count == 2 ? abs(off) : side * off;
      });
      if (count == 3 && !(worth > 0))  // nothing there that is low: the farthest from all three
        choose([&](Vec3<T> x) { return min(norm(x - p[0]), min(norm(x - p[1]), norm(x - p[2]))); });
      if (chosen[count] < 0) break;
    }
  }
};
template <class T, class Closed>
HD SpreadVertices<T, Closed> spread_vertices(const HullView<T>& hull, Vec3<T> up, T lowest, const SomeVertices& low,
                                             T costly, int first, T tilt, Closed closed) {
  SpreadVertices<T, Closed> found{hull, up, lowest, low, costly, tilt, first >= 0, closed};
  found.run(first);
  return found;
}

/// One world. T = float or double. Twice four vertices (SpreadVertices), many of them the same: what touches, or closes in the step
/// if the lowest does, and what the body falls on when these give way and it tips, by `tips` metres at most; all that touch, where they
/// are no more than eight. None where the mesh is higher than `reach`.
template <class T>
HD_CALL void plane_mesh(const GeomPose<T>& a, const GeomPose<T>& b, const HullView<T>& hull, T reach, T tips,
                        const Closing<T>& closing, Candidate<T>* out) {
  constexpr int kMost = 8;
  Vec3<T> n = column(a.pose.R, 2), d = transposed_times(b.pose.R, n);
  // What closes at a vertex x, -n . (v + w x (b x)), is linear in x; all of it by the same brings the lowest down first.
  Vec3<T> slope = transposed_times(b.pose.R, cross(closing.w, n));
  const int bottom = hull_support(hull, -d, 0);
  const T lowest = dot(d, hull_vertex<T>(hull, bottom)), up = dot(n, b.pose.p - a.pose.p);
  for (int k = 0; k < kMost; ++k) out[k] = absent<T>();
  if (up + lowest > reach + (abs(up) + T(hull.radius)) * T(1e-5)) return;
  const Vec3<T> later = d - slope;  // heights at the end
  const T falls = dot(later, hull_vertex<T>(hull, hull_support(hull, -later, bottom))) - lowest;
  const T costly = 4;
  const T level = alike_above(up + lowest, T(hull.radius));
  const SomeVertices low = low_vertices(hull, d, bottom, costly, tips + level, falls, slope);
  auto closed = [&](Vec3<T> x) { return max(T(0), falls + dot(slope, x)); };
  const auto touching = spread_vertices(hull, d, lowest + level, low, costly, -1, T(kTilt), closed);
  T highest = 0;  // of what falls on: where it is level with the lowest both choices are one
  low.each(hull, [&](int i) {
    const Vec3<T> x = hull_vertex<T>(hull, i);
    const T height = dot(d, x) - lowest - closed(x);
    if (height <= tips) highest = max(highest, height);
  });
  int chosen[kMost], count = 0;
  auto add = [&](int i) {
    for (int k = 0; k < count; ++k)
      if (chosen[k] == i) return;
    chosen[count++] = i;
  };
  for (int k = 0; k < touching.count; ++k) add(touching.chosen[k]);
  if (highest > T(hull.radius) * T(0.05 * kTilt)) {
    const int first = touching.chosen[0];
    const T tilt = tipping_tilt(tips, T(hull.radius));
    const auto tipping = spread_vertices(hull, d, lowest + level, low, costly, first, tilt, closed);
    for (int k = 0; k < tipping.count; ++k) add(tipping.chosen[k]);
  }
  int touch = count;  // and the others that touch, where there is room for all
  low.each(hull, [&](int i) {
    const Vec3<T> x = hull_vertex<T>(hull, i);
    for (int k = 0; k < count; ++k)
      if (chosen[k] == i) return;
    if (height_cost(dot(d, x), lowest + level, closed(x)) > T(hull.radius)) return;
    if (touch < kMost) chosen[touch] = i;
    ++touch;
  });
  if (touch <= kMost) count = touch;
  bool taken[kMost] = {};
  for (int last = -1, left = count; left > 0; --left) {  // in the order of the vertices: a slot belongs to a vertex
    int next = hull.count;
    for (int k = 0; k < count; ++k)
      if (chosen[k] > last && chosen[k] < next) next = chosen[k];
    int slot = next % kMost;
    while (taken[slot]) slot = (slot + 1) % kMost;
    taken[slot] = true, last = next;
    out[slot] = plane_point(n, a.pose.p, b.pose * hull_vertex<T>(hull, next));
  }
}

}  // namespace stiction
