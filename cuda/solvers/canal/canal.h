// CANAL: the cascaded Newton augmented Lagrangian of exact Coulomb on half-solved rows. The robust solver where a first-order
// method stalls; several worlds of a pack at a time. Source: [Lee2025], section V. docs/theory.md,
// section 11; README.md lists the deviations.
//
// Outer: freeze De Saxce's correction p_i = mu |s_t| and the multiplier held in l0; inner: the strongly convex
//
//   min_v  1/2 |v - v*|_A^2 + sum 1/2 |l_i|^2_S,   l_i = argmin_{l in K} |l - S^-1 (D l0 - J_i v - e_i - (0, 0, p_i))|_S
//
// by Newton with an exact line search; then l0 = l, p = mu |(J v + e + R l + D (l - l0))_t| through Anderson's acceleration.
// D = w / c is the penalty (c dimensionless), S = D + R: a compliant contact (R > 0) is solved exactly, not softened twice.
// The S-norm projection is the Euclidean one in coordinates S^1/2 l on a cone of friction mu sqrt(S_t / S_n).
// Limits, dry friction, bilateral and soft rows go the same way with clamp as projection and no p.
//
// The inner problem: solvers/convex_newton.h, with D l0 as target, e as bias and p as lift.
//
// Worlds of a pack go their own ways: each takes its next Newton step, or begins its next outer pass, whatever those beside it do
// (tick()), and what it computes does not depend on them. One that is done is frozen by masks, or makes room for another (begin()).
#pragma once
#include "linalg/anderson_vector.h"
#include "solvers/canal/options.h"
#include "solvers/convex_newton.h"

namespace stiction {

/// iterations: outer passes; factorizations: Newton steps.
template <class Real>
struct CanalStats : SolveStats<Real> {
  RowScore<Real> score;  // of the answer
  Mask<Real> converged;  // by it
  Mask<Real> sound;      // false: numbers are not finite; the answer is 0 then

  HD CanalStats() : score{Real(0), Real(0), Real(0), Real(0), mask_of<Real>(false)} {
    converged = sound = mask_of<Real>(false);
  }
};

namespace canal_detail {

template <class Real>
struct Newton : ConvexNewton<Real> {
  using Base = ConvexNewton<Real>;
  using S = Scalar<Real>;
  using M = Mask<Real>;
  using Base::root_t, Base::root_n, Base::P, Base::n, Base::nc, Base::nr, Base::m, Base::step, Base::w, Base::held,
      Base::lambda;

  const SolveLimits<S>& limits;
  const CanalOptions<S>& opt;
  Best<Real> best;
  CanalStats<Real> stats;
  Real *pull, *u;                     // (n)  u: Y'held
  Real *lambda0, *anchor, *accepted;  // (m)  anchor: D l0
  Real* soft;                         // (nc + nr)  D
  Real *p, *image, *slip_before;      // (nc)
  AndersonVector<Real> anderson;
  Stall<Real> stall;
  M plain;                           // without extrapolation
  Real patience;                     // of the stall
  Real penalty, score, last_defect;  // score: of the last pass
  Real steps;                        // of Newton, in this pass

  HD Newton(const RowProblem<Real>& problem, const SolveLimits<S>& limits_, const CanalOptions<S>& options, Real* l)
      : Base(problem), limits(limits_), opt(options), best{l} {}

  HD void carve(Arena<Real>& arena) {
    Base::carve(arena);
    pull = arena.take(n), u = arena.take(n);
    Real** const rows[] = {&lambda0, &anchor, &accepted};
    for (Real** each : rows) *each = arena.take(m);
    soft = arena.take(nc + nr);
    Real** const contacts[] = {&p, &image, &slip_before};
    for (Real** each : contacts) *each = arena.take(nc);
    anderson.carve(nc, arena);
    this->target = anchor, this->bias = P.e, this->lift = p;
  }

