// A convex shape as its support function: a core and a radius around it.
//
//   sphere: a point + r;  capsule: a segment + r;  ellipsoid, cylinder, box, mesh: themselves + 0
// One world at a time; T is the type the routines of this folder compute in, S that of the hull's vertices.
#pragma once
#include "collision/contact.h"

namespace stiction {

template <class T, class S> struct ConvexShape {
  int type;  // GeomKind
  Vec3<T> size;
  Pose<T> pose;
  HullView<S> hull;  // of a mesh
  int start;         // vertex where the next climb starts
  Vec3<T> way = {};  // along which it is everywhere at once: its hull from here to there,
  bool turns = false;
  Mat3<T> turned = {};  // where it has these axes, if it turns
};

template <class T, class S> HD T radius(const ConvexShape<T, S>& s) {
  return s.type == GeomKind::kSphere || s.type == GeomKind::kCapsule ? s.size.x : T(0);
}
template <class T, class S> HD Vec3<T> hull_vertex(const HullView<S>& hull, int i) {
  return {T(hull.vert[3 * i]), T(hull.vert[3 * i + 1]), T(hull.vert[3 * i + 2])};
}

/// Whether one looks at all vertices of a hull rather than walk on its graph.
template <class S> HD bool is_small(const HullView<S>& hull) { return hull.count <= 24 || hull.edgeadr == nullptr; }

/// Directions by the cells of a cube of 4 x 4 on each face: that of d, of any length, and a direction in the middle of one.
template <class T> HD int hull_way(Vec3<T> d) {
  const T x = abs(d.x), y = abs(d.y), z = abs(d.z);
  const int face = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
  const T along = face == 0 ? d.x : face == 1 ? d.y : d.z, u = face == 0 ? d.y : d.x, v = face == 2 ? d.y : d.z;
  const T half = abs(along) * T(0.5);
  auto cell = [half](T a) { return int(a > -half) + int(a > 0) + int(a > half); };
  return ((2 * face + int(along < 0)) * 4 + cell(u)) * 4 + cell(v);
}
HD Vec3<double> hull_way_direction(int way) {
  const int face = way / 32;
  const double along = (way / 16) % 2 ? -1 : 1, u = 0.5 * ((way / 4) % 4) - 0.75, v = 0.5 * (way % 4) - 0.75;
  return face == 0 ? Vec3<double>{along, u, v} : face == 1 ? Vec3<double>{u, along, v} : Vec3<double>{u, v, along};
}

/// The vertex farthest along d: by climbing the hull's graph, from vertex `start` or from where the hull's table has it about, or over
/// all vertices of a small hull.
template <class T, class S> HD_CALL int hull_support(const HullView<S>& hull, Vec3<T> d, int start) {
  int best = start;
  T top = dot(d, hull_vertex<T>(hull, best));
  if (is_small(hull)) {
    for (int i = 0; i < hull.count; ++i) {
      T height = dot(d, hull_vertex<T>(hull, i));
      if (height > top) top = height, best = i;
    }
    return best;
  }
  if (hull.start != nullptr) {
    const int about = hull.start[hull_way(d)];
    const T height = dot(d, hull_vertex<T>(hull, about));
    if (height > top) top = height, best = about;
  }
  for (int step = 0; step < hull.count; ++step) {
    int from = best;
    for (int e = hull.edgeadr[from]; e < hull.edgeadr[from + 1]; ++e) {
      T height = dot(d, hull_vertex<T>(hull, hull.edge[e]));
      if (height > top) top = height, best = hull.edge[e];
    }
    if (best == from) break;
  }
  return best;
}

/// Some vertices of a hull by number, in ascending order; none: all of them. How many there is room for changes no answer.
struct SomeVertices {
#ifdef __CUDACC__
  static constexpr int kMost = 64, kMarks = 1024;  // kMarks: hulls of so many vertices have a mark for each
#else
  static constexpr int kMost = 512, kMarks = 8192;
#endif
  int count = 0;
  int vertex[kMost];

