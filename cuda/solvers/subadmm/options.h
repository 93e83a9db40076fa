// SubADMM: what the list of solvers knows of it, and what can be set. The solver itself: subadmm.h.
#pragma once
#include "solvers/solver.h"

namespace stiction {

/// How SubADMM's penalties B come from W.
enum PenaltyRule : int {
  kPenaltyNormalTangential,  // 1.5 / W_tt and 1.5 / W_nn per contact (default)
  kPenaltyPerContact,        // 1.5 / mean(W_ii)
  kPenaltyCommon,            // one for all contacts: 1.5 over the mean of mean(W_ii); [Lee2025]'s is of bodies' masses
  kPenaltyAdaptive,  // the default's, scaled every few passes by what primal and dual residual say, within bounds
};

template <class S>
struct SubAdmmOptions {
  int penalty = kPenaltyNormalTangential;
  int sweeps = 0;         // before the first pass, at most, where few contacts close; not on a GPU
  int anderson = 1;       // Anderson acceleration (depth 3)
  S relaxation = S(1.5);  // alpha of over-relaxation; 1: none, as in [Lee2025]
  S tikhonov = S(1e-3);   // of Anderson's normal equations, relative to each column's square
  int convex = 0;         // the convex relaxation of Coulomb's law, for comparison; a contact that slides lifts off

  HD Law law() const { return convex ? Law::kConvex : Law::kCoulomb; }
  HD bool aim(Law law) { return convex = law == Law::kConvex, law != Law::kDissipation; }
  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("penalty", o.penalty...), visit("sweeps", o.sweeps...), visit("anderson", o.anderson...);
    visit("relaxation", o.relaxation...);
    visit("tikhonov", o.tikhonov...), visit("convex", o.convex...);
  }
};

namespace subadmm_detail {
template <class Real, class Group>
class Iteration;
}

struct SubAdmm : SharedSolver<subadmm_detail::Iteration, SubAdmmOptions> {
  static constexpr const char* kName = "subadmm";
  static constexpr bool kCouples = true;
};

}  // namespace stiction
