// What a body pays that is lifted out of what it turns in.
#pragma once
#include "dynamics/gyroscopic.h"

namespace stiction {

/// What turns sinks by what the chord of a step cuts off its arc, for ever while it spins; what a recovery lifts of that it pays
/// for: the velocity v of a body on its own loses as much energy as its centre of mass gains height by `along` instead of v, up
/// to a lift of h^2 / 2 |w| |w across gravity| times twice its radius of gyration. So nothing climbs that spins in a floor.
template <class L, class Real = typename L::Real>
HD void pay_for_lifts(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const Kinematics<L>& kin,
                      const TreeMatrix<L>& A, const TreeVector<L>& along, TreeVector<L>& v) {
  const Vec3<Real> gravity = vec<Real>(m.gravity);
  // entry(i, j): of A, j <= i < 6; moving: the first of three dofs in world axes; w: how it turns, in world axes.
  auto pay = [&](auto entry, int moving, const Vec3<Real>& w, const Real* to, Real* now) {
    Real twice(0), p[3] = {Real(0), Real(0), Real(0)}, inertia(0), offset(0);
    const Real mass = entry(moving, moving);
    const int turning = 3 - moving;
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 6; ++j) {
        const Real a = i < j ? entry(j, i) : entry(i, j);
        twice = twice + now[i] * a * now[j];
        if (i >= moving && i < moving + 3) p[i - moving] = p[i - moving] + a * (to[j] - now[j]);
      }
    for (int i = 0; i < 3; ++i) {
      inertia = inertia + entry(turning + i, turning + i);
      for (int j = 0; j < 3; ++j) {
        const Real a = moving > turning ? entry(moving + i, turning + j) : entry(turning + i, moving + j);
        offset = offset + a * a;  // 2 m^2 |c|^2
      }
    }
    const Real width = sqrt(max(inertia * mass - offset, Real(0)) * Real(2));  // times the mass
    const Real cut = norm(w) * norm(cross(w, gravity)) * width * (h * h / 2);
    const Real lift = min(-dot(gravity, Vec3<Real>{p[0], p[1], p[2]}) * h, cut);
    const Real kept = sqrt(max(Real(1) - Real(2) * lift / max(twice, Real(1e-30f)), Real(0)));
    for (int i = 0; i < 6; ++i) now[i] = select(lift > Real(0), now[i] * kept, now[i]);
  };
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!is_lone_body<L>(limb)) return;
      const Real* H = A.limb + at.entry;
      Real* now = v.limb + at.link;
      pay([&](int i, int j) { return H[entry_of(i, j)]; }, 0,
          kin.pose.limb[at.link + 3].R * Vec3<Real>{now[3], now[4], now[5]}, along.limb + at.link, now);
    });
  if (!m.free_base() || has_jointed_trunk<L>(m)) return;
  pay([&](int i, int j) { return A.trunk[i][j]; }, 3, Motion<Real>(twist(v.trunk)).w, along.trunk, v.trunk);
}

}  // namespace stiction
