// Dense Cholesky A = U'U of one small matrix in one thread, and its triangular solves. Plain right-looking form: the inner
// loops run along rows, so they vectorise on a CPU without reassociating sums.
//
// Matrices are row-major; only the upper triangle is read and written. T is float or double. No allocation, any n >= 0.
#pragma once
#include "core/scalar.h"

namespace stiction {

template <class T> inline constexpr T kEpsilon = T(2.22044604925031308e-16);
template <> inline constexpr float kEpsilon<float> = 1.1920929e-7f;

/// Overwrites the upper triangle of A (n, n) with U. A pivot that is not above floor (rounding, or A not positive definite,
/// or NaN) is replaced by floor and makes the result false; U is then the factor of a matrix nearby.
template <class T>
HD bool cholesky_factor(int n, T* A, T floor) {
  bool sound = true;
  for (int k = 0; k < n; ++k) {
    T* row = A + k * n;
    T pivot = row[k];
    if (!(pivot > floor)) pivot = floor, sound = false;
    T inverse = T(1) / sqrt(pivot);
    row[k] = sqrt(pivot);
    for (int j = k + 1; j < n; ++j) row[j] *= inverse;
    for (int i = k + 1; i < n; ++i) {
      T a = row[i];
      if (a == T(0)) continue;  // other trees' blocks
      T* below = A + i * n;
      for (int j = i; j < n; ++j) below[j] -= a * row[j];
    }
  }
  return sound;
}

/// x <- U'^-1 x.
template <class T>
HD void solve_lower(int n, const T* U, T* x) {
  for (int k = 0; k < n; ++k) {
    const T* row = U + k * n;
    T a = x[k] / row[k];
    x[k] = a;
    if (a == T(0)) continue;
    for (int j = k + 1; j < n; ++j) x[j] -= a * row[j];
  }
}

/// x <- U^-1 x.
template <class T>
HD void solve_upper(int n, const T* U, T* x) {
  for (int k = n - 1; k >= 0; --k) {
    const T* row = U + k * n;
    T a = x[k];
    for (int j = k + 1; j < n; ++j) a -= row[j] * x[j];
    x[k] = a / row[k];
  }
}

/// x <- A^-1 x.
template <class T>
HD void cholesky_solve(int n, const T* U, T* x) {
  solve_lower(n, U, x);
  solve_upper(n, U, x);
}

}  // namespace stiction
