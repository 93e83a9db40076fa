// What turns in a step: where its contacts are.
//
// A contact is at one point p, and closes in the step by h n.(v + w x p): of a point of the body that is what its height changes by
// but for the square of the turn h |w|, and of an ellipsoid's deepest point after half a turn nothing at all. Here p is moved
// across n to where it is by how much the gap changes in the free motion, however far that turns: from a point x of the body to
// its mean over the turn, (3.1a). An ellipsoid's x stands for those that are deepest one after another: with D the half sizes and d the
// normal in its axes, now and at the end of the step, it is s = |D d| deep, and
//
//   x = -D^2 (d_now + d_end) / (s_now + s_end),     (d_end - d_now).x = s_now - s_end                    docs/theory.md, (3.1b)
//
// A vertex of a hull that rolls is where the roll takes it when it is lowest, (3.1c), on free bodies and on wheels.
// All this is true of planes. Where all that a body sweeps in the step is over faces of static geoms in the plane of a contact, as flush
// tiles are, it is on that plane: its candidates become those that it has with one.
#pragma once
#include "collision/narrow_phase.h"
#include "dynamics/gyroscopic.h"

namespace stiction {

/// Turns (rad) up to this leave contacts where they are, those above twice that move them wholly. Contacts at the middle of a
/// turn hold what spins on the floor, but damp what rocks and rolls; at the beginning of small turns they do neither. Points and
/// rims, on which a body rocks less, move from half of it on: what spins lying would live on its recovery.
inline constexpr float kLeastTurn = 0.05f, kLeastPointTurn = kLeastTurn / 2, kMostTurn = 3;

/// How much of the way a turn moves contacts, on whatever.
template <class Real> HD Real turning_part(const Vec3<Real>& turn, float least = kLeastTurn) {
  return clamp(norm(turn) * Scalar<Real>(1 / least) - Real(1), Real(0), Real(1));
}

/// Of a body in the free motion of a step.
template <class Real>
struct Turning {
  Vec3<Real> turn;              // about its axis                                                                    rad
  Vec3<Real> centre;            // goes straight                                                                     m
  bool straight;                // it does: the body is on its own
  Vec3<Real> rolling;           // about the centre; of a link by its hinge alone                                 rad
  bool bends;                   // contacts that roll have a bend: rolling_rim.h
  Real slender = {};            // 1 of what has its points along an axis, less of what is thicker: mid_turn.h
  Mask<Real>* stays = nullptr;  // takes the worlds in which a contact that is near does not move with the turn

