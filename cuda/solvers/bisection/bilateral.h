// Rows without bounds, as those of closed loops, solved for all others at once: sweeps that take them one at a time hardly get
// anywhere where contacts push through them. Of the rows b of equalities, by Cholesky's factor of their block,
//
//   T T' = Y_b Y_b' + R_b,   Q = T^-1 Y_b,   a = -T^-1 (J v* + e)_b,   u = Q' a + (1 - Q' Q) Y_c' l_c
//
// is the motion where they hold whatever the other impulses l_c: each of those pushes by its row of Y_c (1 - Q' Q), and at the end
// T' l_b = a - Q Y_c' l_c. A row that those before it hold but for rounding gets no impulse. W stays what it was: a contact is
// solved with the impulses of equalities as they are, and they follow. So what is solved, dissipation too, is the law of the
// problem as it was asked.
//
// Cost: 2 width multiply-adds for each such row and row, once.
#pragma once
#include "contact/dense.h"
#include "contact/row_problem.h"
#include "linalg/gram.h"

namespace stiction {

template <class Real>
struct BilateralRows {
  using S = Scalar<Real>;
  using M = Mask<Real>;

  /// Of W: what T_kk squared has at least.
  static constexpr S kLeft = sizeof(S) == 8 ? S(1e-12) : S(1e-6);

  const RowProblem<Real>& p;
  Real *pushes, *free, *W;  // (n, width), (n), (n) of the others
  Real *Q, *a, *one_over;   // (scalars, width); (scalars): a, and 1 / T_kk, 0 of what is not held
  Real* u;                  // (width)
  uint32_t* touched;        // (contacts + scalars)

  HD explicit BilateralRows(const RowProblem<Real>& problem) : p(problem) {}
  HD void carve(Arena<Real>& arena) {
    const int n = p.rows();
    pushes = arena.take(int64_t{n} * p.width), free = arena.take(n), W = arena.take(n);
    Q = arena.take(int64_t{p.scalars} * p.width), u = arena.take(p.width);
    a = arena.take(p.scalars), one_over = arena.take(p.scalars);
    touched = arena.take_bits(p.contacts + p.scalars);
  }

  HD M bilateral(int r) const {
    const Real none(kUnbounded);
    return (p.W[p.scalar_row(r)] > Real(0)) & (p.lower[r] <= -none) & (p.upper[r] >= none);
  }
  HD bool some() const {
    for (int r = 0; r < p.scalars; ++r)
      if (any(bilateral(r))) return true;
    return false;
  }
  /// Worlds where row i is one, and held.
  HD M holds(int i) const { return i < 3 * p.contacts ? mask_of<Real>(false) : one_over[i - 3 * p.contacts] > Real(0); }

  /// The others as u answers them, in these arrays: free of u = 0, Y as they push, W of none of these.
  HD_ONCE RowProblem<Real> others() {
    for (int k = 0; k < p.contacts + p.scalars; ++k) touched[k] = p.touches(k);
    for (int i = 0; i < p.rows(); ++i) {
      free[i] = p.free[i], W[i] = p.W[i];
      for (int c = 0; c < p.width; ++c) push(i)[c] = p.row(i)[c];
    }
    for (int r = 0; r < p.scalars; ++r) {
      const M on = bilateral(r);
      a[r] = one_over[r] = Real(0);
      if (any(on)) hold(r, on);
    }
    RowProblem<Real> problem = p;
    problem.Y = pushes, problem.free = free, problem.W = W, problem.touched = touched;
    return problem;
  }
  /// Their impulses in l (n), by those of the others.
  HD_ONCE void finish(Real* l) {
    for (int r = 0; r < p.scalars; ++r) l[p.scalar_row(r)] = select(bilateral(r), Real(0), l[p.scalar_row(r)]);
    p.push(l, u);
    for (int r = p.scalars - 1; r >= 0; --r) {
      const int i = p.scalar_row(r);
      const M on = one_over[r] > Real(0);
      if (!any(on)) continue;
      const Real impulse = select(on, (a[r] - dot(p.width, direction(r), u)) * one_over[r], Real(0));
      l[i] = select(on, impulse, l[i]);
      p.add_push(i, impulse, u);
    }
  }

 private:
  HD Real* push(int i) { return pushes + static_cast<int64_t>(i) * p.width; }
  HD Real* direction(int r) { return Q + static_cast<int64_t>(r) * p.width; }

  /// Row r of Q, in worlds `on`, and what it does to all rows.
  HD void hold(int r, const M& on) {
    const int i = p.scalar_row(r);
    const uint32_t reach = touched[p.contacts + r];
    Real* q = direction(r);
    const Real square = dot(p.width, push(i), p.row(i)) + p.R[i];
    const M left = on & (square > (p.W[i] + p.R[i]) * kLeft);
    one_over[r] = select(left, Real(1) / sqrt(select(left, square, Real(1))), Real(0));
    for (int c = 0; c < p.width; ++c) q[c] = push(i)[c] * one_over[r];
    a[r] = (free[i] + p.e[i]) * -one_over[r];
    W[i] = select(on, Real(0), W[i]);
    for (int k = 0; k < p.contacts + p.scalars; ++k) {
      if ((touched[k] & reach) == 0) continue;
      p.each_row(k, [&](int j) {
        const Real along = dot(p.width, p.row(j), q);
        free[j] = free[j] + along * a[r];
        for (int c = 0; c < p.width; ++c) push(j)[c] = push(j)[c] - along * q[c];
      });
      touched[k] |= reach;
    }
  }
};

}  // namespace stiction
