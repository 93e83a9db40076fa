// Geoms of the compiled model: what bounds them, which of their points meet a plane, what their surfaces are made of.
#pragma once
#include "collision/contact.h"
#include "host/model/compile.h"

namespace stiction {

/// A capsule around a geom: tighter than its ball for what is long. Its segment lies along the longest of the geom's axes.
void bounding_capsule(const Model& m, GeomModel<double>& x);

/// Friction, stiffness and dissipation of two geoms that may touch; springs in series.
PairModel<double> surface_of(const Model& m, const GeomPair& p);

/// Geoms that touch a plane with a few of their points.
inline bool probe_like(int type) {
  auto t = static_cast<GeomType>(type);
  return t == GeomType::kSphere || t == GeomType::kCapsule || t == GeomType::kBox;
}

/// push(point in the geom's frame, radius) for the points of such a geom that may meet a plane.
template <class Push>
void each_probe(const GeomModel<double>& geom, Push push) {
  const Vec3<double> s = geom.size;
  if (geom.type == GeomKind::kSphere) {
    push(Vec3<double>{0, 0, 0}, s.x);
  } else if (geom.type == GeomKind::kCapsule) {
    push(Vec3<double>{0, 0, s.y}, s.x), push(Vec3<double>{0, 0, -s.y}, s.x);
  } else {
    for (int c = 0; c < 8; ++c) push(Vec3<double>{c & 1 ? s.x : -s.x, c & 2 ? s.y : -s.y, c & 4 ? s.z : -s.z}, 0.0);
  }
}

}  // namespace stiction
