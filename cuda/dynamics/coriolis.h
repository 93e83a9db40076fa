// Coriolis and centrifugal forces of jointed trees, taken at the mean of the velocities before and after the free motion.
//
// Explicit ones, c(v0), give a tree energy by the square of what they change in a step: a chain that tumbles runs away. At the
// geometry of the step's beginning the mean velocity u = (v0 + v) / 2 in
//   A v = M v0 + h (f - c(u))
// makes them do the work u . c(u), which is that of the turning inertia, and what energy gains or loses swings. docs/theory.md, (2.3a).
//
// Solved by v <- A^-1 (M v0 + h (f - c(u))) from the explicit v on, a pass of Newton-Euler each. What c's derivative is, is nearly
// skew, so a part 1 / (1 + m^2) of each change converges where m, about the angle of a step, is more than 1: the part is halved
// while changes do not shrink. Worlds that still change by kTurnFound of their speeds after kTurnPasses keep the explicit v.
//
// v knows nothing of what closes loops, whose impulses undo most of it in every step: worlds with welds, connects or equalities of joints
// and tendons keep explicit forces here, and take the mean of velocities that do not open them, in step/loops.h.
//
// What contacts and limits do to v is not known then, but when a step is solved: what c(u) lacks of c at the u+ of the step's end is
// owed to the next step, d = h (c(u) - c(u+)), and added to its b. So the sums over steps are those of c(u+), the power of what holds
// a tree does not leak into its turning, and nothing is solved twice.
//
// Trees of one joint do not need c(u) for themselves: dynamics/gyroscopic.h. Nor is the origin of a free root thrown about by its
// centre of mass here: its part w x (w x c) of c is left out, as there.
#pragma once
#include "dynamics/gyroscopic.h"
#include "dynamics/rnea.h"
#include "linalg/ltdl.h"

namespace stiction {

/// To stop: the largest change that the next pass would make if changes go on as they do, as a part of that dof's speeds before and
/// after and kTurnFloor of the sum of all.
template <class S> inline constexpr S kTurnTolerance = sizeof(S) == 4 ? S(3e-4) : S(1e-10);
inline constexpr float kTurnFloor = 0.1f;
/// For v to be taken: the sum of the changes, as a part of that of the speeds.
inline constexpr float kTurnFound = 1e-2f;
/// Sum of the speeds, times h, that explicit forces are good for: energy grows by less than the square of it in a step.   rad
inline constexpr float kSlowTurn = 1e-3f;
inline constexpr int kTurnPasses = 30;

/// body(own, x...) for every dof of jointed trees, or of all others: the trunk's, then those of this lane's own limbs.
template <class L, class Body, class... Vectors>
HD void each_tree_dof(const typename L::Group& g, const typename L::Model& m, bool jointed, Body body, Vectors&... x) {
  if (has_jointed_trunk<L>(m) == jointed) UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) body(false, x.trunk[t]...);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    if (is_jointed(limb) != jointed) return;
    UNROLL for (int k = 0; k < limb.links(); ++k) body(true, x.limb[at.link + k]...);
  });
}
template <class L, class Body, class... Vectors>
HD void each_jointed(const typename L::Group& g, const typename L::Model& m, Body body, Vectors&... x) {
  each_tree_dof<L>(g, m, true, body, x...);
}
/// Sum of term(x...) over them.
template <class L, class Term, class... Vectors>
HD typename L::Real sum_of_jointed(const typename L::Group& g, const typename L::Model& m, Term term,
                                   const Vectors&... x) {
  using Real = typename L::Real;
  Real shared(0), own(0);
  each_jointed<L>(
      g, m,
      [&](bool is_own, const auto&... xi) {
        Real& sum = is_own ? own : shared;
        sum = sum + term(xi...);
      },
      x...);
  return shared + g.sum(own);
}

/// Largest |x - y| over them, each as a part of |x| + |x0| + floor.
template <class L, class Real = typename L::Real>
HD Real change_of_jointed(const typename L::Group& g, const typename L::Model& m, const TreeVector<L>& x0,
                          const TreeVector<L>& x, const TreeVector<L>& y, Real floor) {
  Real worst(0);
  each_jointed<L>(
      g, m, [&](bool, Real from, Real xi, Real yi) { worst = maximum(worst, abs(xi - yi) / (abs(from) + abs(xi) + floor)); },
      x0, x, y);
  return g.max(worst);
}

