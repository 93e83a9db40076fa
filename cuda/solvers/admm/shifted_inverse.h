// (X X' + D)^-1 with X (n, width) and a diagonal D > 0, of one world or of each world of a pack, by a Cholesky factor of the smaller
// side:
//
//   rows      X X' + D = U'U                                                  worlds with at most `width` rows of their own
//   columns   C = I + X' D^-1 X = U'U,   f = D^-1 (r - X C^-1 X' D^-1 r)       the others (Woodbury)
//
// Two factors are kept, of the present D and of the one before it: D goes to and fro.
//
// Which side a world takes depends on its own rows alone, so that its bits do not depend on its pack; a mixed pack does both.
#pragma once
#include "contact/row_problem.h"
#include "linalg/gram.h"
#include "linalg/small_cholesky.h"

namespace stiction {

template <class Real>
class ShiftedInverse {
 public:
  using S = Scalar<Real>;

  Real *X, *D;  // (n, width), (n): the caller's to fill, X before prepare(), D before factor()

  HD explicit ShiftedInverse(const RowProblem<Real>& problem)
      : p_(problem), n_(problem.rows()), width_(problem.width) {}
  HD void carve(Arena<Real>& arena) {
    const int n = n_, width = width_;
    X = arena.take(static_cast<int64_t>(n) * width), D = arena.take(n);
    W_ = arena.take(n), rows_ = arena.take(static_cast<int64_t>(n) * n);
    earlier_rows_ = arena.take(static_cast<int64_t>(n) * n);
    columns_.carve(width, arena), earlier_columns_.carve(width, arena);
    u_ = arena.take(width), other_ = arena.take(n);
  }

  /// `used`: the rows of each world that are not 0.
  HD void prepare(Real used) {
    columns_.set_pattern(p_.blocks, p_.contacts + p_.scalars, [&](int k) { return p_.touches(k); });
    by_rows_ = used <= p_.columns;
    if (!any(by_rows_)) return;
    for (int i = 0; i < n_; ++i) {  // X X' below the diagonal, where the factor above it leaves it alone
      for (int j = 0; j < i; ++j) rows_[at(i, j)] = dot(width_, row(i), row(j));
      W_[i] = dot(width_, row(i), row(i));
    }
  }

  /// Of worlds `changed` at another D, which `shift` tells from all others. Those that had to be factored anew.
  HD Mask<Real> factor(const Mask<Real>& changed, Real shift) {
    const Mask<Real> anew = changed & negate(shift == earlier_);
    earlier_ = select(changed, shift_, earlier_), shift_ = select(changed, shift, shift_);
    if (any(by_rows_))
      for (int i = 0; i < n_; ++i)
        for (int j = i; j < n_; ++j) exchange(changed, rows_[at(i, j)], earlier_rows_[at(i, j)]);
    if (!all(by_rows_)) columns_.exchange(changed, earlier_columns_);
    if (any(anew)) factor_all();  // to the same bits where it is known
    return anew;
  }

  /// r <- (X X' + D)^-1 r.
  HD void solve(Real* r) {
    const bool some = any(by_rows_);
    if (all(by_rows_)) return cholesky_solve(n_, rows_, r);
    Real* f = some ? other_ : r;
    for (int i = 0; some && i < n_; ++i) f[i] = r[i];
    for (int a = 0; a < width_; ++a) u_[a] = Real(0);
    for (int i = 0; i < n_; ++i) {
      const Real *x = row(i), weighted = f[i] / D[i];
      for (int a = 0; a < width_; ++a) u_[a] = u_[a] + x[a] * weighted;
    }
    columns_.solve(u_);
    for (int i = 0; i < n_; ++i) f[i] = (f[i] - dot(width_, row(i), u_)) / D[i];
    if (!some) return;
    cholesky_solve(n_, rows_, r);
    for (int i = 0; i < n_; ++i) r[i] = select(by_rows_, r[i], f[i]);
  }

  HD const Real* row(int i) const { return X + static_cast<int64_t>(i) * width_; }

 private:
  HD int64_t at(int i, int j) const { return static_cast<int64_t>(i) * n_ + j; }
  HD_ONCE void factor_all() {
    if (any(by_rows_)) {
      Real least = D[0];
      for (int i = 0; i < n_; ++i) {
        least = min(least, D[i]), rows_[at(i, i)] = W_[i] + D[i];
        for (int j = i + 1; j < n_; ++j) rows_[at(i, j)] = rows_[at(j, i)];
      }
      cholesky_factor(n_, rows_, least * S(0.5));
    }
    if (all(by_rows_)) return;
    columns_.begin();
    for (int i = 0; i < n_; ++i) columns_.add(Real(1) / D[i], row(i), p_.touches(p_.block_of(i)));
    columns_.factor();
  }

  const RowProblem<Real>& p_;
  const int n_, width_;
  Mask<Real> by_rows_;
  Real shift_ = Real(-1), earlier_ = Real(-1);
  Real *W_, *rows_, *earlier_rows_;  // (n) diagonal of X X'; (n, n) U from the diagonal up, X X' below it; (n, n) U
  GramMatrix<Real> columns_, earlier_columns_;
  Real* u_;      // (width)
  Real* other_;  // (n)
};

}  // namespace stiction
