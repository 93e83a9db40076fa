// SAP: the semi-analytic primal solver of the convex relaxation of Coulomb's law, on half-solved rows; several worlds of a pack
// at a time. Source: [Castro2023], section IV. docs/theory.md, section 14; README.md lists the deviations.
//
//   min_v  1/2 |v - v*|_A^2 + sum 1/2 |l_i|^2_S,   l_i = argmin_{l in K} |l - S^-1 (D l0 - J_i v - e_i)|_S,   S = R + D
//
// by Newton with an exact line search (solvers/convex_newton.h). D = max(w / c - R, 0), row by row: what is compliant enough,
// R >= w / c, is solved at once. What is stiffer, or rigid, is held to its impulse l0 by a proximal term, and l0 <- l as soon as
// Newton has little to do beside what the term leaves, |Y (Y'l - u)| <= recentre c |D (l - l0)|; c grows where that is slow, and
// on while l could go on as it goes without a contact or row that changes: until then c tells no more than how far.
//
// Newton finds contacts that switch between sticking and sliding one at a time. So after a step come sweeps of Gauss-Seidel on the
// dual of the same problem (sweeps.h), and u goes towards their Y'l as far as the objective falls; no more of them where that is
// hardly anywhere, until l0 moves.
//
// With sigma > 0 the paper's regularisation takes R's place, R_t = sigma w, R_n = max(beta^2 / (4 pi^2) w, R_n), and D = 0: one
// convex problem, which is another one than the certificate judges.
//
// In float, u = D^1/2 L (v - v*) is kept in two floats, and u, Y'l - u and w + e are summed in double (`wide`): w + e is small
// where contact holds, and S^-1 makes its last digits large.
//
// Stop: r_ccp <= tolerance V and every row <= tolerance V_row; or three Newton steps running, with the term moved between, that
// change the objective by no more than rounding: so tolerance 0 ends too. An iteration is a Newton step. The answer is the best.
#pragma once
#include "linalg/wide_sum.h"
#include "solvers/convex_newton.h"
#include "solvers/sap/options.h"
#include "solvers/sap/sweeps.h"

namespace stiction {

namespace sap_detail {

template <class Real>
struct Proximal : ConvexNewton<Real> {
  using Base = ConvexNewton<Real>;
  using S = Scalar<Real>;
  using M = Mask<Real>;
  using Base::dheld, Base::root_t, Base::root_n, Base::lower, Base::upper;
  using Base::P, Base::n, Base::nc, Base::nr, Base::m, Base::step, Base::w, Base::held, Base::lambda, Base::dw;

  const SolveLimits<S>& limits;
  const SapOptions<S>& opt;
  Best<Real> best;
  ConvexSweeps<Real> sweeps;
  Real *u, *rest;                        // (n)   D^1/2 L (v - v*), and what rounding leaves of it
  Real *zero, *R, *D, *slack, *lambda0;  // (m)   slack: w + e; then w of the base is w + e - D l0
  Real *stiff, *shifted;                 // (m)   S = R + D and e - D l0, for sweeps
  Real penalty, gap, last_gap, drift, idle;
  M helped, swept;  // worlds that the last sweeps took further, and where their impulses are `held`

  HD Proximal(const RowProblem<Real>& problem, const SolveLimits<S>& limits_, const SapOptions<S>& options, Real* l)
      : Base(problem), limits(limits_), opt(options), best{l}, sweeps(problem, limits_) {}

  HD void carve(Arena<Real>& arena) {
    Base::carve(arena);
    sweeps.carve(arena);
    u = arena.take(n), rest = arena.take(n);
    Real** const rows[] = {&zero, &R, &D, &slack, &lambda0, &stiff, &shifted};
    for (Real** each : rows) *each = arena.take(m);
    sweeps.R = stiff, sweeps.e = shifted;
    this->target = this->bias = this->lift = zero;
  }

  // ---- the problem ------------------------------------------------------------------------------------------------------

