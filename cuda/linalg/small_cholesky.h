// Dense Cholesky A = U'U of one small matrix, of one world or of each world of a pack, and its triangular solves. Plain
// right-looking form: the inner loops run along rows, so they vectorise on a CPU without reassociating sums.
//
// Matrices are row-major; only the upper triangle is read and written. No allocation, any n >= 0.
#pragma once
#include "core/scalar.h"

namespace stiction {

/// Overwrites the upper triangle of A (n, n) with U. A pivot that is not above floor (rounding, or A not positive definite,
/// or NaN) is replaced by floor and makes the result false; U is then the factor of a matrix nearby.
template <class Real>
HD_ONCE Mask<Real> cholesky_factor(int n, Real* A, Real floor) {
  const Real zero(0), one(1);
  Mask<Real> sound = mask_of<Real>(true);
  for (int k = 0; k < n; ++k) {
    Real* row = A + k * n;
    const Mask<Real> positive = row[k] > floor;
    const Real pivot = select(positive, row[k], floor), root = sqrt(pivot), inverse = one / root;
    sound = sound & positive;
    row[k] = root;
    for (int j = k + 1; j < n; ++j) row[j] = row[j] * inverse;
    for (int i = k + 1; i < n; ++i) {
      const Real a = row[i];
      if (all(a == zero)) continue;  // other trees' blocks
      Real* below = A + i * n;
      for (int j = i; j < n; ++j) below[j] = below[j] - a * row[j];
    }
  }
  return sound;
}

/// x <- U'^-1 x.
template <class Real>
HD void solve_lower(int n, const Real* U, Real* x) {
  for (int k = 0; k < n; ++k) {
    const Real *row = U + k * n, a = x[k] / row[k];
    x[k] = a;
    if (all(a == Real(0))) continue;
    for (int j = k + 1; j < n; ++j) x[j] = x[j] - a * row[j];
  }
}

/// x <- U^-1 x.
template <class Real>
HD void solve_upper(int n, const Real* U, Real* x) {
  for (int k = n - 1; k >= 0; --k) {
    const Real* row = U + k * n;
    Real a = x[k];
    for (int j = k + 1; j < n; ++j) a = a - row[j] * x[j];
    x[k] = a / row[k];
  }
}

/// x <- A^-1 x.
template <class Real>
HD_ONCE void cholesky_solve(int n, const Real* U, Real* x) {
  solve_lower(n, U, x);
  solve_upper(n, U, x);
}

}  // namespace stiction