  /// How much of the way its contacts move, on a plane of that normal: what rolls by 2 to 3 rad goes round within the step, and has them
  /// where it touches.
  HD Real part_on(const Vec3<Real>& n, float least) const {
    return part(least) * clamp(Real(kMostTurn) - norm(turn - n * dot(n, turn)), Real(0), Real(1));
  }
  /// On whatever.
  HD Real part(float least = kLeastTurn) const { return turning_part(turn, least); }
};

/// What a blow along n on a point at that arm leaves of a turn: all but what is about its torque, of what is slender, whose points all have
/// nearly the same; elsewhere others may hit, too, and that about n is left.
template <class Real>
HD Vec3<Real> left_by_blow(const Vec3<Real>& turn, Vec3<Real> n, Vec3<Real> arm, const Real& slender) {
  const Vec3<Real> torque = cross(arm, n), about_n = n * dot(n, turn);
  const Vec3<Real> rest = turn - torque * (dot(torque, turn) / max(dot(torque, torque), Real(1e-30f)));
  return about_n + (rest - about_n) * slender;
}

/// The candidate c of a point x of the body, moved by what blows along its normal leave of the turn, and by all of it where it gets deeper
/// by that: what lifts it a blow may take away.
template <class Real>
HD Candidate<Real> turning_point(const Candidate<Real>& c, Vec3<Real> x, const Turning<Real>& body, const Real& part) {
  using S = Scalar<Real>;
  if (!body.straight || !any(part > Real(0))) return c;
  const Vec3<Real>&n = c.normal, arm = x - body.centre;
  const Vec3<Real> level = RootTurn<Real>(left_by_blow(body.turn, n, arm, body.slender), S(1)).mean(arm, S(1));
  const Vec3<Real> all = RootTurn<Real>(body.turn, S(1)).mean(arm, S(1));
  const Mask<Real> deeper = dot(n, cross(body.turn, all - level)) < Real(0);
  const Vec3<Real> off = select(deeper, all, level) - arm;
  return {c.pos + (off - n * dot(n, off)) * part, n, c.dist};
}
template <class Real>
HD Candidate<Real> turning_point(const Candidate<Real>& c, Vec3<Real> x, const Turning<Real>& body) {
  return turning_point(c, x, body, body.part_on(c.normal, kLeastPointTurn));
}

/// What rolling makes of the candidate c of a vertex x of the body, which `at` is moved by other turns: it acts where the roll takes x
/// when that is lowest in the step, and is as high above the plane as the roll leaves it at the end. So what rolls is pushed where
/// it stands then, not ahead of it. Not of what falls onto the plane, which the blow turns otherwise, nor of what only begins to turn, which
/// contacts may keep from that, nor far from the lowest vertex, nor of what rolls so slowly that contacts give way by as much as its vertices
/// rise. now, way: how the body moves against the plane at the beginning of the step, and in its free motion.
template <class Real>
HD Candidate<Real> rolling_point(const Candidate<Real>& c, Vec3<Real> x, const Candidate<Real>& at,
                                 const Closing<Real>& now, const Closing<Real>& way, const Turning<Real>& body,
                                 Mask<Real> rolls) {
  using S = Scalar<Real>;
  const Vec3<Real>&n = c.normal, roll = body.rolling - n * dot(n, body.rolling), arm = x - body.centre,
        y = cross(roll, arm);
  const Real closes = -dot(n, velocity_at(way, c.pos)), lifts = dot(n, cross(roll, y));
  const Vec3<Real> goes = velocity_at(way, body.centre), gains = goes - velocity_at(now, body.centre);
  const Vec3<Real> begins = way.w - now.w;
  const Mask<Real> other = (-dot(n, goes) >= norm(gains) * S(3)) | (dot(begins, begins) > dot(roll, roll) * S(0.25));
  rolls = rolls & (c.dist < Real(kFar)) & (closes > c.dist) & (lifts > norm(gains) * S(0.05)) & negate(other);
  if (!any(rolls)) return at;
  const Real tangent = -dot(n, y) / select(rolls, lifts, Real(1)), turns = dot(roll, roll),
             square = tangent * tangent * turns;
  const Real when = tangent * (square * S(4) + S(15)) / (square * S(9) + S(15));  // atan to 1 %
  rolls = rolls & (square < Real(4)) & (abs(when - Real(0.5f)) < Real(2));
  const Real lowest = clamp(when, Real(0), Real(1));
  const RootTurn<Real> until(roll * lowest, S(1)), all(roll, S(1));
  const Vec3<Real> off = until.change(cross(until.axis, arm)), p = at.pos + off - n * dot(n, off);
  const Real end = c.dist - closes - dot(n, y) + dot(n, all.change(cross(all.axis, arm)));
  const Real gap = end - dot(n, velocity_at(way, p));
  return select<Real>(rolls, Candidate<Real>{p + n * ((gap - c.dist) * S(0.5)), n, gap}, at);
}

/// Where a point on the face of a box that n points out of is over it or its border, beyond which more may follow; on a plane all are.
template <class Real>
HD Mask<Real> is_on_face(const PlacedGeom<Real>& fixed, Vec3<Real> n, Vec3<Real> x) {
  using S = Scalar<Real>;
  if (fixed.type == GeomKind::kPlane) return mask_of<Real>(true);
  if (fixed.type != GeomKind::kBox) return mask_of<Real>(false);
  const Vec3<Real> at = transposed_times(fixed.pose.R, x - fixed.pose.p), l = transposed_times(fixed.pose.R, n);
  auto within = [](const Real& a, const Real& half, const Real& along) {
    return (abs(a) < half * S(1 + 1e-4)) | (abs(along) > Real(0.9999f));
  };
  return within(at.x, fixed.size.x, l.x) & within(at.y, fixed.size.y, l.y) & within(at.z, fixed.size.z, l.z);
}

/// Turns (rad) below the first roll nothing, from the second on less, above twice that not at all: those are too far for a mean. So are
/// shorter ones of what then stands on another point: the part of its size by which that moved, times kUneven, is 1 / that turn, up to
/// 1 / kMostUneven. Ellipsoids of three axes would gain energy from it.
inline constexpr float kLeastRoll = 1e-4f, kMostRoll = 0.5f, kMostUneven = 0.15f, kUneven = 160;
/// What a lowest point moves by less than that part of its body is rounding.
template <class Real> inline constexpr Scalar<Real> kStill = sizeof(Scalar<Real>) == 4 ? 3e-6 : 1e-12;

/// What rolls: an ellipsoid, a sphere, an end of a capsule, or a cap of a cylinder as a flat ellipsoid, that far from the other's middle.
template <class Real> struct Round : GeomPose<Real> { Real half, off; };  // off: a sphere, from the centre of mass    m
/// The lower one or the upper (0, 1) of those that a capsule or cylinder has, of others the only one.
HD int round_count(int type) { return type == GeomKind::kCylinder || type == GeomKind::kCapsule ? 2 : 1; }
template <class Real>
HD Round<Real> as_round(const PlacedGeom<Real>& own, const Vec3<Real>& centre, int upper = 0) {
  Round<Real> x{own, Real(0), Real(0)};
  if (round_count(own.type) > 1) {
    const bool rim = own.type == GeomKind::kCylinder;
    x.pose.p = own.pose.p + column(own.pose.R, 2) * (upper == 0 ? -own.size.y : own.size.y);
    x.size.y = x.size.x, x.size.z = rim ? Real(0) : x.size.x, x.half = rim ? own.size.y : Real(0);
  }
  if (own.type == GeomKind::kSphere) x.size.y = x.size.z = x.size.x;
  if (own.type <= GeomKind::kCapsule) x.off = norm(x.pose.p - centre);
  return x;
}

/// How that rolls on a plane in the step: rolling_rim.h.
template <class Real> struct Rolling {
  Vec3<Real> at, moves;  // its lowest point, and what the lowest moves by against the centre of mass     m
  Vec3<Real> bend;       // times the step                                                               m
  Real part;  // of it, from 0 where it slides, hits, turns far or has its lowest point elsewhere after the step, to 1
};
template <class Real>
HD Rolling<Real> rolling_on(const Round<Real>& own, Vec3<Real> n, const Reach<Real>& reach, const Turning<Real>& body) {
  using S = Scalar<Real>;
  const Vec3<Real>& size = own.size;
  const RootTurn<Real> on(body.turn, S(1)), back(-body.turn, S(1));
  auto lowest = [&](Vec3<Real> up) {
    const Vec3<Real> d = transposed_times(own.pose.R, up), s{d.x * size.x, d.y * size.y, d.z * size.z};
    const Vec3<Real> x{s.x * size.x, s.y * size.y, s.z * size.z};
    return own.pose.p - own.pose.R * (x * (Real(1) / max(norm(s), Real(1e-12f)))) - body.centre;
  };
  const Vec3<Real> arm = lowest(n), later = lowest(n + back.change(cross(back.axis, n))),
                   moves = later + on.change(cross(on.axis, later)) - arm, half = cross(body.turn, moves) * S(0.5);
  const Real closes = dot(n, moves) - dot(n, cross(body.turn, arm));
  const Vec3<Real> bend = half + n * (closes - dot(n, half)), at = body.centre + arm;
  const Vec3<Real> slip = velocity_at(reach.now, at),
                   gains = velocity_at(reach.way, body.centre) - velocity_at(reach.now, body.centre);
  const Real slow = max(dot(bend, bend) * S(4) + dot(gains, gains), Real(1e-30f)),
             far = norm(moves) / max(max(max(size.x, size.y), size.z), own.off),
             turns = norm(body.turn) * clamp(far * S(kUneven), Real(1 / kMostRoll), Real(1 / kMostUneven));
  // A can that lies has both rims on the plane, of which one goes under while the other rises.
  const Real lies = own.half / (size.x * (abs(dot(n, column(own.pose.R, 2))) * S(10) + Real(0.05f)));
  const Real part = clamp(Real(2) - max(max(dot(slip, slip) / slow, far * S(4)), max(turns, lies)), Real(0), Real(1));
  return {at, moves, select(far > Real(kStill<Real>), bend, Vec3<Real>{}), part};
}

/// The candidate c of an ellipsoid, moved by that part of the way; the normal points to it.
template <class Real>
HD Candidate<Real> turning_ellipsoid(const Candidate<Real>& c, const Round<Real>& ellipsoid, const Turning<Real>& body,
                                     Real part) {
  using S = Scalar<Real>;
  if (!any(part > Real(0))) return c;
  const Vec3<Real>&n = c.normal, &size = ellipsoid.size;
  const RootTurn<Real> on(body.turn, S(1)), back(-body.turn, S(1));
  auto scaled = [&](Vec3<Real> d) { return Vec3<Real>{d.x * size.x, d.y * size.y, d.z * size.z}; };
  const Mat3<Real>& R = ellipsoid.pose.R;
  const Vec3<Real> now = scaled(transposed_times(R, n)),
                   end = scaled(transposed_times(R, n + back.change(cross(back.axis, n))));
  const Vec3<Real> x = R * scaled(now + end) * (Real(-1) / max(norm(now) + norm(end), Real(1e-30f)));
  const Vec3<Real> centre = body.straight ? body.centre : ellipsoid.pose.p;
  const Vec3<Real> p = centre + on.mean(ellipsoid.pose.p + x - centre, S(1));
  const Vec3<Real> off = p - c.pos;
  return {c.pos + (off - n * dot(n, off)) * part, n, c.dist};
}

/// The candidate c of a geom that is round, or of its end or cap `number`, moved but for the part `stays`, by which it rolls: that stays where
/// it touches. A cap is a flat ellipsoid, whose rim stays where it is in turns about the axis.
template <class Real>
HD Candidate<Real> turning_round(const Candidate<Real>& c, int number, const PlacedGeom<Real>& own,
                                 const Turning<Real>& body, const Real& stays) {
  const Real left = Real(1) - stays;
  if (own.type == GeomKind::kCapsule) {
    const Vec3<Real> x = c.pos + c.normal * (c.dist * Scalar<Real>(0.5) + own.size.x);
    return turning_point(c, x, body, body.part_on(c.normal, kLeastPointTurn) * left);
  }
  const Real part = own.type == GeomKind::kCylinder ? body.part_on(c.normal, kLeastPointTurn) : body.part();
  return turning_ellipsoid(c, as_round(own, body.centre, number), body, part * left);
}

/// By which part that rolls, where it turns so far that it may move.
template <class Real>
HD Real rolling_part(int number, const PlacedGeom<Real>& own, const Vec3<Real>& n, const Reach<Real>& reach,
                     const Turning<Real>& body) {
  if (!body.bends || !any(body.part(kLeastPointTurn) > Real(0))) return Real(0);
  return rolling_on(as_round(own, body.centre, number), n, reach, body).part;
}

/// The candidate c of a free geom, number k of those that it has with a plane.
template <class Real>
HD Candidate<Real> turning_on_plane(const Candidate<Real>& c, int k, const PlacedGeom<Real>& own,
                                    const Reach<Real>& reach, const Turning<Real>& body) {
  const int type = own.type;
  if (type == GeomKind::kEllipsoid || (type == GeomKind::kCylinder && k < 2) || type == GeomKind::kCapsule ||
      (type == GeomKind::kSphere && body.bends))
    return turning_round(c, k, own, body, rolling_part(k, own, c.normal, reach, body));
  const Real radius = type == GeomKind::kSphere ? own.size.x : Real(0);
  return turning_point(c, c.pos + c.normal * (c.dist * Scalar<Real>(0.5) + radius), body);
}

/// What turning makes of the candidate c, number k of those that a geom has with a plane; worlds where it may roll.
template <class Real>
HD Candidate<Real> on_plane_turned(const Candidate<Real>& c, int k, const PlacedGeom<Real>& own,
                                   const Reach<Real>& reach, const Turning<Real>& body, const Mask<Real>& rolls) {
  const Candidate<Real> turned = turning_on_plane(c, k, own, reach, body);
  if (own.type != GeomKind::kMesh) return turned;
  const Vec3<Real> at = c.pos + c.normal * (c.dist * Scalar<Real>(0.5));
  return rolling_point(c, at, turned, reach.now, reach.way, body, rolls);
}

/// Of n candidates.
template <class Real>
HD Candidate<Real> deepest_of(const Candidate<Real>* c, int n) {
  Candidate<Real> found = c[0];
  for (int k = 1; k < n; ++k) found = select<Real>(c[k].dist < found.dist, c[k], found);
  return found;
}

/// What a plane is nearer to than that part of a body's radius is flat to it.
inline constexpr float kFlat = 1e-3f;

/// Where all that a geom of this bounding radius sweeps in the step is over the plane of c: a square about the disc that it turns in,
/// now and at the end of the free motion, of which solid(x, radius, worlds) tells whether something stands there.
template <class Real, class Solid>
HD Mask<Real> is_over(const Candidate<Real>& c, Vec3<Real> middle, const Real& radius, const Closing<Real>& way,
                      const Turning<Real>& body, Mask<Real> wanted, Solid solid) {
  using S = Scalar<Real>;
  const Vec3<Real> on = c.pos - c.normal * (c.dist * S(0.5)), arm = middle - body.centre;
  const Mat3<Real> frame = frame_of_normal(c.normal);
  const RootTurn<Real> turn(body.turn, S(1));
  const Vec3<Real> goes = velocity_at(way, body.centre) + turn.change(cross(turn.axis, arm));
  for (int i = 0; i < 8; ++i) {
    const Vec3<Real> aside = (frame.row[0] * S(i & 1 ? 1 : -1) + frame.row[1] * S(i & 2 ? 1 : -1)) * radius;
    const Vec3<Real> x = (i & 4 ? middle + goes : middle) + aside;
    wanted = wanted & solid(x - c.normal * dot(c.normal, x - on), radius * S(kFlat), wanted);
    if (!any(wanted)) break;
  }
  return wanted;
}

/// What turning makes of the candidate c of an ellipsoid of this bounding radius and a static geom, where that is as flat as to where it
/// gets: what tips over a ball is not held by its tangent plane.
template <class Real, class Solid>
HD Candidate<Real> turning_where_flat(const Candidate<Real>& c, const PlacedGeom<Real>& own, const Real& radius,
                                      const PlacedGeom<Real>& fixed, const Reach<Real>& reach,
                                      const Turning<Real>& body, const Mask<Real>& near, Solid solid,
                                      Mask<Real>& flat) {
  using S = Scalar<Real>;
  flat = near & (body.part() > Real(0));
  if (!any(flat)) return c;
  const Candidate<Real> turned = turning_round(c, 0, own, body, rolling_part(0, own, c.normal, reach, body));
  if (fixed.type != GeomKind::kPlane)
    flat = solid(turned.pos - turned.normal * (turned.dist * S(0.5)), radius * S(kFlat), flat);
  return select<Real>(flat, turned, c);
}

/// What turning makes of the n candidates of a geom of this bounding radius and a static one; normals point to it. On a link of a
/// robot of an ellipsoid's and a mesh's alone. Returns worlds where they are those of a plane.
template <class Shape, class Real, class Solid>
HD Mask<Real> turn_candidates(const PlacedGeom<Real>& own, const Real& radius, const PlacedGeom<Real>& fixed,
                              const Reach<Real>& reach, const Turning<Real>& body, int n, Solid solid,
                              Candidate<Real>* c) {
  const bool ellipsoid = own.type == GeomKind::kEllipsoid, rolls = own.type == GeomKind::kMesh;
  const Candidate<Real> deepest = deepest_of(c, n);
  const Mask<Real> near = deepest.dist < reach.margin, turns = near & (body.part(kLeastPointTurn) > Real(0));
  if (!any(rolls ? near : turns)) return mask_of<Real>(false);
  Mask<Real> on_plane = body.straight ? turns : mask_of<Real>(false), flat = on_plane;
  if (fixed.type != GeomKind::kPlane && any(on_plane)) {
    on_plane = is_over(deepest, own.pose.p, radius, reach.way, body, on_plane, solid);
    if (any(on_plane)) {
      const Vec3<Real> on = deepest.pos - deepest.normal * (deepest.dist * Scalar<Real>(0.5));
      const PlacedGeom<Real> plane{{{}, {transposed(frame_of_normal(deepest.normal)), on}}, GeomKind::kPlane, nullptr};
      Candidate<Real> found[kMaxCandidates];
      collide<Shape>(plane, own, on_plane, reach, found);
      for (int k = 0; k < n; ++k)
        c[k] = select<Real>(on_plane, k < plane_count(own.type) ? found[k] : absent<Real>(), c[k]);
    }
  }
  for (int k = 0; k < n; ++k) {
    const Candidate<Real> still = c[k];
    if (ellipsoid) c[k] = turning_where_flat(c[k], own, radius, fixed, reach, body, turns, solid, flat);
    else if (any(on_plane)) c[k] = select<Real>(on_plane, turning_on_plane(c[k], k, own, reach, body), c[k]);
    if (!rolls) continue;
    const Vec3<Real> x = still.pos + still.normal * (still.dist * Scalar<Real>(0.5));
    c[k] = rolling_point(still, x, c[k], reach.now, reach.way, body,
                         near & (on_plane | is_on_face(fixed, still.normal, x)));
  }
  if (body.stays != nullptr) *body.stays = *body.stays | (turns & negate(ellipsoid ? flat : on_plane));
  return on_plane;
}

}  // namespace stiction
