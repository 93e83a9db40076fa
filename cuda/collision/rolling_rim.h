// What rolls on a plane with a smooth surface or a rim, StationModel::rolls: what a step's J misses of it.
//
// The point that touches is another one at the end of the step, and r, from the centre of mass to it, another vector: J v = 0 with the r of
// the beginning is no rolling. A contact there that neither slides nor hits has the bend
//
//   b = w x (r+ - r) / 2,   b_n = n.(r+ - r) / h - n.(w x r)                                         docs/theory.md, (3.1e)
//
// in e, r+ and w those of the free motion: (J v + b) is the mean over the step, and along the normal what closes in it. It acts where
// it touches at the beginning, by J: at the middle of the step it would brake, by twice as much as without a bend.
//
// Contacts of one body that roll by different parts drive it: all that touch have the smallest of theirs, and what lands none, which it would
// push away by what it turned. So bodies of several geoms have none, of which each may be round in its own way.
#pragma once
#include "collision/slots.h"
#include "collision/static_pairs.h"

namespace stiction {

/// The bends of a station's contacts that roll on static geoms. Returns the part by which the body does: 0 where nothing touches, or something
/// that does not. Contacts that would roll by more turn by the difference (turning.h).   slack: gaps below that touch, m
template <class L, class Real = typename L::Real>
HD Real bend_rolling(const typename L::Model& m, const StationModel& st, const Pose<Real>& link,
                     const Reach<Real>& reach, const Turning<Real>& body, Scalar<Real> h, Scalar<Real> slack, int slots,
                     ContactPoint<Real>* slot) {
  using S = Scalar<Real>;
  const Real zero(0), one(1);
  const Mask<Real> turns = norm(body.turn) > Real(kLeastRoll);
  if (!any(turns)) return zero;
  const PlacedGeom<Real> own = carried_geom<L>(m, m.geom[own_geom<L>(m, st.static_begin)], link);
  Real part(1), rolls[L::Shape::kStationSlots], upper[L::Shape::kStationSlots];
  Mask<Real> touches = mask_of<Real>(false);
  for (int c = 0; c < slots; ++c) {
    ContactPoint<Real>& x = slot[c];
    rolls[c] = upper[c] = zero;
    if (!any(x.active)) continue;
    const Vec3<Real> n = x.frame.row[2], at = x.p + n * (min(x.gap, zero) * S(0.5));
    for (int k = 0; k < round_count(own.type); ++k) {
      const Rolling<Real> way = rolling_on(as_round(own, body.centre, k), n, reach, body);
      const Real near = max(own.size.x, own.size.y) * S(1e-3) + norm(way.moves);
      const Mask<Real> is = x.active & turns & (norm(at - way.at) < near);
      x.bend = select(is, way.bend * S(1 / h), x.bend), rolls[c] = select(is, way.part, rolls[c]);
      upper[c] = select(is, Real(S(k)), upper[c]);
    }
    const Mask<Real> touching = x.active & (x.gap < Real(slack));
    part = select(touching, min(part, rolls[c]), part), touches = touches | touching;
  }
  part = select(touches, part, zero);
  for (int c = 0; c < slots; ++c) {
    ContactPoint<Real>& x = slot[c];
    x.bend = x.bend * min(rolls[c], part);
    const Mask<Real> less = x.active & (rolls[c] > part);
    for (int k = 0; any(less) && k < round_count(own.type); ++k) {
      const Vec3<Real> n = x.frame.row[2], half = n * (max(x.gap, zero) * S(0.5));
      const Candidate<Real> turned = turning_round<Real>({x.p - half, n, x.gap}, k, own, body, one - rolls[c] + part);
      x.p = select(less & (upper[c] == Real(S(k))), turned.pos + half, x.p);
    }
  }
  return part;
}

}  // namespace stiction
