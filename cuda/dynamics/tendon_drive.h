// What actuators do along fixed tendons, and what of it a joint has that holds it within its force range. docs/theory.md, section 2, (2.2b).
#pragma once
#include "dynamics/actuator.h"

namespace stiction {

/// What pulls a tendon that has this rate (m/s) where the step begins, and its bounds.
template <class Real>
struct TendonDrive {
  Drive<Real> drive;
  ForceRange<Real> range;
  Real rate;
};

/// Of tie[0] and those that pull under the tendon's range with it. One alone has a range of its own within which it is last.
template <class Real, class Tie>
HD TendonDrive<Real> tendon_drive(const Tie* tie, const Real* ctrl, Real length, Real rate, bool implicit) {
  TendonDrive<Real> pull{{Real(0), Real(0), Real(0)}, {Real(tie->force_lower), Real(tie->force_upper)}, rate};
  for (int k = 0; k < tie->actuators; ++k) {
    const Drive<Real> own = stepped(drive_of(tie[k].actuator, ctrl[k], length), rate, implicit);
    pull.drive = k == 0 ? own : pull.drive + own;
  }
  if (tie->actuator.clamp_force) {
    const ForceRange<Real> of = force_range<Real>(tie->actuator);
    pull.range = {clamp(pull.range.low, of.low, of.high), clamp(pull.range.high, of.low, of.high)};
  }
  return pull;
}

/// Of a tendon's pull, what a joint has of which `coef` moves it and that has the velocity v where the step begins: linear in the joint's
/// velocity alone. Others keep theirs, which are in `rate`; n times the joint's own slope holds n joints of a tendon stable that do so
/// together. lag: h theta.
template <class Real, class S>
HD Drive<Real> on_joint(const TendonDrive<Real>& x, Real coef, int n, Real v, S lag) {
  const Real slope = x.drive.damping + x.drive.stiffness * lag, own = coef * S(n);
  return {coef * (x.drive.force - slope * (x.rate - own * v)), coef * own * x.drive.damping,
          coef * own * x.drive.stiffness};
}
template <class Real>
HD ForceRange<Real> scaled(const ForceRange<Real>& x, Real by) {
  const Real one = x.low * by, other = x.high * by;
  return {min(one, other), max(one, other)};
}

/// A joint's drive and inertia.
template <class Real>
struct InertDrive {
  Drive<Real> drive;
  Real inertia;
};

}  // namespace stiction
