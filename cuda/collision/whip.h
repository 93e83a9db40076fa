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

/// visit(x, in) for the contacts of a body that are active in some world; in: how far the free motion would take it into what it touches,
/// 0 where it is not active.   m
template <class Real, class Visit>
HD void each_hit(const Reach<Real>& reach, int slots, const ContactPoint<Real>* slot, Visit visit) {
  for (int c = 0; c < slots; ++c) {
    const ContactPoint<Real>& x = slot[c];
    if (any(x.active)) visit(x, select(x.active, -reach.end_gap({x.p, x.frame.row[2], x.gap}), Real(0)));
  }
}
/// The farthest of that.   m
template <class Real>
HD Real goes_in(const Reach<Real>& reach, int slots, const ContactPoint<Real>* slot) {
  Real far(0);
  each_hit(reach, slots, slot, [&](const ContactPoint<Real>&, const Real& in) { far = max(far, in); });
  return far;
}

/// What it hits first, of what it would go in by more than `least`.
template <class Real>
HD FirstHit<Real> first_hit(const Reach<Real>& reach, int slots, const ContactPoint<Real>* slot, const Real& least) {
  FirstHit<Real> first;
  each_hit(reach, slots, slot, [&](const ContactPoint<Real>& x, const Real& in) {
    const Real open = max(x.gap, Real(0)), after = open / max(open + in, Real(1e-30f));
    const Mask<Real> is = (in > least) & (after < first.after);
    first.after = select(is, after, first.after), first.normal = select(is, x.frame.row[2], first.normal);
  });
  return first;
}

/// By what the hardest of its hits turns a body whose pose is `link` in the step.   rad
template <class Link, class Real>
HD Vec3<Real> turned_by_blow(const Link& own, const Pose<Real>& link, const Reach<Real>& reach, int slots,
                             const ContactPoint<Real>* slot) {
  const Real zero(0), one(1);
  Real far(0);
  Vec3<Real> at{zero, zero, zero}, n = at;
  each_hit(reach, slots, slot, [&](const ContactPoint<Real>& x, const Real& in) {
    const Mask<Real> harder = in > far;
    far = select(harder, in, far), at = select(harder, x.p, at), n = select(harder, x.frame.row[2], n);
  });
  const Vec3<Real> centre = link * own.com, k = cross(at - centre, n);
  const auto I = placed(Pose<Real>{link.R, link.R * own.com * Real(-1)}, own.mass, own.com, own.inertia).J;
  const Real scale = one / (I.xx + I.yy + I.zz);
  const Vec3<Real> turn = solved(I * scale, k) * scale;
  return turn * (far / (one / Real(own.mass) + dot(k, turn)));
}

}  // namespace stiction