  /// D and S by the penalty, and D l0.
  HD_ONCE void set_penalty() {
    for (int k = 0; k < nc + nr; ++k) {
      const int i = k < nc ? 3 * k : 2 * nc + k;
      const Real D = soft[k] = opt.uniform ? Real(1) / penalty : P.mobility(k) / penalty;
      root_t[k] = this->root_of(k, D + P.R[i]);
      root_n[k] = k < nc ? this->root_of(k, D + P.R[i + 2]) : root_t[k];
    }
    for (int i = 0; i < m; ++i) anchor[i] = soft[P.block_of(i)] * lambda0[i];
  }

  // ---- inner problem ----------------------------------------------------------------------------------------------------

  /// What rounding alone may leave of the gradient.
  HD Real noise() const {
    Real sum(0);
    for (int i = 0; i < m; ++i) {
      const int block = P.block_of(i);
      const bool normal = i < 3 * nc && i % 3 == 2;
      const Real root = normal ? root_n[block] : root_t[block];
      const Real size = root * root * (abs(w[i]) + abs(P.e[i]) + (normal ? abs(p[block]) : Real(0))) + abs(lambda[i]);
      sum = sum + P.mobility(block) * size * size;
    }
    return sqrt(sum) * (S(2) * kEpsilon<S>);
  }

  /// Worlds of `running` whose inner problem is solved, |gradient| <= accuracy |Y'l|, or was given up. `step`: what descends.
  HD M arrived(const M& running) {
    this->descend();
    for (int a = 0; a < n; ++a) pull[a] = u[a] + step[a];
    const Real gradient = sqrt(dot(n, step, step)), size = sqrt(dot(n, pull, pull));
    const Real accuracy = max(Real(kEpsilon<S> * S(4500)), min(Real(S(1e-3)), score * S(0.01)));
    return running & ((gradient <= max(accuracy * size, noise())) | (steps >= Real(static_cast<S>(opt.inner))));
  }
  /// A step of worlds `which`.
  HD void newton(const M& which) {
    this->direction();
    const Real x = this->line_search(which, opt.search);
    this->advance(which, x);
    for (int a = 0; a < n; ++a) u[a] = select(which, u[a] + x * step[a], u[a]);
    this->project_all();
    steps = steps + select(which, Real(1), Real(0));
    stats.factorizations = stats.factorizations + select(which, Real(1), Real(0));
  }

  // ---- outer iteration --------------------------------------------------------------------------------------------------

  /// mu |s_t| of contact i at w and impulses l, with what the multiplier l0, if given, still moves.
  HD Real correction(int i, const Real* l, const Real* l0) const {
    auto slip = [&](int k) {
      const Real s = w[k] + P.e[k] + P.R[k] * l[k];
      return l0 ? s + soft[i] * (l[k] - l0[k]) : s;
    };
    const Real x = slip(3 * i), y = slip(3 * i + 1);
    Real square = x * x + y * y;
    for (int k = P.spin_row(i); P.spins > 0 && k < P.spin_row(i + 1); ++k) square = square + slip(k) * slip(k);
    return P.mu[i] * sqrt(square);
  }

  /// Of impulses l with velocities w_i at `at`, of worlds `which`: into stats.
  HD void look(const M& which, const Real* l, Real* at) {
    P.push(l, pull);
    for (int i = 0; i < m; ++i) at[i] = select(which, P.velocity(i, pull), at[i]);
    const RowScore<Real> found = score_rows(P, opt.law(), l, [&](int i) { return at[i] + P.e[i] + P.R[i] * l[i]; });
    stats.score.take(found, which);
  }
  /// Takes l, projected strictly, as the present point: accepted, w, held.
  HD_ONCE void accept(const M& which, const Real* l) {
    Real* admitted = this->dheld;
    admit(P, l, admitted);
    for (int i = 0; i < m; ++i) accepted[i] = select(which, admitted[i], accepted[i]);
    look(which, accepted, w);
    for (int a = 0; a < n; ++a) u[a] = select(which, pull[a], u[a]);
    score = select(which, stats.score.worst(), score);
    for (int i = 0; i < m; ++i) held[i] = select(which, accepted[i], held[i]);
    best.take(which, score, accepted, m);
  }

