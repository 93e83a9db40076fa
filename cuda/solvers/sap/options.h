// SAP: what the list of solvers knows of it, and what can be set. The solver itself: sap.h.
#pragma once
#include "solvers/solver.h"

namespace stiction {

template <class S>
struct SapOptions {
  static constexpr bool kWide = sizeof(S) == 8;

  S penalty = kWide ? S(3000) : S(100);     // c
  S penalty_cap = kWide ? S(1e7) : S(100);  // rounding of the cone costs eps c V
  S growth = S(10), decrease = S(0.25);     // c grows where |D (l - l0)| fell by less than `decrease`
  S recentre = S(0.1);                      //
  int sweeps = 12;                          // of Gauss-Seidel, to begin with and between Newton's steps
  int search = 30;                          // cap: evaluations of a line search
  int armijo = 0;                           // backtracking by 0.8 to Armijo's rule instead of the exact line search
  int wide = 1;                             // in float: sums in double
  S sigma = S(0);  // > 0: the paper's regularisation, its value 1e-3                           1
  S beta = S(1);   // of it: period of a near-rigid contact over h                              1

  /// The paper's own: one regularised problem.
  HD static SapOptions paper() {
    SapOptions o;
    o.sigma = S(1e-3), o.sweeps = 0;
    return o;
  }
  HD Law law() const { return Law::kConvex; }
  HD bool aim(Law law) { return law == Law::kConvex; }
  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("penalty", o.penalty...), visit("penalty_cap", o.penalty_cap...), visit("growth", o.growth...);
    visit("decrease", o.decrease...), visit("recentre", o.recentre...), visit("sweeps", o.sweeps...),
        visit("search", o.search...);
    visit("armijo", o.armijo...), visit("wide", o.wide...), visit("sigma", o.sigma...), visit("beta", o.beta...);
  }
};

namespace sap_detail {
template <class Real>
struct Proximal;
}

struct Sap : IterativeSolver<sap_detail::Proximal, SapOptions> {
  static constexpr const char* kName = "sap";
  static constexpr bool kCouples = true;
};

}  // namespace stiction
