// Products of dense vectors, and I + sum w x x', the matrix that Newton's method and ADMM factor: its eigenvalues are at least 1.
#pragma once
#include "core/arena.h"
#include "linalg/small_cholesky.h"
#include "math/vec3.h"

namespace stiction {

template <class Real>
HD Real dot(int n, const Real* a, const Real* b) {
  Real sum(0);
  for (int k = 0; k < n; ++k) sum = sum + a[k] * b[k];
  return sum;
}

/// I + sum w x x' (n, n), the upper triangle, and then its factor U. Memory is the caller's.
template <class Real>
struct GramMatrix {
  int n = 0;
  Real* entries = nullptr;

  HD void carve(int size, Arena<Real>& arena) { n = size, entries = arena.take(static_cast<int64_t>(n) * n); }
  HD void begin() {
    for (int i = 0; i < n * n; ++i) entries[i] = Real(0);
    for (int k = 0; k < n; ++k) entries[k * n + k] = Real(1);
  }
  HD void add(Real w, const Real* x) {
    for (int k = 0; k < n; ++k) {
      const Real wx = w * x[k];
      if (all(wx == Real(0))) continue;
      Real* row = entries + k * n;
      for (int j = k; j < n; ++j) row[j] = row[j] + wx * x[j];
    }
  }
  /// X' w X of three rows X (3, n).
  HD void add(const SymMat3<Real>& w, const Real* X) {
    const Real *a = X, *b = a + n, *c = b + n, zero(0);
    for (int k = 0; k < n; ++k) {
      const Real x = w.xx * a[k] + w.xy * b[k] + w.xz * c[k], y = w.xy * a[k] + w.yy * b[k] + w.yz * c[k],
                 z = w.xz * a[k] + w.yz * b[k] + w.zz * c[k];
      if (all((x == zero) & (y == zero) & (z == zero))) continue;
      Real* row = entries + k * n;
      for (int j = k; j < n; ++j) row[j] = row[j] + (x * a[j] + y * b[j] + z * c[j]);
    }
  }
  HD void factor() { cholesky_factor(n, entries, Real(Scalar<Real>(0.5))); }
  /// x <- (I + sum w x x')^-1 x.
  HD void solve(Real* x) const { cholesky_solve(n, entries, x); }
};

}  // namespace stiction
