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
/// How far beside the middle one asks for the normal of the floor, in radii: where the middle is above a joint, both geoms there have it.
inline constexpr float kInward = 1e-2f;

template <class Real> struct FlushFloor {
  int points = 0;
  Mask<Real> there = mask_of<Real>(false);
  Vec3<Real> normal = {Real(0), Real(0), Real(1)};
  Real level, near;                       // of the plane along the normal; how far apart is flush                   m
  Candidate<Real> point[kMaxCandidates];  // with the plane, as turning leaves them
  Vec3<Real> under[kMaxCandidates];       // where they are on it before that
  Mask<Real> over[kMaxCandidates];        // those that may touch in the step
};

/// The pairs begin .. end - 1 of one geom of a body with static ones, as they stand in a station.
struct PairRange { int begin, end; };

/// The geom of the body in pair `i`.
template <class L> HD int own_geom(const typename L::Model& m, int i) {
  return m.geom[m.pair[i].geom2].link < 0 ? m.pair[i].geom1 : m.pair[i].geom2;
}

/// Whether the static geom of pair `i` may be part of a floor.
template <class L>
HD bool may_be_floor(const typename L::Model& m, int i) {
  const auto& pair = m.pair[i];
  const int own = own_geom<L>(m, i), fixed = own == pair.geom1 ? pair.geom2 : pair.geom1;
  return m.geom[fixed].type >= GeomKind::kCylinder && plane_count(m.geom[own].type) <= pair.candidates - pair.middle;
}

/// Where the static geom of a pair is flush with the floor, which its candidates then are taken from.
template <class Real>
HD Mask<Real> is_flush(const PlacedGeom<Real>& fixed, const FlushFloor<Real>& floor, const Mask<Real>& near) {
  if (!any(near & floor.there)) return mask_of<Real>(false);
  const Real rises = dot(floor.normal, fixed.pose.p) + extent_along(fixed, floor.normal) - floor.level;
  return near & floor.there & (abs(rises) < floor.near);
}

/// Calls visit(pair, worlds) of those that may be part of a floor and are near in some of the wanted worlds.
template <class L, class Visit, class Real = typename L::Real>
HD void each_floor_pair(const typename L::Model& m, PairRange pairs, const Pose<Real>& link, Vec3<Real> origin,
                        const Real& margin, const Mask<Real>& wanted, Visit visit) {
  for (int i = pairs.begin; i < pairs.end; ++i) {
    if (!may_be_floor<L>(m, i)) continue;
    const Mask<Real> near = wanted & is_near_static<L>(m, i, link, origin, margin);
    if (any(near)) visit(placed_pair<L>(m, i, link, origin), near);
  }
}

/// The plane through the point of static geoms that is nearest to the middle of the body's geom, in worlds `several` where more than one is
/// near; where more than one is as high.
template <class L, class Real = typename L::Real>
HD_CALL void find_plane(const typename L::Model& m, PairRange pairs, const Pose<Real>& link, Vec3<Real> origin,
                        const Real& margin, const Mask<Real>& several, FlushFloor<Real>& floor) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(link, floor);
  using S = Scalar<Real>;
  floor.level = Real(0);
  Real nearest(kFar);
  each_floor_pair<L>(m, pairs, link, origin, margin, several, [&](const PlacedPair<Real>& x, const Mask<Real>& near) {
    const Vec3<Real> middle = x.own.pose.p, inward = x.fixed.pose.p - middle;
    const Real far = norm(inward);
    const Vec3<Real> from = middle + inward * (x.radius * S(kInward) / max(far, Real(1e-30f)));
    Candidate<Real> c;
    collide<typename L::Shape>(as_geom(from), x.fixed, near, {far * S(2), {}, {}, Real(0)}, &c);
    const Real height = c.dist - dot(c.normal, middle - from);
    const Mask<Real> take = near & (c.dist > Real(0)) & (height < nearest);
    nearest = select(take, height, nearest), floor.normal = select(take, -c.normal, floor.normal);
    floor.level = select(take, dot(floor.normal, middle) - height, floor.level);
  });
  floor.there = several & (nearest < Real(kFar));
  auto one = mask_of<Real>(false), more = one;
  each_floor_pair<L>(m, pairs, link, origin, margin, floor.there,
                     [&](const PlacedPair<Real>& x, const Mask<Real>& near) {
                       const Mask<Real> flush = is_flush(x.fixed, floor, near);
                       more = more | (one & flush), one = one | flush;
                     });
  floor.there = more;
}

