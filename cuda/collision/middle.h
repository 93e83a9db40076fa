// The middle of a free geom as a contact: a blow on one end whips the other round by a turn that no free motion tells, and between two
// steps through what is thin.
//
// So the middle is a contact with the surface that is met first from it along -n, n being the normal of the geom's deepest contact: of a
// face that is the contact's plane, of what is round it is below that, and beside an edge there is none. Static geoms and moving ones
// answer alike.
//
// Of what is round no plane holds both ends. So where the first blow against a static one turns a body far, the point that would then be
// deepest is a contact, its far end, and so is one that this one's blow still leaves in.
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

/// The way of a body on its own in a step.
template <class Real> struct Way {
  Vec3<Real> centre, goes, turn;  // its centre of mass, where that goes, and the turn about it    m, m, rad

  /// Where a geom of it is then.
  HD PlacedGeom<Real> end(PlacedGeom<Real> own) const {
    const RootTurn<Real> on(turn, Scalar<Real>(1));
    auto turned = [&](Vec3<Real> x) { return x + on.change(cross(on.axis, x)); };
    own.pose.p = centre + goes + turned(own.pose.p - centre);
    const Mat3<Real>& R = own.pose.R;
    own.pose.R = transposed(Mat3<Real>{{turned(column(R, 0)), turned(column(R, 1)), turned(column(R, 2))}});
    return own;
  }
  /// By how much the point p of it comes nearer along n.
  HD Real closes(Vec3<Real> n, Vec3<Real> p) const { return -dot(n, goes + cross(turn, p - centre)); }
};

/// M^-1 x.
template <class T> HD Vec3<T> solved(const SymMat3<T>& M, Vec3<T> x) {
  const T size = T(1) / (M.xx + M.yy + M.zz);  // the determinant of what is small is no float
  const Vec3<T> a = Vec3<T>{M.xx, M.xy, M.xz} * size, b = Vec3<T>{M.xy, M.yy, M.yz} * size,
                c = Vec3<T>{M.xz, M.yz, M.zz} * size;
  const Vec3<T> u = cross(b, c), v = cross(c, a), w = cross(a, b);
  return Vec3<T>{dot(u, x), dot(v, x), dot(w, x)} * (size / dot(a, u));
}

/// What becomes of the way of a body of that heft where the candidate c, whose normal points to it, stops it: by a blow along that.
template <class Real>
HD Way<Real> after_blow(const Candidate<Real>& c, Way<Real> way, const Heft<Real>& heft) {
  const Vec3<Real> couple = cross(c.pos - way.centre, c.normal), turns = solved(heft.turning, couple);
  const Real light = Real(1) / heft.mass, past = way.closes(c.normal, c.pos) - c.dist;
  const Real blow = max(select(c.dist < Real(kFar), past, Real(0)), Real(0)) / (light + dot(couple, turns));
  way.goes = way.goes + c.normal * (blow * light), way.turn = way.turn + turns * blow;
  return way;
}

/// What touches within that part of a body's size from where it touched rolls there in part, within half of it wholly.
inline constexpr float kRollsBy = 2.f / 3;

/// The candidate `end` of a body that has gone that way, whose normal points to it, as a contact before it: it closes to that gap. A point of
/// the body acts at its mean, (3.1a), and what has rolled there from one of the n candidates `from` halfway: its force does no work.
template <class Real>
HD Candidate<Real> before_way(const Candidate<Real>& end, const Way<Real>& way, const Candidate<Real>* from, int n,
                              const Real& size) {
  using S = Scalar<Real>;
  const Vec3<Real>& up = end.normal;
  const Vec3<Real> later = end.pos + up * (end.dist * S(0.5)) - way.centre - way.goes;
  const RootTurn<Real> on(way.turn, S(1)), back(-way.turn, S(1));
  const Vec3<Real> arm = later + back.change(cross(back.axis, later)), x = way.centre + arm;
  Vec3<Real> rolled{Real(0), Real(0), Real(0)};
  Real nearest = size * S(kRollsBy);
  for (int k = 0; k < n; ++k) {
    const Vec3<Real> d = x - (from[k].pos + from[k].normal * (from[k].dist * S(0.5)));
    const Real far = norm(d);
    const Mask<Real> is = (from[k].dist < Real(kFar)) & (far < nearest);
    rolled = select(is, d, rolled), nearest = select(is, far, nearest);
  }
  const Real part = clamp(Real(2) - nearest * S(2 / kRollsBy) / size, Real(0), Real(1));
  const Vec3<Real> p = way.centre + on.mean(arm, S(1)) - rolled * (part * S(0.5));
  const Real gap = end.dist + way.closes(up, p);
  return {p + up * (dot(up, x - p) - gap * S(0.5)), up, gap};
}

/// A plane is that of another contact if its normal is as near to that one's.
inline constexpr float kSamePlane = 1e-5f;
/// What the first may take in farther than foreseen, as a part of the body's radius.
inline constexpr float kAhead = 0.1f;

/// Of a geom of this bounding radius that has n candidates, and the first blow of which turns it far within the step: where it would then
/// go in, its far end, and where that one's blow still leaves it in. Planes that candidates have already hold all of it. way: of the
/// free motion. collide_at(own, worlds): the deepest candidate where own is at the end of the step.
template <class Real, class Collide>
HD void far_ends(const Candidate<Real>* found, int n, const PlacedGeom<Real>& own, const Real& radius, Way<Real> way,
                 const Heft<Real>& heft, const Real& margin, Collide collide_at, Candidate<Real>* out) {
  using S = Scalar<Real>;
  const Candidate<Real> first = deepest_of(found, n);
  const Real least = radius * S(-kFlat);  // what is lower now is on another side, as of a plate, or buried
  Candidate<Real> blow = first;
  auto turns = mask_of<Real>(true);
  for (int k = 0; k < kFarEnds; ++k) out[k] = absent<Real>();
  for (int k = 0; k < kFarEnds; ++k) {
    way = after_blow(blow, way, heft);
    turns = turns & (norm(way.turn) > Real(2 * kLeastTurn));
    if (!any(turns)) break;
    const Candidate<Real> end = collide_at(way.end(own), turns);
    blow = before_way(end, way, found, n, radius);
    const Mask<Real> apart = (first.dist >= Real(kFar)) | (dot(blow.normal, first.normal) < Real(1 - kSamePlane));
    turns = turns & apart & (end.dist < radius * S(k == 0 ? kAhead : 0)) & (blow.dist > least) & (blow.dist < margin);
    out[k] = select<Real>(turns, blow, absent<Real>());
  }
}

}  // namespace stiction
