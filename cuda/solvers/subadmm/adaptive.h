// What a pass of SubADMM changed, and the penalty that follows from it (PenaltyRule kPenaltyAdaptive).
//
// [Lee2025], section VI, scales B by sqrt(primal / dual residual), |J v - z| over |A v - b - J' l|: a velocity over a
// momentum, so that the rule depends on units. Here both are velocities: l changes by B (J v - z) and the dual residual is
// J' B times the change of z, so |change of l| / B stands over |change of z|. docs/theory.md, section 9.
#pragma once
#include "core/scalar.h"

namespace stiction {

template <class Real>
struct AdmmChange {
  Real z = Real(0), lambda = Real(0);  // largest |change of z| and |change of l| / B                       m/s

  HD void add(Real dz, Real dl) { z = max(z, dz), lambda = max(lambda, dl); }
  HD Real largest() const { return max(z, lambda); }
};

/// Passes between two changes of the penalty; bounds of one change and of all together.
inline constexpr int kAdaptivePasses = 10;
inline constexpr double kAdaptiveStep = 3, kAdaptiveTotal = 30;

/// The factor for B, 1 in worlds that are done. total: of all changes so far.
template <class Real>
HD Real adapted(const AdmmChange<Real>& change, const Mask<Real>& done, Real& total) {
  using S = Scalar<Real>;
  const Real one(1), tiny{S(1e-20)}, step{S(kAdaptiveStep)}, most{S(kAdaptiveTotal)};
  Real factor = clamp(sqrt(max(change.lambda, tiny) / max(change.z, tiny)), one / step, step);
  factor = select(done, one, clamp(total * factor, one / most, most) / total);
  total = total * factor;
  return factor;
}

}  // namespace stiction
