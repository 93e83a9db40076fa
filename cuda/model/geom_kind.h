// Types of geometries, and what follows from type and size alone: what bounds one, which of its points meet a plane.
#pragma once
#include "math/vec3.h"

namespace stiction {

/// MuJoCo's numbers, as in host/model.
struct GeomKind {
  enum : int {
    kPlane = 0,
    kHeightfield = 1,
    kSphere = 2,
    kCapsule = 3,
    kEllipsoid = 4,
    kCylinder = 5,
    kBox = 6,
    kMesh = 7
  };
};

/// The radius of what has no bound, the distance of a contact that does not exist; margins are below it.   m
inline constexpr float kFar = 1e6f;

/// The radius of a ball about the geometry's origin that contains it; `mesh_radius` is that of a mesh, a plane's is
/// infinite (kFar).
template <class Real> HD Real bounding_radius(int type, Vec3<Real> size, Real mesh_radius) {
  switch (type) {
    case GeomKind::kSphere: return size.x;
    case GeomKind::kCapsule: return size.x + size.y;
    case GeomKind::kEllipsoid: return max(size.x, max(size.y, size.z));
    case GeomKind::kCylinder: return sqrt(size.x * size.x + size.y * size.y);
    case GeomKind::kBox: return norm(size);
    case GeomKind::kMesh: return mesh_radius;
    default: return Real(kFar);
  }
}

/// Points of a body that are nearer to each other than this part of how thin it is may be one: it stands on the others. Thin is what none of
/// its geoms is thick: a brush's bristles are many, and one may stand on one point.
inline constexpr float kTwinPart = 0.25f;

/// The radius of a ball about the geometry's origin that is in it, half of how thin it is; `mesh_radius` stands for that of a mesh, a
/// plane's is infinite (kFar).   m
template <class Real> HD Real inner_radius(int type, Vec3<Real> size, Real mesh_radius) {
  switch (type) {
    case GeomKind::kSphere:
    case GeomKind::kCapsule: return size.x;
    case GeomKind::kCylinder: return min(size.x, size.y);
    case GeomKind::kEllipsoid:
    case GeomKind::kBox: return min(min(size.x, size.y), size.z);
    case GeomKind::kMesh: return mesh_radius;
    default: return Real(kFar);
  }
}

/// Whether the shortest side of a box is that small a part of the longest that a blow may turn it through a plane between two steps.
template <class Real> HD bool is_thin_box(const Vec3<Real>& size) {
  return min(min(size.x, size.y), size.z) < max(max(size.x, size.y), size.z) * Real(0.125);
}
/// A sphere whose middle is farther from the centre of mass than that part of its radius is not the same all around it.
inline constexpr double kOffCentre = 1e-3;
/// How many fixed points of a geometry meet a plane: a sphere, the ends of a capsule, the corners of a box; of a capsule or a thin box
/// that is free a ball in its middle, too, which a blow may turn under. 0: others do, too.
HD int probe_count(int type, const Vec3<double>& size, bool free) {
  if (type == GeomKind::kCapsule) return free ? 3 : 2;
  if (type == GeomKind::kBox) return free && is_thin_box(size) ? 9 : 8;
  return type == GeomKind::kSphere ? 1 : 0;
}
/// The ball in the middle of what turns is that part of the largest, so that it carries nothing of what lies on its ends.
inline constexpr float kInnerBall = 0.8f;
/// One of these in the geometry's frame, and the radius around it.
template <class Real> struct Probe {
  Vec3<Real> center;
  Real radius;
};
template <class Real> HD Probe<Real> probe_of(int type, Vec3<Real> size, int feature) {
  const Real zero(0);
  if (type == GeomKind::kSphere) return {{zero, zero, zero}, size.x};
  if (type == GeomKind::kCapsule && feature == 2) return {{zero, zero, zero}, size.x * Real(kInnerBall)};
  if (type == GeomKind::kBox && feature == 8)
    return {{zero, zero, zero}, min(min(size.x, size.y), size.z) * Real(kInnerBall)};
  if (type == GeomKind::kCapsule) return {{zero, zero, feature == 0 ? size.y : -size.y}, size.x};
  return {{feature & 1 ? size.x : -size.x, feature & 2 ? size.y : -size.y, feature & 4 ? size.z : -size.z}, zero};
}

}  // namespace stiction
