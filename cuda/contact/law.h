// One contact and one row: the laws, their biases and their natural residuals, written once for assembly, solvers and the
// certificate. docs/theory.md, sections 3, 4 and 8; [DeSaxce1998]. Symbols: w = J v, e bias, R compliance, s = w + e + R l,
// g = mobility (mean or only entry of W_ii, 1/kg).
//
//   contact   0 <= l_n  complementary to  s_n >= 0,   |l_t| <= mu l_n,   sliding: l_t = -mu l_n s_t / |s_t|     Coulomb
//             the same with s_n - mu |s_t| for s_n: the convex relaxation, in which what slides lifts off
//             the same, but sliding with s_t || -(l_t + mu^2 l_n W_nt / (W_nn + R_n)): maximum dissipation, [Hwangbo2018]
//   row       l in [lower, upper];  s >= 0 at the lower end, s <= 0 at the upper, s = 0 between
//
// A residual is the distance, in m/s, that one projected step of length 1 / g would move g l:
//
//   con     |g l - P(g l - s - (0, 0, mu |s_t|))|,  P nearest point of the cone; 0 exactly for Coulomb's law
//   ccp     the same without mu |s_t|: 0 exactly for the convex relaxation
//   mdp     con, and split, of dissipative_slip(s): 0 exactly for maximum dissipation
//   split   the larger of |g l_n - max(0, g l_n - s_n)| and |g l_t - D(g l_t - s_t)|, D disk of radius mu g l_n: also 0 exactly
//           for Coulomb's law; con goes blind at large friction (l = 0, closing at u while sliding: con is about u / mu)
//   cone    g max(0, |l_t| - mu l_n, -l_n)
#pragma once
#include "core/options.h"
#include "math/cone.h"

