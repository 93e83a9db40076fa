// What PGS, bisection and SAP's first sweeps share: contacts in order, then rows in order, one at a time while the others rest.
// u = Y'l is kept beside the impulses, so that s = J v* + Y u + e + R l is always that of the newest; it is made anew where the score is
// tested. The answer is the best of those tests, the warm start among them; without a tolerance the last.
#pragma once
#include "linalg/anderson_vector.h"
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
  /// W of three rows from `first` on, as of a contact.
  HD static SymMat3<Real> own_block(const RowProblem<Real>& p, int first) {
    auto W = [&](int a, int b) { return p.along(first + a, p.row(first + b)); };
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
  /// Sweeps until the law is met, tested every `check` of them: that of problem `asked`, whose rows slip by slip_of(i).
  template <class Sweep, class Slip>
  HD SolveStats<Real> solve(const RowProblem<Real>& asked, Law law, int check, Sweep sweep, Slip slip_of) {
    const bool tested = limits.tolerance > S(0);
    const int n = p.rows();
    auto unsolved = [&](const M& running) {
      if (!tested) return running;
      p.push(l, u);
      const Real score = score_rows(asked, law, l, slip_of).worst();
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

/// Where sweeps begin: Anderson's acceleration of the impulses, in units of W^-1/2, as cones and bounds allow it; in a world where
/// the last sweep changed more than the one before it, at what that left.
template <class Real>
struct SweepStart {
  static constexpr int kPlain = 2;  // sweeps before the first extrapolation

  AndersonVector<Real> anderson;
  Real *unit, *begun, *ahead;  // (n)  W^1/2; of l in these units, where the last sweep began, and where the next does
  Real changed;                // square of what the last sweep changed, in these units
  int sweeps;

  HD void carve(int n, Arena<Real>& arena) {
    unit = arena.take(n), begun = arena.take(n), ahead = arena.take(n);
    anderson.carve(n, arena);
  }
  HD void begin(const RowProblem<Real>& p) {
    for (int i = 0; i < p.rows(); ++i) unit[i] = sqrt(p.mobility(p.block_of(i)));
    anderson.begin();
    changed = Real(kUntried<Real>), sweeps = 0;
  }
  /// The most that the sweep which ended at l changed, as a velocity by W, of V.
  HD Real moved(const RowProblem<Real>& p, const Real* l) const {
    Real most(0);
    for (int i = 0; i < p.rows(); ++i) {
      const Real V = p.scale_of(p.block_of(i)), change = abs(l[i] * unit[i] - begun[i]) * unit[i];
      most = max(most, select(V > Real(0), change / select(V > Real(0), V, Real(1)), Real(0)));
    }
    return most;
  }
  /// Before every sweep: l of worlds `running`, and u of it.
  HD_ONCE void next(const RowProblem<Real>& p, const Mask<Real>& running, Real* l, Real* u) {
    const int n = p.rows();
    if (sweeps > 0) {
      const Mask<Real> nearer = measure(n, l);
      anderson.advance(begun, ahead);
      if (sweeps >= kPlain) {
        for (int i = 0; i < n; ++i) {
          const Mask<Real> used = unit[i] > Real(0);
          ahead[i] = select(used, ahead[i] / select(used, unit[i], Real(1)), Real(0));
        }
        admit(p, ahead, ahead);
        for (int i = 0; i < n; ++i) l[i] = select(running & nearer, ahead[i], l[i]);
        p.push(l, u);
      }
    }
    for (int i = 0; i < n; ++i) begun[i] = l[i] * unit[i];
    ++sweeps;
  }

 private:
  /// Worlds that the last sweep, which ended at l, changed less than the one before it.
  HD Mask<Real> measure(int n, const Real* l) {
    Real square(0);
    for (int i = 0; i < n; ++i) {
      ahead[i] = l[i] * unit[i];
      square = square + (ahead[i] - begun[i]) * (ahead[i] - begun[i]);
    }
    const Mask<Real> nearer = square < changed;
    changed = square;
    return nearer;
  }
};

}  // namespace stiction
