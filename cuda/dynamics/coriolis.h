// Coriolis and centrifugal forces of jointed trees, taken at the mean of the velocities before and after the free motion, or after it.
//
// Explicit ones, c(v0), give a tree energy by the square of what they change in a step: a chain that tumbles runs away. At the
// geometry of the step's beginning the mean velocity u = (v0 + v) / 2 in
//   A (v - v0) = h (f - c(u))
// makes them do the work u . c(u), which is that of the turning inertia, and what energy gains or loses swings: docs/theory.md, (2.3a).
// Where a step turns a tree by so much that it does not settle soon, swings grow until it runs away. There u goes to v, as in implicit
// Euler, which takes energy; where no u is found forces are those of rest.
//
// Solved by v <- v0 + A^-1 h (f - c(u)) from the explicit v on, a pass of Newton-Euler each. The second change as a part of the
// first tells by how much c turns velocities in a step. After kPlainPasses each pass is extrapolated along the last two by Anderson's
// acceleration [Walker2011].
//
// v knows nothing of what closes loops, whose impulses undo most of it in every step: worlds with loops (has_loops of ModelCounts)
// keep explicit forces here, and take the mean of velocities that do not open them, in step/loops.h.
//
// What contacts and limits do to v is not known then, but when a step is solved: what c(u) lacks of c at the u+ of the step's end is
// owed to the next step, d = h (c(u) - c(u+)), and added to its b. So the sums over steps are those of c(u+), the power of what holds
// a tree does not leak into its turning, and nothing is solved twice. Debts that are not small beside what the impulses changed are not
// paid: a rod is light about its own axis, there a debt drives it against its limit, and the next debt would be larger. Nor are those of
// blows, which are over when they would be paid: what holds on has like debts from step to step.
//
// Trees of one joint do not need c(u) for themselves: dynamics/gyroscopic.h. Of trees on free roots c is without what would accelerate
// their centres of mass: dynamics/centres.h.
#pragma once
#include "dynamics/gyroscopic.h"
#include "dynamics/rnea.h"
#include "linalg/ltdl.h"
#include "linalg/tree_product.h"

