// The candidates of a body's geoms and static ones.
#pragma once
#include "collision/edges_ahead.h"
#include "collision/middle.h"
#include "collision/whip.h"

namespace stiction {

/// A geom whose pose is known; and one that a link carries.
template <class L, class Real = typename L::Real>
HD PlacedGeom<Real> geom_at(const typename L::Model& m, const GeomModel<typename L::Number>& geom,
                            const Pose<Real>& pose) {
  return {{vec<Real>(geom.size), pose}, geom.type, geom.mesh < 0 ? nullptr : m.hull + geom.mesh};
}
template <class L, class Real = typename L::Real>
HD PlacedGeom<Real> carried_geom(const typename L::Model& m, const GeomModel<typename L::Number>& geom,
                                 const Pose<Real>& link) {
  return geom_at<L>(m, geom, link * geom.pose);
}

/// What a candidate needs besides its geometry.
template <class Number>
struct Surface {
  Number mu, stiffness, dissipation, restitution, torsion, rolling;
};
/// Of a pair or a probe.
template <class Number, class Of>
HD Surface<Number> surface_from(const Of& x) {
  return {Number(x.mu),          Number(x.stiffness), Number(x.dissipation),
          Number(x.restitution), Number(x.torsion),   Number(x.rolling)};
}

/// A static geom.
template <class L, class Real = typename L::Real>
HD PlacedGeom<Real> static_geom(const typename L::Model& m, const GeomModel<typename L::Number>& geom,
                                Vec3<Real> origin) {
  const auto& R = geom.pose.R;
  return geom_at<L>(
      m, geom, {{{vec<Real>(R.row[0]), vec<Real>(R.row[1]), vec<Real>(R.row[2])}}, vec<Real>(geom.pose.p) - origin});
}

/// Pair `i` of a station with its geoms placed.
template <class L, class Real = typename L::Real>
HD PlacedPair<Real> placed_pair(const typename L::Model& m, int i, const Pose<Real>& link, Vec3<Real> origin) {
  const auto& pair = m.pair[i];
  const auto &g1 = m.geom[pair.geom1], &g2 = m.geom[pair.geom2];
  const bool own_first = g2.link < 0;
  const auto &fixed = own_first ? g2 : g1, &own = own_first ? g1 : g2;
  const Real radius(own.radius);
  return {carried_geom<L>(m, own, link), static_geom<L>(m, fixed, origin), own_first, radius};
}

/// Whether x is in a static geom, or no farther from it than `noise`: between flush ones it is in both.
template <class Shape, class Real>
HD Mask<Real> is_inside(const PlacedGeom<Real>& fixed, Vec3<Real> x, const Real& noise, const Mask<Real>& wanted) {
  if (fixed.type == GeomKind::kPlane) return wanted & (dot(column(fixed.pose.R, 2), x - fixed.pose.p) < Real(0));
  Candidate<Real> c;
  collide<Shape>(as_geom(x), fixed, wanted, {noise, {}, {}, Real(0)}, &c);
  return wanted & (c.dist < noise);
}

/// Whether the point x is in or on static geometry that the body may touch, or nearer to it than `near`, in the wanted worlds.
template <class L, class Real = typename L::Real>
HD Mask<Real> is_solid(const typename L::Model& m, const StationModel& st, Vec3<Real> origin, Vec3<Real> x,
                       const Real& near, const Mask<Real>& wanted) {
  auto found = mask_of<Real>(false);
  for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) {
    const auto &g1 = m.geom[m.pair[i].geom1], &geom = g1.link < 0 ? g1 : m.geom[m.pair[i].geom2];
    const PlacedGeom<Real> fixed = static_geom<L>(m, geom, origin);
    const Vec3<Real> d = x - fixed.pose.p;
    const Real reach = near + geom.radius;
    const Mask<Real> look = wanted & negate(found) & (dot(d, d) < reach * reach);
    if (geom.type != GeomKind::kPlane && any(look)) found = found | is_inside<typename L::Shape>(fixed, x, near, look);
  }
  return found;
}

