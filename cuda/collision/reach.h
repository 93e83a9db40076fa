// How two bodies move while a pair of their geoms is looked at, and such a pair in one world.
#pragma once
#include "collision/convex/shape.h"

namespace stiction {

/// What a body turns about in the free motion, or its origin: whatever turns it, its points stay that far from there.
template <class Real>
struct Hub {
  Vec3<Real> at, way;  // and where that goes      m
  Real radius;         // of all of its geoms      m
};
/// Of a link, its origin: a free body's goes round the centre of mass, that of others, as the anchor of a hinge, where what carries it turns to.
template <class Link, class Real>
HD Hub<Real> hub_of(const Link& own, const Pose<Real>& link, const Closing<Real>& way, const Real& turns) {
  const Vec3<Real> goes = velocity_at(way, link.p);
  const Real round =
      own.kind == kBallNextLink ? turns * (norm(vec<Real>(own.com)) * 2) : norm(goes) * Scalar<Real>(0.5);
  return {link.p, goes, Real(own.reach) + round};
}
/// What turns by more goes where no straight way tells: a propeller's blade round its hub.   rad
inline constexpr double kFarTurn = 0.25;
template <class Real> HD Mask<Real> turns_far(const Real& turns) { return turns > Real(Scalar<Real>(kFarTurn)); }

/// How the surface of a geom moves: about an axis of symmetry it may spin as it likes.
template <class Real>
HD Closing<Real> surface_motion(const PlacedGeom<Real>& geom, const Closing<Real>& of) {
  if (geom.type != GeomKind::kSphere && geom.type != GeomKind::kCapsule && geom.type != GeomKind::kCylinder) return of;
  const Vec3<Real> axis = column(geom.pose.R, 2), spin = geom.type == GeomKind::kSphere ? of.w : axis * dot(axis, of.w);
  return {of.w - spin, of.v + cross(spin, geom.pose.p)};
}

/// How a link goes in the free motion: its twist, times the step, and what that changes by while joints and roots keep their velocities,
/// times the step squared (dynamics/paths.h).   rad, m
template <class Real>
struct LinkPath {
  Closing<Real> way, bend;
};

/// What static geometry does to a body first in the step: after which part of its way, 1 where it does not; along which normal.
template <class Real>
struct FirstHit {
  Real after = Real(1);
  Vec3<Real> normal = {Real(0), Real(0), Real(0)};

  /// How a point that would go by v, times the step, goes from there on.
  HD Vec3<Real> along(const Vec3<Real>& v) const { return v - normal * min(dot(normal, v), Real(0)); }
  /// How far it has gone after that part of the step.
  HD Vec3<Real> way(const Vec3<Real>& v, const Real& part) const {
    return v * min(part, after) + along(v) * max(part - after, Real(0));
  }
};

/// Where two bodies go in the step, and how far from there.   m
template <class Real>
struct Reach {
  Real margin;        // what both travel, a reserve, and what hits they pass on: no gap beyond it matters
  Closing<Real> way;  // of the free motion
  Closing<Real> now;  // as they move at the start of the step
  Real turned;        // by how much contacts in the world, and limits, turn it: see Contacts
  Real turns_a = Real(0), turns_b = Real(0);          // how far each turns in the free motion   rad
  const Hub<Real>*hub_a = nullptr, *hub_b = nullptr;  // of what moves, where it turns far in some world
  Real ends = Real(kFar);                             // no gap beyond it at the end of the free motion matters
  Real goes = Real(0);                                // the margin less reserves: what both travel, and what hits them
  int lanes = kWidth<Real>;                           // with a world of their own: those behind repeat the last one
  Push<Real> push = {};                               // of a body on its own beside static geometry
  Vec3<Real> blow = {Real(0), Real(0), Real(0)};      // what a hit turns that by in the step, where it is known   rad
  FirstHit<Real> first = {};                          // of that body, where it is known
  const LinkPath<Real>*path_a = nullptr, *path_b = nullptr;  // of what moves
  bool with_passing = false;                                 // open candidates of what passes by are wanted, too
  Mask<Real>* passed = nullptr;                              // takes the worlds in which some were dropped for that

