// What is carried stays where it lies: how far the paths of two bodies in touch part in a step, besides by their relative velocity.
//
// Positions follow the velocities of a step along arcs and straight lines: what rides on a turntable at radius r leaves it by
// h^2 w^2 r / 2 in every step, although J v = 0 held. So contacts of two bodies that turn together have the bend
//
//   b = k d,   d = h / 2 (a_2(p) - a_1(p)),   a_i(p) = A_i + A_wi x p + w_i x v_i(p)
//   k = min(3 - 12 |w_2 - w_1|^2 / W^2, 2 - |v_2(p) - v_1(p)|^2 / 16 min(|d|^2 + (g h)^2, (|a_2(p) - a_1(p)| / 10 W)^2)), from 0 to 1
//   W^2 = max(|w_i|^2, |a_2(p) - a_1(p)| / 2 max |p_i|)
//
// in e, in all three directions: a_i are their points' accelerations along the paths that the integrator takes while no velocity
// changes, of the velocities before the step. The last part of W is of what goes on an arc without turning; p_i: from the origin of
// the body's tree. What rolls or pivots on another, slides or hits it has no bend: where they touch then
// travels as their surfaces are curved, or velocities are not what they were. Balls that spin alike slide by |a_2 - a_1| / W.
// docs/theory.md, section 3.3.
#pragma once
#include "contact/problem.h"
#include "dynamics/centres.h"

namespace stiction {

/// Twists V of all links, and their accelerations A while joints and roots keep their velocities; at the origin of their tree.
template <class L, class Real = typename L::Real>
HD void link_paths(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
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

/// These, where centres of mass of what is free go straight.
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

/// What slides by more than four times that part of the speed at which the bodies turn about each other is not carried.
inline constexpr double kCarriedSlip = 0.1;

/// The bends of contacts between two moving links. V, A: scratch.
template <class L, class Real = typename L::Real>
HD_ONCE void bend_contacts(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                           const Kinematics<L>& kin, const PerLink<L, RigidInertia<Real>>& I, const TreeVector<L>& v,
                           const Contacts<L>& contacts, PerLink<L, Motion<Real>>& V, PerLink<L, Motion<Real>>& A,
                           ContactProblem<L>& problem) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(kin, I, v, contacts, V, A, problem);
  if (contacts.pairs == 0) return;
  using S = Scalar<Real>;
  const Real zero(0), one(1), fall(S(9.81) * opt.h);
  link_paths<L>(g, m, kin, v, V, A);
  if (opt.moves_centres()) straighten_paths<L>(g, m, I, V, A);
  g.sync();
  for (int s = 0; s < contacts.pairs; ++s) {
    const PairContact<L>& c = contacts.pair[s];
    const Motion<Real> V1 = gather<L>(g, m, V, c.link1), V2 = gather<L>(g, m, V, c.link2),
                       A1 = gather<L>(g, m, A, c.link1), A2 = gather<L>(g, m, A, c.link2);
    const Vec3<Real> v1 = velocity_at(V1, c.p1), v2 = velocity_at(V2, c.point.p), slip = v2 - v1, turn = V2.w - V1.w,
                     apart = velocity_at(A2, c.point.p) + cross(V2.w, v2) - velocity_at(A1, c.p1) - cross(V1.w, v1),
                     bend = apart * (opt.h * S(0.5));
    const Real far = max(max(norm(c.p1), norm(c.point.p)), Real(1e-30f)),
               fastest = max(max(dot(V1.w, V1.w), dot(V2.w, V2.w)), norm(apart) / (far * S(2)));
    const Mask<Real> turns = fastest > zero;
    const Real rolls = dot(turn, turn) * S(12) / select(turns, fastest, one) - one,
               near = min(dot(bend, bend) + fall * fall,
                          dot(apart, apart) * S(kCarriedSlip * kCarriedSlip) / select(turns, fastest, one)),
               slides = dot(slip, slip) / (max(near, Real(1e-30f)) * S(16)),
               k = clamp(Real(2) - max(rolls, slides), zero, one);
    problem.pair_row[s].bend = (c.point.frame * bend) * select(turns, k, zero);
  }
}

}  // namespace stiction
