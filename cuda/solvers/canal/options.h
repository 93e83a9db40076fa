// CANAL: what the list of solvers knows of it, and what can be set. The solver itself: canal.h.
#pragma once
#include "solvers/solver.h"

namespace stiction {

template <class S>
struct CanalOptions {
  static constexpr bool kWide = sizeof(S) == 8;

  S penalty = kWide ? S(300) : S(10);       // c: beta_i = c / w_i, w_i = tr(W_ii) / 3; grows up to the cap
  S penalty_cap = kWide ? S(1e7) : S(100);  // rounding costs eps c V
  S growth = S(10), decrease = S(0.25);     // c grows when |Jv - z| fell by less than `decrease`
  int inner = 30, search = 30;              // caps: Newton steps of an outer pass, evaluations of a line search
  int accelerate = 1;                       // Anderson on the correction
  int patience = 12;                        // passes without 0.7 of the best score that switch extrapolation; doubles
  int uniform = 0;  // the paper's: beta_i = penalty [kg] for all, grown whatever the cascade does

  /// The paper's own numbers: one beta = 1e4 kg, no acceleration.
  HD static CanalOptions paper() {
    CanalOptions o;
    o.penalty = S(1e4), o.penalty_cap = S(1e8), o.accelerate = 0, o.uniform = 1;
    return o;
  }
  HD Law law() const { return Law::kCoulomb; }
  HD bool aim(Law law) { return law == Law::kCoulomb; }
  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("penalty", o.penalty...), visit("penalty_cap", o.penalty_cap...), visit("growth", o.growth...);
    visit("decrease", o.decrease...), visit("inner", o.inner...), visit("search", o.search...);
    visit("accelerate", o.accelerate...), visit("patience", o.patience...), visit("uniform", o.uniform...);
  }
};

template <class Real>
struct CanalStats;
namespace canal_detail {
template <class Real>
struct Newton;
}

struct Canal : IterativeSolver<canal_detail::Newton, CanalOptions> {
  static constexpr const char* kName = "canal";
  static constexpr bool kCouples = true;
  /// Of worlds `which`, with what became of it; iterations limit the outer passes.
  template <class Real>
  HD_ONCE static CanalStats<Real> improve(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                          const Options<Scalar<Real>>& options, const Mask<Real>& which, Real* memory,
                                          Real* impulse) {
    return Canal::iteration(problem, limits, options, memory, impulse).solve(which);
  }
};

}  // namespace stiction
