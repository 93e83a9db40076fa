// The floor of flush static geoms that a body is on: to it they are one plane.
//
// Each of them alone has edges where it meets the next one. What a body overlaps beside such an edge it overlaps least along a
// direction that leads over the edge, and the next geom, which it will come down on, is nearest at its edge: normals that the floor as
// a whole has not. So where static geoms are under all points of a geom that may touch in the step, now and when they do, its
// candidates with each that is as high as their plane are those that it has with that, of the points that are over this one. Where a
// point is beyond them, as at the border of the floor, the geoms stay what they are alone.
// Tests: tests/python/test_flush_floors.py.
#pragma once
#include "collision/static_pairs.h"

namespace stiction {

/// How much static geoms may differ in height to be flush, and lie apart, in radii of what is on them.
inline constexpr float kFlush = 1e-3f;

template <class Real> struct FlushFloor {
  int own = -1;  // the geom that it is under
  int points = 0;
  Mask<Real> there = mask_of<Real>(false);
  Vec3<Real> normal = {Real(0), Real(0), Real(1)};
  Real level, near;                       // of the plane along the normal; how far apart is flush                   m
  Candidate<Real> point[kMaxCandidates];  // with the plane, as turning leaves them
  Vec3<Real> under[kMaxCandidates];       // where they are on it before that
  Mask<Real> over[kMaxCandidates];        // those that may touch in the step
};

/// The geom of pair `i` of a station that may be on a floor with the static one; -1: none.
template <class L>
HD int floored_geom(const typename L::Model& m, int i) {
  const auto& pair = m.pair[i];
  const int own = m.geom[pair.geom2].link < 0 ? pair.geom1 : pair.geom2,
            fixed = m.geom[own == pair.geom1 ? pair.geom2 : pair.geom1].type;
  return fixed >= GeomKind::kCylinder && plane_count(m.geom[own].type) <= pair.candidates - pair.middle ? own : -1;
}

/// Where the static geom of a pair is flush with the floor, which its candidates then are taken from.
template <class Real>
HD Mask<Real> is_flush(const PlacedGeom<Real>& fixed, const FlushFloor<Real>& floor, const Mask<Real>& near) {
  if (!any(near & floor.there)) return mask_of<Real>(false);
  const Real rises = dot(floor.normal, fixed.pose.p) + extent_along(fixed, floor.normal) - floor.level;
  return near & floor.there & (abs(rises) < floor.near);
}

/// Calls visit(pair, worlds) of the static geoms that floor.own is near in some of the wanted worlds.
template <class L, class Visit, class Real = typename L::Real>
HD void each_floor_pair(const typename L::Model& m, const StationModel& st, const Pose<Real>& link, Vec3<Real> origin,
                        const Real& margin, int own, const Mask<Real>& wanted, Visit visit) {
  for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) {
    if (floored_geom<L>(m, i) != own) continue;
    const Mask<Real> near = wanted & is_near_static<L>(m, i, link, origin, margin);
    if (any(near)) visit(placed_pair<L>(m, i, link, origin), near);
  }
}

/// The plane through the point of the static geoms near floor.own that is nearest to its middle, where several are as high.
template <class L, class Real = typename L::Real>
HD_CALL void find_plane(const typename L::Model& m, const StationModel& st, const Pose<Real>& link, Vec3<Real> origin,
                        const Real& margin, const Mask<Real>& looks, FlushFloor<Real>& floor) {
  using S = Scalar<Real>;
  auto one = mask_of<Real>(false), several = one;
  for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) {
    if (floored_geom<L>(m, i) != floor.own) continue;
    const Mask<Real> near = looks & is_near_static<L>(m, i, link, origin, margin);
    several = several | (one & near), one = one | near;
  }
  floor.there = several, floor.level = Real(0);
  if (!any(several)) return;
  Real nearest(kFar);
  each_floor_pair<L>(m, st, link, origin, margin, floor.own, several,
                     [&](const PlacedPair<Real>& x, const Mask<Real>& near) {
                       const Vec3<Real> middle = x.own.pose.p;
                       Candidate<Real> c;
                       collide<typename L::Shape>(as_geom(middle), x.fixed, near,
                                                  {norm(middle - x.fixed.pose.p) * S(2), {}, {}, Real(0)}, &c);
                       const Mask<Real> take = near & (c.dist > Real(0)) & (c.dist < nearest);
                       nearest = select(take, c.dist, nearest), floor.normal = select(take, -c.normal, floor.normal);
                       floor.level = select(take, dot(floor.normal, middle) - nearest, floor.level);
                     });
  floor.there = several & (nearest < Real(kFar));
  one = several = mask_of<Real>(false);
  each_floor_pair<L>(m, st, link, origin, margin, floor.own, floor.there,
                     [&](const PlacedPair<Real>& x, const Mask<Real>& near) {
                       const Mask<Real> flush = is_flush(x.fixed, floor, near);
                       several = several | (one & flush), one = one | flush;
                     });
  floor.there = several;
}

