// Inverse dynamics by recursive Newton-Euler; [Featherstone2008] ch. 5.
#pragma once
#include "kinematics/fk.h"

namespace stiction {

/// I A + V x* I V, V = (w, v), without its v x m v, which is 0 but for rounding: what does not turn needs nothing to go on.
template <class Real>
HD Force<Real> force_to_move(const RigidInertia<Real>& I, const Motion<Real>& V, const Motion<Real>& A) {
  const Vec3<Real> turning = cross(V.w, I.h);
  const Force<Real> F = I * A;
  return {F.n + (cross(V.w, I.J * V.w + cross(I.h, V.v)) + cross(V.v, turning)), F.f + cross(V.w, V.v * I.m + turning)};
}

/// tau = M a + c(q, v) without armature. Link by link, outward and inward:
///   V = V' + S qd,   A = A' + S qdd + V' x S qd,   F = I A + V x* I V,   tau = S . (F + all F beyond)
/// V' is the parent's (for all three columns of a ball joint, the parent's of the ball). The free base's velocity is that of
/// a moving point, hence A_0 = (wd, vd + v x w); gravity is an acceleration upwards. a: null is 0;
/// weightless: what free roots carry.
template <class L>
HD void inverse_dynamics(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                         const PerLink<L, RigidInertia<typename L::Real>>& I, const TreeVector<L>& v,
                         const TreeVector<L>* a, bool weightless, TreeVector<L>& tau) {
  using Real = typename L::Real;
  Motion<Real> V[L::kTrunkLinks], A[L::kTrunkLinks];
  Force<Real> share[L::kTrunkLinks];  // what this lane's limbs need from each trunk link
  UNROLL for (int t = 0; t < m.trunk_links(); ++t) share[t] = zero_force<Real>();
  Motion<Real> still = zero_motion<Real>(), falling = still;
  falling.v = -vec<Real>(m.gravity);
  const Motion<Real> free = weightless ? still : falling;

  if (m.free_base()) {
    V[0] = twist(v.trunk), A[0] = a ? twist(a->trunk) + free : free;
    A[0].v = A[0].v + cross(V[0].v, V[0].w);
  }
  UNROLL for (int t = m.base_links(); t < m.trunk_links(); ++t) {
    int dof = t + m.base_dofs() - m.base_links();
    Motion<Real> qd = kin.S.trunk[dof] * v.trunk[dof], Vp = t == 0 ? still : V[t - 1];
    V[t] = Vp + qd;
    A[t] = (t == 0 ? falling : A[t - 1]) + cross(Vp, qd);
    if (a) A[t] = A[t] + kin.S.trunk[dof] * a->trunk[dof];
  }

  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    Motion<Real> rootV = limb.on_trunk() ? V[limb.attach()] : still;
    Motion<Real> rootA = limb.on_trunk() ? A[limb.attach()] : L::Shape::kAnyJoint && is_free_body(limb) ? free : falling;
    Motion<Real> Vk[L::kLimbLinks], Ak[L::kLimbLinks], ball = still;
    Force<Real> F[L::kLimbLinks];
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      int up = limb.parent(k), i = at.link + k;
      const auto& link = limb.link(k);
      Motion<Real> Vp = up < 0 ? rootV : Vk[up], Ap = up < 0 ? rootA : Ak[up];
      Motion<Real> qd = kin.S.limb[i] * v.limb[i];
      if (L::Shape::kAnyJoint && link.kind == kBallLink) ball = Vp;
      Vk[k] = Vp + qd;
      Ak[k] = Ap + cross(L::Shape::kAnyJoint && link.kind == kBallNextLink ? ball : Vp, qd);
      if (a) Ak[k] = Ak[k] + kin.S.limb[i] * a->limb[i];
      if (!L::Shape::kAnyJoint || link.has_body) F[k] = force_to_move(I.limb[i], Vk[k], Ak[k]);
      else F[k] = zero_force<Real>();
    }
    Force<Real> beyond = zero_force<Real>();
    limb.each_inward([&](int k) {
      int up = limb.parent(k);
      tau.limb[at.link + k] = dot(kin.S.limb[at.link + k], F[k]);
      if (up < 0) beyond = beyond + F[k];
      else F[up] = F[up] + F[k];
    });
    if (limb.on_trunk()) share[limb.attach()] = share[limb.attach()] + beyond;
  });

  Force<Real> beyond = zero_force<Real>();
  UNROLL for (int t = m.trunk_links() - 1; t >= 0; --t) {
    sum_over(g, share[t]);
    beyond = beyond + share[t] + force_to_move(I.trunk[t], V[t], A[t]);
    int dof = t + m.base_dofs() - m.base_links();
    if (t >= m.base_links()) tau.trunk[dof] = dot(kin.S.trunk[dof], beyond);
  }
  if (m.free_base()) put(beyond, tau.trunk);
}

}  // namespace stiction
