// Positions move with the new velocity: q' = q + h v', quaternions by the exponential of the body-frame angular velocity. In float
// sums are compensated, but for quaternions: q and its low part together move by h v', however little that is.
#pragma once
#include "kinematics/fk.h"

namespace stiction {

/// x + low += step: the sum rounded, and exactly what rounding took [Knuth1997, 4.2.2 theorem B].
template <class Real>
HD void add_compensated(const Mask<Real>& moving, Real step, Real& x, Real& low) {
  const Real y = step + low, sum = x + y, part = sum - x;
  low = select(moving, (x - (sum - part)) + (y - part), low), x = select(moving, sum, x);
}

/// x += step, of `moving` worlds.
template <class Real>
HD void add_position(const Mask<Real>& moving, Real step, Real& x, Real& low) {
  if constexpr (kCompensated<Real>) add_compensated(moving, step, x, low);
  else x = select(moving, x + step, x);
}

/// Positions move with v, velocities become `end`. Worlds whose `moving` is false keep their state. R: how a free base stands.
template <class L>
HD void integrate(const typename L::Group& g, const typename L::Model& m, Scalar<typename L::Real> h,
                  const Mat3<typename L::Real>& R, const TreeVector<L>& v, const TreeVector<L>& end,
                  Mask<typename L::Real> moving, State<L>& x) {
  using Real = typename L::Real;
  auto put_quat = [&](const Quat<Real>& fresh, Real& w, Real& qx, Real& qy, Real& qz) {
    w = select(moving, fresh.w, w), qx = select(moving, fresh.x, qx);
    qy = select(moving, fresh.y, qy), qz = select(moving, fresh.z, qz);
  };
  auto add = [&](Real vi, Real& q, Real& low) { add_position<Real>(moving, vi * h, q, low); };
  if (m.free_base()) {
    Motion<Real> V = twist(v.trunk);
    add(V.v.x, x.position.x, x.position_low.x), add(V.v.y, x.position.y, x.position_low.y);
    add(V.v.z, x.position.z, x.position_low.z);
    const Quat<Real> q = integrated(x.orientation, transposed_times(R, V.w), h);
    put_quat(q, x.orientation.w, x.orientation.x, x.orientation.y, x.orientation.z);
  }
  each_joint<L>(
      g, m,
      [&](const auto& link, Real vi, Real& q, Real& low) {
        if (link.kind == kHingeLink || link.kind == kSlideLink) add(vi, q, low);
      },
      v, x.q, x.q_low);
  if constexpr (L::Shape::kAnyJoint) {
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int k = 0; k < limb.links(); ++k) {
        int i = at.link + k;
        if (limb.link(k).kind != kBallLink) continue;
        Vec3<Real> w{v.limb[i], v.limb[i + 1], v.limb[i + 2]};
        Quat<Real> q = integrated(Quat<Real>{x.qw.limb[i], x.q.limb[i], x.q.limb[i + 1], x.q.limb[i + 2]}, w, h);
        put_quat(q, x.qw.limb[i], x.q.limb[i], x.q.limb[i + 1], x.q.limb[i + 2]);
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
