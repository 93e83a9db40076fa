// Where links go while joints and roots keep their velocities: twists, and how these change on the way.
#pragma once
#include "core/options.h"
#include "dynamics/centres.h"

namespace stiction {

/// Twists V of all links, and their accelerations A while joints and roots keep their velocities, if the origin of what is free goes
/// straight; at the origin of their tree.
template <class L, class Real = typename L::Real>
HD void paths_of_origins(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                         const TreeVector<L>& v, PerLink<L, Motion<Real>>& V, PerLink<L, Motion<Real>>& A) {
  const Motion<Real> still = zero_motion<Real>();
  if (m.free_base()) {
    V.trunk[0] = twist(v.trunk), A.trunk[0] = still;
    A.trunk[0].v = cross(V.trunk[0].v, V.trunk[0].w);
  }
  UNROLL for (int t = m.base_links(); t < m.trunk_links(); ++t) {
    const int dof = t + m.base_dofs() - m.base_links();
    const Motion<Real> qd = kin.S.trunk[dof] * v.trunk[dof], up = t == 0 ? still : V.trunk[t - 1];
    V.trunk[t] = up + qd, A.trunk[t] = (t == 0 ? still : A.trunk[t - 1]) + cross(up, qd);
  }
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    const Motion<Real> root_V = limb.on_trunk() ? V.trunk[limb.attach()] : still,
                       root_A = limb.on_trunk() ? A.trunk[limb.attach()] : still;
    Motion<Real> ball = still;
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      const int up = limb.parent(k), i = at.link + k;
      const auto& link = limb.link(k);
      const Motion<Real> up_V = up < 0 ? root_V : V.limb[at.link + up], up_A = up < 0 ? root_A : A.limb[at.link + up],
                         qd = kin.S.limb[i] * v.limb[i];
      if (L::Shape::kAnyJoint && link.kind == kBallLink) ball = up_V;
      V.limb[i] = up_V + qd;
      A.limb[i] = up_A + cross(L::Shape::kAnyJoint && link.kind == kBallNextLink ? ball : up_V, qd);
    }
  });
}

/// These, where its centre of mass does.
template <class L, class Real = typename L::Real>
HD void straighten_paths(const typename L::Group& g, const typename L::Model& m, const PerLink<L, RigidInertia<Real>>& I,
                         const PerLink<L, Motion<Real>>& V, PerLink<L, Motion<Real>>& A) {
  each_free_tree<L>(g, m, true, [&](const auto& tree) {
    const Vec3<Real> a = sum_of_bodies(
                             tree, zero3<Real>(),
                             [](const RigidInertia<Real>& i, const Motion<Real>& V, const Motion<Real>& A) {
                               return A.v * i.m + cross(A.w, i.h) + cross(V.w, V.v * i.m + cross(V.w, i.h));
                             },
                             I, V, A) *
                         over_mass(Real(1), mass_of<L>(tree, I));
    tree.each_link([&](Motion<Real>& of) { of.v = of.v - a; }, A);
  });
}

/// These, as a step takes them.
template <class L, class Real = typename L::Real>
HD_ONCE void link_paths(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                        const Kinematics<L>& kin, const PerLink<L, RigidInertia<Real>>& I, const TreeVector<L>& v,
                        PerLink<L, Motion<Real>>& V, PerLink<L, Motion<Real>>& A) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(kin, I, v, V, A);
  paths_of_origins<L>(g, m, kin, v, V, A);
  if (opt.moves_centres()) straighten_paths<L>(g, m, I, V, A);
}

}  // namespace stiction
