// The floor of flush static geoms that a hull is on: to it they are one plane.
//
// Each of them alone has edges where it meets the next one. What a hull overlaps beside such an edge it overlaps least along a
// direction that leads over the edge, and the next geom, which it will come down on, is nearest at its edge: normals that the floor as
// a whole has not. So where all points of a hull that may touch in the step are over static geoms, now and when they do, and these are as
// high as one another, its candidates with each are those that it has with their plane, of the points that are over that geom. Where a
// point is beyond them, as at the border of the floor, the geoms stay what they are alone.
// Tests: tests/python/test_flush_floors.py.
#pragma once
#include "collision/static_pairs.h"

namespace stiction {

/// How much static geoms may differ in height to be flush, and lie apart, in radii of the hull.
inline constexpr float kFlush = 1e-3f;

template <class Real> struct FlushFloor {
  static constexpr int kPoints = 8;  // as many candidates as a plane and a mesh have
  int own = -1;                      // the geom that it is under
  Mask<Real> there = mask_of<Real>(false);
  Vec3<Real> normal;
  Real level, near;                // of the plane along the normal; how far apart is flush                    m
  Candidate<Real> point[kPoints];  // with the plane, as turning leaves them
  Vec3<Real> under[kPoints];       // where they are on it before that; those that are not there are beyond the margin
  Real gap[kPoints];
};

/// The hull of pair `i` of a station.
template <class L>
HD int hull_of(const typename L::Model& m, int i) {
  const auto& pair = m.pair[i];
  const int own = m.geom[pair.geom2].link < 0 ? pair.geom1 : pair.geom2,
            fixed = own == pair.geom1 ? pair.geom2 : pair.geom1;
  return m.geom[own].type == GeomKind::kMesh && m.geom[fixed].type >= GeomKind::kCylinder ? own : -1;
}

/// The floor under the hull `own`: the plane through the point of the static geoms near it that is nearest to its middle, where several
/// are near and all that may touch is over them.
template <class L, class Real = typename L::Real>
HD_CALL void find_floor(const typename L::Model& m, const StationModel& st, const Pose<Real>& link, Vec3<Real> origin,
                        const Reach<Real>& reach, const Turning<Real>& body, const Mask<Real>& looks,
                        FlushFloor<Real>& floor) {
  using S = Scalar<Real>;
  auto any_near = mask_of<Real>(false), several = any_near;
  auto each_near = [&](const Mask<Real>& wanted, auto visit) {
    for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) {
      if (hull_of<L>(m, i) != floor.own) continue;
      const Mask<Real> near = wanted & is_near_static<L>(m, i, link, origin, reach.margin);
      if (any(near)) visit(i, near);
    }
  };
  each_near(looks,
            [&](int, const Mask<Real>& near) { several = several | (any_near & near), any_near = any_near | near; });
  floor.there = several;
  if (!any(several)) return;
  Real nearest(kFar);
  floor.normal = {Real(0), Real(0), Real(1)}, floor.level = Real(0);
  PlacedGeom<Real> own;
  each_near(several, [&](int i, const Mask<Real>& near) {
    const PlacedPair<Real> x = placed_pair<L>(m, i, link, origin);
    own = x.own, floor.near = x.radius * S(kFlush);
    Candidate<Real> c;
    const Real far = norm(own.pose.p - x.fixed.pose.p) * S(2);
    collide<typename L::Shape>(as_geom(own.pose.p), x.fixed, near, {far, {}, {}, Real(0)}, &c);
    const Mask<Real> take = near & (c.dist > Real(0)) & (c.dist < nearest);
    nearest = select(take, c.dist, nearest), floor.normal = select(take, -c.normal, floor.normal);
    floor.level = select(take, c.dist * S(0.5) - dot(c.normal, c.pos), floor.level);
  });
  const Vec3<Real>& n = floor.normal;
  floor.there = several & (nearest < Real(kFar));
  floor.level = dot(n, own.pose.p) - nearest;
  const PlacedGeom<Real> plane{{{}, {transposed(frame_of_normal(n)), n * floor.level}}, GeomKind::kPlane, nullptr};
  Candidate<Real> found[kMaxCandidates];
  collide<typename L::Shape>(plane, own, floor.there, reach, found);
  for (int k = 0; k < FlushFloor<Real>::kPoints && any(floor.there); ++k) {
    const Candidate<Real>& c = found[k];
    const Vec3<Real> at = c.pos + n * (c.dist * S(0.5));
    floor.gap[k] = c.dist, floor.under[k] = at - n * c.dist;
    floor.point[k] = rolling_point(c, at, turning_on_plane(c, k, own, body), reach.now, reach.way, body, floor.there);
    const Vec3<Real> later = floor.point[k].pos - n * (floor.point[k].dist * S(0.5));
    for (const Vec3<Real>& p : {floor.under[k], later}) {
      const Mask<Real> look = floor.there & (c.dist < reach.margin);
      if (any(look)) floor.there = floor.there & (negate(look) | is_solid<L>(m, st, origin, p, floor.near, look));
    }
  }
}

