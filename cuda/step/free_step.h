// The free motion of a step, v* without contacts and rows, with A and b: by one linear solve where the step begins, or, for implicit
// Euler and the midpoint rule, by Newton on [Castro2023] (14),
//
//   m(v) = M(q_t) (v - v0) - h k(q_t, v_t) = 0,   q_t = q0 + t h N (u v + (1 - u) v0),   v_t = t v + (1 - t) v0,   t, u = theta, theta_vq
//
// docs/theory.md, section 2. Newton's matrix is A at q_t: without the derivatives of M and of Coriolis forces, so it converges linearly,
// by about the angle of a step.
#pragma once
#include "dynamics/coriolis.h"
#include "dynamics/integrate.h"
#include "step/loads.h"
#include "step/records.h"
#include "step/step_options.h"

namespace stiction {

/// Whom a step moves and how: rows of users' arrays, their records, by which options.
template <class L>
struct SteppedWorlds {
  using Real = typename L::Real;
  const StepOptions<Scalar<Real>>& options;
  const BatchArrays<Scalar<Real>>& arrays;
  const Rows<Real>& rows;
  Records<L> records;
};

/// v* = from + A^-1 b.
template <class L, class Real = typename L::Real>
HD void solve_without_rows(const typename L::Group& g, const typename L::Model& m, ContactProblem<L>& problem) {
  solve_for<L>(g, m, problem.factor, problem.b, problem.free);
  each_dof<L>(g, m, [](Real from, Real& to) { to = from + to; }, problem.from, problem.free);
}

/// Poses (`placed`: kin and I are there), A and b, and their solution.
template <class L, class Real = typename L::Real>
HD_ONCE void solve_linearised(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                              const Options<Scalar<Real>>& opt, const StepPoint<L>& at, Workspace<L>& w,
                              Mask<Real>& bad, bool placed = false) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(worlds, at, at.x, w, bad);
  if (!placed) forward_kinematics<L>(g, m, at.x, w.kin), link_inertias<L>(g, m, w.kin, w.I);
  place_loads<L>(g, m, worlds.arrays, worlds.rows, w.kin, w.applied, w.loads, bad);
  ContactProblem<L>& problem = w.problem;
  fall<L>(g, m, opt, at.x, problem.from);
  const DriveRows<L, ScalarRow<Real>> drives{problem.dof[kDriveRow].row, problem.by_rows};
  free_motion<L>(g, m, opt, {at, problem.from, w.kin, w.I, w.loads}, w.v, problem.A, problem.b, drives);
  if (opt.moves_centres()) each_dof<L>(g, m, [](Real owed, Real& b) { b = b + owed; }, at.x.owed, problem.b);
  each_entry<L>(g, m, [](Real a, Real& copy) { copy = a; }, problem.A, problem.factor);
  factor<L>(g, m, problem.factor);
  solve_without_rows<L>(g, m, problem);
  if (opt.moves_centres())
    settle_coriolis<L>(g, m, {opt.h, w.kin, w.I, at.x.v, problem.from, problem.A, problem.factor}, w.v, problem.b,
                       problem.free, w.mean);
}

/// Sum of |x| over all dofs.
template <class L, class Real = typename L::Real>
HD Real size_of(const typename L::Group& g, const typename L::Model& m, const TreeVector<L>& x) {
  Real trunk(0), own(0);
  for (int t = 0; t < m.trunk_dofs(); ++t) trunk = trunk + abs(x.trunk[t]);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) own = own + abs(x.limb[at.link + k]);
  });
  return trunk + g.sum(own);
}