/// The floor under the geom floor.own, whose plane is known: where static geoms are under all points that may touch.
template <class L, class Real = typename L::Real>
HD_CALL void find_points(const typename L::Model& m, const StationModel& st, const Pose<Real>& link, Vec3<Real> origin,
                         const Reach<Real>& reach, const Turning<Real>& body, const PlacedGeom<Real>& own,
                         FlushFloor<Real>& floor) {
  using S = Scalar<Real>;
  const Vec3<Real>& n = floor.normal;
  const PlacedGeom<Real> plane{{{}, {transposed(frame_of_normal(n)), n * floor.level}}, GeomKind::kPlane, nullptr};
  Candidate<Real> found[kMaxCandidates];
  collide<typename L::Shape>(plane, own, floor.there, reach, found);
  floor.points = plane_count(own.type);
  Mask<Real> first[kMaxCandidates], then[kMaxCandidates];
  Vec3<Real> later[kMaxCandidates];
  for (int k = 0; k < floor.points; ++k) {
    const Candidate<Real>& c = found[k];
    first[k] = then[k] = mask_of<Real>(false), floor.over[k] = floor.there & (c.dist < reach.margin);
    floor.point[k] = on_plane_turned(c, k, own, reach, body, floor.there);
    floor.under[k] = c.pos - n * (c.dist * S(0.5)), later[k] = floor.point[k].pos - n * (floor.point[k].dist * S(0.5));
  }
  auto cover = [&](const PlacedGeom<Real>& fixed, const Mask<Real>& near, Vec3<Real> at, Mask<Real>& covered) {
    const Mask<Real> look = near & negate(covered);
    if (any(look)) covered = covered | is_inside<typename L::Shape>(fixed, at, floor.near, look);
  };
  each_floor_pair<L>(m, st, link, origin, reach.margin, floor.own, floor.there,
                     [&](const PlacedPair<Real>& x, const Mask<Real>& near) {
                       for (int k = 0; k < floor.points; ++k) {
                         cover(x.fixed, near & floor.over[k], floor.under[k], first[k]);
                         cover(x.fixed, near & floor.over[k], later[k], then[k]);
                       }
                     });
  for (int k = 0; k < floor.points; ++k) floor.there = floor.there & (negate(floor.over[k]) | (first[k] & then[k]));
}

/// The candidates of a geom and a static one in worlds where that is flush with the floor: points over it, at its own height.
template <class Shape, class Real>
HD_CALL void take_from_floor(const PlacedGeom<Real>& fixed, const FlushFloor<Real>& floor, const Mask<Real>& flush,
                             Candidate<Real>* out) {
  const Vec3<Real>& n = floor.normal;
  const Real rises = dot(n, fixed.pose.p) + extent_along(fixed, n) - floor.level;
  for (int k = 0; k < floor.points; ++k) {
    Mask<Real> over = flush & floor.over[k];
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
    if (const int own = floored_geom<L>(m, i); own >= 0 && st.statics > 1) {
      if (own != floor.own) {
        floor.own = own, floor.near = x.radius * Scalar<Real>(kFlush);
        find_plane<L>(m, st, link, origin, reach.margin, looks, floor);
        if (any(floor.there)) find_points<L>(m, st, link, origin, reach, body, x.own, floor);
      }
      flush = is_flush(x.fixed, floor, near);
    }
    collide_placed<typename L::Shape>(x, near & negate(flush), reach, out);
    turn_shaped<L>(m, st, i, x, origin, reach, body, out);
    if (any(flush)) take_from_floor<typename L::Shape>(x.fixed, floor, flush, out);
    add_middle<L>(m, st, i, x, origin, reach, body, out);
    for (int k = 0; k < pair.candidates; ++k) found(pair.id + k, out[k], surface_from<typename L::Number>(pair));
  }
}

}  // namespace stiction
