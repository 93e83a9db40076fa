// ADMM: the proximal alternating direction method for Coulomb's law of [Carpentier2024], Algorithm 1, on half-solved rows.
// docs/theory.md, section 17; README.md lists the deviations.
//
// In units in which the mean W_ii of a contact and the W of a row are 1 (l_i = f_i / g_i^1/2, x_i = Y_i / g_i^1/2; a contact is scaled
// alike along all axes, so that its cone stays what it is), with q = g^-1/2 (J v* + e) and R / g:
//
//   y = P(p),   z = rho (y - p),   s = (0, 0, mu |z_t|)
//   f = (X X' + R + (eta + rho) 1)^-1 (z + (eta + rho) y - q - s),   p <- f - z / rho
//
// P: nearest point of the cone, or of [lower, upper]. p alone determines the next pass: it is what Anderson extrapolates. At a fixed
// point f = y and z = s + sigma, which is De Saxce's form of the law. rho may differ between worlds, and is smaller for rows without
// bounds, whose z is 0.
//
// Stop: solvers/score.h of y, projected strictly; the best of the tested ones is the answer. A world that is done is frozen by masks.
// Cost of a pass: n^2 multiply-adds, or 2 n width + width^2 where that is less; of a rho that is neither the present nor the one
// before it: one Cholesky factor.
#pragma once
#include "linalg/anderson_vector.h"
#include "solvers/admm/options.h"
#include "solvers/admm/refined_inverse.h"
#include "solvers/score.h"

namespace stiction {

namespace admm_detail {

template <class Real>
class Iteration {
 public:
  using S = Scalar<Real>;
  using M = Mask<Real>;

  HD Iteration(const RowProblem<Real>& problem, const SolveLimits<S>& limits, const AdmmOptions<S>& options, Real* l)
      : P(problem), limits_(limits), opt(options), best_{l} {}

  HD void carve(Arena<Real>& arena) {
    Real** const rows[] = {&scale_, &q_, &p_, &y_, &z_, &f_, &next_, &rho_, &tried_};
    for (Real** each : rows) *each = arena.take(n);
    lower_ = arena.take(nr), upper_ = arena.take(nr), u_ = arena.take(P.width);
    inverse_.carve(arena);
    anderson_.carve(n, arena);
  }

  HD SolveStats<Real> solve() {
    const Real one(1), zero(0);
    begin();
    const M running = unsolved(mask_of<Real>(true));
    if (!any(running) || limits_.iterations < 1) return {};
    scale_rows();
    start();
    SolveStats<Real> stats;
    stats.factorizations = select(running, one, zero);
    int k = 0;
    stats.iterations = iterate<Real>(
        limits_.iterations, opt.check, running,
        [&](const M& on) {
          pass();
          const M back = opt.accelerate ? anderson_.retreat(p_, next_) : mask_of<Real>(false);
          M changed = mask_of<Real>(false);
          if (++k % opt.interval == 0) changed = on & balance(back);
          if (opt.patience > 0) changed = changed | (on & unstick());
          advance(on, changed);
          if (!any(changed)) return;
          stats.factorizations = stats.factorizations + select(inverse_.factor(changed, penalty_), one, zero);
        },
        [&](const M& on) { return test(on); });
    return stats;
  }

 private:
  static constexpr int kPowerPasses = 20;

  HD bool is_contact(int i) const { return i < 3 * nc || i >= P.spin_row(0); }

