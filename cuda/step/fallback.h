// What is done for worlds that a solver left above `certify`, in double: SubADMM where contacts are few, for which single precision mostly
// was what kept it; each contact in turn exactly (Bisection, by Coulomb's law), which takes few sweeps where bodies have few contacts
// each; Newton (CANAL); projected Gauss-Seidel from nothing, which creeps where De Saxce's correction sends Newton round and round. Or,
// instead of these four, a solver of the list that was asked for.
//
// A problem need not have a solution: a body wedged between two walls it overlaps cannot leave both, and impulses that try
// grow without bound. Where Newton stays far from one too, the step asks for no recovery of overlaps, and where that fails
// as well there are no impulses; what this does is the certificate's to tell, of the problem as it was. Bodies that no row
// couples are problems of their own: what is wedged somewhere takes the floor from nothing else.
// docs/theory.md, section 12.
#pragma once
#include "contact/row_problem.h"
#include "step/step_options.h"

namespace stiction {

/// What is asked of an answer, as a part of `certify`: the last tenth costs Newton four times as many steps as the rest.
inline constexpr double kAsked = 0.3;
/// Passes of SubADMM in double at first, and for how many contacts and other rows: of more it asks for many passes, and costs what
/// Newton does.
inline constexpr int kRepeatedPasses = 300, kMostRepeated = 16;
/// Of a group of lanes, which share them, and of whom one alone would do the rest: that takes it a hundred times as long. So they are
/// content with this part of what is asked.
inline constexpr int kSharedPasses = 1000, kMostShared = 64;
inline constexpr double kSharedPart = 0.1;
/// They end at this part of what is asked, as near as Newton comes: once it is known what sticks and what slides, a digit costs it few.
inline constexpr double kRepeatedPart = 1e-4;
/// Sweeps over exact contacts before Newton is called: quadrupeds need a few (bench/README.md).
inline constexpr int kExactSweeps = 25;
/// Outer passes of Newton, and of the second try of what is left.
inline constexpr int kNewtonPasses = 30, kSecondPasses = 100;
/// Sweeps of the last try, for the few that Newton leaves.
inline constexpr int kSlowSweeps = 1000;
/// Iterations of a solver that was asked for instead, in each try.
inline constexpr int kChosenIterations = 1000;
/// r_con over V beyond which an answer is given up, if `certify` is no larger.
inline constexpr double kHopeless = 0.01;
/// W_nn |l| over V beyond which what solves the problem is no answer either: a thousand times what a mass ratio of ten thousand takes.
inline constexpr double kLargestPush = 1e7;
/// The same of what is only near an answer: in single precision its last digits are then a hundredth of V. Those of what solves the
/// problem may be more than that: without impulses a coin of 0.3 g under a ball of 12 kg falls through the floor.
template <class S> inline constexpr double kLargestNearPush = sizeof(S) == 8 ? kLargestPush : 1e5;
/// The same of what is nearly hopeless: above that part of kHopeless.
inline constexpr double kUnlikelyPush = 1e3, kDoubtful = 0.1;
/// Bodies are jammed where an answer is nearly hopeless and pushes are so large after so many of Newton's passes, which are given up then.
/// What only takes long stays below 100.
inline constexpr double kJammedPush = 3e4;
inline constexpr int kJammedPasses = 8;

/// What improves worlds: `certify` is the residual of `law` over V that they must reach. Unless a solver is named it is this file's four
/// under Coulomb's law and SAP under the convex one; under maximum dissipation there is none.
struct FallbackPlan {
  Law law = Law::kCoulomb;
  double certify = 0;
  int solver = -1;  // by its place in the list; -1: this file's four
};
/// The fallback that options ask for; whether there is one, which knows the law.
template <class S>
HD bool plan_fallback(const StepOptions<S>& o, FallbackPlan& plan) {
  const int chosen = o.step.fallback - kFirstChosenFallback;
  plan = {law_of(o.solver), static_cast<double>(o.step.certify), max(chosen, -1)};
  if (o.step.fallback == 0) return false;
  if (chosen < 0 && plan.law == Law::kCoulomb) return true;
  if (chosen < 0 && plan.law == Law::kDissipation) return false;
  if (chosen < 0) plan.solver = PlaceOf<Sap, Solvers>::value;
  return law_of(aimed_at<double>(plan.solver, plan.law)) == plan.law;
}

/// The number type of Newton for worlds in Real: double, or a register of doubles.
template <class Real>
using DoubleOf = typename RealTraits<Real>::template Of<double, kWidth<Real> / int(8 / sizeof(Scalar<Real>))>;

/// Worlds of a pack that are to be improved.
template <class Real>
struct FlaggedRows {
  const RowProblem<Real>* rows;
  Real* impulse;  // (n)
  Mask<Real> worlds;
  Mask<Real> without;         // on exit: where bodies have no impulses, because nothing solves them
  uint32_t* table = nullptr;  // three parts [k, w] of islands.h, k a contact or, behind these, another row

  /// The blocks that it touches; 0 of what is not there, or waits.
  HD uint32_t& touches(int k, int w) const { return part(0, k, w); }
  /// The same of what no solver has seen yet.
  HD uint32_t& waits(int k, int w) const { return part(1, k, w); }
  /// The next of its island.
  HD uint32_t& next(int k, int w) const { return part(2, k, w); }

 private:
  HD uint32_t& part(int i, int k, int w) const {
    return table[(static_cast<int64_t>(i) * (rows->contacts + rows->scalars) + k) * kWidth<Real> + w];
  }
};
/// At most so many packs are improved together: few of a pack's worlds are flagged, and a register takes many.
template <class Real> inline constexpr int kImprovedTogether = kWidth<Real> > 1 ? 32 : 1;

/// Bytes of memory that fall_back needs for problems up to that size. Defined in step/solve_rows.h.
template <class Real>
HD_CALL int64_t fallback_bytes(const FallbackPlan& plan, const RowCounts& most);

/// Improves the impulses of the worlds that are flagged in `count` packs, where that does better; by the lanes of a group together,
/// of which the first does all but SubADMM. Defined in step/solve_rows.h.
/// kAnySolver: a plan may ask for a solver; a kernel with all of them would be twice as large.
template <class Real, bool kAnySolver, class Group>
HD_CALL void fall_back(const Group& g, FlaggedRows<Real>* packs, int count, const FallbackPlan& plan, void* memory);

}  // namespace stiction
