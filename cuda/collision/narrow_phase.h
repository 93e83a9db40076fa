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
//   capsule                   2        1c       2d   2   2c      d: the same where the axis pierces the cylinder
//   ellipsoid                          1c       1c  1c   1c
//   cylinder                                    4c  4c   8c
//   box                                              8   8c
//   mesh                                                 8c
// What an index means is in the header of each pair. Heightfields have none. Free boxes have 8 with static cylinders, too
// (turning.h).
// Tests: tests/collision/narrow_phase_test.cpp.
#pragma once
#include "collision/convex/convex_pair.h"
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
  if (type1 == GeomKind::kCapsule) return 2;
  return type2 == GeomKind::kMesh || (type1 == GeomKind::kBox && type2 == GeomKind::kBox) ? 8 : 4;
}

HD constexpr int plane_count(int type) { return candidate_count(GeomKind::kPlane, type); }

/// Of a free geom and a static one: on a face it has what it has on a plane.
HD constexpr int free_count(int own, int fixed) {
  const int count = own < fixed ? candidate_count(own, fixed) : candidate_count(fixed, own);
  const bool flat = fixed == GeomKind::kCylinder || fixed == GeomKind::kBox || fixed == GeomKind::kMesh;
  return flat && count < plane_count(own) ? plane_count(own) : count;
}

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
    other.hub_a = hub_b, other.hub_b = hub_a;
    return other;
  }
  /// Of a candidate when the free motion ends.
  HD Real end_gap(const Candidate<Real>& c) const { return c.dist - closed_by(way, c.normal, c.pos); }
};

// ---- one world ------------------------------------------------------------------------------------------------

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

/// The part of its way by which what passes must be clear: what is nearer may touch.
inline constexpr double kClearOfWay = 3e-4;

/// Worlds where b turns far, and as a ball about its hub, which is that high above a plane with normal n, stays above it.
template <class Real>
HD Mask<Real> stays_above(const Vec3<Real>& n, const Real& height, const Reach<Real>& reach) {
  const Hub<Real>& hub = *reach.hub_b;
  return turns_far(reach.turns_b) & (height > hub.radius + max(-dot(n, hub.way), Real(0)) + reach.turned);
}
/// Whether what turns far, as a ball about its hub, is clear of the other geom, wherever both go.   pre: something has a hub
template <class Real, class S>
HD bool stays_apart(ConvexLane<S> x, int i, const Reach<Real>& reach) {
  double clear = double(lane(reach.turned, i));
  auto take = [&](ConvexShape<double, S>& s, const Hub<Real>* hub, double turns) {
    Vec3<double> way{0, 0, 0};
    if (hub != nullptr) {
      const double r = lane(hub->radius, i);
      way = lane_of<double>(hub->way, i);
      if (turns > kFarTurn)
        s.type = GeomKind::kSphere, s.size = {r, r, r}, s.pose.p = lane_of<double>(hub->at, i) - x.origin;
      else clear += turns * r;
    }
    clear += radius(s);
    return way;
  };
  const Vec3<double> way_a = take(x.a, reach.hub_a, lane(reach.turns_a, i));
  x.b.way = take(x.b, reach.hub_b, lane(reach.turns_b, i)) - way_a;
  Vec3<double> on_a, on_b;
  return closest_points(x.a, x.b, 0.0, clear + norm(x.b.way) * kClearOfWay, on_a, on_b) == Distance::kBeyond;
}

/// Whether the ways of two geoms that are apart in world `i` do not meet: b passes a by more than that part of its way, what turns
/// of it on the way, how far the larger one's turn bends the way, and what other contacts turn it. Beside an edge the shortest
/// distance closes though nothing will touch.
template <class Real>
HD_CALL bool passes_by(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, int i, const Reach<Real>& reach) {
  ConvexLane<Scalar<Real>> x = convex_lane(a, b, i, reach.way);
  const bool small_a = extent(x.a) < extent(x.b);
  const auto& small = small_a ? x.a : x.b;
  x.b.way = velocity_at(x.closing, small.pose.p);
  const double turns_a = lane(reach.turns_a, i), turns_b = lane(reach.turns_b, i), bend = small_a ? turns_b : turns_a;
  const double clear = radius(x.a) + radius(x.b) + norm(x.b.way) * (kClearOfWay + bend) + turns_by(small, x.closing.w) +
                       double(lane(reach.turned, i));
  Vec3<double> on_a, on_b;
  if (closest_points(x.a, x.b, 0.0, clear, on_a, on_b) == Distance::kBeyond) return true;
  return max(turns_a, turns_b) > kFarTurn && stays_apart(x, i, reach);
}
/// The open ones of n candidates.
template <class Real>
HD void drop_open(const Mask<Real>& which, int n, Candidate<Real>* out) {
  for (int k = 0; k < n; ++k) out[k] = select<Real>(which & (out[k].dist > Real(0)), absent<Real>(), out[k]);
}
/// Where a candidate closes within the step.
template <class Real>
HD Mask<Real> will_act(const Candidate<Real>& c, const Reach<Real>& reach) {
  return (c.dist < reach.margin) & (reach.end_gap(c) <= Real(0));
}
/// In wanted worlds where one of them would act and is_clear(i), in world i.
template <class Real, class Clear>
HD void drop_clear(const Mask<Real>& wanted, const Reach<Real>& reach, int n, Clear is_clear, Candidate<Real>* out) {
  auto acts = mask_of<Real>(false), clear = acts;
  for (int k = 0; k < n; ++k) acts = acts | ((out[k].dist > Real(0)) & will_act(out[k], reach));
  acts = acts & wanted;
  if (!any(acts)) return;
  for_each_lane<Real>(acts, [&](int i) {
    const int world = min(i, reach.lanes - 1);
    if (world < i ? lane(clear, world) != 0 : is_clear(i)) set_lane(clear, i, kWidth<Real> == 1 ? 1 : -1);
  });
  drop_open(clear, n, out);
}
/// Those of two geoms that pass by each other.
template <class Real>
HD void drop_passing(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, const Mask<Real>& wanted,
                     const Reach<Real>& reach, int n, Candidate<Real>* out) {
  drop_clear(wanted, reach, n, [&](int i) { return passes_by(a, b, i, reach); }, out);
}
/// The middle of one of them, where it passes by, too: of that the n others tell already where one of them acts.
template <class Real>
HD void drop_passing_middle(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, const Mask<Real>& wanted,
                            const Reach<Real>& reach, int n, const Candidate<Real>* others, Candidate<Real>& middle) {
  Mask<Real> alone = wanted & (middle.dist > Real(0)) & will_act(middle, reach);
  for (int k = 0; k < n && any(alone); ++k) alone = alone & negate(will_act(others[k], reach));
  if (any(alone)) drop_passing(a, b, alone, reach, 1, &middle);
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
/// pass by each other are. How they move at the start of the step tells which of many points are kept. In one place, so that step
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
  if (a.type == GeomKind::kPlane || !has_others_than_planes<Shape>()) return;
  drop_passing(a, b, wanted, reach, count, out);
}

}  // namespace stiction
