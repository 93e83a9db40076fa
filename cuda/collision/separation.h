// How far apart two geoms are at least: along any direction, what lies between what they reach.
//
// For every unit n the gap |n.d| less both extents along n is a lower bound of the distance of shapes that are symmetric
// about their origins, d apart: all but meshes, of which the boxes around them are. Tried are the directions that part
// cylinders and boxes: axes of boxes, axes of cylinders and across them towards the other, the line of centres, products of
// axes.
#pragma once
#include "collision/convex/shape.h"

namespace stiction {

/// How far a geom reaches from its origin along the unit vector n.
template <class Real>
HD Real extent_along(const PlacedGeom<Real>& g, Vec3<Real> n) {
  using S = Scalar<Real>;
  const Vec3<Real> l = transposed_times(g.pose.R, n), h = g.size;
  if (g.type == GeomKind::kSphere) return h.x;
  if (g.type == GeomKind::kCapsule) return h.x + abs(l.z) * h.y;
  if (g.type == GeomKind::kCylinder) return h.x * sqrt(l.x * l.x + l.y * l.y) + abs(l.z) * h.y;
  if (g.type == GeomKind::kBox) return abs(l.x) * h.x + abs(l.y) * h.y + abs(l.z) * h.z;
  if (g.type == GeomKind::kEllipsoid)
    return sqrt(l.x * l.x * h.x * h.x + l.y * l.y * h.y * h.y + l.z * l.z * h.z * h.z);
  Real reach(0);
  for (int i = 0; i < kWidth<Real>; ++i) {
    const Vec3<S> d{lane(l.x, i), lane(l.y, i), lane(l.z, i)};
    set_lane(reach, i, dot(d, hull_vertex<S>(*g.hull, hull_support(*g.hull, d, 0))));
  }
  return reach;
}

/// The directions of a geom's flat faces that part it from one d away, of any length: calls part(n).
template <class Real, class Part> HD void each_face(const PlacedGeom<Real>& g, Vec3<Real> d, Part part) {
  if (g.type == GeomKind::kBox) part(column(g.pose.R, 0)), part(column(g.pose.R, 1));
  const Vec3<Real> z = column(g.pose.R, 2);
  part(z);
  if (g.type == GeomKind::kCylinder) part(d - z * dot(d, z));
}

/// The box around a mesh, with what rounding may move its sides.
template <class Real> HD PlacedGeom<Real> box_around(const PlacedGeom<Real>& g) {
  using S = Scalar<Real>;
  const HullView<S>& hull = *g.hull;
  const S noise = hull.radius * kLengthNoise<Real>;
  const Vec3<S> middle = (hull.high + hull.low) * S(0.5),
                half = (hull.high - hull.low) * S(0.5) + Vec3<S>{noise, noise, noise};
  return {{vec<Real>(half), {g.pose.R, g.pose * vec<Real>(middle)}}, GeomKind::kBox, nullptr};
}

/// Worlds where geoms a and b, neither a mesh, are seen to be `reach` and more apart.
template <class Real>
HD_CALL Mask<Real> solids_parted(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, const Real& reach) {
  auto found = mask_of<Real>(false);
  const Vec3<Real> d = b.pose.p - a.pose.p;
  auto part = [&](Vec3<Real> n) {
    const Real gap = abs(dot(n, d)) - extent_along(a, n) - extent_along(b, n), length = norm(n);
    found = found | (gap > (reach + norm(d) * Scalar<Real>(1e-5)) * length + Real(1e-30f));
  };
  part(d);
  each_face(a, d, part);
  each_face(b, d, part);
  if (all(found)) return found;
  each_face(a, d, [&](Vec3<Real> x) { each_face(b, d, [&](Vec3<Real> y) { part(cross(x, y)); }); });
  return found;
}

/// Worlds where geoms a and b are seen to be `reach` and more apart; without a mesh, of cylinders and boxes only.
template <class Real>
HD_CALL Mask<Real> parted(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, const Real& reach) {
  auto flat = [](int type) { return type == GeomKind::kCylinder || type == GeomKind::kBox || type == GeomKind::kMesh; };
  if (b.type != GeomKind::kMesh)
    return flat(a.type) && flat(b.type) ? solids_parted(a, b, reach) : mask_of<Real>(false);
  const PlacedGeom<Real> box = box_around(b);
  if (a.type == GeomKind::kMesh) return solids_parted(box_around(a), box, reach);
  if (a.type != GeomKind::kPlane) return solids_parted(a, box, reach);
  const Vec3<Real> n = column(a.pose.R, 2), d = box.pose.p - a.pose.p;
  return dot(n, d) - extent_along(box, n) > reach + norm(d) * Scalar<Real>(1e-5);
}

}  // namespace stiction