  template <class S, class Visit> HD void each(const HullView<S>& hull, Visit visit) const {
    const int n = count > 0 ? count : hull.count;
    for (int k = 0; k < n; ++k) visit(count > 0 ? vertex[k] : k);
  }
};

/// Those whose height_cost is at most `radii` of the hull: that are not higher along `up` than `lowest` but by so much and by what reaches
/// them, reach or reach + closes + slope . x. They hang together on the hull's graph, as those in any half-space do. None of a small
/// hull, or where they are too many.
template <class T, class S>
HD_CALL SomeVertices low_vertices(const HullView<S>& hull, Vec3<T> up, int lowest, T radii, T reach, T closes,
                                  Vec3<T> slope) {
  SomeVertices found;
  if (is_small(hull)) return found;
  const Vec3<T> later = up - slope;
  const T height = dot(up, hull_vertex<T>(hull, lowest)) + reach + T(hull.radius) * radii * T(kTilt);
  bool room = true;
  const bool all_marked = hull.count <= SomeVertices::kMarks;
  const int words = all_marked ? (hull.count + 31) / 32 : 0;
  uint32_t mark[SomeVertices::kMarks / 32];  // of what was looked at, one bit for each vertex
  auto clear = [&] {
    for (int k = 0; k < words; ++k) mark[k] = 0;
  };
  clear();
  auto add = [&](int i) {
    if (all_marked) {
      uint32_t &word = mark[i / 32], bit = 1u << (i % 32);
      if ((word & bit) != 0) return;
      word |= bit;
    }
    const Vec3<T> x = hull_vertex<T>(hull, i);
    if (!room || (dot(up, x) > height && dot(later, x) > height + closes)) return;
    for (int k = 0; !all_marked && k < found.count; ++k)
      if (found.vertex[k] == i) return;
    room = found.count < SomeVertices::kMost;
    if (room) found.vertex[found.count++] = i;
  };
  int seen = 0;
  for (const int seed : {lowest, hull_support(hull, -later, lowest)})
    for (add(seed); room && seen < found.count; ++seen)
      for (int from = found.vertex[seen], e = hull.edgeadr[from]; e < hull.edgeadr[from + 1]; ++e) add(hull.edge[e]);
  if (!room) found.count = 0;
  if (all_marked && found.count > 16) {  // in order by their marks
    clear();
    for (int k = 0; k < found.count; ++k) mark[found.vertex[k] / 32] |= 1u << (found.vertex[k] % 32);
    for (int k = 0, n = 0; k < words; ++k)
      for (uint32_t left = mark[k]; left != 0; left &= left - 1) found.vertex[n++] = 32 * k + lowest_bit(left);
    return found;
  }
  for (int k = 1; k < found.count; ++k)
    for (int j = k; j > 0 && found.vertex[j - 1] > found.vertex[j]; --j) {
      const int later_one = found.vertex[j - 1];
      found.vertex[j - 1] = found.vertex[j], found.vertex[j] = later_one;
    }
  return found;
}

/// The point of the core farthest along d, about its origin and in its axes.
template <class T, class S> HD Vec3<T> support_in_axes(ConvexShape<T, S>& s, Vec3<T> l) {
  Vec3<T> x = {T(0), T(0), T(0)};
  switch (s.type) {
    case GeomKind::kCapsule: x.z = l.z < 0 ? -s.size.y : s.size.y; break;
    case GeomKind::kEllipsoid: {
      Vec3<T> scaled = {l.x * s.size.x, l.y * s.size.y, l.z * s.size.z};
      T length = norm(scaled), inverse = length > 0 ? T(1) / length : T(0);
      x = {scaled.x * s.size.x * inverse, scaled.y * s.size.y * inverse, scaled.z * s.size.z * inverse};
      break;
    }
    case GeomKind::kCylinder: {
      T rho = sqrt(l.x * l.x + l.y * l.y), scale = rho > T(1e-14) * abs(l.z) ? s.size.x / rho : T(0);
      x = {l.x * scale, l.y * scale, l.z < 0 ? -s.size.y : s.size.y};
      break;
    }
    case GeomKind::kBox:
      x = {l.x < 0 ? -s.size.x : s.size.x, l.y < 0 ? -s.size.y : s.size.y, l.z < 0 ? -s.size.z : s.size.z};
      break;
    case GeomKind::kMesh:
      s.start = hull_support(s.hull, l, s.start);
      x = hull_vertex<T>(s.hull, s.start);
      break;
    default: break;
  }
  return x;
}
/// The point of the core farthest along d, which need not be a unit vector.
template <class T, class S> HD Vec3<T> support(ConvexShape<T, S>& s, Vec3<T> d) {
  const Vec3<T> here = s.pose * support_in_axes(s, transposed_times(s.pose.R, d));
  if (s.turns) {
    const Vec3<T> there = s.pose.p + s.way + s.turned * support_in_axes(s, transposed_times(s.turned, d));
    return dot(d, there - here) > 0 ? there : here;
  }
  return dot(d, s.way) > 0 ? here + s.way : here;
}

/// A point of the Minkowski difference of two cores, and where it comes from.
template <class T> struct SupportPoint { Vec3<T> w, a, b; };  // w = a - b

/// The point of A - B farthest along d.
template <class T, class S> HD SupportPoint<T> support_difference(ConvexShape<T, S>& a, ConvexShape<T, S>& b,
                                                                  Vec3<T> d) {
  Vec3<T> p = support(a, d), q = support(b, -d);
  return {p - q, p, q};
}

/// Half the extent of a shape, roughly: what tolerances are relative to.
template <class T, class S> HD T extent(ConvexShape<T, S>& s) {
  T most = 0;
  if (s.type == GeomKind::kMesh) {
    const Vec3<S> low = s.hull.low, high = s.hull.high;
    return max(T(high.x) - T(low.x), max(T(high.y) - T(low.y), T(high.z) - T(low.z))) * T(0.5);
  }
  for (int i = 0; i < 3; ++i) {
    Vec3<T> d = column(s.pose.R, i);
    most = max(most, dot(d, support(s, d) - support(s, -d)) * T(0.5));
  }
  return most + radius(s);
}

/// How far a turn by w takes points of a shape's core from where they are, but for turns about its axis, m.
template <class T, class S> HD T turns_by(const ConvexShape<T, S>& s, Vec3<T> w) {
  const Vec3<T> size = s.size;
  const T across = norm(cross(w, column(s.pose.R, 2)));
  switch (s.type) {
    case GeomKind::kMesh: return norm(w) * T(s.hull.radius);
    case GeomKind::kBox: return norm(w) * norm(size);
    case GeomKind::kCylinder: return across * norm(Vec3<T>{size.x, size.y, T(0)});
    case GeomKind::kCapsule: return across * size.y;
    case GeomKind::kEllipsoid: return norm(w) * max(size.x, max(size.y, size.z));
    default: return T(0);
  }
}

/// Where two shapes are nearest, or deepest in one another.
template <class T> struct Touch {
  Vec3<T> normal, middle;  // from A to B; halfway between both surfaces
  T gap, size, noise;      // size: of the smaller shape; noise: of the gap                   m
};

}  // namespace stiction
