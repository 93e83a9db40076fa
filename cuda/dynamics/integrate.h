// Positions move with the new velocity: q' = q + h v', quaternions by the exponential of the body-frame angular velocity. In float
// sums are compensated: q and its low part together move by h v', however little that is. docs/theory.md, (2.1a).
#pragma once
#include "kinematics/fk.h"
#include "math/cone.h"

namespace stiction {

/// What rounding took from sum = x + y, exactly [Knuth1997, 4.2.2 theorem B].
template <class Real>
HD Real rounded_off(Real x, Real y, Real sum) {
  const Real part = sum - x;
  return (x - (sum - part)) + (y - part);
}
/// x + low += step. x stays while what is left out is below its last digit, or that of `least`: every other x is rounded otherwise
/// where poses are made of it, an angle as a sine is, a slide as the place that it is added to.
template <class Real>
HD void add_compensated(const Mask<Real>& moving, Real step, Real& x, Real& low, Real least) {
  const Real y = step + low, sum = x + y;
  const Mask<Real> stays = abs(y) < max(abs(x), least) * kEpsilon<Scalar<Real>>;
  low = select(moving, select(stays, y, rounded_off(x, y, sum)), low), x = select(moving & negate(stays), sum, x);
}

/// x += step, of `moving` worlds.
template <class Real>
HD void add_position(const Mask<Real>& moving, Real step, Real& x, Real& low, Real least = Real(0)) {
  if constexpr (kCompensated<Real>) add_compensated(moving, step, x, low, least);
  else x = select(moving, x + step, x);
}

/// q exp(low) turns by `turn`, about the body's axes: q' = q + d, of length 1, and low' is the turning in what rounding took from it. Stays
/// as long as rounding leaves it, if it is that long.   rad
template <class Real>
HD void turn_compensated(const Mask<Real>& moving, const Vec3<Real>& turn, Quat<Real>& q, Vec3<Real>& low) {
  const Real one(1), two(2), last(kEpsilon<Scalar<Real>>);
  const Vec3<Real> r = turn + low;
  const Real angle = sqrt(dot(r, r) + Real(1e-20f));
  Real s, c;
  sincos(angle * Real(0.5f), s, c);
  const Vec3<Real> v = r * (s / angle);
  const Mask<Real> back = c < Real(0);
  const Real less = select(back, c - one, -(s * s) / select(back, one, one + c));  // c - 1
  auto sum = [](const Quat<Real>& a, const Quat<Real>& b) {
    return Quat<Real>{a.w + b.w, a.x + b.x, a.y + b.y, a.z + b.z};
  };
  auto scaled = [](const Quat<Real>& a, const Real& b) { return Quat<Real>{a.w * b, a.x * b, a.y * b, a.z * b}; };
  const Quat<Real> d = sum(q * Quat<Real>{Real(0), v.x, v.y, v.z}, scaled(q, less)), turned = sum(q, d);
  const Real square = norm_squared(turned), longer = abs(square - one);
  const Real fix =
      select((longer > last * two) & negate(vanishes(turned)), rsqrt(max(square, Real(1e-24f))) - one, Real(0));
  const Quat<Real> by = sum(d, scaled(turned, fix)), next = sum(q, by);
  const Quat<Real> lost = {rounded_off(q.w, by.w, next.w), rounded_off(q.x, by.x, next.x),
                           rounded_off(q.y, by.y, next.y), rounded_off(q.z, by.z, next.z)};
  const Quat<Real> left = Quat<Real>{next.w, -next.x, -next.y, -next.z} * lost;
  const Mask<Real> stays = (angle < last * two) & (longer < last * Real(8)), goes = moving & negate(stays);
  low = select(moving, select(stays, r, Vec3<Real>{left.x, left.y, left.z} * two), low);
  q = {select(goes, next.w, q.w), select(goes, next.x, q.x), select(goes, next.y, q.y), select(goes, next.z, q.z)};
}

/// q turns for h seconds at w, about the body's axes.
template <class Real>
HD void turn_quat(const Mask<Real>& moving, const Vec3<Real>& w, Scalar<Real> h, Quat<Real>& q, Vec3<Real>& low) {
  if constexpr (kCompensated<Real>) {
    turn_compensated(moving, w * h, q, low);
  } else {
    const Quat<Real> next = integrated(q, w, h);
    q = {select(moving, next.w, q.w), select(moving, next.x, q.x), select(moving, next.y, q.y),
         select(moving, next.z, q.z)};
  }
}

/// Positions move with v, velocities become `end`. Worlds whose `moving` is false keep their state. R: how a free base stands.
template <class L>
HD void integrate(const typename L::Group& g, const typename L::Model& m, Scalar<typename L::Real> h,
                  const Mat3<typename L::Real>& R, const TreeVector<L>& v, const TreeVector<L>& end,
                  Mask<typename L::Real> moving, State<L>& x) {
  using Real = typename L::Real;
  auto add = [&](Real vi, Real& q, Real& low, Real least = Real(0)) {
    add_position<Real>(moving, vi * h, q, low, least);
  };
  if (m.free_base()) {
    Motion<Real> V = twist(v.trunk);
    Real* low = x.low.trunk;
    add(V.v.x, x.position.x, low[3]), add(V.v.y, x.position.y, low[4]), add(V.v.z, x.position.z, low[5]);
    Vec3<Real> turned = transposed_times(R, Vec3<Real>{low[0], low[1], low[2]});
    turn_quat<Real>(moving, transposed_times(R, V.w), h, x.orientation, turned);
    turned = R * turned;
    low[0] = turned.x, low[1] = turned.y, low[2] = turned.z;
  }
  each_joint<L>(
      g, m,
      [&](const auto& link, Real vi, Real& q, Real& low) {
        if (link.kind == kHingeLink) add(vi, q, low, Real(1));
        else if (link.kind == kSlideLink) add(vi, q, low, largest(vec<Real>(link.offset)));
      },
      v, x.q, x.low);
  if constexpr (L::Shape::kAnyJoint) {
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int k = 0; k < limb.links(); ++k) {
        int i = at.link + k;
        if (limb.link(k).kind != kBallLink) continue;
        const Vec3<Real> w{v.limb[i], v.limb[i + 1], v.limb[i + 2]};
        Real *q = x.q.limb + i, *low = x.low.limb + i;
        Quat<Real> orientation{x.qw.limb[i], q[0], q[1], q[2]};
        Vec3<Real> turned{low[0], low[1], low[2]};
        turn_quat<Real>(moving, w, h, orientation, turned);
        x.qw.limb[i] = orientation.w, q[0] = orientation.x, q[1] = orientation.y, q[2] = orientation.z;
        low[0] = turned.x, low[1] = turned.y, low[2] = turned.z;
      }
    });
  }
  each_dof<L>(g, m, [&](Real vi, Real& xi) { xi = select(moving, vi, xi); }, end, x.v);
}

