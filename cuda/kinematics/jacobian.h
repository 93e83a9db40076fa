// Velocities and forces through the trees: w = J v outward, x += J' f inward, without ever forming J.
#pragma once
#include "kinematics/fk.h"

namespace stiction {

/// Outward: visit(limb, at, station, V) with the twist V of every station of every limb (station 0: the trunk link it hangs
/// from), trunk(t, V) with that of every trunk link, all at the origin of their tree.
template <class L, class Visit, class Trunk>
HD void visit_motions(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                      const TreeVector<L>& v, Trunk trunk, Visit visit) {
  using Real = typename L::Real;
  Motion<Real> base[L::kTrunkLinks];
  if (m.free_base()) base[0] = twist(v.trunk);
  UNROLL for (int t = m.base_links(); t < m.trunk_links(); ++t) {
    int dof = t + m.base_dofs() - m.base_links();
    Motion<Real> step = kin.S.trunk[dof] * v.trunk[dof];
    base[t] = t == 0 ? step : base[t - 1] + step;
  }
  UNROLL for (int t = 0; t < m.trunk_links(); ++t) trunk(t, base[t]);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    Motion<Real> V[L::kLimbLinks], root = limb.on_trunk() ? base[limb.attach()] : zero_motion<Real>();
    if (limb.on_trunk()) visit(limb, at, 0, root);
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      int up = limb.parent(k), i = at.link + k;
      V[k] = (up < 0 ? root : V[up]) + kin.S.limb[i] * v.limb[i];
      visit(limb, at, k + 1, V[k]);
    }
  });
}

/// Twists of all links.
template <class L>
HD void link_motions(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                     const TreeVector<L>& v, PerLink<L, Motion<typename L::Real>>& V) {
  using Real = typename L::Real;
  visit_motions<L>(
      g, m, kin, v, [&](int t, const Motion<Real>& x) { V.trunk[t] = x; },
      [&](const auto&, Place at, int s, const Motion<Real>& x) {
        if (s > 0) V.limb[at.link + s - 1] = x;
      });
}

/// x += J' F, inward, for the wrench own(limb, at, station) on every station of every limb, and `extra` (if not null) on
/// every link: on the trunk's links by rank 0 only. What limbs leave to the trunk's dofs goes into `share`, for ltdl's
/// solve() to sum over the lanes.
template <class L, class Own>
HD void add_forces(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin, Own own,
                   const PerLink<L, Force<typename L::Real>>* extra, TreeVector<L>& x,
                   typename L::Real (&share)[L::kTrunkDofs]) {
  using Real = typename L::Real;
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) share[t] = Real(0);
  auto on_trunk = [&](const Force<Real>& F, int link) {
    if (m.free_base()) {
      Real base[6];
      put(F, base);
      UNROLL for (int t = 0; t < 6; ++t) share[t] = share[t] + base[t];
    }
    UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t)
      if (m.link_of_dof(t) <= link) share[t] = share[t] + dot(kin.S.trunk[t], F);
  };
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    Force<Real> beyond[L::kLimbLinks], sum = zero_force<Real>();
    if (limb.on_trunk()) sum = own(limb, at, 0);
    UNROLL for (int k = 0; k < limb.links(); ++k) beyond[k] = zero_force<Real>();
    limb.each_inward([&](int k) {
      int up = limb.parent(k), i = at.link + k;
      Force<Real> F = beyond[k] + own(limb, at, k + 1);
      if (extra) F = F + extra->limb[i];
      x.limb[i] = x.limb[i] + dot(kin.S.limb[i], F);
      if (up < 0) sum = sum + F;
      else beyond[up] = beyond[up] + F;
    });
    if (limb.on_trunk()) on_trunk(sum, limb.attach());
  });
  if (extra && g.rank() == 0)
    for (int t = 0; t < m.trunk_links(); ++t) on_trunk(extra->trunk[t], t);
}

}  // namespace stiction
