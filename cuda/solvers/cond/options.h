// COND: what the list of solvers knows of it, and what can be set. The solver itself: cond.h.
#pragma once
#include "solvers/solver.h"

namespace stiction {

/// W of the joints.
enum CondJoints : int {
  kCondInverse,    // their inverse, by a factor
  kCondFrobenius,  // the diagonal nearest to it
  kCondBarzilai,   // of nodes: w 1, w = s'y / y'y of the changes s of u and y of r; the diagonal where that goes astray
};

template <class S>
struct CondOptions {
  int multiplier = 1;    // no error of 1 / gain; 0: the paper's nodes
  int convex = 0;        // the proximal projection: the convex relaxation of Coulomb's law
  S gain = S(2);         // k = gain / w of multipliers, w = tr(W_ii) / 3
  S node_gain = S(1e4);  // of nodes
  int joints = kCondInverse;
  int chebyshev = 1;  // acceleration of nodes
  S under_relaxation = S(0.9);
  int start = 8;  // plain passes before it, and after it went astray
  int check = 4;  // passes between two tests

  HD Law law() const { return convex ? Law::kConvex : Law::kCoulomb; }
  HD bool aim(Law law) { return convex = law == Law::kConvex, law != Law::kDissipation; }
  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("multiplier", o.multiplier...), visit("convex", o.convex...), visit("gain", o.gain...);
    visit("node_gain", o.node_gain...), visit("joints", o.joints...), visit("chebyshev", o.chebyshev...);
    visit("under_relaxation", o.under_relaxation...), visit("start", o.start...), visit("check", o.check...);
  }
};

namespace cond_detail {
template <class Real>
struct Iteration;
}

struct Cond : IterativeSolver<cond_detail::Iteration, CondOptions> {
  static constexpr const char* kName = "cond";
  static constexpr bool kCouples = false;
};

}  // namespace stiction
