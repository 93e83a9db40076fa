// The middle of a free geom as a contact: a blow on one end whips the other round by a turn that no free motion tells, and between two
// steps through what is thin.
//
// So the middle is a contact with the surface that is met first from it along -n, n being the normal of the geom's deepest contact: of a
// face that is the contact's plane, of what is round it is below that, and beside an edge there is none. Static geoms and moving ones
// answer alike.
// Tests: tests/python/test_second_hits.py.
#pragma once
#include "collision/turning.h"

namespace stiction {

/// The point x as a sphere.
template <class Real> HD PlacedGeom<Real> as_geom(Vec3<Real> x) {
  const Real zero(0);
  return {{{zero, zero, zero}, {frame_of_normal(Vec3<Real>{zero, zero, Real(1)}), x}}, GeomKind::kSphere, nullptr};
}

/// What is no farther from a geom than that part of its size is on it.
inline constexpr float kOnSurface = 1e-4f;
/// Newton steps from a tangent plane to a ball under it reach that from up to 0.9 of its radius beside.
inline constexpr int kMostSteps = 6;

/// Where a body's middle would meet what is under it.
template <class Real> struct Under {
  Real depth;         // below a plane; kFar: nothing is there       m
  Vec3<Real> normal;  // of the surface there
};

/// Where a convex geom of that size is met on the way along -n from x, within `most`, in worlds that are wanted. The nearest point's tangent
/// plane parts the geom from x: along the way to it the geom is not met.
template <class Shape, class Real>
HD Under<Real> find_under(const PlacedGeom<Real>& geom, const Real& size, Vec3<Real> x, Vec3<Real> n, const Real& most,
                          const Mask<Real>& wanted) {
  Under<Real> found{Real(kFar), n};
  Real depth(0);
  Vec3<Real> normal = n;
  Mask<Real> look = wanted;
  for (int i = 0; i < kMostSteps && any(look); ++i) {
    Candidate<Real> c;
    collide<Shape>(as_geom(x - n * depth), geom, look, {most, {}, {}, Real(0)}, &c);
    const Mask<Real> on = look & (c.dist < size * Scalar<Real>(kOnSurface));
    found = {select(on, depth, found.depth), select(on, normal, found.normal)};
    const Real towards = -dot(n, c.normal);
    look = look & negate(on) & (c.dist < most * towards);
    depth = depth + c.dist / select(look, towards, Real(1)), normal = -c.normal;
    look = look & (depth < most);
  }
  return found;
}

/// The middle of a free geom over the deepest candidate c of it and another, whose normal points to it: a contact with the surface that is
/// under it, along that normal. turned: on a plane it is a ball of that part of kInnerBall of the largest inside, for turns of the
/// free motion. under(x, most, worlds): see find_under, x being on the plane of c.
template <class Real, class Below>
HD Candidate<Real> middle_candidate(const Candidate<Real>& c, const PlacedGeom<Real>& own, const Real& turned,
                                    const Real& margin, Below under) {
  using S = Scalar<Real>;
  const Vec3<Real>&n = c.normal, middle = own.pose.p;
  const Real ball = inner_radius(own.type, own.size, Real(0)) * (turned * S(kInnerBall));
  const Vec3<Real> lowest = middle - n * ball;
  const Real height = dot(n, lowest - c.pos) + c.dist * S(0.5);
  const Mask<Real> near = (c.dist < Real(kFar)) & (height < margin);
  if (!any(near)) return absent<Real>();
  const Under<Real> met = under(lowest - n * height, margin - height, near);
  const Mask<Real> flat = met.depth <= Real(0);
  const Vec3<Real> up = select(flat, n, met.normal), x = select(flat, lowest, middle);
  // Beside an edge the surface's plane is nearer than the surface: the middle is as far as the whole geom is, at least.
  const Real gap = select(flat, height, max((height + ball + met.depth) * dot(n, up), c.dist));
  return select<Real>(near & (gap < margin), {x - up * (gap * S(0.5)), up, gap}, absent<Real>());
}

}  // namespace stiction
