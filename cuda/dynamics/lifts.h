// What a body pays that is lifted out of what it turns in.
#pragma once
#include "dynamics/late_turn.h"

namespace stiction {

/// What turns sinks by what the chord of a step cuts off its arc, for ever while it spins; what a recovery lifts of that it pays
/// for: the spin w in v of a body on its own loses as much energy as its centre of mass gains height by `along` instead of v, up
/// to a lift of h^2 / 2 |w| |w across gravity| times twice its radius of gyration. So nothing climbs that spins in a floor. Its centre
/// keeps its velocity. kin, I: before the step.
template <class L, class Real = typename L::Real>
HD void pay_for_lifts(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const Kinematics<L>& kin,
                      const PerLink<L, RigidInertia<Real>>& I, const TreeVector<L>& along, TreeVector<L>& v) {
  const Vec3<Real> gravity = vec<Real>(m.gravity);
  // The change of the spin of one of inertia i about its origin, of whose twist `to` is to be and `now` is; all in world axes.
  auto paid = [&](const RigidInertia<Real>& i, const Motion<Real>& to, const Motion<Real>& now) {
    const SymMat3<Real> J = about_centre(i);
    const Vec3<Real>& w = now.w;
    const Vec3<Real> p = (to.v - now.v) * i.m + cross(to.w - w, i.h);
    const Real width = sqrt(max(J.xx + J.yy + J.zz, Real(0)) * i.m * Real(2));  // times the mass
    const Real cut = norm(w) * norm(cross(w, gravity)) * width * (h * h / 2);
    const Real lift = min(-dot(gravity, p) * h, cut);
    const Real kept = sqrt(max(Real(1) - Real(2) * lift / max(dot(w, J * w), Real(1e-30f)), Real(0)));
    return select(lift > Real(0), w * (kept - Real(1)), Vec3<Real>{});
  };
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!is_lone_body<L>(limb)) return;
      const RigidInertia<Real>& i = I.limb[at.link + 5];
      const Mat3<Real>& R = kin.pose.limb[at.link + 3].R;
      const Real* to = along.limb + at.link;
      Real* now = v.limb + at.link;
      add_spin(i, R, paid(i, {R * three(to + 3), three(to)}, {R * three(now + 3), three(now)}), now);
    });
  if (!m.free_base() || has_jointed_trunk<L>(m)) return;
  const RigidInertia<Real>& i = I.trunk[0];
  const Vec3<Real> d = paid(i, twist(along.trunk), twist(v.trunk));
  put(three(v.trunk) + d, v.trunk), put(three(v.trunk + 3) - cross(d, i.h * over_mass(Real(1), i.m)), v.trunk + 3);
}

}  // namespace stiction
