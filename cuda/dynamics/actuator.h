// The law of an actuator, MuJoCo's: force = gain ctrl + bias . (1, length, velocity), ctrl and force held in their ranges. Its
// length and velocity are gear times those of the joint or tendon that it drives; all below is of that joint or tendon.
#pragma once
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

template <class Real>
HD Drive<Real> operator+(const Drive<Real>& a, const Drive<Real>& b) {
  return {a.force + b.force, a.damping + b.damping, a.stiffness + b.stiffness};
}

}  // namespace stiction