  /// |W_ii|_F / 3 of contact k.
  HD Real block_norm(int k) const {
    Real sum(0);
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) {
        const Real x = P.along(3 * k + a, P.row(3 * k + b));
        sum = sum + x * x;
      }
    return sqrt(sum) * S(1.0 / 3);
  }
  /// R of the problem, or the paper's.
  HD void set_compliance() {
    for (int i = 0; i < m; ++i) R[i] = P.R[i];
    if (!(opt.sigma > S(0))) return;
    const S near_rigid = opt.beta * opt.beta * S(0.025330295910584444);  // 1 / (4 pi^2)
    for (int k = 0; k < nc; ++k) {
      const Real g = block_norm(k);
      R[3 * k] = R[3 * k + 1] = g * opt.sigma;
      R[3 * k + 2] = max(R[3 * k + 2], g * max(near_rigid, S(1) / opt.penalty_cap));
    }
    for (int i = 3 * nc; i < 3 * nc + nr; ++i) R[i] = max(R[i], P.W[i] * opt.sigma);
    for (int i = P.spin_row(0); i < m; ++i) R[i] = R[3 * P.block_of(i)];
  }
  /// D, S and w by the penalty and l0.
  HD_ONCE void set_centre() {
    const bool proximal = !(opt.sigma > S(0));
    for (int k = 0; k < nc + nr; ++k) {
      const int first = k < nc ? 3 * k : 2 * nc + k, last = k < nc ? first + 3 : first + 1;
      const Real least = P.mobility(k) / penalty;
      for (int i = first; i < last; ++i) {
        D[i] = proximal ? max(least - R[i], Real(0)) : Real(0);
        w[i] = slack[i] - D[i] * lambda0[i];
      }
      root_t[k] = this->root_of(k, R[first] + D[first]), root_n[k] = this->root_of(k, R[last - 1] + D[last - 1]);
    }
    for (int i = P.spin_row(0); i < m; ++i) {  // as stiff as the contact's tangents
      D[i] = D[3 * P.block_of(i)];
      w[i] = slack[i] - D[i] * lambda0[i];
    }
  }
  /// u = Y'l.
  template <class Sum>
  HD void push(const Real* l) {
    for (int a = 0; a < n; ++a) {
      Sum sum(Real(0));
      for (int i = 0; i < m; ++i) sum.add(P.row(i)[a], l[i]);
      u[a] = sum.rounded(), rest[a] = sum.rest(u[a]);
    }
  }
  /// slack = J v* + Y u + e, and w of it.
  template <class Sum>
  HD void renew() {
    for (int i = 0; i < m; ++i) {
      Sum sum(P.free[i]);
      const Real* y = P.row(i);
      for (int a = 0; a < n; ++a) sum.add(y[a], u[a]);
      sum.add(P.e[i], Real(1)), sum.add(dot(n, y, rest), Real(1));
      slack[i] = sum.rounded();
    }
  }
  /// step = Y'l - u, minus the gradient.
  template <class Sum>
  HD void descend() {
    for (int a = 0; a < n; ++a) {
      Sum sum(-u[a]);
      for (int i = 0; i < m; ++i) sum.add(P.row(i)[a], lambda[i]);
      sum.add(rest[a], Real(-1));
      step[a] = sum.rounded();
    }
  }
  /// Worlds `which` take x of the step.
  template <class Sum>
  HD void advance(const M& which, Real x) {
    for (int a = 0; a < n; ++a) {
      Sum sum(u[a]);
      sum.add(rest[a], Real(1)), sum.add(x, step[a]);
      const Real next = sum.rounded(), left = sum.rest(next);
      u[a] = select(which, next, u[a]), rest[a] = select(which, left, rest[a]);
    }
    for (int i = 0; i < m; ++i) held[i] = select(which, held[i] + x * dheld[i], held[i]);
  }

  // ---- a pass -----------------------------------------------------------------------------------------------------------

  /// Keeps l (at w + e = slack + dw) of worlds `which` where it is the best yet.
  HD_ONCE void judge(const M& which) {
    auto slip = [&](int i) { return slack[i] + dw[i] + R[i] * lambda[i]; };
    best.take(which, score_rows(P, opt.law(), lambda, slip).worst(), lambda, m);
  }
  /// Sweeps from lambda, of the problem with the proximal term.
  HD void sweep(const M& which) {
    for (int i = 0; i < m; ++i) stiff[i] = R[i] + D[i], shifted[i] = P.e[i] - D[i] * lambda0[i];
    sweeps.run(which, opt.sweeps, lambda);
  }

