// What is carried stays where it lies: how far the paths of two bodies in touch part in a step, besides by their relative velocity.
//
// Positions follow the velocities of a step along arcs and straight lines: what rides on a turntable at radius r leaves it by
// h^2 w^2 r / 2 in every step, although J v = 0 held. So contacts of two bodies that turn together have the bend
//
//   b = k d,   d = h / 2 (a_2(p) - a_1(p)),   a_i(p) = A_i + A_wi x p + w_i x v_i(p)
//   k = min(3 - 12 |w_r|^2 / W^2, 2 - |v_2(p) - v_1(p)|^2 / 16 min(|d|^2 + (g h)^2, (|a_2(p) - a_1(p)| / 10 W)^2)), from 0 to 1
//   w_2 - w_1 = s n + w_r,   W^2 = max(|w_i|^2 - s^2, |a_2(p) - a_1(p)| / 2 max |p_i|)
//
// in e, in all three directions: a_i are their points' accelerations along the paths that the integrator takes while no velocity
// changes, of the velocities before the step. The last part of W is of what goes on an arc without turning; p_i: from the origin of
// the body's tree. What pivots on another by s about the normal n goes on touching it where it does, as a ball between two fingers. What
// rolls on it, slides or hits it has no bend: where they touch then travels as their surfaces are curved, or velocities are not what they
// were. Balls that spin alike slide by |a_2 - a_1| / W.
// docs/theory.md, section 3.3.
#pragma once
#include "contact/problem.h"
#include "dynamics/paths.h"

namespace stiction {

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
  link_paths<L>(g, m, opt, kin, I, v, V, A);
  g.sync();
  for (int s = 0; s < contacts.pairs; ++s) {
    const PairContact<L>& c = contacts.pair[s];
    const Motion<Real> V1 = gather<L>(g, m, V, c.link1), V2 = gather<L>(g, m, V, c.link2),
                       A1 = gather<L>(g, m, A, c.link1), A2 = gather<L>(g, m, A, c.link2);
    const Vec3<Real> v1 = velocity_at(V1, c.p1), v2 = velocity_at(V2, c.point.p), slip = v2 - v1, turn = V2.w - V1.w,
                     apart = velocity_at(A2, c.point.p) + cross(V2.w, v2) - velocity_at(A1, c.p1) - cross(V1.w, v1),
                     bend = apart * (opt.h * S(0.5));
    const Real far = max(max(norm(c.p1), norm(c.point.p)), Real(1e-30f)), spin = dot(c.point.frame.row[2], turn),
               pivots = spin * spin,
               fastest = max(max(dot(V1.w, V1.w), dot(V2.w, V2.w)) - pivots, norm(apart) / (far * S(2)));
    const Mask<Real> turns = fastest > zero;
    const Real rolls = (dot(turn, turn) - pivots) * S(12) / select(turns, fastest, one) - one,
               near = min(dot(bend, bend) + fall * fall,
                          dot(apart, apart) * S(kCarriedSlip * kCarriedSlip) / select(turns, fastest, one)),
               slides = dot(slip, slip) / (max(near, Real(1e-30f)) * S(16)),
               k = clamp(Real(2) - max(rolls, slides), zero, one);
    problem.pair_row[s].bend = (c.point.frame * bend) * select(turns, k, zero);
  }
}

}  // namespace stiction