namespace stiction {

/// To stop: the largest change that the next pass would make if changes go on as they do, as a part of that dof's speeds before and
/// after and kTurnFloor of the sum of all.
template <class S> inline constexpr S kTurnTolerance = sizeof(S) == 4 ? S(5e-5) : S(1e-10);
inline constexpr float kTurnFloor = 0.1f;
/// The second change as a part of the first, in the norm of A's diagonal: up to here u is the mean, and from there on u = v.
inline constexpr float kMeanTurn = 0.35f, kWildTurn = 0.7f;
/// For v to be taken: the sum of the changes, as a part of that of the speeds.
inline constexpr float kTurnFound = 3e-2f;
/// Sum of the speeds, times h, that explicit forces are good for: energy grows by less than the square of it in a step.   rad
inline constexpr float kSlowTurn = 1e-3f;
inline constexpr int kTurnPasses = 30, kPlainPasses = 3;
/// Up to this part of what impulses have changed a debt is paid, in the norm of A, and nothing of it from twice that on.
inline constexpr float kSmallDebt = 0.15f;
/// Of a debt that comes at once no more is paid than this part of what impulses have changed, of one that goes on so many times as much as
/// of the last.
inline constexpr float kSuddenDebt = 0.005f, kDebtGrowth = 4;

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
  const TreeVector<L>&v0, &from;  // from: v0 and what gravity does to free roots
  const TreeMatrix<L>&A, &factor;
};
/// What a step's b was found with.
template <class L>
struct MeanForces {
  TreeVector<L> rest;            // of worlds that are `taken`: b without inverse dynamics                       N s, N m s
  typename L::Real part;         // of v in u = (1 - part) v0 + part v
  Mask<typename L::Real> taken;  // have c(u) of the mean
};
/// Inverse dynamics without acceleration, nor weight of what is free, at u = (1 - part) v0 + part v. base, b: without, and with those at
/// another u: centres of mass have the same.
template <class L, class Real = typename L::Real>
HD void dynamics_at_mean(const typename L::Group& g, const typename L::Model& m, const CoriolisInputs<L>& in,
                         const TreeVector<L>& v, const Real& part, const TreeVector<L>& base, const TreeVector<L>& b,
                         TreeVector<L>& tau) {
  using S = Scalar<Real>;
  const S h = in.h;
  const Real rest = Real(1) - part;
  TreeVector<L> u;
  each_dof<L>(g, m, [&](Real x, Real y, Real& mean) { mean = x * rest + y * part; }, in.v0, v, u);
  inverse_dynamics<L>(g, m, in.kin, in.I, u, nullptr, true, tau);
  auto same = [&](const auto& tree) { return (three(tree.moving(base)) - three(tree.moving(b))) * (1 / h); };
  hold_centres<L>(g, m, in.I, in.A, false, same, tau);
}
/// b without any inverse dynamics, from b and what it has of that.
template <class L, class Real = typename L::Real>
HD void without_coriolis(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const TreeVector<L>& b,
                         const TreeVector<L>& bias, TreeVector<L>& rest) {
  each_jointed<L>(g, m, [h](bool, Real bi, Real c, Real& r) { r = bi + c * h; }, b, bias, rest);
}
/// b and free = from + A^-1 b with c(u), in worlds that are `active`. base: b without inverse dynamics.
template <class L, class Real = typename L::Real>
HD_ONCE void move_at_mean(const typename L::Group& g, const typename L::Model& m, const CoriolisInputs<L>& in,
                          const TreeVector<L>& v, const Real& part, const TreeVector<L>& base, const Mask<Real>& active,
                          TreeVector<L>& b, TreeVector<L>& free) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(in, in.kin, in.I, in.v0, in.from, in.A, in.factor, v, base, b, free);
  const Scalar<Real> h = in.h;
  dynamics_at_mean<L>(g, m, in, v, part, base, b, free);
  each_jointed<L>(
      g, m, [&](bool, Real all, Real c, Real& bi) { bi = select(active, all - c * h, bi); }, base, free, b);
  solve_for<L>(g, m, in.factor, b, free);
  each_dof<L>(g, m, [](Real from, Real& to) { to = from + to; }, in.from, free);
}

/// Anderson's acceleration of v <- v + f(v) with a memory of two steps, in the norm of A's diagonal. [Walker2011],
/// by Gram and Schmidt in the place of least squares.
template <class L>
struct TurnSecants {
  using Real = typename L::Real;
  TreeVector<L> weight;          // A_ii                                                                       kg, kg m^2
  TreeVector<L> moved[2], by[2]; // a step, and what it changed f by: orthogonal to the other's and of length 1; or 0
  TreeVector<L> step, f;         // the last ones

