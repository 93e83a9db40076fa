// Narrow phase: the candidates of a pair of geometries, for every pair of types.
//
// Types are GeomKind numbers, type1 <= type2, equal in all worlds; sizes and poses are Reals. Regular pairs are
// computed for all worlds of a pack at once, irregular ones (box-box, plane-mesh, and those of convex/) world by world,
// in double where they are iterative or clip polygons, unless some axis shows that they are too far apart
// (separation.h). Candidates of worlds that are not wanted are absent: skipping such pairs altogether changes no bit of
// what is wanted.
//
//   candidates   sphere capsule ellipsoid cylinder box mesh
//   plane             1       2         1        4   8    8
//   sphere            1       1        1c        1   1   1c      c: by support functions (GJK, EPA, manifold)
//   capsule                   2        1c       2d   2   3c      d: the same where the axis pierces the cylinder
//   ellipsoid                          1c       1c  1c   1c
//   cylinder                                    4c  4c   8c
//   box                                              8   8c
//   mesh                                                 8c
// What an index means is in the header of each pair. Heightfields have none. Free boxes have 8 with static cylinders, too
// (turning.h).
// Tests: tests/collision/narrow_phase_test.cpp.
#pragma once
#include "collision/convex/convex_pair.h"
#include "collision/passing.h"
#include "collision/primitives/box_box.h"
#include "collision/primitives/capsule_box.h"
#include "collision/primitives/capsule_cylinder.h"
#include "collision/primitives/plane.h"
#include "collision/primitives/round.h"
#include "collision/separation.h"