/// What of the static geometry that the body may touch is met first on the way along -n from x, planes aside: see find_under.
template <class L, class Real = typename L::Real>
HD Under<Real> static_under(const typename L::Model& m, const StationModel& st, Vec3<Real> origin, Vec3<Real> x,
                            Vec3<Real> n, const Real& most, const Mask<Real>& wanted) {
  Under<Real> first{Real(kFar), n};
  for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) {
    const auto &g1 = m.geom[m.pair[i].geom1], &geom = g1.link < 0 ? g1 : m.geom[m.pair[i].geom2];
    const PlacedGeom<Real> fixed = static_geom<L>(m, geom, origin);
    const Vec3<Real> d = x - fixed.pose.p;
    const Real size(geom.radius), reach = most + size;
    const Mask<Real> look = wanted & (first.depth > Real(0)) & (dot(d, d) < reach * reach);
    if (geom.type == GeomKind::kPlane || !any(look)) continue;
    const Under<Real> found = find_under<typename L::Shape>(fixed, size, x, n, most, look);
    const Mask<Real> nearer = found.depth < first.depth;
    first = {select(nearer, found.depth, first.depth), select(nearer, found.normal, first.normal)};
  }
  return first;
}

/// How the surface of the body's geom moves.
template <class Real>
HD Reach<Real> surface_reach(const PlacedPair<Real>& x, const Reach<Real>& of) {
  Reach<Real> reach = of;
  reach.way = surface_motion(x.own, of.way), reach.now = surface_motion(x.own, of.now),
  reach.turns_b = norm(reach.way.w);
  return reach;
}

/// The candidates of a pair in the worlds that are near, as surfaces are; normals point to the body's geom. Returns how far ahead it
/// touches, where that is not where they are nearest.
template <class Shape, class Real>
HD Vec3<Real> collide_placed(const PlacedPair<Real>& x, const Mask<Real>& near, const Reach<Real>& reach,
                             Candidate<Real>* out) {
  const Reach<Real> own = surface_reach(x, reach);
  collide_in_order<Shape>(x, near, own, out);
  const int type = x.own.type;
  if (type == GeomKind::kSphere && x.fixed.type == GeomKind::kSphere)  // on the line along which it is hit
    out[0].pos = x.own.pose.p - out[0].normal * (x.own.size.x + out[0].dist * Scalar<Real>(0.5));
  else if (type <= GeomKind::kCylinder && x.fixed.type != GeomKind::kPlane)
    return meet_ahead<Shape>(x, near, own, candidate_count(min(type, x.fixed.type), max(type, x.fixed.type)), out);
  return {};
}

