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
// A world that is done is frozen by masks; what it computes does not depend on those beside it.
#pragma once
#include "linalg/anderson_vector.h"
#include "solvers/convex_newton.h"

namespace stiction {

template <class S>
struct CanalOptions {
  static constexpr bool kWide = sizeof(S) == 8;

  S penalty = kWide ? S(300) : S(10);       // c: beta_i = c / w_i, w_i = tr(W_ii) / 3; grows up to the cap
  S penalty_cap = kWide ? S(1e7) : S(100);  // rounding costs eps c V
  S growth = S(10), decrease = S(0.25);     // c grows when |Jv - z| fell by less than `decrease`
  int inner = 30, search = 30;              // caps: Newton steps of an outer pass, evaluations of a line search
  int accelerate = 1;                       // Anderson on the correction
  int patience = 12;                        // passes without 0.7x the best score before Anderson forgets its history
  int uniform = 0;  // the paper's: beta_i = penalty [kg] for all, grown whatever the cascade does

  /// The paper's own numbers: one beta = 1e4 kg, no acceleration.
  HD static CanalOptions paper() {
    CanalOptions o;
    o.penalty = S(1e4), o.penalty_cap = S(1e8), o.accelerate = 0, o.uniform = 1;
    return o;
  }
  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("penalty", o.penalty...), visit("penalty_cap", o.penalty_cap...), visit("growth", o.growth...);
    visit("decrease", o.decrease...), visit("inner", o.inner...), visit("search", o.search...);
    visit("accelerate", o.accelerate...), visit("patience", o.patience...), visit("uniform", o.uniform...);
  }
};

template <class Real>
struct CanalStats {
  Real outer, newton;            // passes made
  Real r_con, row_ratio, scale;  // of the answer: m/s, 1, V in m/s, in this number type
  Mask<Real> converged;          // max(r_con, r_split / 10) <= tolerance V and row_ratio <= tolerance
  Mask<Real> sound;              // false: numbers are not finite; the answer is 0 then

  /// Those of another answer, of worlds `which`.
  HD void take(const CanalStats& other, const Mask<Real>& which) {
    auto put = [&which](Real from, Real& to) { to = select(which, from, to); };
    put(other.outer, outer), put(other.newton, newton), put(other.r_con, r_con), put(other.row_ratio, row_ratio);
    put(other.scale, scale);
    converged = select(which, other.converged, converged), sound = select(which, other.sound, sound);
  }
};

namespace canal_detail {

template <class Real>
struct Newton : ConvexNewton<Real> {
  using Base = ConvexNewton<Real>;
  using S = Scalar<Real>;
  using M = Mask<Real>;
  using Base::mobility, Base::root_t, Base::root_n, Base::lower, Base::upper, Base::block_of, Base::product;
  using Base::P, Base::n, Base::nc, Base::nr, Base::m, Base::step, Base::w, Base::held, Base::lambda;

  const SolveLimits<S>& limits;
  const CanalOptions<S>& opt;
  Real* answer;
  CanalStats<Real> stats;
  Real* pull;                         // (n)
  Real *lambda0, *anchor, *accepted;  // (m)  anchor: D l0
  Real* soft;                         // (nc + nr)  D
  Real *p, *image, *slip_before;      // (nc)
  AndersonVector<Real> anderson;
  Real penalty, score, best_score;

  HD Newton(const RowProblem<Real>& problem, const SolveLimits<S>& limits_, const CanalOptions<S>& options, Real* l)
      : Base(problem), limits(limits_), opt(options), answer(l) {}

  HD void carve(Arena<Real>& arena) {
    Base::carve(arena);
    pull = arena.take(n);
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
      const Real D = soft[k] = opt.uniform ? Real(1) / penalty : mobility[k] / penalty;
      root_t[k] = this->root_of(k, D + P.R[i]);
      root_n[k] = k < nc ? this->root_of(k, D + P.R[i + 2]) : root_t[k];
    }
    for (int i = 0; i < m; ++i) anchor[i] = soft[block_of(i)] * lambda0[i];
  }