/// A step's A and what its Coriolis forces are made of. A: its blocks between turning and moving are those of M.
template <class L>
struct CoriolisInputs {
  using Real = typename L::Real;
  Scalar<Real> h;  // s
  const Kinematics<L>& kin;
  const PerLink<L, RigidInertia<Real>>& I;
  const TreeVector<L>& v0;
  const TreeMatrix<L>&A, &factor;
};
/// What a step's b was found with.
template <class L>
struct MeanForces {
  TreeVector<L> rest;                // of worlds that are `taken`: b without inverse dynamics                   N s, N m s
  Mask<typename L::Real> taken;  // have c(u)
};
/// Inverse dynamics for the acceleration -v0 / h, forces being those at (v0 + v) / 2.
template <class L, class Real = typename L::Real>
HD void dynamics_at_mean(const typename L::Group& g, const typename L::Model& m, const CoriolisInputs<L>& in,
                         const TreeVector<L>& v, TreeVector<L>& tau) {
  using S = Scalar<Real>;
  const S h = in.h;
  TreeVector<L> u, a;
  each_dof<L>(g, m, [h](Real x, Real y, Real& mean, Real& rate) { mean = (x + y) * S(0.5), rate = x * (S(-1) / h); },
              in.v0, v, u, a);
  hold_centres<L>(g, m, in.kin, in.I, in.A, u, false, a);
  inverse_dynamics<L>(g, m, in.kin, in.I, u, a, tau);
}
/// b without any inverse dynamics, from b and what it has of that.
template <class L, class Real = typename L::Real>
HD void without_coriolis(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const TreeVector<L>& b,
                         const TreeVector<L>& bias, TreeVector<L>& rest) {
  each_jointed<L>(g, m, [h](bool, Real bi, Real c, Real& r) { r = bi + c * h; }, b, bias, rest);
}
/// b and free = A^-1 b with c((v0 + v) / 2), in worlds that are `active`. base: b without inverse dynamics.
template <class L, class Real = typename L::Real>
HD_ONCE void move_at_mean(const typename L::Group& g, const typename L::Model& m, const CoriolisInputs<L>& in,
                          const TreeVector<L>& v, const TreeVector<L>& base, const Mask<Real>& active, TreeVector<L>& b,
                          TreeVector<L>& free) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(in, in.kin, in.I, in.v0, in.A, in.factor, v, base, b, free);
  const Scalar<Real> h = in.h;
  dynamics_at_mean<L>(g, m, in, v, free);
  each_jointed<L>(
      g, m, [&](bool, Real all, Real c, Real& bi) { bi = select(active, all - c * h, bi); }, base, free, b);
  solve_for<L>(g, m, in.factor, b, free);
}

/// b and free = A^-1 b by the explicit forces on entry, `bias` as b has it: inverse dynamics for the acceleration -v0 / h. Worlds
/// with loops keep both.
template <class L, class Real = typename L::Real>
HD_ONCE void settle_coriolis(const typename L::Group& g, const typename L::Model& m, const CoriolisInputs<L>& in,
                             const TreeVector<L>& bias, TreeVector<L>& b, TreeVector<L>& free, MeanForces<L>& mean) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(in, in.kin, in.I, in.v0, in.A, in.factor, bias, b, free, mean);
  using S = Scalar<Real>;
  mean.taken = mask_of<Real>(false);
  if (m.has_loops) return;
  auto apart = [](Real x, Real y) { return abs(x - y); };
  const Real moved = sum_of_jointed<L>(g, m, apart, in.v0, free);
  const Real size = sum_of_jointed<L>(g, m, [](Real x) { return abs(x); }, in.v0) + moved;
  Mask<Real> active = size * in.h > S(kSlowTurn), found = mask_of<Real>(true);
  if (!g.any(active)) return;

  TreeVector<L> v, first;
  each_dof<L>(g, m, [](Real x, Real& to, Real bi, Real& copy) { to = x, copy = bi; }, free, v, b, first);
  without_coriolis<L>(g, m, in.h, b, bias, mean.rest);
  const Mask<Real> fast = active;
  Real part(1), last = moved;
  for (int pass = 0; pass < kTurnPasses && g.any(active); ++pass) {
    move_at_mean<L>(g, m, in, v, mean.rest, active, b, free);
    const Real change = sum_of_jointed<L>(g, m, apart, v, free);
    const Real most = change_of_jointed<L>(g, m, in.v0, v, free, size * S(kTurnFloor));
    const Real next = most * min(change / max(last, size * kEpsilon<S>), Real(1));
    part = select(active & (change > last * S(0.7)), part * S(0.5), part), last = change;
    each_dof<L>(g, m, [&](Real x, Real& to) { to = select(active, to + (x - to) * part, to); }, free, v);
    found = (active & (change <= size * S(kTurnFound))) | (negate(active) & found);
    active = active & (next > kTurnTolerance<S>);
  }
  mean.taken = fast & found;
  if (!g.any(negate(found))) return;
  each_dof<L>(g, m, [&](Real old, Real& bi) { bi = select(found, bi, old); }, first, b);
  solve_for<L>(g, m, in.factor, b, free);
}

/// What the step to the velocity v owes the next one, in worlds that are `moving`.
template <class L, class Real = typename L::Real>
HD_ONCE void owe_coriolis(const typename L::Group& g, const typename L::Model& m, const CoriolisInputs<L>& in,
                          const MeanForces<L>& mean, const TreeVector<L>& b, const TreeVector<L>& v,
                          const Mask<Real>& moving, TreeVector<L>& owed) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(in, in.kin, in.I, in.v0, in.A, in.factor, mean, b, v, owed);
  const Scalar<Real> h = in.h;
  const Mask<Real> owes = mean.taken & moving;
  const Real zero(0);
  if (!g.any(owes)) return each_dof<L>(g, m, [&](Real& d) { d = zero; }, owed);
  dynamics_at_mean<L>(g, m, in, v, owed);
  each_jointed<L>(
      g, m, [&](bool, Real all, Real bi, Real& d) { d = select(owes, all - d * h - bi, zero); }, mean.rest, b, owed);
  each_tree_dof<L>(g, m, false, [&](bool, Real& d) { d = zero; }, owed);
}

}  // namespace stiction