  HD TurnSecants(const typename L::Group& g, const typename L::Model& m, const TreeMatrix<L>& A) {
    UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) weight.trunk[t] = A.trunk[t][t];
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      UNROLL for (int k = 0; k < limb.links(); ++k) weight.limb[at.link + k] = A.limb[at.entry + entry_of(k, k)];
    });
  }
  HD void begin(const typename L::Group& g, const typename L::Model& m) {
    const Real zero(0);
    for (int i = 0; i < 2; ++i) each_jointed<L>(g, m, [&](bool, Real& s, Real& t) { s = t = zero; }, moved[i], by[i]);
  }
  HD Real product(const typename L::Group& g, const typename L::Model& m, const TreeVector<L>& x, const TreeVector<L>& y) const {
    return sum_of_jointed<L>(g, m, [](Real w, Real a, Real b) { return w * a * b; }, weight, x, y);
  }
  /// Remembers what the last step did to f, which is `now`.
  HD_ONCE void learn(const typename L::Group& g, const typename L::Model& m, const TreeVector<L>& now) {
    lies_in_memory(m), lies_in_lane<typename L::Shape>(*this, now);
    each_jointed<L>(g, m, [](bool, Real to, Real& from) { from = to - from; }, now, f);
    const Real along = product(g, m, f, by[1]);
    each_jointed<L>(g, m, [&](bool, Real t, Real s, Real& f_, Real& step_) { f_ = f_ - along * t, step_ = step_ - along * s; },
                    by[1], moved[1], f, step);
    const Real square = product(g, m, f, f);
    const Mask<Real> counts = square > Real(0);
    const Real scale = select(counts, Real(1) / sqrt(select(counts, square, Real(1))), Real(0));
    each_jointed<L>(g, m,
                    [&](bool, Real f_, Real step_, Real& s0, Real& t0, Real& s1, Real& t1) {
                      s0 = s1, t0 = t1, t1 = f_ * scale, s1 = step_ * scale;
                    },
                    f, step, moved[0], by[0], moved[1], by[1]);
  }
  /// v after a pass that would change it by `now`, in worlds that are `active`.
  HD_ONCE void extrapolate(const typename L::Group& g, const typename L::Model& m, const TreeVector<L>& now,
                           const Mask<Real>& active, TreeVector<L>& v) {
    lies_in_memory(m), lies_in_lane<typename L::Shape>(*this, now, v);
    const Real along0 = product(g, m, now, by[0]), along1 = product(g, m, now, by[1]);
    each_jointed<L>(g, m,
                    [&](bool, Real n, Real s0, Real t0, Real s1, Real t1, Real& f_, Real& step_) {
                      f_ = n, step_ = n - along0 * (s0 + t0) - along1 * (s1 + t1);
                    },
                    now, moved[0], by[0], moved[1], by[1], f, step);
    each_jointed<L>(g, m, [&](bool, Real d, Real& vi) { vi = select(active, vi + d, vi); }, step, v);
  }
};

/// That of v in u, by the squares of the second change and of the first.
template <class Real>
HD Real part_of_end(const Real& square, const Real& first) {
  using S = Scalar<Real>;
  const Real turns = sqrt(square / max(first, Real(1e-30f)));
  return clamp((turns - Real(kMeanTurn)) * Real(S(0.5) / S(kWildTurn - kMeanTurn)) + Real(0.5f), Real(0.5f), Real(1));
}

/// b and free = from + A^-1 b by the explicit forces on entry, `bias` as b has it: inverse dynamics without acceleration. Worlds with
/// loops keep both.
template <class L, class Real = typename L::Real>
HD_ONCE void settle_coriolis(const typename L::Group& g, const typename L::Model& m, const CoriolisInputs<L>& in,
                             const TreeVector<L>& bias, TreeVector<L>& b, TreeVector<L>& free, MeanForces<L>& mean) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(in, in.kin, in.I, in.v0, in.from, in.A, in.factor, bias, b, free, mean);
  using S = Scalar<Real>;
  mean.taken = mask_of<Real>(false), mean.part = Real(0.5f);
  if (m.has_loops) return;
  auto apart = [](Real x, Real y) { return abs(x - y); };
  const Real moved = sum_of_jointed<L>(g, m, apart, in.v0, free);
  const Real size = sum_of_jointed<L>(g, m, [](Real x) { return abs(x); }, in.v0) + moved;
  Mask<Real> active = size * in.h > S(kSlowTurn), found = mask_of<Real>(true);
  if (!g.any(active)) return;

  TreeVector<L> v, change;
  without_coriolis<L>(g, m, in.h, b, bias, mean.rest);
  const Mask<Real> fast = active;
  each_dof<L>(g, m, [](Real x, Real& to) { to = x; }, free, v);
  TurnSecants<L> secants(g, m, in.A);
  Real last = moved, first(0);
  for (int pass = 0; pass < kTurnPasses && g.any(active); ++pass) {
    move_at_mean<L>(g, m, in, v, mean.part, mean.rest, active, b, free);
    each_jointed<L>(g, m, [](bool, Real to, Real from, Real& by) { by = to - from; }, free, v, change);
    const Real sum = sum_of_jointed<L>(g, m, [](Real x) { return abs(x); }, change);
    const Real most = change_of_jointed<L>(g, m, in.v0, v, free, size * S(kTurnFloor));
    const Real next = most * min(sum / max(last, size * kEpsilon<S>), Real(1));
    last = sum;
    found = (active & (sum <= size * S(kTurnFound))) | (negate(active) & found);
    active = active & (next > kTurnTolerance<S>);
    if (pass < 2) {
      const Real square = secants.product(g, m, change, change);
      if (pass == 0) first = square;
      else mean.part = select(active, part_of_end(square, first), mean.part);
    }
    if (pass + 1 == kPlainPasses) secants.begin(g, m);
    if (pass >= kPlainPasses) secants.learn(g, m, change);
    if (pass + 1 >= kPlainPasses) secants.extrapolate(g, m, change, active, v);
    else each_jointed<L>(g, m, [&](bool, Real d, Real& vi) { vi = select(active, vi + d, vi); }, change, v);
  }
  mean.taken = fast & found & (mean.part <= Real(0.5f));
  if (!g.any(negate(found))) return;
  const Real zero(0);
  each_dof<L>(g, m, [&](Real& vi) { vi = zero; }, v);
  move_at_mean<L>(g, m, in, v, Real(1), mean.rest, negate(found), b, free);
}