  // ---- inner problem ----------------------------------------------------------------------------------------------------

  /// What rounding alone may leave of the gradient.
  HD Real noise() const {
    Real sum(0);
    for (int i = 0; i < m; ++i) {
      const int block = block_of(i);
      const bool normal = i < 3 * nc && i % 3 == 2;
      const Real root = normal ? root_n[block] : root_t[block];
      const Real size = root * root * (abs(w[i]) + abs(P.e[i]) + (normal ? abs(p[block]) : Real(0))) + abs(lambda[i]);
      sum = sum + mobility[block] * size * size;
    }
    return sqrt(sum) * (S(2) * kEpsilon<S>);
  }

  /// Solves the inner problem of worlds `which` to |gradient| <= accuracy |Y'l|.
  HD void newton(const M& which, Real accuracy) {
    this->project_all();
    for (int k = 0; k < opt.inner; ++k) {
      this->descend();
      P.push(lambda, pull);
      const Real gradient = sqrt(product(step, step)), size = sqrt(product(pull, pull));
      const M going = which & (gradient > max(accuracy * size, noise()));
      if (!any(going)) return;
      this->direction();
      this->advance(going, this->line_search(going, opt.search));
      this->project_all();
      stats.newton = stats.newton + select(going, Real(1), Real(0));
    }
  }

  // ---- outer iteration --------------------------------------------------------------------------------------------------

  /// mu |s_t| of contact i, with what the multiplier still moves if l0 is given.
  HD Real correction(int i, const Real* v, const Real* l, const Real* l0) const {
    const Real R = P.R[3 * i];
    Real x = v[0] + P.e[3 * i] + R * l[0], y = v[1] + P.e[3 * i + 1] + R * l[1];
    if (l0) x = x + soft[i] * (l[0] - l0[0]), y = y + soft[i] * (l[1] - l0[1]);
    return P.mu[i] * sqrt(x * x + y * y);
  }

  /// Residuals of impulses l at velocities v into stats and score (solvers/score.h).
  HD void certify(const Real* l, const Real* v) {
    const LawResiduals<Real> r = this->residuals(l, [&](int i) { return v[i] + P.e[i] + P.R[i] * l[i]; });
    stats.r_con = r.con, stats.row_ratio = r.row_ratio, stats.scale = r.scale;
    score = max(max(r.con, r.split * S(0.1)) / r.scale, r.row_ratio);
    score = select(r.finite & is_finite(score), score, Real(S(1e30)));
  }

  /// Takes l, projected strictly, as the present point: accepted, w, held; of worlds `which` keeps it if it is the best yet.
  HD_ONCE void accept(const M& which, const Real* l) {
    const Real zero(0);
    for (int i = 0; i < nc; ++i) {
      const M on = mobility[i] > zero;
      const Vec3<Real> x = project_strict(
          Vec3<Real>{select(on, l[3 * i], zero), select(on, l[3 * i + 1], zero), select(on, l[3 * i + 2], zero)},
          P.mu[i]);
      accepted[3 * i] = x.x, accepted[3 * i + 1] = x.y, accepted[3 * i + 2] = x.z;
    }
    for (int r = 0; r < nr; ++r) accepted[3 * nc + r] = clamp(l[3 * nc + r], lower(r), upper(r));
    P.push(accepted, pull);
    for (int i = 0; i < m; ++i) w[i] = P.velocity(i, pull), held[i] = accepted[i];
    certify(accepted, w);
    const M better = which & (score < best_score);
    best_score = select(better, score, best_score);
    for (int i = 0; i < m; ++i) answer[i] = select(better, accepted[i], answer[i]);
  }

