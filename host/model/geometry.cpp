#include "host/model/geometry.h"

#include <algorithm>
#include <cmath>

#include "collision/convex/shape.h"
#include "host/model/links.h"
#include "model/geom_kind.h"

namespace stiction {

double bound(const HullView<double>& hull, GeomModel<double>& x) {
  Vec3<double> low{-x.size.x, -x.size.y, -x.size.z}, high = x.size;
  const int type = x.type;
  if (type == GeomKind::kSphere) low = {-x.size.x, -x.size.x, -x.size.x}, high = -low;
  if (type == GeomKind::kCapsule || type == GeomKind::kCylinder)
    low = {-x.size.x, -x.size.x, -x.size.y}, high = {x.size.x, x.size.x, x.size.y};
  if (type == GeomKind::kMesh) low = hull.low, high = hull.high;
  Vec3<double> center = (low + high) * 0.5, half = (high - low) * 0.5;
  x.radius = type == GeomKind::kPlane ? 0 : bounding_radius(type, x.size, hull.radius);
  const double inner = inner_radius(type, x.size, std::min({half.x, half.y, half.z}));
  if (type == GeomKind::kMesh && x.mesh < 0) return inner;
  const int widest = half.x >= half.y && half.x >= half.z ? 0 : half.y >= half.z ? 1 : 2;
  // Of what has an axis along that, short or long: across it no capsule with a segment to the rim is around a cylinder.
  const int longest = type == GeomKind::kCapsule || type == GeomKind::kCylinder ? 2 : widest;
  const double length = longest == 0 ? half.x : longest == 1 ? half.y : half.z;
  const double a = longest == 0 ? half.y : half.x, b = longest == 2 ? half.y : half.z;
  const bool round = type == GeomKind::kSphere || type == GeomKind::kCapsule || type == GeomKind::kCylinder ||
                     type == GeomKind::kEllipsoid;
  x.capsule_radius = round ? std::max(a, b) : std::hypot(a, b);
  x.capsule_center = x.pose * center;
  x.capsule_axis = column(x.pose.R, longest) * (type == GeomKind::kSphere ? 0 : length);
  return inner;
}

HullView<double> measured_hull(const Model& m, int mesh, std::vector<int>& start) {
  HullView<double> hull{nullptr, nullptr, nullptr, m.mesh_vertnum[mesh], 0};
  auto vertex = [&](int i) { return vec3_at(m.mesh_vert, m.mesh_vertadr[mesh] + i); };
  Vec3<double> low = hull.count > 0 ? vertex(0) : Vec3<double>{}, high = low;
  for (int i = 0; i < hull.count; ++i) {
    const Vec3<double> p = vertex(i);
    hull.radius = std::max(hull.radius, norm(p));
    low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z)};
  }
  hull.low = low, hull.high = high;
  for (int k = 0; k < kHullWays; ++k) {
    const Vec3<double> d = hull_way_direction(k);
    int farthest = 0;
    for (int i = 1; i < hull.count; ++i)
      if (dot(d, vertex(i)) > dot(d, vertex(farthest))) farthest = i;
    start.push_back(farthest);
  }
  return hull;
}

ProbeModel<double> probe_against(int plane, const PairModel<double>& pair) {
  ProbeModel<double> probe;
  probe.plane = plane, probe.geom1 = pair.geom1, probe.geom2 = pair.geom2, probe.friction_rule = pair.friction_rule;
  probe.mu = pair.mu, probe.stiffness = pair.stiffness, probe.dissipation = pair.dissipation;
  probe.restitution = pair.restitution, probe.dim = pair.dim, probe.torsion = pair.torsion,
  probe.rolling = pair.rolling;
  return probe;
}

bool rolls(const GeomModel<double>& geom, const Vec3<double>& centre) {
  return geom.type == GeomKind::kCylinder || geom.type == GeomKind::kEllipsoid || geom.type == GeomKind::kCapsule ||
         (geom.type == GeomKind::kSphere && norm(geom.pose.p - centre) > kOffCentre * geom.size.x);
}

PairModel<double> surface_of(const Model& m, const GeomPair& p) {
  PairModel<double> pair;
  pair.geom1 = p.geom1, pair.geom2 = p.geom2, pair.mu = p.friction, pair.friction_rule = p.rule;
  pair.dim = p.dim, pair.torsion = p.torsion, pair.rolling = p.rolling;
  double k1 = m.geom_stiffness[p.geom1], k2 = m.geom_stiffness[p.geom2];
  double t1 = m.geom_dissipation[p.geom1], t2 = m.geom_dissipation[p.geom2];
  pair.stiffness = k1 > 0 && k2 > 0 ? k1 * k2 / (k1 + k2) : std::max(k1, k2);
  // Springs in series: the softer one moves more, its relaxation time counts more.
  pair.dissipation = k1 > 0 && k2 > 0 ? (t1 * k2 + t2 * k1) / (k1 + k2) : k1 > 0 ? t1 : t2;
  if (!(pair.stiffness > 0)) pair.restitution = std::max(m.geom_restitution[p.geom1], m.geom_restitution[p.geom2]);
  return pair;
}

}  // namespace stiction
