// What PGS and bisection share: contacts in order, then rows in order, one at a time while the others rest. u = Y'l is kept beside
// the impulses, so that s = J v* + Y u + e + R l is always that of the newest; it is made anew where the score is tested.
// The answer is the best of those tests, the warm start among them; without a tolerance the last.
#pragma once
#include "solvers/score.h"

namespace stiction {

template <class Real>
struct GaussSeidel {
  using S = Scalar<Real>;
  using M = Mask<Real>;

  const RowProblem<Real>& p;
  const SolveLimits<S>& limits;
  Real* l;
  Real* u;  // (width)
  Best<Real> best;

  HD GaussSeidel(const RowProblem<Real>& problem, const SolveLimits<S>& limits_, Real* impulse)
      : p(problem), limits(limits_), l(impulse), best{nullptr} {}
  HD void carve(Arena<Real>& arena) { u = arena.take(p.width), best.impulse = arena.take(p.rows()); }

  HD Real slip(int i) const { return p.slip(i, l, u); }
  /// W_ii of contact k.
  HD SymMat3<Real> own_block(int k) const {
    auto W = [&](int a, int b) { return p.along(3 * k + a, p.row(3 * k + b)); };
    return {W(0, 0), W(0, 1), W(0, 2), W(1, 1), W(1, 2), W(2, 2)};
  }
  /// l_i becomes `next`, which is `change` more.
  HD void take(const M& on, int i, Real next, Real change) {
    l[i] = select(on, next, l[i]);
    p.add_push(i, select(on, change, Real(0)), u);
  }

  /// contact(on, k), row(on, k, its place): one sweep, in worlds `on`.
  template <class Contact, class Row>
  HD void sweep(const M& running, Contact contact, Row row) {
    for (int k = 0; k < p.contacts; ++k)
      if (const M on = running & (p.W[3 * k] > Real(0)); any(on)) contact(on, k);
    for (int k = 0; k < p.scalars; ++k)
      if (const M on = running & (p.W[p.scalar_row(k)] > Real(0)); any(on)) row(on, k, p.scalar_row(k));
  }
  /// Sweeps until the law is met, tested every `check` of them.
  template <class Sweep>
  HD SolveStats<Real> solve(Law law, int check, Sweep sweep) {
    const bool tested = limits.tolerance > S(0);
    const int n = p.rows();
    auto unsolved = [&](const M& running) {
      if (!tested) return running;
      p.push(l, u);
      const Real score = score_rows(p, law, l, [&](int i) { return slip(i); }).worst();
      best.take(running, score, l, n);
      return M(running & (score > Real(limits.tolerance)));
    };
    for (int i = 0; i < n; ++i) best.impulse[i] = Real(0);
    admit(p, l, l);
    p.push(l, u);
    const Real sweeps = iterate<Real>(limits.iterations, check, unsolved(mask_of<Real>(true)), sweep, unsolved);
    for (int i = 0; tested && i < n; ++i) l[i] = best.impulse[i];
    return {sweeps};
  }
};

}  // namespace stiction