namespace stiction {

/// What a solver aims at.
enum class Law : int { kCoulomb, kConvex, kDissipation };

/// W of a contact along its normal and, in the mean, along its tangents is held above this part of the trace of W_ii.
inline constexpr double kLeastMobility = 1e-3;

/// Bias of a rigid row at distance `gap`: speculative where it is open, recovery of a part of the overlap where it is not.
template <class Real, class S>
HD Real normal_bias(const Options<S>& opt, Real gap) {
  return select(gap > Real(0), gap, max(gap * opt.erp, Real(-opt.max_recovery * opt.h))) * (S(1) / opt.h);
}

/// The speed at which velocities leave an overlap at most: what gravity takes in the step, or 50 allowances, which a near-rigid
/// contact may sink in under a load; none that gravity would not take back within 0.1 mm. What closes more moves positions
/// only (pose_recovery).   m/s
template <class S>
HD S kept_recovery(const Options<S>& opt) {
  const S sunk = S(50) * max(opt.penetration_allowance, S(1e-6));
  return min(min(opt.max_recovery, S(0.044)), max(S(9.81) * opt.h, min(opt.erp, S(0.5)) * sunk / opt.h));
}

/// An allowance is at least this part of how far its contact is from where it is computed from: in float, at 0.4 m, 4 um.
template <class S> inline constexpr S kRounded = sizeof(S) == 8 ? S(2e-14) : S(1e-5);

/// Steps below it let what is far from its root sink as far as they do: see near_rigid.   s
inline constexpr double kShortStep = 0.002;

template <class Real>
struct NearRigid {
  Real R_n, e;
};

/// What shares the forces of a contact on a line or a face out, which the bare law leaves to the rounding of gaps: a spring
/// that sinks by the allowance a under the weight of the mass the contact sees, 1 / W_n, damped so that a part
/// r = min(erp, 1/2) of an overlap goes in a step. Neither loads of a thousand times that mass nor impacts are to notice:
/// beyond a the force grows as the depth cubed, what closes by c g h, faster than by gravity, meets a spring stiffer by
/// c^(1/2), what stays open in the free motion, and is then driven against another, one that is as stiff as if it were as
/// deep as it is open; and softer than 1/150 W_n nothing is: under its own weight a contact sinks by g h^2 / (150 r) at most,
/// below 2 ms less than the allowance. Where a is more for rounding's sake that is too little, at 1 ms ten times what gaps of feet
/// round to, and 1/150 grows as a does, until it sinks as far as at 2 ms. Beyond 100 a contact is rigid. An error of the depth changes by
/// 1 - 3 r in a step, or it would swing: hence the bound on r. free: the normal velocity J v*. W_n: the W_nn that contacts
/// which bear together share (SharedMobility of bias.h). far: how far the contact is from the origin of its tree (m), of which the gap
/// has its rounding; a is more than that, or forces would follow it.
template <class Real, class S>
HD NearRigid<Real> near_rigid(const Options<S>& opt, Real gap, Real free, Real W_n, Real far) {
  const Real zero(0), one(1), bias = max(normal_bias(opt, gap), Real(-kept_recovery(opt)));
  if (!(opt.penetration_allowance > S(0))) return {zero, bias};
  const S fall = S(9.81) * opt.h, r = min(opt.erp, S(0.5));
  const Real a = max(Real(opt.penetration_allowance), far * kRounded<S>);
  const Real per_a = one / a, depth = max(-gap, zero) * per_a;
  const Real closing = max(-free - max(gap, zero) * (S(1) / opt.h), zero);
  const Real open = select(closing > zero, zero, max(gap, zero) * (S(1) / opt.penetration_allowance));
  const Real apart = max(depth, open);
  const Real stiffer = max(max(one, apart * apart), sqrt(closing * (S(1) / fall)));
  const auto shallow = depth < Real(S(100));
  const Real e = select(gap > zero, bias, max(gap * (r / opt.h), Real(-kept_recovery(opt))));
  const S shorter = max(S(kShortStep) / opt.h, S(1));
  const Real softer = max(min(Real(shorter * shorter), a * (S(1) / opt.penetration_allowance)), one);
  const Real softest = (sizeof(S) == 8 ? one : softer) * (S(1) / 150);
  const Real R_n = W_n * min(softest, a * (r / (fall * opt.h))) / stiffer;
  return {select(shallow, R_n, zero), select(shallow, e, bias)};
}

/// Speeds below it are no scale to judge by: what gravity adds in a step, and 0.1 mm/s.
template <class Real>
HD Real least_scale(Real gravity, Real h) {
  return max(gravity * h, Real(1e-4f));
}

template <class Real>
struct ContactResidual {
  Real con, ccp, split, cone;
};

/// s = w + e + R l. g > 0. NaN where l or s is.
template <class Real>
HD ContactResidual<Real> contact_residual(Vec3<Real> l, Vec3<Real> s, Real mu, Real g) {
  const Real zero(0);
  const Vec3<Real> held = l * g, next = held - s;
  const Vec3<Real> disk = project_strict(Vec3<Real>{next.x, next.y, held.z}, mu);
  auto distance = [&](Real lift) {
    return norm(held - project_proximal(Vec3<Real>{next.x, next.y, next.z - lift}, mu));
  };
  // Beside an impulse so large that its last digit outweighs s, a residual would see nothing: that digit is the least.
  const Real blind = max(max(abs(held.x), abs(held.y)), abs(held.z)) * kEpsilon<Scalar<Real>>;
  ContactResidual<Real> r;
  r.con = maximum(distance(sqrt(s.x * s.x + s.y * s.y) * mu), blind), r.ccp = maximum(distance(zero), blind);
  r.split = maximum(abs(held.z - maximum(next.z, zero)), norm(Vec3<Real>{held.x - disk.x, held.y - disk.y, zero}));
  r.cone = maximum(sqrt(l.x * l.x + l.y * l.y) - mu * l.z, max(-l.z, zero)) * g;
  return r;
}

/// The same with five tangential directions.
template <class Real>
HD_ONCE ContactResidual<Real> contact_residual(const SixVec<Real>& l, const SixVec<Real>& s, Real mu, Real g) {
  const Real zero(0), one(1);
  const SixVec<Real> held = l * g, next = held - s;
  auto distance = [&](Real lift) {
    SixVec<Real> lifted = next;
    lifted.l.z = lifted.l.z - lift;
    return norm(held - project_proximal(lifted, mu));
  };
  const Real r = tangential(next), limit = max(held.l.z, zero) * mu, lost = r * zero;  // NaN of what is not finite
  const auto sliding = r > limit;
  const Real disk = select(sliding, limit / select(sliding, r, one), one);
  const Real blind = max(max(abs(held.l.x), abs(held.l.y)), max(abs(held.l.z), norm(held.c))) * kEpsilon<Scalar<Real>>;
  ContactResidual<Real> to;
  to.con = maximum(distance(tangential(s) * mu) + lost, blind), to.ccp = maximum(distance(zero) + lost, blind);
  to.split = maximum(abs(held.l.z - maximum(next.l.z, zero)), tangential(held - with_tangents(next, disk, zero)));
  to.cone = max(tangential(l) - mu * l.l.z, max(-l.l.z, zero)) * g;
  return to;
}

/// s with the tangential velocity that con and split see of a contact under maximum dissipation: where s_t is -a (l_t + h),
/// h = mu^2 l_n W_nt / (W_nn + R_n), it becomes -a l_t. coupling: W_nt / (W_nn + R_n), how the normal impulse moves the
/// tangents, per how it moves the normal.
template <class Real>
HD Vec3<Real> dissipative_slip(Vec3<Real> l, Vec3<Real> s, Real mu, Vec2<Real> coupling) {
  const Real push = mu * mu * l.z, x = push * coupling.x, y = push * coupling.y, zero(0);
  const Real along = sqrt((l.x + x) * (l.x + x) + (l.y + y) * (l.y + y));
  const Mask<Real> pushed = along > zero;
  const Real a = select(pushed, sqrt(s.x * s.x + s.y * s.y) / select(pushed, along, Real(1)), zero);
  return {s.x + a * x, s.y + a * y, s.z};
}

/// s = w + e + R l. g > 0.
template <class Real>
HD Real row_residual(Real l, Real s, Real lower, Real upper, Real g) {
  return select(s == s, abs(l - clamp(l - s / g, lower, upper)) * g, s);  // clamp forgets a NaN
}

}  // namespace stiction