/// The state (q_t, v_t) of a step from x to the velocity v, and what v lacks of x.v. In x and v the spin of a free base is in the axes
/// in which x finds it, here in those of q_t.
template <class L, class Real = typename L::Real>
HD void within_step(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                    const State<L>& x, const TreeVector<L>& v, State<L>& at, TreeVector<L>& lacking) {
  TreeVector<L> along, end;
  auto mean = [&](Scalar<Real> part) { return [part](Real v0, Real vi, Real& to) { to = v0 + (vi - v0) * part; }; };
  each_dof<L>(g, m, mean(opt.theta_vq), x.v, v, along);
  each_dof<L>(g, m, mean(opt.theta), x.v, v, end);
  at = x;
  const Mat3<Real> R = rotation(x.orientation);
  const auto all = mask_of<Real>(true);
  integrate<L>(g, m, opt.h * opt.theta, R, along, end, all, at);
  keep_spin<L>(m, R, end, all, at);
  each_dof<L>(g, m, [](Real v0, Real vi, Real& to) { to = v0 - vi; }, x.v, v, lacking);
  turn_spin<L>(m, R, rotation(at.orientation), lacking);
}

/// Part of the speeds that the last change of a Newton iteration may be: to stop; and for its velocity to be taken.
template <class S> inline constexpr S kFreeTolerance = sizeof(S) == 4 ? S(1e-6) : S(1e-12);
inline constexpr float kFreeFound = 1e-3f;

/// Newton's free motion from x, starting with that of one linear solve at the end of the step, which stays where Newton does not
/// converge. A is at x, where contacts are, too.
template <class L, class Real = typename L::Real>
HD_ONCE void solve_free_motion(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                               const State<L>& x, Workspace<L>& w, Mask<Real>& bad) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(worlds, x, w, bad);
  const Options<Scalar<Real>>& opt = worlds.options.step;
  ContactProblem<L>& problem = w.problem;
  State<L> at;
  TreeVector<L> v, first, lacking;
  Options<Scalar<Real>> linear = opt;
  linear.theta = linear.theta_vq = 1, linear.newton = 0;
  const Real least = norm(vec<Real>(m.gravity)) * opt.h, before = size_of<L>(g, m, x.v) + least;
  solve_linearised<L>(g, m, worlds, linear, {x, x, nullptr}, w, bad);
  each_dof<L>(g, m, [](Real guess, Real& a, Real& b) { a = b = guess; }, problem.free, v, first);
  Mask<Real> active = mask_of<Real>(true), found = negate(active);
  for (int i = 0; i < opt.newton && g.any(active); ++i) {
    within_step<L>(g, m, opt, x, v, at, lacking);
    solve_linearised<L>(g, m, worlds, opt, {x, at, &lacking}, w, bad);
    turn_spin<L>(m, rotation(at.orientation), rotation(x.orientation), problem.free);
    const Real change = size_of<L>(g, m, problem.free), size = before + size_of<L>(g, m, v);
    each_dof<L>(g, m, [&](Real d, Real& vi) { vi = select(active, vi + d, vi); }, problem.free, v);
    found = (active & (change <= size * kFreeFound)) | (negate(active) & found);
    active = active & (change > size * kFreeTolerance<Scalar<Real>>);
  }
  solve_linearised<L>(g, m, worlds, opt, {x, x, nullptr}, w, bad);
  each_dof<L>(g, m, [&](Real vi, Real guess, Real& to) { to = select(found, vi, guess); }, v, first, problem.from);
  each_dof<L>(
      g, m, [](Real from, Real& free, Real& b) { free = from, b = Real(0); }, problem.from, problem.free, problem.b);
  problem.free_found = found;
}

/// Poses (`placed`: kin and I are there), A, b and the free motion.
template <class L, class Real = typename L::Real>
HD void move_freely(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                    const State<L>& x, bool placed, Workspace<L>& w, Mask<Real>& bad) {
  if (worlds.options.step.newton) return solve_free_motion<L>(g, m, worlds, x, w, bad);
  solve_linearised<L>(g, m, worlds, worlds.options.step, {x, x, nullptr}, w, bad, placed);
  w.problem.free_found = mask_of<Real>(true);
}

}  // namespace stiction