namespace stiction {

/// The most candidates that any pair has.
inline constexpr int kMaxCandidates = 8;

/// 0: the pair never collides (plane-plane, heightfields).   pre: type1 <= type2
HD constexpr int candidate_count(int type1, int type2) {
  if (type1 < 0 || type2 > GeomKind::kMesh || type1 == GeomKind::kHeightfield || type2 == GeomKind::kHeightfield)
    return 0;
  if (type1 == GeomKind::kPlane) {
    constexpr int kCount[8] = {0, 0, 1, 2, 1, 4, 8, 8};
    return kCount[type2];
  }
  if (type1 == GeomKind::kSphere || type1 == GeomKind::kEllipsoid || type2 == GeomKind::kEllipsoid) return 1;
  if (type1 == GeomKind::kCapsule) return type2 == GeomKind::kMesh ? 3 : 2;
  return type2 == GeomKind::kMesh || (type1 == GeomKind::kBox && type2 == GeomKind::kBox) ? 8 : 4;
}

HD constexpr int plane_count(int type) { return candidate_count(GeomKind::kPlane, type); }

/// Of a free geom and a static one: on a face it has what it has on a plane.
HD constexpr int free_count(int own, int fixed) {
  const int count = own < fixed ? candidate_count(own, fixed) : candidate_count(fixed, own);
  const bool flat = fixed == GeomKind::kCylinder || fixed == GeomKind::kBox || fixed == GeomKind::kMesh;
  return flat && count < plane_count(own) ? plane_count(own) : count;
}

// ---- one world ------------------------------------------------------------------------------------------------

/// An irregular pair in world `i`. One call per pair of types, so that step functions stay small.
template <class Real>
HD_CALL void collide_lane(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, int i, const Reach<Real>& reach,
                          const Tipping<Real>& tips, Candidate<Real>* out) {
  using S = Scalar<Real>;
  int count = candidate_count(a.type, b.type);
  if (a.type == GeomKind::kPlane) {
    Candidate<S> found[kMaxCandidates];
    plane_mesh(lane_of<S>(a, i), lane_of<S>(b, i), *b.hull, S(lane(reach.margin, i)), S(lane(tips.most, i)),
               lane_of<S>(reach.now, i), found);
    for (int k = 0; k < count; ++k) set_lane_of(out[k], i, found[k]);
    return;
  }
  ConvexLane<S> x = convex_lane(a, b, i, reach.now);
  Candidate<double> found[kMaxCandidates];
  const double more = 1 + 1e-6, far = double(lane(reach.margin, i)) * more;  // what float calls less stays
  if (a.type == GeomKind::kBox && b.type == GeomKind::kBox)
    box_box<double, S>({x.a.size, x.a.pose}, {x.b.size, x.b.pose}, far, x.closing, found);
  else
    convex_pair(x.a, x.b, count, far, x.from_origin(lane_of<double>(tips, i)), x.closing,
                {x.from_origin(lane_of<double>(reach.way, i)), double(lane(reach.ends, i)) * more}, found);
  for (int k = 0; k < count; ++k) {
    if (found[k].dist < kFar) found[k].pos = found[k].pos + x.origin;
    set_lane_of(out[k], i, found[k]);
  }
}

// ---- all worlds of a Real --------------------------------------------------------------------------------------

/// Pairs of types that are done for all worlds at once.   pre: type1 <= type2
HD constexpr bool is_regular(int type1, int type2) {
  using K = GeomKind;
  if (type1 == K::kPlane) return type2 != K::kMesh;
  if (type1 == K::kSphere) return type2 != K::kEllipsoid && type2 != K::kMesh;
  return type1 == K::kCapsule && (type2 == K::kCapsule || type2 == K::kBox);
}
/// Whether a shape has pairs without planes.
template <class Shape>
HD constexpr bool has_others_than_planes() {
  for (int a = GeomKind::kSphere; a <= GeomKind::kMesh; ++a)
    for (int b = a; b <= GeomKind::kMesh; ++b)
      if (Shape::has_pair(a, b)) return true;
  return false;
}
/// Whether a shape has irregular ones.
template <class Shape>
HD constexpr bool has_irregular() {
  for (int a = 0; a <= GeomKind::kMesh; ++a)
    for (int b = a; b <= GeomKind::kMesh; ++b)
      if (Shape::has_pair(a, b) && candidate_count(a, b) > 0 && !is_regular(a, b)) return true;
  return false;
}

/// Whether it has cylinders.
template <class Shape>
HD constexpr bool has_cylinders() {
  for (int a = 0; a <= GeomKind::kMesh; ++a)
    if (Shape::has_pair(a < GeomKind::kCylinder ? a : GeomKind::kCylinder,
                        a < GeomKind::kCylinder ? GeomKind::kCylinder : a))
      return true;
  return false;
}

/// The candidates of the worlds that are not returned: of a regular pair all.
template <class Shape, class Real>
HD Mask<Real> collide_regular(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, Candidate<Real>* out) {
  using K = GeomKind;
  const auto none = mask_of<Real>(false);
  switch (a.type * 8 + b.type) {
    case K::kPlane * 8 + K::kSphere:
      if constexpr (Shape::has_pair(K::kPlane, K::kSphere)) plane_sphere(a, b, out);
      return none;
    case K::kPlane * 8 + K::kCapsule:
      if constexpr (Shape::has_pair(K::kPlane, K::kCapsule)) plane_capsule(a, b, out);
      return none;
    case K::kPlane * 8 + K::kEllipsoid:
      if constexpr (Shape::has_pair(K::kPlane, K::kEllipsoid)) plane_ellipsoid(a, b, out);
      return none;
    case K::kPlane * 8 + K::kCylinder:
      if constexpr (Shape::has_pair(K::kPlane, K::kCylinder)) plane_cylinder(a, b, out);
      return none;
    case K::kPlane * 8 + K::kBox:
      if constexpr (Shape::has_pair(K::kPlane, K::kBox)) plane_box(a, b, out);
      return none;
    case K::kSphere * 8 + K::kSphere:
      if constexpr (Shape::has_pair(K::kSphere, K::kSphere)) sphere_sphere(a, b, out);
      return none;
    case K::kSphere * 8 + K::kCapsule:
      if constexpr (Shape::has_pair(K::kSphere, K::kCapsule)) sphere_capsule(a, b, out);
      return none;
    case K::kSphere * 8 + K::kCylinder:
      if constexpr (Shape::has_pair(K::kSphere, K::kCylinder)) sphere_cylinder(a, b, out);
      return none;
    case K::kSphere * 8 + K::kBox:
      if constexpr (Shape::has_pair(K::kSphere, K::kBox)) sphere_box(a, b, out);
      return none;
    case K::kCapsule * 8 + K::kCapsule:
      if constexpr (Shape::has_pair(K::kCapsule, K::kCapsule)) capsule_capsule(a, b, out);
      return none;
    case K::kCapsule * 8 + K::kCylinder:
      if constexpr (Shape::has_pair(K::kCapsule, K::kCylinder)) return capsule_cylinder(a, b, out);
      return none;
    case K::kCapsule * 8 + K::kBox:
      if constexpr (Shape::has_pair(K::kCapsule, K::kBox)) capsule_box(a, b, out);
      return none;
    default: return mask_of<Real>(true);
  }
}

/// Of a cylinder's candidates with a plane those at the far side of its cap: absent where only turns about its axis, in which its rim
/// stays where it is, would bring them down.
template <class Real>
HD void drop_spinning(const PlacedGeom<Real>& cylinder, const Reach<Real>& reach, Candidate<Real>* out) {
  using S = Scalar<Real>;
  const Vec3<Real> axis = column(cylinder.pose.R, 2), tips = reach.way.w - axis * dot(axis, reach.way.w);
  const Vec3<Real> goes = velocity_at(reach.way, cylinder.pose.p);
  for (int k = 2; k < 4; ++k) {
    const Vec3<Real> moves = goes + cross(tips, out[k].pos - cylinder.pose.p);
    const Real closes = max(Real(0), -dot(out[k].normal, moves)) * S(2) + reach.turned + cylinder.size.x * S(0.1);
    out[k] = select<Real>(out[k].dist > closes, absent<Real>(), out[k]);
  }
}

/// Of a cylinder that stands on a plane: the point that it would tip over in place of the lowest of its rim, the lowest, if it is lower,
/// in place of the upper rim's.
template <class Real>
HD void stand_on_tipping(const PlacedGeom<Real>& plane, const PlacedGeom<Real>& cylinder, const Mask<Real>& wanted,
                         const Reach<Real>& reach, Candidate<Real>* out) {
  using S = Scalar<Real>;
  const Vec3<Real> n = column(plane.pose.R, 2), axis = column(cylinder.pose.R, 2);
  const Real up = dot(n, axis), radius = cylinder.size.x;
  const Mask<Real> stands =
      wanted & (abs(up) > Real(S(1 - kLevel * kLevel / 2))) & (norm(reach.way.w) < Real(S(kLevel)));
  if (!any(stands)) return;
  const Mask<Real> first = up > Real(0);  // the lower rim's
  const Vec3<Real> middle = cylinder.pose.p + axis * select(first, -cylinder.size.y, cylinder.size.y);
  const TippingRim<Real> rim = tipping_rim(reach.push, middle, axis, radius);
  const Mask<Real> is = stands & rim.is;
  if (!any(is)) return;
  const Vec3<Real> forward = rim.point - middle, aside = cross(axis, forward) * S(0.8660254037844386),
                   back = middle - forward * S(0.5);
  auto point = [&](Vec3<Real> x) { return plane_point(n, plane.pose.p, x); };
  const Candidate<Real> tip = point(rim.point), lowest = select<Real>(first, out[0], out[1]);
  const Candidate<Real> besides = select<Real>(lowest.dist < tip.dist - radius * S(1e-5), lowest, absent<Real>());
  out[0] = select<Real>(is, select<Real>(first, tip, besides), out[0]);
  out[1] = select<Real>(is, select<Real>(first, besides, tip), out[1]);
  out[2] = select<Real>(is, point(back - aside), out[2]);
  out[3] = select<Real>(is, point(back + aside), out[3]);
}

/// out[0 .. candidate_count(a.type, b.type)): the candidates of geoms a and b in the worlds that are wanted (where the
/// bounding balls are near), absent in the others; those beyond reach.margin >= 0 may be absent, and open ones of geoms that
/// pass by each other are, unless reach wants them. How they move at the start of the step tells which of many points are kept. In one place, so that step
/// functions stay small.   pre: a.type <= b.type, a pair that the shape has
template <class Shape, class Real>
HD_CALL void collide(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, const Mask<Real>& wanted,
                     const Reach<Real>& reach, Candidate<Real>* out) {
  lies_in_lane<Shape>(a, b, reach, *out);
  const int count = candidate_count(a.type, b.type);
  for (int k = 0; k < count; ++k) out[k] = absent<Real>();
  if (count == 0 || !any(wanted)) return;
  Mask<Real> left = wanted & collide_regular<Shape>(a, b, out);
  const Mask<Real> done = wanted & negate(left);
  for (int k = 0; k < count; ++k) out[k] = select<Real>(done, out[k], absent<Real>());
  if constexpr (Shape::has_pair(GeomKind::kSphere, GeomKind::kSphere))
    if (a.type == GeomKind::kSphere && b.type == GeomKind::kSphere) {
      const Candidate<Real> now = out[0];
      meet_on_way(a, b, velocity_at(reach.way, b.pose.p), out[0]);
      out[0] = select<Real>(done, out[0], now);
    }
  if constexpr (has_irregular<Shape>()) {
    if (any(left)) {
      left = left & negate(parted(a, b, reach.margin));
      const Tipping<Real> tips = reach.tips(b.pose.p);
      for_each_lane<Real>(left, [&](int i) {
        if (const int world = min(i, reach.lanes - 1); world < i)
          for (int k = 0; k < count; ++k) set_lane_of(out[k], i, lane_of<Scalar<Real>>(out[k], world));
        else collide_lane(a, b, i, reach, tips, out);
      });
    }
  }
  if constexpr (Shape::has_pair(GeomKind::kPlane, GeomKind::kCylinder))
    if (a.type == GeomKind::kPlane && b.type == GeomKind::kCylinder) {
      stand_on_tipping(a, b, wanted, reach, out);
      drop_spinning(b, reach, out);
    }
  if (a.type == GeomKind::kPlane || !has_others_than_planes<Shape>() || reach.with_passing) return;
  drop_passing(a, b, wanted, reach, count, out);
}

}  // namespace stiction