/// The spin of a free base keeps its components in the body's axes, which go from R to S.
template <class L, class Real = typename L::Real>
HD void turn_spin(const typename L::Model& m, const Mat3<Real>& R, const Mat3<Real>& S, TreeVector<L>& v) {
  if (!m.free_base()) return;
  const Vec3<Real> spin = S * transposed_times(R, Motion<Real>(twist(v.trunk)).w);
  v.trunk[0] = spin.x, v.trunk[1] = spin.y, v.trunk[2] = spin.z;
}
/// What storing a state and loading it again does to a free base: its spin is stored in the body's axes.
template <class L>
HD void round_base(const typename L::Model& m, State<L>& x) {
  if (!m.free_base()) return;
  const auto stands = unit(x.orientation);
  turn_spin<L>(m, rotation(x.orientation), rotation(stands), x.v);
  x.orientation = stands;
}
/// So does that of v, whose axes are R's, as x's.
template <class L, class Real = typename L::Real>
HD void keep_spin(const typename L::Model& m, const Mat3<Real>& R, const TreeVector<L>& v, const Mask<Real>& moving,
                  State<L>& x) {
  if (!m.free_base()) return;
  const Vec3<Real> spin = rotation(x.orientation) * transposed_times(R, Motion<Real>(twist(v.trunk)).w);
  blend(moving, spin.x, x.v.trunk[0]), blend(moving, spin.y, x.v.trunk[1]), blend(moving, spin.z, x.v.trunk[2]);
}

}  // namespace stiction