  /// How far what is pushed in the step may tip, x its middle: what a rod falls at one end that is held at the other is 3/2 of what it
  /// falls free, what is held near its middle more; and what hits goes on elsewhere. What is hit beside where it stands turns about
  /// that, and a point as high as all may go may be driven down.
  HD Tipping<Real> tips(Vec3<Real> x) const {
    const Vec3<Real> before = velocity_at(now, x);
    return {max(norm(velocity_at(way, x) - before) * Scalar<Real>(2) + norm(before), goes), push};
  }
  /// Of b and a instead of a and b.
  HD Reach reversed() const {
    Reach other = *this;
    other.way = way * Real(-1), other.now = now * Real(-1), other.turns_a = turns_b, other.turns_b = turns_a;
    other.hub_a = hub_b, other.hub_b = hub_a, other.path_a = path_b, other.path_b = path_a;
    return other;
  }
  /// Of a candidate when the free motion ends.
  HD Real end_gap(const Candidate<Real>& c) const { return c.dist - closed_by(way, c.normal, c.pos); }
};

// ---- one world ---

template <class T, class Real> HD Vec3<T> lane_of(const Vec3<Real>& x, int i) {
  return {T(lane(x.x, i)), T(lane(x.y, i)), T(lane(x.z, i))};
}
template <class T, class Real> HD Closing<T> lane_of(const Closing<Real>& c, int i) {
  return {lane_of<T>(c.w, i), lane_of<T>(c.v, i)};
}
template <class T, class Real> HD GeomPose<T> lane_of(const GeomPose<Real>& g, int i) {
  auto take = [i](const Vec3<Real>& x) { return lane_of<T>(x, i); };
  return {take(g.size), {{{take(g.pose.R.row[0]), take(g.pose.R.row[1]), take(g.pose.R.row[2])}}, take(g.pose.p)}};
}
template <class T, class Real> HD Tipping<T> lane_of(const Tipping<Real>& x, int i) {
  return {T(lane(x.most, i)), {lane_of<T>(x.push.at, i), lane_of<T>(x.push.along, i)}};
}
template <class T, class Real> HD Candidate<T> lane_of(const Candidate<Real>& x, int i) {
  return {lane_of<T>(x.pos, i), lane_of<T>(x.normal, i), T(lane(x.dist, i))};
}
template <class Real, class T> HD void set_lane_of(Candidate<Real>& c, int i, const Candidate<T>& x) {
  using S = Scalar<Real>;
  set_lane(c.pos.x, i, S(x.pos.x)), set_lane(c.pos.y, i, S(x.pos.y)), set_lane(c.pos.z, i, S(x.pos.z));
  set_lane(c.normal.x, i, S(x.normal.x)), set_lane(c.normal.y, i, S(x.normal.y)),
      set_lane(c.normal.z, i, S(x.normal.z));
  set_lane(c.dist, i, S(x.dist));
}

/// Two convex geoms in one world, about the origin of the first. Axes that are rotations to float only would make a face of a
/// box of 100 m uneven by some micrometers.
template <class S> struct ConvexLane {
  ConvexShape<double, S> a, b;
  Vec3<double> origin;
  Closing<double> closing;

  HD Closing<double> from_origin(Closing<double> c) const {
    c.v = velocity_at(c, origin);
    return c;
  }
  HD Tipping<double> from_origin(Tipping<double> tips) const {
    tips.push.at = tips.push.at - origin;
    return tips;
  }
};
/// A geom in world i.
template <class Real>
HD ConvexShape<double, Scalar<Real>> convex_shape(const PlacedGeom<Real>& x, int i) {
  GeomPose<double> own = lane_of<double>(x, i);
  if constexpr (sizeof(Scalar<Real>) < sizeof(double)) own.pose.R = straightened(own.pose.R);
  const HullView<Scalar<Real>> none = {nullptr, nullptr, nullptr, 0, 0};
  return {x.type, own.size, own.pose, x.type == GeomKind::kMesh ? *x.hull : none, 0};
}
template <class Real>
HD ConvexLane<Scalar<Real>> convex_lane(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, int i,
                                        const Closing<Real>& closing) {
  ConvexLane<Scalar<Real>> made{convex_shape(a, i), convex_shape(b, i), lane_of<double>(a.pose.p, i), {}};
  made.a.pose.p = {0, 0, 0}, made.b.pose.p = made.b.pose.p - made.origin;
  made.closing = made.from_origin(lane_of<double>(closing, i));
  return made;
}

}  // namespace stiction