  /// Warm start: the caller's impulses where they are finite.
  HD void begin() {
    const Real zero(0);
    best_score = Real(S(1e29)), penalty = Real(opt.penalty);
    stats.outer = stats.newton = zero;
    for (int k = 0; k < nc + nr; ++k) mobility[k] = P.mobility(k);
    for (int i = 0; i < m; ++i) lambda[i] = select(is_finite(answer[i]), answer[i], zero), answer[i] = zero;
    accept(mask_of<Real>(true), lambda);
    for (int i = 0; i < nc; ++i) p[i] = slip_before[i] = correction(i, w + 3 * i, accepted + 3 * i, nullptr);
    for (int i = 0; i < m; ++i) lambda0[i] = accepted[i];
    set_penalty();
    anderson.begin();
  }

  HD void outer_loop(M which) {
    const Real zero(0), one(1), limit(limits.tolerance);
    Real last_defect(S(1e29)), mark = best_score, idle(0);
    for (int k = 0; k < limits.iterations; ++k) {
      which = which & (best_score > limit) & (score < Real(S(1e29)));
      if (!any(which)) return;
      newton(which, max(Real(kEpsilon<S> * S(4500)), min(Real(S(1e-3)), score * S(0.01))));
      stats.outer = stats.outer + select(which, one, zero);
      Real gap(0), moved(0);  // |Jv - z|, and how far the correction moved, m/s
      for (int i = 0; i < m; ++i) gap = max(gap, soft[block_of(i)] * abs(lambda[i] - lambda0[i]));
      for (int i = 0; i < nc; ++i) {
        image[i] = correction(i, w + 3 * i, lambda + 3 * i, lambda0 + 3 * i);
        moved = max(moved, abs(image[i] - slip_before[i]));
        slip_before[i] = image[i];
      }
      accept(which, lambda);
      const M progress = best_score < mark * S(0.7);
      mark = select(progress, best_score, mark), idle = select(progress, zero, idle + one);
      const M stuck = idle > Real(S(opt.patience));
      anderson.forget(stuck), idle = select(stuck, zero, idle);
      if (opt.accelerate) anderson.advance(p, image);
      for (int i = 0; i < nc; ++i) p[i] = max(image[i], zero);
      for (int i = 0; i < m; ++i) lambda0[i] = accepted[i];
      M stiffer = gap > last_defect * opt.decrease;
      if (!opt.uniform) stiffer = stiffer & (gap > moved);
      penalty = select(stiffer, min(penalty * opt.growth, Real(opt.penalty_cap)), penalty);
      set_penalty();
      last_defect = gap;
    }
  }

  /// The certificate of the answer itself.
  HD void finish() {
    P.push(answer, pull);
    for (int i = 0; i < m; ++i) w[i] = P.velocity(i, pull);
    certify(answer, w);
    stats.converged = score <= Real(limits.tolerance);
    stats.sound = best_score < Real(S(1e29));
  }
};

}  // namespace canal_detail

struct Canal {
  static constexpr const char* kName = "canal";
  template <class S>
  using Options = CanalOptions<S>;
  template <class S>
  HD static Law law(const Options<S>&) {
    return Law::kCoulomb;
  }
  template <class Real>
  HD static int64_t memory(const RowCounts& most) {
    return measured<Real>(most, [](const RowProblem<Real>& largest, Arena<Real>& arena) {
      canal_detail::Newton<Real>(largest, {}, {}, nullptr).carve(arena);
    });
  }
  /// Of worlds `which`, with what became of it; iterations limit the outer passes.
  template <class Real>
  HD_ONCE static CanalStats<Real> improve(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                          const Options<Scalar<Real>>& options, const Mask<Real>& which, Real* memory,
                                          Real* impulse) {
    canal_detail::Newton<Real> newton(problem, limits, options, impulse);
    Arena<Real> arena(memory);
    newton.carve(arena);
    newton.begin();
    newton.outer_loop(which);
    newton.finish();
    return newton.stats;
  }
  template <class Real>
  HD static SolveStats<Real> solve(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                   const Options<Scalar<Real>>& options, Real* memory, Real* impulse) {
    const auto stats = improve(problem, limits, options, mask_of<Real>(true), memory, impulse);
    return {stats.outer, stats.newton};
  }
};

}  // namespace stiction