  /// Takes l as the point to go on from, and judges it.
  template <class Sum>
  HD void start(const M& which) {
    for (int i = 0; i < m; ++i) held[i] = lambda0[i] = lambda[i];
    push<Sum>(held);
    renew<Sum>();
    judge(which);
  }
  template <class Sum>
  HD void begin() {
    const Real none(0);
    penalty = Real(opt.penalty), last_gap = Real(kUntried<Real>), idle = none;
    helped = mask_of<Real>(true), swept = mask_of<Real>(false);
    admit(P, best.impulse, lambda);
    for (int i = 0; i < m; ++i) best.impulse[i] = zero[i] = dw[i] = D[i] = none;
    set_compliance();
    start<Sum>(mask_of<Real>(true));
    const M unsolved = best.score > Real(limits.tolerance);
    if (opt.sweeps > 0 && limits.iterations > 0 && any(unsolved)) {
      sweep(unsolved);
      start<Sum>(unsolved);
    }
    set_centre();
  }

  /// l of the present w, what Newton has to do (`step`, `drift`), what the proximal term leaves (`gap`); judges l, and what sweeps
  /// left.
  template <class Sum>
  HD void look(const M& which) {
    this->project_all();
    descend<Sum>();
    drift = gap = Real(0);
    for (int i = 0; i < m; ++i) {
      dw[i] = P.along(i, step);
      drift = max(drift, abs(dw[i])), gap = max(gap, D[i] * abs(lambda[i] - lambda0[i]));
    }
    judge(which);
    if (const M there = which & swept; any(there)) {
      auto slip = [&](int i) { return slack[i] + R[i] * held[i]; };
      best.take(there, score_rows(P, opt.law(), held, slip).worst(), held, m);
    }
  }
  /// Worlds where all that holds, or is between its bounds, would still do so at l + x (l - l0).
  HD_ONCE M goes_on(Real x) const {
    M same = mask_of<Real>(true);
    auto now = [&](int i) { return lambda[i]; };
    auto then = [&](int i) { return lambda[i] + x * (lambda[i] - lambda0[i]); };
    for (int k = 0; k < nc; ++k) {
      auto holds = [&](auto l) {
        Real square = l(3 * k) * l(3 * k) + l(3 * k + 1) * l(3 * k + 1);
        for (int i = P.spin_row(k); P.spins > 0 && i < P.spin_row(k + 1); ++i) square = square + l(i) * l(i);
        const Real reach = P.mu[k] * l(3 * k + 2);
        return (reach > Real(0)) & (square < reach * reach * (S(1) - S(4) * kEpsilon<S>));
      };
      same = same & (negate(holds(now)) | holds(then));
    }
    for (int r = 0; r < nr; ++r) {
      auto between = [&](Real l) { return (l > lower(r)) & (l < upper(r)); };
      same = same & (negate(between(now(3 * nc + r))) | between(then(3 * nc + r)));
    }
    return same;
  }
  template <class Sum>
  HD void move_centre(const M& which) {
    const M slow = which & (gap > last_gap * opt.decrease);
    Real growth(opt.growth);
    for (M on = slow; opt.growth > S(1);) {
      on = on & goes_on(growth) & (penalty * growth < Real(opt.penalty_cap));
      if (!any(on)) break;
      growth = select(on, growth * opt.growth, growth);
    }
    penalty = select(slow, min(penalty * growth, Real(opt.penalty_cap)), penalty);
    last_gap = select(which, gap, last_gap);
    for (int i = 0; i < m; ++i) lambda0[i] = select(which, lambda[i], lambda0[i]);
    set_centre();
    this->project_all();
    descend<Sum>();
  }

  /// How far the objective falls along the step to first order, twice what a Newton step gains.
  HD Real decrement() const {
    Real sum(0);
    for (int i = 0; i < m; ++i) sum = sum + dw[i] * (lambda[i] - held[i]);
    return sum;
  }
  /// Worlds whose step is rounding: an error of w by its last digits changes the objective by S^-1 times their square.
  HD M is_rounding(Real falls) const {
    const S digits = S(4) * kEpsilon<S>;
    return falls <= dot(n, u, u) * penalty * (digits * digits);
  }