  /// Scores `tried`, at u of it, as an answer of worlds `which`. False: not finite.
  HD_ONCE M judge(const M& which) {
    P.push(tried_, u_);
    const Real score = score_rows(P, opt.law(), tried_, [&](int i) { return P.slip(i, tried_, u_); }).worst();
    best_.take(which, score, tried_, n);
    return score < Real(kUntried<Real>);
  }
  HD M unsolved(const M& which) const {
    if (!(limits_.tolerance > S(0))) return which;
    return which & (best_.score > Real(limits_.tolerance));
  }
  /// The warm start, as the cone and the bounds allow it, and no impulse at all where that is exact.
  HD void begin() {
    const Real zero(0);
    admit(P, best_.impulse, tried_);
    for (int i = 0; i < n; ++i) best_.impulse[i] = zero;
    const Real none = score_rows(P, opt.law(), best_.impulse, [&](int i) { return P.free[i] + P.e[i]; }).worst();
    best_.score = select(none > zero, best_.score, none);
    judge(mask_of<Real>(true));
  }

  HD void scale_rows() {
    const Real zero(0), one(1);
    Real used(0);
    trace_ = zero;
    for (int i = 0; i < n; ++i) {
      const Real g = P.mobility(P.block_of(i));
      const M on = (g > zero) & (P.W[i] > zero);
      scale_[i] = select(on, one / sqrt(select(on, g, one)), zero);
      q_[i] = (P.free[i] + P.e[i]) * scale_[i];
      used = used + select(on, one, zero), trace_ = trace_ + select(on, one + P.R[i] * scale_[i] * scale_[i], zero);
      const Real* y = P.row(i);
      Real* x = inverse_.X + static_cast<int64_t>(i) * P.width;
      for (int a = 0; a < P.width; ++a) x[a] = y[a] * scale_[i];
    }
    for (int k = 0; k < nr; ++k) {
      const Real s = scale_[3 * nc + k], back = select(s > zero, one / select(s > zero, s, one), zero);
      lower_[k] = P.lower[k] * back, upper_[k] = P.upper[k] * back;
    }
    inverse_.prepare(used);
  }

  /// rho, and D with it.
  HD_ONCE void set_penalty(Real rho) {
    const Real most = trace_ * S(1e3), least = trace_ * (sizeof(S) == 8 && opt.refinements == 0 ? S(1e-12) : S(1e-6));
    penalty_ = clamp(rho, least, max(most, least));
    for (int i = 0; i < n; ++i) {
      rho_[i] = penalty_;
      if (!is_contact(i)) rho_[i] = select(unbounded(i - 3 * nc), penalty_ * S(1e-3), penalty_);
      inverse_.D[i] = P.R[i] * scale_[i] * scale_[i] + (rho_[i] + Real(opt.proximal));
    }
  }
  HD M unbounded(int k) const { return (P.lower[k] < Real(S(-1e29))) & (P.upper[k] > Real(S(1e29))); }

  /// p of the warm start, with z = sigma + (0, 0, mu |sigma_t|) of it.
  HD void start() {
    const Real zero(0), one(1);
    stalls_ = paused_ = zero, stall_ = Stall<Real>(best_.score);
    set_penalty(Real(opt.penalty));
    inverse_.factor(mask_of<Real>(true), penalty_);
    P.push(tried_, u_);
    for (int i = 0; i < n; ++i) {
      const Real s = scale_[i], sigma = P.slip(i, tried_, u_) * s;
      y_[i] = select(s > zero, tried_[i] / select(s > zero, s, one), zero), z_[i] = sigma;
    }
    for (int k = 0; k < nc; ++k) z_[3 * k + 2] = z_[3 * k + 2] + lift(k);
    for (int k = 0; k < nr; ++k) z_[3 * nc + k] = select(unbounded(k), zero, z_[3 * nc + k]);
    for (int i = 0; i < n; ++i) p_[i] = y_[i] - z_[i] / rho_[i];
    anderson_.begin();
    if (opt.rule == kAdmmSpectral) step_ = spectral_step();
  }
  /// De Saxce's correction of z.
  HD Real lift(int k) const {
    Real square = z_[3 * k] * z_[3 * k] + z_[3 * k + 1] * z_[3 * k + 1];
    for (int i = P.spin_row(k); P.spins > 0 && i < P.spin_row(k + 1); ++i) square = square + z_[i] * z_[i];
    return P.mu[k] * sqrt(square);
  }