/// How much of the debt d is paid after a step from the free motion to v, which was `paid` what the last one owed.
template <class L, class Real = typename L::Real>
HD_ONCE Real part_paid(const typename L::Group& g, const typename L::Model& m, const CoriolisInputs<L>& in,
                       const TreeVector<L>& free, const TreeVector<L>& v, const TreeVector<L>& d,
                       const TreeVector<L>& paid) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(in, in.kin, in.I, in.v0, in.from, in.A, in.factor, free, v, d, paid);
  auto times = [](Real x, Real y) { return x * y; };
  TreeVector<L> change, by;
  each_dof<L>(g, m, [](Real from, Real to, Real& x) { x = to - from; }, free, v, change);
  multiply<L>(g, m, in.A, change, by);
  const Real cause = sum_of_jointed<L>(g, m, times, change, by);
  solve_for<L>(g, m, in.factor, d, change);
  const Real zero(0), least(1e-30f), debt = max(sum_of_jointed<L>(g, m, times, change, d), zero),
                      like = max(sum_of_jointed<L>(g, m, times, change, paid), zero);
  const Real part = sqrt(debt / max(cause, least));
  const Real lasts = max(Real(kSuddenDebt) / max(part, least), like * Real(kDebtGrowth) / max(debt, least));
  return min(lasts, clamp(Real(2) - part * (1 / Scalar<Real>(kSmallDebt)), zero, Real(1)));
}

/// What the step from the free motion to v owes the next one, in worlds that are `moving`. b = A (free - from). owed: what it was paid.
template <class L, class Real = typename L::Real>
HD_ONCE void owe_coriolis(const typename L::Group& g, const typename L::Model& m, const CoriolisInputs<L>& in,
                          const MeanForces<L>& mean, const TreeVector<L>& b, const TreeVector<L>& free,
                          const TreeVector<L>& v, const Mask<Real>& moving, TreeVector<L>& owed) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(in, in.kin, in.I, in.v0, in.from, in.A, in.factor, mean, b, free, v, owed);
  const Scalar<Real> h = in.h;
  const Mask<Real> owes = mean.taken & moving;
  const Real zero(0);
  if (!g.any(owes)) return each_dof<L>(g, m, [&](Real& d) { d = zero; }, owed);
  TreeVector<L> paid;
  copy_dofs<L>(g, m, owed, paid);
  dynamics_at_mean<L>(g, m, in, v, mean.part, mean.rest, b, owed);
  each_jointed<L>(
      g, m, [&](bool, Real all, Real bi, Real& d) { d = select(owes, all - d * h - bi, zero); }, mean.rest, b, owed);
  each_tree_dof<L>(g, m, false, [&](bool, Real& d) { d = zero; }, owed);
  const Real part = select(owes, part_paid<L>(g, m, in, free, v, owed, paid), zero);
  each_jointed<L>(g, m, [&](bool, Real& d) { d = d * part; }, owed);
}

}  // namespace stiction
