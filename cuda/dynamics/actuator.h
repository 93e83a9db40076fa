// The law of an actuator, MuJoCo's: force = gain ctrl + bias . (1, length, velocity), ctrl and force held in their ranges. Its
// length and velocity are gear times those of the joint or tendon that it drives; all below is of that joint or tendon.
#pragma once
#include "core/options.h"
#include "model/model_view.h"

namespace stiction {

/// What drives a joint or tendon: force - damping v, which falls by stiffness per unit that it moves. N | N m, per m/s, per m.
template <class Real>
struct Drive {
  Real force, damping, stiffness;
};

/// Bounds of a force.                                                                                               N | N m
template <class Real>
struct ForceRange {
  Real low, high;
};

template <class Real, class Number>
HD Drive<Real> drive_of(const ActuatorModel<Number>& a, Real ctrl, Real q) {
  const Real gear(a.gear), u = a.clamp_ctrl ? clamp(ctrl, Real(a.ctrl_lower), Real(a.ctrl_upper)) : ctrl;
  return {(Real(a.gain) * u + a.bias0 + Real(a.bias1) * gear * q) * gear, -Real(a.bias2) * gear * gear,
          -Real(a.bias1) * gear * gear};
}
/// Of an actuator with clamp_force.
template <class Real, class Number>
HD ForceRange<Real> force_range(const ActuatorModel<Number>& a) {
  const Real one = Real(a.force_lower) * Real(a.gear), other = Real(a.force_upper) * Real(a.gear);
  return {min(one, other), max(one, other)};
}

/// The force at this position and velocity: an actuator's share of MuJoCo's qfrc_actuator.
template <class Real, class Number>
HD Real force_now(const ActuatorModel<Number>& a, Real ctrl, Real q, Real v) {
  const Drive<Real> drive = drive_of(a, ctrl, q);
  const Real force = drive.force - drive.damping * v;
  if (!a.clamp_force) return force;
  const ForceRange<Real> range = force_range<Real>(a);
  return clamp(force, range.low, range.high);
}

/// What a step takes implicitly: only damping and stiffness that keep A positive definite. The rest is the force at v.
template <class Real>
HD Drive<Real> stepped(const Drive<Real>& x, Real v, bool implicit) {
  const Real zero(0);
  if (!implicit) return {x.force - x.damping * v, zero, zero};
  const Real damping = max(x.damping, zero);
  return {x.force - (x.damping - damping) * v, damping, max(x.stiffness, zero)};
}

/// A drive that is held at a bound is a constant force. Which it is, the force tells with which it would end a step of length
/// h on a joint of inertia `mass` that nothing else moves, (force - (d + h k) v) / (1 + h (d + h k) / mass): the force that
/// the step begins with would let a strong servo on a light joint jump from bound to bound.
template <class Real, class S>
HD Drive<Real> held(const Drive<Real>& x, const ForceRange<Real>& range, Real v, Real mass, S h) {
  const Real zero(0), slope = x.damping + x.stiffness * h, inertia = mass + slope * h,
                      end = (x.force - slope * v) * mass;
  const Mask<Real> above = end > range.high * inertia, below = end < range.low * inertia, free = negate(above | below);
  return {select(above, range.high, select(below, range.low, x.force)), select(free, x.damping, zero),
          select(free, x.stiffness, zero)};
}

/// The force that held() foretells, and whether the range decides: the force is within it at some of the velocities that the step may end
/// with, and beyond it at others. Those are 0 (kStill), v, and that of held(). A contact, a load, damping or another joint may keep a light joint
/// from moving as held() says, and then its servo would push with more than it has.
template <class Real>
struct Foretold {
  Real force;
  Mask<Real> open, binds;  // binds: it is beyond at some
};
template <bool kStill = true, class Real, class S>
HD Foretold<Real> foretell(const Drive<Real>& x, const ForceRange<Real>& range, Real v, Real mass, S h) {
  const Real slope = x.damping + x.stiffness * h, now = x.force - slope * v, end = now * mass / (mass + slope * h);
  const Real still = kStill ? x.force : now, least = min(still, min(now, end)), most = max(still, max(now, end));
  const Mask<Real> binds = (most > range.high) | (least < range.low);
  const Mask<Real> open = (least < range.high) & (most > range.low) & binds;
  return {clamp(end, range.low, range.high), open, binds};
}

/// The impulse of a drive, impulse - slope v, v that at the end of the step: h f - b_s v.                  N s | N m s, and per m/s
template <class Real>
struct SoftDrive {
  Real impulse, slope;
};
/// b_s = h t d + h^2 t u k, t, u = theta, theta_vq; of Newton f has what the velocity before, v, is in.
template <class Real, class S>
HD SoftDrive<Real> softened(const Options<S>& opt, const Drive<Real>& x, Real v) {
  const Real h(opt.h);
  Real force = x.force;
  if (opt.newton) {
    const Real damped = 1 - opt.theta, moved = opt.h * opt.theta * (1 - opt.theta_vq);
    force = force - (x.damping * damped + x.stiffness * moved) * v;
  }
  return {h * force, h * opt.theta * x.damping + h * opt.theta * (h * opt.theta_vq) * x.stiffness};
}

/// Its row, l = h f - b_s v between bounds, less the impulse `known` that b has of it; worlds in which it is one.
template <class Real, class Row>
HD Mask<Real> soft_row(const SoftDrive<Real>& x, const ForceRange<Real>& range, Real known, Real h, Row& row) {
  const Real zero(0), one(1);
  const Mask<Real> is = x.slope > Real(1e-12f);
  row.R = select(is, one / select(is, x.slope, one), zero), row.e = (known - x.impulse) * row.R;
  row.lower = range.low * h - known, row.upper = range.high * h - known;
  return is;
}

template <class Real>
HD Drive<Real> operator+(const Drive<Real>& a, const Drive<Real>& b) {
  return {a.force + b.force, a.damping + b.damping, a.stiffness + b.stiffness};
}

}  // namespace stiction