  /// y = P(p).
  HD_ONCE void project(const Real* p, Real* y) const {
    for (int k = 0; k < nc; ++k) {
      const int i = 3 * k;
      if (P.spins > 0) {
        put_six(P, k, project_proximal(six_of(P, k, p), P.mu[k]), y);
        continue;
      }
      const Vec3<Real> a = project_proximal(Vec3<Real>{p[i], p[i + 1], p[i + 2]}, P.mu[k]);
      y[i] = a.x, y[i + 1] = a.y, y[i + 2] = a.z;
    }
    for (int k = 0; k < nr; ++k) y[3 * nc + k] = clamp(p[3 * nc + k], lower_[k], upper_[k]);
  }

  /// y and z of p, f, and the next p.
  HD void pass() {
    const Real eta(opt.proximal);
    project(p_, y_);
    for (int i = 0; i < n; ++i) {
      z_[i] = rho_[i] * (y_[i] - p_[i]);
      f_[i] = z_[i] + (rho_[i] + eta) * y_[i] - q_[i];
    }
    for (int k = 0; k < nc; ++k) f_[3 * k + 2] = f_[3 * k + 2] - lift(k);
    inverse_.solve(f_);
    for (int i = 0; i < n; ++i) next_[i] = f_[i] - z_[i] / rho_[i];
  }

  /// A new rho from the residuals of the pass, unless a world went `back` from it. Worlds that have one, their next p in its units.
  HD M balance(const M& back) {
    const Real zero(0), one(1), tiny(S(1e-30));
    Real primal(0), dual(0), impulse(0), velocity(0);
    project(next_, tried_);
    for (int i = 0; i < n; ++i) {
      primal = max(primal, abs(f_[i] - tried_[i])), dual = max(dual, rho_[i] * abs(tried_[i] - y_[i]));
      impulse = max(impulse, abs(f_[i]));
      velocity = max(velocity, max(rho_[i] * abs(tried_[i] - next_[i]), abs(q_[i])));
    }
    Real by(1);
    if (opt.rule == kAdmmRatio) {
      primal = primal / max(impulse, tiny), dual = dual / max(velocity, tiny);
      const Real noise(kEpsilon<S> * S(10)), t = sqrt(primal / max(dual, tiny));
      const Real up = select(t > Real(S(5.6)), Real(S(10)), Real(S(3.1622776601683795)));
      const Real down = select(t < Real(S(1 / 5.6)), Real(S(0.1)), Real(S(0.31622776601683794)));
      by = select(t > Real(S(3)), up, select(t < Real(S(1.0 / 3)), down, one));
      by = select((primal < noise) & (dual < noise), one, by);
    } else {
      const Real step = opt.rule == kAdmmLinear ? Real(opt.factor) : step_;
      const Real alpha(opt.tube);
      by = select((primal >= dual * alpha) & (primal > zero), step,
                  select((dual >= primal * alpha) & (dual > zero), one / step, one));
    }
    return change_penalty(penalty_ * select(back | (paused_ > zero), one, by), tried_);
  }
  /// Where scores do not improve: rho / 10, x 10, x 10, / 10 and so on at one stall after another; for so many passes after each the
  /// residuals do not move it.
  HD M unstick() {
    const Real zero(0), one(1), patience(static_cast<S>(opt.patience));
    paused_ = max(paused_ - one, zero);
    const M stuck = stall_.look(best_.score, patience);
    if (!any(stuck)) return stuck;
    const Real by = select((stalls_ > zero) & (stalls_ < Real(3)), Real(10), Real(S(0.1)));
    stall_.mark = select(stuck, best_.score, stall_.mark), paused_ = select(stuck, patience, paused_);
    project(next_, tried_);
    const M changed = change_penalty(select(stuck, penalty_ * by, penalty_), tried_);
    stalls_ = select(stuck, select(stalls_ < Real(3), stalls_ + one, zero), stalls_);
    return changed;
  }
  /// Takes next = y - z / rho over to another rho, y = P(next) given.
  HD_ONCE M change_penalty(Real rho, const Real* y) {
    const Real old = penalty_;
    for (int i = 0; i < n; ++i) f_[i] = rho_[i] * (y[i] - next_[i]);
    set_penalty(rho);
    const M changed = negate(penalty_ == old);
    for (int i = 0; i < n; ++i) next_[i] = select(changed, y[i] - f_[i] / rho_[i], next_[i]);
    return changed;
  }
  /// (L / m)^0.05 of the eigenvalues of X X' + R + eta: the largest by power iteration, the least by what is added to X X'.
  HD Real spectral_step() {
    const Real zero(0), one(1);
    Real largest(1), least(S(1e30));
    for (int i = 0; i < n; ++i) {
      const M on = scale_[i] > zero;
      f_[i] = select(on, one, zero);
      least = select(on, min(least, P.R[i] * scale_[i] * scale_[i]), least);
    }
    for (int k = 0; k < kPowerPasses; ++k) {
      Real square(0);
      for (int i = 0; i < n; ++i) square = square + f_[i] * f_[i];
      const M some = square > zero;
      const Real unit = select(some, one / sqrt(select(some, square, one)), zero);
      for (int i = 0; i < n; ++i) f_[i] = f_[i] * unit * scale_[i];
      P.push(f_, u_);
      square = zero;
      for (int i = 0; i < n; ++i) {
        f_[i] = scale_[i] * (P.velocity(i, u_) - P.free[i] + P.R[i] * f_[i]);
        square = square + f_[i] * f_[i];
      }
      largest = select(some, sqrt(square), largest);
    }
    // The twentieth root by Newton's method, from the sixteenth, which is above it.
    const Real ratio = max(largest + opt.proximal, one) / (least + opt.proximal);
    Real x = sqrt(sqrt(sqrt(sqrt(max(ratio, one)))));
    for (int k = 0; k < 12; ++k) {
      const Real x2 = x * x, x4 = x2 * x2, x16 = x4 * x4 * x4 * x4;
      x = x - (x16 * x4 - max(ratio, one)) / (x16 * x2 * x * S(20));
    }
    return x;
  }

