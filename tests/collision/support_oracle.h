// The oracle of the narrow phase: support functions in plain double and the separation they imply along any direction.
//
// For unit n let g(n) = min over B of n.x - max over A of n.x. Whether apart or overlapping, the signed distance of two
// convex shapes is the largest g. So a claim (n, dist) is right if g(n) = dist and no direction is better:
// separation_along() checks the first exactly, best_separation() hunts for a better one (grid, product directions, then
// local search) and can only find true ones. Nothing here is shared with cuda/collision but plain data.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "collision/narrow_phase.h"

namespace stiction::oracle {

using V = std::array<double, 3>;
inline double dot(const V& a, const V& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
inline V cross(const V& a, const V& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline V axpy(double s, const V& x, const V& y) { return {s * x[0] + y[0], s * x[1] + y[1], s * x[2] + y[2]}; }
inline V unit(const V& a) {
  double n = std::sqrt(dot(a, a));
  return {a[0] / n, a[1] / n, a[2] / n};
}

/// Hull of points on an ellipsoid (all of them vertices), with its graph by brute force over all triangles.
struct Hull {
  std::vector<double> vert;
  std::vector<float> vert_float;
  std::vector<int> edgeadr, edge;
  std::vector<int> start;
  template <class S> HullView<S> view() const {
    HullView<S> hull{nullptr, edgeadr.data(), edge.data(), count(), static_cast<S>(radius()), start.data()};
    if constexpr (sizeof(S) == 8) hull.vert = vert.data();
    else hull.vert = vert_float.data();
    hull.low = hull.high = hull_vertex<S>(hull, 0);
    for (int i = 0; i < hull.count; ++i) {
      const Vec3<S> p = hull_vertex<S>(hull, i);
      hull.low = {std::min(hull.low.x, p.x), std::min(hull.low.y, p.y), std::min(hull.low.z, p.z)};
      hull.high = {std::max(hull.high.x, p.x), std::max(hull.high.y, p.y), std::max(hull.high.z, p.z)};
    }
    return hull;
  }
  double radius() const {
    double most = 0;
    for (int i = 0; i < count(); ++i) most = std::max(most, std::hypot(vert[3 * i], vert[3 * i + 1], vert[3 * i + 2]));
    return most;
  }
  int count() const { return static_cast<int>(vert.size() / 3); }
};

inline void build_graph(Hull& hull) {
  int n = hull.count();
  for (double& x : hull.vert) x = static_cast<float>(x), hull.vert_float.push_back(static_cast<float>(x));
  auto point = [&](int i) { return V{hull.vert[3 * i], hull.vert[3 * i + 1], hull.vert[3 * i + 2]}; };
  std::vector<std::vector<int>> next(n);
  auto link = [&](int i, int j) {
    if (std::find(next[i].begin(), next[i].end(), j) == next[i].end()) next[i].push_back(j), next[j].push_back(i);
  };
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j)
      for (int k = j + 1; k < n; ++k) {
        V normal = cross(axpy(-1, point(i), point(j)), axpy(-1, point(i), point(k)));
        bool above = false, below = false;
        for (int m = 0; m < n; ++m) {
          double side = dot(normal, axpy(-1, point(i), point(m)));
          above |= side > 1e-9, below |= side < -1e-9;
        }
        if (!(above && below)) link(i, j), link(j, k), link(k, i);
      }
  hull.edgeadr.push_back(0);
  for (auto& list : next) {
    hull.edge.insert(hull.edge.end(), list.begin(), list.end());
    hull.edgeadr.push_back(static_cast<int>(hull.edge.size()));
  }
  for (int k = 0; k < kHullWays; ++k) {
    const Vec3<double> d = hull_way_direction(k);
    int farthest = 0;
    for (int i = 0; i < n; ++i)
      if (dot(V{d.x, d.y, d.z}, point(i)) > dot(V{d.x, d.y, d.z}, point(farthest))) farthest = i;
    hull.start.push_back(farthest);
  }
}
inline Hull random_hull(int n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal;
  Hull hull;
  for (int i = 0; i < n; ++i) {
    V d = unit({normal(rng), normal(rng), normal(rng)});
    hull.vert.insert(hull.vert.end(), {0.08 * d[0], 0.05 * d[1], 0.06 * d[2]});
  }
  build_graph(hull);
  return hull;
}
/// A frustum with n corners above and below.
inline Hull frustum_hull(int n, double below, double above, double half_height) {
  Hull hull;
  for (int i = 0; i < 2 * n; ++i) {
    const double angle = 6.283185307179586 * (i / 2) / n, r = i % 2 == 0 ? below : above;
    hull.vert.insert(hull.vert.end(),
                     {r * std::cos(angle), r * std::sin(angle), i % 2 == 0 ? -half_height : half_height});
  }
  build_graph(hull);
  return hull;
}
inline Hull box_hull(double x, double y, double z) {
  Hull hull;
  for (int i = 0; i < 8; ++i) hull.vert.insert(hull.vert.end(), {i & 1 ? x : -x, i & 2 ? y : -y, i & 4 ? z : -z});
  build_graph(hull);
  return hull;
}

struct Body {
  int type;
  GeomPose<double> geom;
  const Hull* hull = nullptr;
};

inline V world(const Body& s, const V& l) {
  V x;
  const Vec3<double>* row = s.geom.pose.R.row;
  const double p[3] = {s.geom.pose.p.x, s.geom.pose.p.y, s.geom.pose.p.z};
  for (int i = 0; i < 3; ++i) x[i] = p[i] + row[i].x * l[0] + row[i].y * l[1] + row[i].z * l[2];
  return x;
}
inline V local(const Body& s, const V& d) {
  V l;
  const Vec3<double>* row = s.geom.pose.R.row;
  l[0] = row[0].x * d[0] + row[1].x * d[1] + row[2].x * d[2];
  l[1] = row[0].y * d[0] + row[1].y * d[1] + row[2].y * d[2];
  l[2] = row[0].z * d[0] + row[1].z * d[1] + row[2].z * d[2];
  return l;
}
/// max over the shape of n.x, n a unit vector.
inline double reach(const Body& s, const V& n) {
  V l = local(s, n);
  double a = s.geom.size.x, b = s.geom.size.y, c = s.geom.size.z, h = 0;
  switch (s.type) {
    case GeomKind::kSphere: h = a; break;
    case GeomKind::kCapsule: h = a + b * std::abs(l[2]); break;
    case GeomKind::kEllipsoid: h = std::sqrt(a * a * l[0] * l[0] + b * b * l[1] * l[1] + c * c * l[2] * l[2]); break;
    case GeomKind::kCylinder: h = a * std::hypot(l[0], l[1]) + b * std::abs(l[2]); break;
    case GeomKind::kBox: h = a * std::abs(l[0]) + b * std::abs(l[1]) + c * std::abs(l[2]); break;
    default:
      h = -1e300;
      for (int i = 0; i < s.hull->count(); ++i)
        h = std::max(h, l[0] * s.hull->vert[3 * i] + l[1] * s.hull->vert[3 * i + 1] + l[2] * s.hull->vert[3 * i + 2]);
  }
  return h + dot(n, world(s, {0, 0, 0}));
}
inline double separation_along(const Body& a, const Body& b, const V& n) {
  return -reach(b, {-n[0], -n[1], -n[2]}) - reach(a, n);
}

/// The largest separation found, starting from a grid, from all products of axes, and from `hint`.
inline double best_separation(const Body& a, const Body& b, const V& hint, int grid) {
  double best = -1e300;
  V at = hint;
  auto offer = [&](const V& n) {
    double g = separation_along(a, b, n);
    if (g > best) best = g, at = n;
  };
  for (int i = 0; i < grid; ++i) {
    double z = 1 - (2 * i + 1.0) / grid, r = std::sqrt(1 - z * z), t = 2.399963229728653 * i;
    offer({r * std::cos(t), r * std::sin(t), z});
  }
  V axis[6];
  for (int i = 0; i < 6; ++i) {
    const Body& s = i < 3 ? a : b;
    V e = {0, 0, 0};
    e[i % 3] = 1;
    axis[i] = axpy(-1, world(s, {0, 0, 0}), world(s, e));
  }
  for (int i = 0; i < 6; ++i)
    for (int j = i; j < 6; ++j) {
      V n = i == j ? axis[i] : cross(axis[i], axis[j]);
      if (dot(n, n) < 1e-6) continue;
      n = unit(n);
      offer(n), offer({-n[0], -n[1], -n[2]});
    }
  V start[2] = {at, hint};
  for (const V& from : start) {
    V n = from;
    double g = separation_along(a, b, n), step = 0.1;
    while (step > 1e-7) {
      V t = unit(std::abs(n[0]) < 0.7 ? cross(n, {1, 0, 0}) : cross(n, {0, 1, 0})), u = cross(n, t);
      bool moved = false;
      for (int k = 0; k < 8 && !moved; ++k) {
        V trial = unit(axpy(step * std::cos(k * 0.785398), t, axpy(step * std::sin(k * 0.785398), u, n)));
        double value = separation_along(a, b, trial);
        if (value > g + 1e-13) g = value, n = trial, moved = true;
      }
      if (!moved) step *= 0.3;
    }
    best = std::max(best, g);
  }
  return best;
}

inline double size_of(const Body& s) {
  double r = 0;
  for (int i = 0; s.hull != nullptr && i < s.hull->count(); ++i)
    r = std::max(r, std::hypot(s.hull->vert[3 * i], s.hull->vert[3 * i + 1], s.hull->vert[3 * i + 2]));
  return bounding_radius(s.type, s.geom.size, r);
}

/// Random sizes and poses rounded to float, near enough to touch: overlapping in about two thirds of the cases.
class Poses {
 public:
  explicit Poses(unsigned seed) : rng_(seed) {}
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(rng_); }
  Body body(int type, const Hull* hull) {
    Body s;
    s.type = type;
    s.hull = type == GeomKind::kMesh ? hull : nullptr;
    s.geom.size = {rounded(uniform(0.02, 0.1)), rounded(uniform(0.02, 0.1)), rounded(uniform(0.02, 0.1))};
    std::normal_distribution<double> normal;
    Quat<double> q = {normal(rng_), normal(rng_), normal(rng_), normal(rng_)};
    s.geom.pose = {rotation(normalized(q)), {0, 0, 0}};
    return s;
  }
  /// Moves b relative to a by up to the sum of their bounding radii.
  void place(const Body& a, Body& b) {
    double reach = size_of(b) + (a.type == GeomKind::kPlane ? 0 : size_of(a));
    V d = unit({uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)});
    double r = reach * uniform(0.05, 1);
    b.geom.pose.p = {rounded(r * d[0]), rounded(r * d[1]), rounded(r * d[2])};
  }
  static double rounded(double x) { return static_cast<float>(x); }

 private:
  std::mt19937 rng_;
};

}  // namespace stiction::oracle

namespace stiction {

/// The reach of geoms that stand still.
template <class Real>
Reach<Real> still(Real margin) {
  return {margin, zero_motion<Real>(), zero_motion<Real>(), Real(0)};
}

}  // namespace stiction
