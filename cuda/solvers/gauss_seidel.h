// What PGS and bisection share: contacts in order, then rows in order, one at a time while the others rest. u = Y'l is kept beside
// the impulses, so that s = J v* + Y u + e + R l is always that of the newest; it is made anew where the score is tested.
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

  HD GaussSeidel(const RowProblem<Real>& problem, const SolveLimits<S>& limits_, Real* impulse)
      : p(problem), limits(limits_), l(impulse) {}
  HD void carve(Arena<Real>& arena) { u = arena.take(p.width); }

  HD Real slip(int i) const { return p.slip(i, l, u); }
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
    auto unsolved = [&](const M& running) {
      if (!(limits.tolerance > S(0))) return running;
      p.push(l, u);
      return M(running & (score_rows(p, law, l, [&](int i) { return slip(i); }).worst() > Real(limits.tolerance)));
    };
    admit(p, l, l);
    p.push(l, u);
    return {iterate<Real>(limits.iterations, check, unsolved(mask_of<Real>(true)), sweep, unsolved)};
  }
};

}  // namespace stiction