  HD void advance(const M& running, const M& changed) {
    if (opt.accelerate) {
      for (int i = 0; i < n; ++i) tried_[i] = next_[i];
      anderson_.advance(p_, tried_);
      anderson_.forget(changed);
      for (int i = 0; i < n; ++i) next_[i] = select(changed, next_[i], tried_[i]);
    }
    for (int i = 0; i < n; ++i) p_[i] = select(running, next_[i], p_[i]);
  }

  /// Judges y = P(p), strictly projected. Those of worlds `running` that go on.
  HD M test(const M& running) {
    project(p_, tried_);
    for (int i = 0; i < n; ++i) tried_[i] = (is_contact(i) ? tried_[i] : p_[i]) * scale_[i];  // bounds: exactly
    admit(P, tried_, tried_);
    return unsolved(running & judge(running));
  }

  const RowProblem<Real>& P;
  const SolveLimits<S>& limits_;
  const AdmmOptions<S>& opt;
  Best<Real> best_;
  const int nc = P.contacts, nr = P.scalars, n = P.rows();
  RefinedInverse<Real> inverse_{P, opt.refinements};
  AndersonVector<Real> anderson_;
  Real *scale_, *q_, *p_, *y_, *z_, *f_, *next_, *rho_, *tried_;  // (n), scaled
  Real *lower_, *upper_, *u_;                                     // (scalars) x2, scaled; (width)
  Stall<Real> stall_;
  Real penalty_, trace_;
  Real stalls_;  // modulo 4
  Real paused_;  // passes in which the residuals do not move rho
  Real step_;    // of the spectral rule
};

}  // namespace admm_detail

}  // namespace stiction
