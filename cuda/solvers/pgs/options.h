// PGS: what the list of solvers knows of it, and what can be set. The solver itself: pgs.h.
#pragma once
#include "solvers/solver.h"

namespace stiction {

template <class S>
struct PgsOptions {
  S relaxation = S(0.6);
  int check = 4;  // sweeps between two tests

  HD Law law() const { return Law::kCoulomb; }
  HD bool aim(Law law) { return law == Law::kCoulomb; }
  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("relaxation", o.relaxation...), visit("check", o.check...);
  }
};

namespace pgs_detail {
template <class Real>
struct Sweeper;
}

struct Pgs : IterativeSolver<pgs_detail::Sweeper, PgsOptions> {
  static constexpr const char* kName = "pgs";
  static constexpr bool kCouples = true;
};

}  // namespace stiction