/// What turning makes of the candidates of pair `i`, which are near in some world, and of what passes by; and that of the geom's middle
/// behind them.
template <class L, class Real = typename L::Real>
HD void turn_shaped(const typename L::Model& m, const StationModel& st, int i, const PlacedPair<Real>& x,
                    Vec3<Real> origin, const Reach<Real>& reach, const Turning<Real>& body, Candidate<Real>* out) {
  const int type = x.own.type;
  if (!body.straight && type != GeomKind::kEllipsoid && type != GeomKind::kMesh) return;
  auto solid = [&](Vec3<Real> at, const Real& within, const Mask<Real>& wanted) {
    return is_solid<L>(m, st, origin, at, within, wanted);
  };
  const int count = m.pair[i].candidates - m.pair[i].middle;
  const Mask<Real> on_plane =
      turn_candidates<typename L::Shape>(x.own, x.radius, x.fixed, reach, body, count, solid, out);
  if (reach.with_passing && x.fixed.type != GeomKind::kPlane)  // a face that is a plane has what a plane has
    drop_passing(x.fixed, x.own, negate(on_plane), surface_reach(x, reach), count, out);
}
template <class L, class Real = typename L::Real>
HD void add_middle(const typename L::Model& m, const StationModel& st, int i, const PlacedPair<Real>& x,
                   Vec3<Real> origin, const Reach<Real>& reach, const Turning<Real>& body, const Vec3<Real>& ahead,
                   Candidate<Real>* out) {
  if (!m.pair[i].middle) return;
  const int shaped = m.pair[i].candidates - 1;
  const Candidate<Real> deepest = deepest_of(out, shaped);
  const Vec3<Real>&n = deepest.normal, aside = aside_of(ahead, n);
  auto under = [&](Vec3<Real> at, const Real& most, const Mask<Real>& wanted) {
    if (x.fixed.type == GeomKind::kPlane) return Under<Real>{Real(0), n};
    return static_under<L>(m, st, origin, at + aside, n, most, wanted);
  };
  out[shaped] = turning_point(middle_candidate(deepest, x.own, body.part(), reach.margin, under), x.own.pose.p, body);
  const Mask<Real> whips = dot(reach.blow, reach.blow) > Real(0);
  if (x.own.type != GeomKind::kEllipsoid || !any(whips)) return;
  Turning<Real> all = body;
  all.turn = body.turn + reach.blow;
  const Candidate<Real> whipped = turning_ellipsoid(deepest, as_round(x.own, body.centre), all, Real(1));
  Mask<Real> is = whips & (dot(all.turn, all.turn) < Real(kMostWhip * kMostWhip)) & (whipped.dist < reach.margin);
  if (x.fixed.type != GeomKind::kPlane && any(is)) {  // where that is as flat as to there
    const Real hair = x.radius * Scalar<Real>(kFlat);
    const Vec3<Real> foot = whipped.pos - n * (whipped.dist * Scalar<Real>(0.5));
    is = is & is_solid<L>(m, st, origin, foot - n * hair, Real(0), is);
    is = is & negate(is_solid<L>(m, st, origin, foot + n * hair, Real(0), is));
  }
  out[shaped] = select<Real>(is, whipped, out[shaped]);
}
/// Drops those of a pair's n candidates in wanted worlds that would act though nothing will touch: the middle, if it is the last, of what
/// passes by, and what turning made of a body that is clear of the other geom however it turns.
template <class Real>
HD void drop_ghosts(const PlacedPair<Real>& x, const Mask<Real>& wanted, const Reach<Real>& reach, int n, bool middle,
                    Candidate<Real>* out) {
  const bool plane = x.fixed.type == GeomKind::kPlane;
  if (middle && !plane) drop_passing_middle(x.fixed, x.own, wanted, reach, n - 1, out, out[n - 1]);
  if (reach.hub_b == nullptr) return;
  const Vec3<Real> up = column(x.fixed.pose.R, 2);
  if (plane) return drop_open(wanted & stays_above(up, dot(up, reach.hub_b->at - x.fixed.pose.p), reach), n, out);
  auto is_clear = [&](int i, const Candidate<Real>&) {
    return stays_apart(convex_lane(x.fixed, x.own, i, reach.way), i, reach);
  };
  drop_clear(wanted & turns_far(reach.turns_b), reach, n, is_clear, out);
}

/// Worlds where the balls about the geoms of pair `i` of a station are within the margin of each other, or of a plane.
template <class L, class Real = typename L::Real>
HD Mask<Real> is_near_static(const typename L::Model& m, int i, const Pose<Real>& link, Vec3<Real> origin,
                             const Real& margin) {
  const auto &g1 = m.geom[m.pair[i].geom1], &g2 = m.geom[m.pair[i].geom2];
  const auto &fixed = g1.link < 0 ? g1 : g2, &own = g1.link < 0 ? g2 : g1;
  const Vec3<Real> d = link * own.pose.p - (vec<Real>(fixed.pose.p) - origin);
  const Real radius = Real(own.radius) + margin;
  if (fixed.type != GeomKind::kPlane) return dot(d, d) < (radius + fixed.radius) * (radius + fixed.radius);
  const auto& R = fixed.pose.R;
  return dot(d, Vec3<Real>{Real(R.row[0].z), Real(R.row[1].z), Real(R.row[2].z)}) < radius;
}

}  // namespace stiction