/// Where the static geom of a pair is flush with the floor, out of which its candidates then are.
template <class Real>
HD Mask<Real> is_flush(const PlacedGeom<Real>& fixed, const FlushFloor<Real>& floor, const Mask<Real>& near) {
  if (!any(near & floor.there)) return mask_of<Real>(false);
  const Real rises = dot(floor.normal, fixed.pose.p) + extent_along(fixed, floor.normal) - floor.level;
  return near & floor.there & (abs(rises) < floor.near);
}

/// The candidates of a hull and a static geom in worlds where that is flush with the floor: points over it, at its own height.
template <class Shape, class Real>
HD_CALL void take_from_floor(const PlacedGeom<Real>& fixed, const FlushFloor<Real>& floor, const Mask<Real>& flush,
                             const Real& margin, Candidate<Real>* out) {
  const Vec3<Real>& n = floor.normal;
  const Real rises = dot(n, fixed.pose.p) + extent_along(fixed, n) - floor.level;
  for (int k = 0; k < FlushFloor<Real>::kPoints; ++k) {
    Mask<Real> over = flush & (floor.gap[k] < margin);
    if (any(over)) over = is_inside<Shape>(fixed, floor.under[k], floor.near, over);
    Candidate<Real> c = floor.point[k];
    c.pos = c.pos + n * (rises * Scalar<Real>(0.5)), c.dist = c.dist - rises;
    out[k] = select<Real>(flush, select<Real>(over, c, absent<Real>()), out[k]);
  }
}

/// Candidates of the geom pairs of a station against static geometry other than probes, in worlds that are looked at; calls
/// found(number, candidate, surface) for those of pairs that are near in some world.
template <class L, class Found, class Real = typename L::Real>
HD void static_candidates(const typename L::Model& m, const StationModel& st, const Pose<Real>& link, Vec3<Real> origin,
                          const Reach<Real>& reach, const Turning<Real>& body, const Mask<Real>& looks, Found found) {
  FlushFloor<Real> floor;
  for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) {
    const auto& pair = m.pair[i];
    const Mask<Real> near = looks & is_near_static<L>(m, i, link, origin, reach.margin);
    if (!any(near)) continue;
    const PlacedPair<Real> x = placed_pair<L>(m, i, link, origin);
    Candidate<Real> out[kMaxCandidates + 1];
    for (int k = 0; k < pair.candidates; ++k) out[k] = absent<Real>();
    auto flush = mask_of<Real>(false);
    if (const int own = hull_of<L>(m, i); own >= 0 && st.statics > 1) {
      if (own != floor.own) floor.own = own, find_floor<L>(m, st, link, origin, reach, body, looks, floor);
      flush = is_flush(x.fixed, floor, near);
    }
    collide_placed<typename L::Shape>(x, near & negate(flush), reach, out);
    turn_shaped<L>(m, st, i, x, origin, reach, body, out);
    if (any(flush)) take_from_floor<typename L::Shape>(x.fixed, floor, flush, reach.margin, out);
    add_middle<L>(m, st, i, x, origin, reach, body, out);
    for (int k = 0; k < pair.candidates; ++k) found(pair.id + k, out[k], surface_from<typename L::Number>(pair));
  }
}

}  // namespace stiction
