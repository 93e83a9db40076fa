// Bisection: what the list of solvers knows of it, and what can be set. The solver itself: bisection.h.
#pragma once
#include "solvers/solver.h"

namespace stiction {

template <class S>
struct BisectionOptions {
  int coulomb = 0;       // the exact law instead of maximum dissipation
  int stepping = 0;      // the paper's search for the angle, instead of a closed bracket and Illinois' false position
  int evaluations = 64;  // of one search, at most
  int accelerate = 1;    // of sweeps, by Anderson
  S relaxation = S(1), least_relaxation = S(0.7),
    decay = S(0.99);  // a of the first sweep, of the last; towards it in a sweep

  HD Law law() const { return coulomb ? Law::kCoulomb : Law::kDissipation; }
  HD bool aim(Law law) { return coulomb = law == Law::kCoulomb, law != Law::kConvex; }
  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("coulomb", o.coulomb...), visit("stepping", o.stepping...), visit("evaluations", o.evaluations...);
    visit("accelerate", o.accelerate...), visit("relaxation", o.relaxation...),
        visit("least_relaxation", o.least_relaxation...), visit("decay", o.decay...);
  }
};

namespace bisection_detail {
template <class Real>
struct Iteration;
}

struct Bisection : IterativeSolver<bisection_detail::Iteration, BisectionOptions> {
  static constexpr const char* kName = "bisection";
  static constexpr bool kCouples = false;
};

}  // namespace stiction