  /// Worlds `which` begin with the impulses that are there.
  HD_ONCE void begin(const M& which) {
    const Real zero(0);
    auto set = [&which](const auto& to, auto& x) { x = select(which, to, x); };
    set(Real(opt.penalty), penalty), set(Real(kUntried<Real>), last_defect), set(Real(kUntried<Real>), best.score);
    set(zero, steps), set(zero, stats.iterations), set(zero, stats.factorizations);
    for (int i = 0; i < m; ++i) {
      Real& l = best.impulse[i];
      set(select(is_finite(l), l, zero), lambda[i]), set(zero, l);
    }
    accept(which, lambda);
    for (int i = 0; i < nc; ++i) set(correction(i, accepted, nullptr), p[i]), set(p[i], slip_before[i]);
    for (int i = 0; i < m; ++i) set(accepted[i], lambda0[i]);
    set_penalty();
    anderson.begin(which), plain = plain & negate(which);
    set(best.score, stall.mark), set(zero, stall.idle), set(Real(static_cast<S>(opt.patience)), patience);
    this->project_all();
  }
  /// Worlds that are neither solved, nor lost, nor at their limit.
  HD M unsolved() const {
    return (best.score > Real(limits.tolerance)) & (score < Real(kUntried<Real>)) &
           (stats.iterations < Real(static_cast<S>(limits.iterations)));
  }

  /// The next outer pass of worlds `which`, whose inner problem is solved.
  HD_ONCE void next_pass(const M& which) {
    auto set = [&which](const auto& to, auto& x) { x = select(which, to, x); };
    Real gap(0), moved(0);  // |Jv - z|, and how far the correction moved, m/s
    for (int i = 0; i < m; ++i) gap = max(gap, soft[P.block_of(i)] * abs(lambda[i] - lambda0[i]));
    for (int i = 0; i < nc; ++i) {
      image[i] = correction(i, lambda, lambda0);
      moved = max(moved, abs(image[i] - slip_before[i]));
      set(image[i], slip_before[i]);
    }
    accept(which, lambda);
    const M stuck = stall.look(which, best.score, patience);
    anderson.forget(stuck);
    plain = select(stuck, negate(plain), plain), patience = select(stuck, patience * S(2), patience);
    if (opt.accelerate) anderson.advance(which, p, image);
    for (int i = 0; i < nc; ++i) set(max(select(plain, slip_before[i], image[i]), Real(0)), p[i]);
    for (int i = 0; i < m; ++i) set(accepted[i], lambda0[i]);
    M stiffer = which & (gap > last_defect * opt.decrease);
    if (!opt.uniform) stiffer = stiffer & (gap > moved);
    penalty = select(stiffer, min(penalty * opt.growth, Real(opt.penalty_cap)), penalty);
    set_penalty();
    set(gap, last_defect), set(Real(0), steps), set(stats.iterations + Real(1), stats.iterations);
    this->project_all();
  }

  /// A Newton step of worlds `running`, or the next outer pass before it. Returns those that go on.
  HD_ONCE M tick(M running) {
    M waiting = arrived(running);
    if (any(waiting)) {
      next_pass(waiting);
      running = running & unsolved();
      if (!any(running)) return running;
      waiting = arrived(running);
    }
    const M going = running & negate(waiting);
    if (any(going)) newton(going);
    return running;
  }

  /// stats of worlds `which` by their answers, which are in `impulse`.
  HD_ONCE void judge(const M& which) {
    look(which, best.impulse, this->dw);
    const Real worst = stats.score.worst();
    stats.converged = select(which, worst <= Real(limits.tolerance), stats.converged);
    stats.sound = select(which, best.score < Real(kUntried<Real>), stats.sound);
  }

  HD CanalStats<Real> solve(const M& which) {
    begin(mask_of<Real>(true));
    for (M running = which & unsolved(); any(running);) running = tick(running);
    judge(mask_of<Real>(true));
    return stats;
  }
  HD SolveStats<Real> solve() { return solve(mask_of<Real>(true)); }
};

}  // namespace canal_detail

}  // namespace stiction
