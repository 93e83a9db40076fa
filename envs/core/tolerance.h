// Smooth rewards: 1 at x = 0, falling with |x|. Those with a margin are the DeepMind Control Suite's (dm_control/utils/rewards.py,
// `tolerance` with bounds (0, 0)): a given value at |x| = margin.
#pragma once
#include <cmath>

#include "core/scalar.h"

namespace stiction {

/// e^x, of each lane by itself.
template <class Real>
HD Real exponential(Real x) {
  Real y = x;
  for (int i = 0; i < kWidth<Real>; ++i)
    set_lane(y, i, static_cast<Scalar<Real>>(::exp(static_cast<double>(lane(x, i)))));
  return y;
}

/// 0.1^((x / margin)^2): a Gaussian, 0.1 at the margin.
template <class Real>
HD Real gaussian_tolerance(Real x, double margin) {
  constexpr double kLogOfTenth = -2.302585092994046;
  const Real part = x / Real(margin);
  return exponential(part * part * Real(kLogOfTenth));
}

/// 1 - (x / margin)^2, 0 from the margin on.
template <class Real>
HD Real quadratic_tolerance(Real x, double margin) {
  const Real part = x / Real(margin);
  return max(Real(1) - part * part, Real(0));
}

/// 1 - tanh(x / scale), x >= 0: 1 at 0, 0.24 at the scale, 0.04 at twice the scale. The kernel of Isaac Lab's reaching rewards.
template <class Real>
HD Real tanh_tolerance(Real x, double scale) {
  return Real(2) / (Real(1) + exponential(x * Real(2 / scale)));
}

}  // namespace stiction
