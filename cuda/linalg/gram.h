// Products of dense vectors, and I + sum w x x' of rows x in blocks of columns, which Newton's method, COND and ADMM factor: its
// eigenvalues are at least 1.
#pragma once
#include "core/arena.h"
#include "linalg/block_cholesky.h"
#include "math/vec3.h"

namespace stiction {

template <class Real>
HD Real dot(int n, const Real* a, const Real* b) {
  Real sum(0);
  for (int k = 0; k < n; ++k) sum = sum + a[k] * b[k];
  return sum;
}

/// a and b the other way round in worlds `which`.
template <class Real>
HD void exchange(const Mask<Real>& which, Real& a, Real& b) {
  const Real first = a;
  a = select(which, b, a), b = select(which, first, b);
}

/// (n, n), where it is not 0 the upper triangle, and then its factor U with 1 / U_kk on the diagonal.
template <class Real>
class GramMatrix {
 public:
  HD void carve(int n, Arena<Real>& arena) { n_ = n, entries_ = arena.take(static_cast<int64_t>(n) * n); }
  /// Of `count` rows that touch the blocks touches(k).
  template <class Touches>
  HD void set_pattern(const ColumnBlocks& blocks, int count, Touches touches) {
    blocks_ = blocks, pattern_ = {};
    for (int k = 0; k < count; ++k) pattern_.couple(touches(k));
    pattern_.fill(blocks.count);
  }

  /// The blocks that U^-T x touches where x touches a set.
  HD uint32_t reached(uint32_t set) const { return pattern_.reached(set); }

  HD_ONCE void begin() {
    for (int b = 0; b < blocks_.count; ++b) {
      const ColumnBlocks::Runs runs = blocks_.runs(pattern_.upper[b] | uint32_t(1) << b);
      for (int k = blocks_.begin[b]; k < blocks_.begin[b + 1]; ++k)
        from(runs, 0, k, [&](int j) { row(k)[j] = Real(j == k ? 1 : 0); });
    }
  }
  HD void add(Real w, const Real* x, uint32_t touched) {
    each(touched, [&](const ColumnBlocks::Runs& runs, int r, int k) {
      Real *to = row(k), wx = w * x[k];
      from(runs, r, k, [&](int j) { to[j] = to[j] + wx * x[j]; });
    });
  }
  /// X' w X of three rows X (3, n).
  HD_ONCE void add(const SymMat3<Real>& w, const Real* X, uint32_t touched) {
    const Real *a = X, *b = a + n_, *c = b + n_;
    each(touched, [&](const ColumnBlocks::Runs& runs, int r, int k) {
      const Real x = w.xx * a[k] + w.xy * b[k] + w.xz * c[k], y = w.xy * a[k] + w.yy * b[k] + w.yz * c[k],
                 z = w.xz * a[k] + w.yz * b[k] + w.zz * c[k];
      Real* to = row(k);
      from(runs, r, k, [&](int j) { to[j] = to[j] + (x * a[j] + y * b[j] + z * c[j]); });
    });
  }
  HD void factor() { block_factor(blocks_, pattern_, n_, entries_, Real(Scalar<Real>(0.5))); }
  /// Before factor().
  HD Real trace() const {
    Real sum(0);
    for (int k = 0; k < n_; ++k) sum = sum + row(k)[k];
    return sum;
  }
  /// Takes another's entries, and gives it those that were here, in worlds `which`.
  HD_ONCE void exchange(const Mask<Real>& which, GramMatrix& other) {
    for (int64_t i = 0; i < static_cast<int64_t>(n_) * n_; ++i)
      stiction::exchange(which, entries_[i], other.entries_[i]);
  }
  /// x <- U^-T x for R vectors side by side, x[R k + d], in a set that reached() gave.
  template <int R>
  HD void solve_lower(uint32_t set, Real* x) const {
    block_solve<R>(blocks_, pattern_, n_, entries_, set, x);
  }
  /// w_k = H_kk / |row k|^2: the diagonal that makes |1 - w H|_F least. w (n); before factor().
  HD void nearest_diagonal(Real* w) const {
    for (int k = 0; k < n_; ++k) w[k] = Real(0);
    for (int b = 0; b < blocks_.count; ++b) {
      const ColumnBlocks::Runs runs = blocks_.runs(pattern_.upper[b] | uint32_t(1) << b);
      for (int k = blocks_.begin[b]; k < blocks_.begin[b + 1]; ++k)
        from(runs, 0, k, [&](int j) {
          const Real x = row(k)[j];
          w[k] = w[k] + x * x;
          if (j != k) w[j] = w[j] + x * x;
        });
    }
    for (int k = 0; k < n_; ++k) w[k] = row(k)[k] / w[k];
  }
  /// x <- (I + sum w x x')^-1 x.
  HD void solve(Real* x) const {
    solve_lower<1>(blocks_.all(), x);
    block_solve_back(blocks_, pattern_, n_, entries_, x);
  }

 private:
  HD Real* row(int k) const { return entries_ + static_cast<int64_t>(k) * n_; }
  /// visit(runs, r, k) for every column k that is touched, which is in run r.
  template <class Visit>
  HD void each(uint32_t touched, Visit visit) const {
    const ColumnBlocks::Runs runs = blocks_.runs(touched);
    for (int r = 0; r < runs.count; ++r)
      for (int k = runs.begin[r]; k < runs.end[r]; ++k) visit(runs, r, k);
  }
  /// visit(j) for the columns from k, in run r, on.
  template <class Visit>
  HD static void from(const ColumnBlocks::Runs& runs, int r, int k, Visit visit) {
    for (int j = k; j < runs.end[r]; ++j) visit(j);
    for (int s = r + 1; s < runs.count; ++s)
      for (int j = runs.begin[s]; j < runs.end[s]; ++j) visit(j);
  }

  int n_ = 0;
  Real* entries_ = nullptr;
  ColumnBlocks blocks_;
  BlockPattern pattern_;
};

}  // namespace stiction