/// The floor under a body's geom, whose plane is known: where static geoms are under all points that may touch.
template <class L, class Real = typename L::Real>
HD_CALL void find_points(const typename L::Model& m, PairRange pairs, const Pose<Real>& link, Vec3<Real> origin,
                         const Reach<Real>& reach, const Turning<Real>& body, const PlacedGeom<Real>& own,
                         FlushFloor<Real>& floor) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(link, reach, body, own, floor);
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
  each_floor_pair<L>(m, pairs, link, origin, reach.margin, floor.there,
                     [&](const PlacedPair<Real>& x, const Mask<Real>& near) {
                       for (int k = 0; k < floor.points; ++k) {
                         cover(x.fixed, near & floor.over[k], floor.under[k], first[k]);
                         cover(x.fixed, near & floor.over[k], later[k], then[k]);
                       }
                     });
  for (int k = 0; k < floor.points; ++k) floor.there = floor.there & (negate(floor.over[k]) | (first[k] & then[k]));
}

/// The floor under a geom of the body in worlds `several` where more than one static geom is near.
template <class L, class Real = typename L::Real>
HD void find_floor(const typename L::Model& m, PairRange pairs, const Pose<Real>& link, Vec3<Real> origin,
                   const Reach<Real>& reach, const Turning<Real>& body, const Mask<Real>& several,
                   FlushFloor<Real>& floor) {
  const PlacedPair<Real> x = placed_pair<L>(m, pairs.begin, link, origin);
  floor.near = x.radius * Scalar<Real>(kFlush);
  find_plane<L>(m, pairs, link, origin, reach.margin, several, floor);
  if (any(floor.there)) find_points<L>(m, pairs, link, origin, reach, body, x.own, floor);
}

/// The candidates of a geom and a static one in worlds where that is flush with the floor: points over it, at its own height.
template <class Shape, class Real>
HD_CALL void take_from_floor(const PlacedGeom<Real>& fixed, const FlushFloor<Real>& floor, const Mask<Real>& flush,
                             Candidate<Real>* out) {
  lies_in_lane<Shape>(fixed, floor, *out);
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
  const int end = st.static_begin + st.statics;
  FlushFloor<Real> floor;
  for (int begin = st.static_begin, next; begin < end; begin = next) {
    PairRange near_ones{end, begin};  // of one geom of the body: first and last
    auto one = mask_of<Real>(false), several = one, last = one;
    for (next = begin; next < end && own_geom<L>(m, next) == own_geom<L>(m, begin); ++next) {
      const Mask<Real> near = looks & is_near_static<L>(m, next, link, origin, reach.margin);
      if (!any(near)) continue;
      near_ones = {min(near_ones.begin, next), next + 1}, last = near;
      if (may_be_floor<L>(m, next)) several = several | (one & near), one = one | near;
    }
    floor.there = mask_of<Real>(false);
    if (any(several)) find_floor<L>(m, near_ones, link, origin, reach, body, several, floor);
    for (int i = near_ones.begin; i < near_ones.end; ++i) {
      const auto& pair = m.pair[i];
      const bool is_last = i + 1 == near_ones.end;  // most often the only one
      const Mask<Real> near = is_last ? last : looks & is_near_static<L>(m, i, link, origin, reach.margin);
      if (!any(near)) continue;
      const PlacedPair<Real> x = placed_pair<L>(m, i, link, origin);
      Candidate<Real> out[kMaxCandidates + 1];
      for (int k = 0; k < pair.candidates; ++k) out[k] = absent<Real>();
      const Mask<Real> flush = may_be_floor<L>(m, i) ? is_flush(x.fixed, floor, near) : mask_of<Real>(false);
      const Vec3<Real> ahead = collide_placed<typename L::Shape>(x, near & negate(flush), reach, out);
      turn_shaped<L>(m, st, i, x, origin, reach, body, out);
      if (any(flush)) take_from_floor<typename L::Shape>(x.fixed, floor, flush, out);
      add_middle<L>(m, st, i, x, origin, reach, body, ahead, out);
      drop_ghosts(x, near & negate(flush), reach, pair.candidates, pair.middle, out);
      if (reach.hub_b != nullptr && any(flush)) {
        const Real above = dot(floor.normal, reach.hub_b->at) - floor.level;
        drop_open(flush & stays_above(floor.normal, above, reach), pair.candidates, out);
      }
      for (int k = 0; k < pair.candidates; ++k) found(pair.id + k, out[k], surface_from<typename L::Number>(pair));
    }
  }
}

}  // namespace stiction
