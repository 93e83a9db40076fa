// Edges ahead: what is round touches one elsewhere than where it is nearest to it now, along another normal, that edge a hair higher than
// the floor under a wheel. By the normal of now, which points back, a step of a hair would throw the wheel up.
//
// So the free motion is followed to where they meet, straight, by conservative advancement: a candidate's plane parts the two until what is
// round has gone by its gap along its normal. Where static geometry is known to be hit first, from there along that: what would pass the
// end of a wall behind the wall that stops it hits its face. docs/theory.md, section 3.
// Tests: tests/python/test_edges_ahead.py.
#pragma once
#include "collision/seams.h"
#include "collision/turning.h"

namespace stiction {

/// The candidates of a pair in the worlds that are near; normals point to the body's geom.
template <class Shape, class Real>
HD void collide_in_order(const PlacedPair<Real>& x, const Mask<Real>& near, const Reach<Real>& reach,
                         Candidate<Real>* out) {
  if (!x.own_first) return collide<Shape>(x.fixed, x.own, near, reach, out);
  collide<Shape>(x.own, x.fixed, near, reach.reversed(), out);
  for (int k = 0; k < candidate_count(x.own.type, x.fixed.type); ++k) out[k].normal = -out[k].normal;
}

/// What of x is across n.
template <class Real> HD Vec3<Real> aside_of(const Vec3<Real>& x, const Vec3<Real>& n) { return x - n * dot(n, x); }

/// What goes by less than that part of its radius before it touches does so where it is nearest now.
inline constexpr float kTouchesElsewhere = 0.05f;
/// Looks at most on the way to where it touches; of its radius, what counts as touching.
inline constexpr int kMeetingLooks = 6;
inline constexpr float kTouching = 1e-4f;
/// What of two that move turns by more meets the other elsewhere than on a straight way.   rad
inline constexpr float kStraightTurn = 0.1f;

/// The n candidates, if they are open and one acts, become those where the free motion meets the other geom, on `own` where it touches
/// then, with the gaps that the planes there have now: that and n.way to there. Returns that way, of own against the other.
template <class Shape, class Real>
HD Vec3<Real> meet_ahead(const PlacedPair<Real>& x, const Mask<Real>& near, const Reach<Real>& reach, int n,
                         Candidate<Real>* out) {
  using S = Scalar<Real>;
  const Vec3<Real> v = velocity_at(reach.way, x.own.pose.p);
  const Real size = x.radius;
  Candidate<Real> c = deepest_of(out, n);
  Mask<Real> ahead = near & (c.dist > size * S(kTouching)) & will_act(c, reach);
  if (!any(ahead)) return {};
  const Vec3<Real> aside = aside_of(v, c.normal), slides = reach.first.along(v);
  ahead = ahead & (dot(aside, aside) > size * size * S(kTouchesElsewhere * kTouchesElsewhere));
  if (!any(ahead)) return {};
  Reach<Real> stays = reach;
  stays.way = {};
  PlacedPair<Real> then = x;
  Candidate<Real> found[kMaxCandidates];
  Real t(0);
  Mask<Real> goes = ahead;
  for (int look = 0; look < kMeetingLooks; ++look) {
    const Mask<Real> straight = t < reach.first.after;
    const Real closes = -dot(c.normal, select(straight, v, slides));
    ahead = ahead & (negate(goes) | (closes > Real(0))), goes = goes & ahead;
    if (!any(goes)) break;
    const Real most = select(straight, reach.first.after, Real(1));
    t = select(goes, min(t + c.dist / select(goes, closes, Real(1)), most), t);
    then.own.pose.p = x.own.pose.p + reach.first.way(v, t);
    collide_in_order<Shape>(then, ahead, stays, found);
    c = deepest_of(found, n);
    goes = goes & (c.dist > size * S(kTouching)) & (t < Real(1));
  }
  if (!any(ahead)) return {};
  const Vec3<Real> way = reach.first.way(v, t);
  for (int k = 0; k < n; ++k) {
    const Candidate<Real>& f = found[k];
    const Real gap = f.dist + max(-dot(f.normal, way), Real(0));
    const Vec3<Real> touches = f.pos + f.normal * (f.dist * S(0.5)) - way;
    const Candidate<Real> now{touches - f.normal * (gap * S(0.5)), f.normal, gap};
    out[k] = select<Real>(ahead, select<Real>(f.dist < Real(kFar), now, absent<Real>()), out[k]);
  }
  return select(ahead, way, Vec3<Real>{});
}

/// The same of a pair in order, of which both may move: normals point from `a`, of that bounding radius, to b.
template <class Shape, class Real>
HD Vec3<Real> meet_pair_ahead(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, const Real& radius,
                              const Mask<Real>& near, const Reach<Real>& reach, int n, Candidate<Real>* out) {
  const Mask<Real> straight = near & (max(reach.turns_a, reach.turns_b) < Real(kStraightTurn));
  for (int k = 0; k < n; ++k) out[k].normal = -out[k].normal;
  const Vec3<Real> ahead = meet_ahead<Shape>(PlacedPair<Real>{a, b, true, radius}, straight, reach.reversed(), n, out);
  for (int k = 0; k < n; ++k) out[k].normal = -out[k].normal;
  return ahead;
}

}  // namespace stiction
