// ADMM: what the list of solvers knows of it, and what can be set. The solver itself: admm.h.
#pragma once
#include "solvers/solver.h"

namespace stiction {

/// How ADMM's penalty follows the residuals.
enum AdmmRule : int {
  kAdmmRatio,     // root of the ratio of the relative residuals, on a grid of half decades (default)
  kAdmmLinear,    // [Carpentier2024] eq. 44: times or by `factor`
  kAdmmSpectral,  // [Carpentier2024] eq. 46: times or by (L / m)^0.05 of the largest and least eigenvalue
};

template <class S>
struct AdmmOptions {
  S penalty = S(0.1);    // rho at first, of rows scaled to a mean W_ii of 1
  S proximal = S(1e-6);  // eta
  int rule = kAdmmRatio;
  int interval = 25;              // passes between two looks at the penalty
  int accelerate = 1;             // Anderson
  int patience = 250;             // passes without 0.7 of the best score that make a stall; 0: there are none
  int check = 5;                  // passes between two tests
  int refinements = 0;            // of a factor in float, in double; 0: it is in double
  S factor = S(2), tube = S(10);  // of the other rules: what rho changes by, and from which ratio of residuals on

  HD Law law() const { return Law::kCoulomb; }
  HD bool aim(Law law) { return law == Law::kCoulomb; }
  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("penalty", o.penalty...), visit("proximal", o.proximal...), visit("rule", o.rule...);
    visit("interval", o.interval...), visit("accelerate", o.accelerate...), visit("patience", o.patience...);
    visit("check", o.check...), visit("refinements", o.refinements...), visit("factor", o.factor...),
        visit("tube", o.tube...);
  }
};

namespace admm_detail {
template <class Real>
class Iteration;
}

struct Admm : IterativeSolver<admm_detail::Iteration, AdmmOptions> {
  static constexpr const char* kName = "admm";
  static constexpr bool kCouples = true;
};

}  // namespace stiction
