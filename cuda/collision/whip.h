// What a blow makes of a body on its own: hit at one end it is whipped round by a turn that no free motion tells.
//
// So where a first look finds a hit, a second one knows what that alone turns the body by, without friction and bounce:
//
//   I^-1 k d / (1/m + k.I^-1 k),   k = r x n
//
// with d what the free motion would go in by at r. Contacts may be so much farther; and an ellipsoid, of which a free motion has one candidate,
// has that of this turn, too, (3.1b). docs/theory.md, section 3.
// Tests: tests/python/test_whipped.py.
#pragma once
#include "collision/slots.h"
#include "collision/turning.h"

namespace stiction {

/// A blow that turns by less whips nothing; what is whipped round farther is lowest there for a moment only.   rad
inline constexpr float kLeastWhip = 5e-3f, kMostWhip = 0.7f;

/// How far the free motion would take a body into what it touches.   m
template <class Real>
HD Real goes_in(const Reach<Real>& reach, int slots, const ContactPoint<Real>* slot) {
  Real far(0);
  for (int c = 0; c < slots; ++c) {
    const ContactPoint<Real>& x = slot[c];
    if (any(x.active)) far = max(far, select(x.active, -reach.end_gap({x.p, x.frame.row[2], x.gap}), Real(0)));
  }
  return far;
}

/// What it hits first, of what it would go in by more than `least`.
template <class Real>
HD FirstHit<Real> first_hit(const Reach<Real>& reach, int slots, const ContactPoint<Real>* slot, const Real& least) {
  FirstHit<Real> first;
  for (int c = 0; c < slots; ++c) {
    const ContactPoint<Real>& x = slot[c];
    if (!any(x.active)) continue;
    const Vec3<Real>& n = x.frame.row[2];
    const Real closes = max(closed_by(reach.way, n, x.p), Real(1e-30f)), after = max(x.gap, Real(0)) / closes;
    const Mask<Real> is = x.active & (closes > x.gap + least) & (after < first.after);
    first.after = select(is, after, first.after), first.normal = select(is, n, first.normal);
  }
  return first;
}

/// By what the hardest of its hits turns a body whose pose is `link` in the step.   rad
template <class Link, class Real>
HD Vec3<Real> turned_by_blow(const Link& own, const Pose<Real>& link, const Reach<Real>& reach, int slots,
                             const ContactPoint<Real>* slot) {
  const Real zero(0), one(1);
  Real far(0);
  Vec3<Real> at{zero, zero, zero}, n = at;
  for (int c = 0; c < slots; ++c) {
    const ContactPoint<Real>& x = slot[c];
    if (!any(x.active)) continue;
    const Real in = select(x.active, -reach.end_gap({x.p, x.frame.row[2], x.gap}), zero);
    const Mask<Real> harder = in > far;
    far = select(harder, in, far), at = select(harder, x.p, at), n = select(harder, x.frame.row[2], n);
  }
  const Vec3<Real> centre = link * own.com, k = cross(at - centre, n);
  const auto I = placed(Pose<Real>{link.R, link.R * own.com * Real(-1)}, own.mass, own.com, own.inertia).J;
  const Real scale = one / (I.xx + I.yy + I.zz);
  const Vec3<Real> turn = solved(I * scale, k) * scale;
  return turn * (far / (one / Real(own.mass) + dot(k, turn)));
}

}  // namespace stiction