  /// The objective at x of the step, against that at 0.
  HD Real rise(Real x) const {
    Real sum(0);
    auto potential = [&](Real at) {
      Real part(0);
      for (int i = 0; i < nc; ++i) {
        if (P.spins > 0) {
          const SixVec<Real> y = this->six_trial(i, [&](int k) { return w[k] + at * dw[k]; }),
                             l = project_proximal(y, this->friction(i));
          part = part + (this->product(y, l) - this->product(l, l) * S(0.5));
          continue;
        }
        const Real *v = w + 3 * i, *d = dw + 3 * i;
        const Vec3<Real> y = this->trial(i, v[0] + at * d[0], v[1] + at * d[1], v[2] + at * d[2]),
                         l = project_proximal(y, this->friction(i));
        part = part + (dot(y, l) - dot(l, l) * S(0.5));
      }
      for (int r = 0; r < nr; ++r) {
        const int k = 3 * nc + r;
        const Real y = this->row_trial(r, w[k] + at * dw[k]), l = clamp(y, lower(r), upper(r));
        part = part + (R[k] + D[k]) * (y * l - l * l * S(0.5));
      }
      return part;
    };
    for (int i = 0; i < m; ++i) sum = sum + x * dw[i] * (held[i] + x * dheld[i] * S(0.5));
    return sum + (potential(x) - potential(Real(0)));
  }
  /// Armijo's rule from 1 down; 1 where the fall is rounding.
  HD Real backtrack(M searching, Real falls) const {
    Real x(1);
    searching = searching & (falls > dot(n, u, u) * kEpsilon<S>);
    for (int k = 0; k < opt.search; ++k) {
      searching = searching & (rise(x) > x * falls * S(-1e-4));
      if (!any(searching)) break;
      x = select(searching, x * S(0.8), x);
    }
    return x;
  }

  /// Worlds `which`, at w and u = Y'held, go towards where sweeps from there lead, as far as the objective falls.
  template <class Sum>
  HD_ONCE void better(const M& which) {
    admit(P, held, lambda);
    sweep(which);
    Base::descend();
    Real curvature(0);
    for (int i = 0; i < m; ++i) dw[i] = P.along(i, step);
    const M falls = which & (this->slope(Real(0), curvature) < Real(0));
    const Real x = this->line_search(falls, opt.search);
    advance<Sum>(falls, x);
    helped = falls & (x > S(0.1)), swept = falls & (x == Real(1));
    for (int i = 0; i < m; ++i) held[i] = select(swept, lambda[i], held[i]);
  }
  template <class Sum>
  HD void newton_step(const M& which) {
    const M near = which & ((drift <= gap * penalty * opt.recentre) | (idle > Real(0)));
    if (any(near)) move_centre<Sum>(near);
    this->direction();
    const Real falls = decrement();
    idle = select(is_rounding(falls), idle + Real(1), Real(0));
    const Real x = opt.armijo ? backtrack(which, falls) : this->line_search(which, opt.search);
    advance<Sum>(which, x);
    const M again = which & (helped | near);
    swept = mask_of<Real>(false);
    if (opt.sweeps > 0 && any(again)) {
      for (int i = 0; i < m; ++i) w[i] = select(which, w[i] + x * dw[i], w[i]);
      better<Sum>(again);
    }
    renew<Sum>();
    set_centre();
    look<Sum>(which);
  }
  template <class Sum>
  HD_ONCE SolveStats<Real> solve_by() {
    const Real limit(limits.tolerance);
    auto unsolved = [&](const M& running) -> M {
      return running & (best.score > limit) & (best.score < Real(kUntried<Real>)) & (idle < Real(S(3)));
    };
    begin<Sum>();
    if (any(best.score > limit)) look<Sum>(best.score > limit);
    const Real steps = iterate<Real>(
        limits.iterations, 1, unsolved(mask_of<Real>(true)), [&](const M& running) { newton_step<Sum>(running); },
        unsolved);
    return {steps, steps};
  }
  HD SolveStats<Real> solve() { return opt.wide ? solve_by<WideSum<Real>>() : solve_by<PlainSum<Real>>(); }
};

}  // namespace sap_detail

}  // namespace stiction
