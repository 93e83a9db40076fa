// Projected Gauss-Seidel: the plain baseline, exact Coulomb by the strict projection. docs/theory.md, section 10.
//
// One sweep, contacts in order, then rows in order; w = J v* + Y u is always that of the newest impulses, because u = Y'l is kept:
//
//   l_n <- max(0, l_n - r_n (w_n + e_n + R_n l_n)),           r_n = a / (W_n + R_n)
//   l_t <- disk of radius mu l_n ( l_t - r_t (w_t + e_t + R_t l_t) ),  r_t = a / (max(W_11, W_22) + R_t)
//   row <- clamp(l - a (w + e + R l) / (W_kk + R), lower, upper)
//
// a = relaxation, 0.6 by default: 1 / max with a = 1 cycles on 8 % of quadruped states, 1 / min on many more. Both tangents are
// updated from the same w: with one after the other a sliding contact's fixed point is not Coulomb's. The normal goes first.
//
// Stop: con <= tolerance V, split <= 10 tolerance V and every row <= tolerance V_row, of solvers/score.h,
// tested every `check` sweeps, when u is made anew; tolerance 0: always `iterations` sweeps.
// Cost of a sweep: 6 width multiply-adds a contact, 2 width another row.
#pragma once
#include "solvers/score.h"
#include "solvers/solver.h"

namespace stiction {

template <class S>
struct PgsOptions {
  S relaxation = S(0.6);
  int check = 4;  // sweeps between two tests

  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("relaxation", o.relaxation...), visit("check", o.check...);
  }
};

namespace pgs_detail {

template <class Real>
struct Sweeper {
  using S = Scalar<Real>;

  const RowProblem<Real>& p;
  const SolveLimits<S>& limits;
  const PgsOptions<S>& opt;
  Real* l;
  Real *u, *most_t;  // (width); (contacts) max(W_11, W_22)

  HD void carve(Arena<Real>& arena) { u = arena.take(p.width), most_t = arena.take(p.contacts); }

  HD Real sigma(int i) const { return p.velocity(i, u) + p.e[i] + p.R[i] * l[i]; }
  /// relaxation / g where g > 0, else 0.
  HD Real pace(Real g) const {
    const Mask<Real> moves = g > Real(0);
    return select(moves, Real(opt.relaxation) / select(moves, g, Real(1)), Real(0));
  }
  HD Real square(int i) const {
    const Real* y = p.row(i);
    Real sum(0);
    for (int a = 0; a < p.width; ++a) sum = sum + y[a] * y[a];
    return sum;
  }

  /// Impulses that the cone and the bounds allow; rows that are not used get 0.
  HD void begin() {
    const Real zero(0);
    for (int k = 0; k < p.contacts; ++k) {
      Real* f = l + 3 * k;
      const Vec3<Real> a = project_strict(Vec3<Real>{f[0], f[1], f[2]}, p.mu[k]);
      const Mask<Real> on = p.W[3 * k] > zero;
      f[0] = select(on, a.x, zero), f[1] = select(on, a.y, zero), f[2] = select(on, a.z, zero);
      most_t[k] = max(p.W[3 * k], max(square(3 * k), square(3 * k + 1)));
    }
    for (int k = 0; k < p.scalars; ++k) {
      Real& f = l[p.scalar_row(k)];
      f = select(p.W[p.scalar_row(k)] > zero, clamp(f, p.lower[k], p.upper[k]), zero);
    }
    p.push(l, u);
  }

  HD void take(const Mask<Real>& on, int i, Real next) {
    const Real change = select(on, next - l[i], Real(0));
    l[i] = select(on, next, l[i]);
    p.add_push(i, change, u);
  }
  HD void sweep(const Mask<Real>& running) {
    for (int k = 0; k < p.contacts; ++k) {
      const int i = 3 * k;
      const Mask<Real> on = running & (p.W[i] > Real(0));
      if (!any(on)) continue;
      take(on, i + 2, max(l[i + 2] - pace(p.W[i + 2] + p.R[i + 2]) * sigma(i + 2), Real(0)));
      const Real step = pace(most_t[k] + p.R[i]);
      const Vec3<Real> t =
          project_strict(Vec3<Real>{l[i] - step * sigma(i), l[i + 1] - step * sigma(i + 1), l[i + 2]}, p.mu[k]);
      take(on, i, t.x), take(on, i + 1, t.y);
    }
    for (int k = 0; k < p.scalars; ++k) {
      const int i = p.scalar_row(k);
      const Mask<Real> on = running & (p.W[i] > Real(0));
      if (!any(on)) continue;
      take(on, i, clamp(l[i] - pace(p.W[i] + p.R[i]) * sigma(i), p.lower[k], p.upper[k]));
    }
  }

  /// Worlds whose impulses pass; u is made anew from them.
  HD_ONCE Mask<Real> converged() {
    p.push(l, u);
    return score_rows(p, l, [&](int i) { return p.velocity(i, u); }).below(limits.tolerance);
  }

  HD Real solve() {
    const bool until = limits.tolerance > 0;
    Real count(0);
    begin();
    Mask<Real> running = until ? negate(converged()) : mask_of<Real>(true);
    for (int k = 1; k <= limits.iterations && any(running); ++k) {
      sweep(running);
      count = count + select(running, Real(1), Real(0));
      if (until && (k % opt.check == 0 || k == limits.iterations)) running = running & negate(converged());
    }
    return count;
  }
};

}  // namespace pgs_detail

struct Pgs {
  static constexpr const char* kName = "pgs";
  template <class S>
  using Options = PgsOptions<S>;
  template <class S>
  HD static Law law(const Options<S>&) {
    return Law::kCoulomb;
  }
  template <class Real>
  HD static int64_t memory(const RowCounts& most) {
    return measured<Real>(most, [](const RowProblem<Real>& largest, Arena<Real>& arena) {
      pgs_detail::Sweeper<Real>{largest, {}, {}, nullptr, nullptr, nullptr}.carve(arena);
    });
  }
  template <class Real>
  HD static SolveStats<Real> solve(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                   const Options<Scalar<Real>>& options, Real* memory, Real* impulse) {
    pgs_detail::Sweeper<Real> sweeper{problem, limits, options, impulse, nullptr, nullptr};
    Arena<Real> arena(memory);
    sweeper.carve(arena);
    return {sweeper.solve(), Real(0)};
  }
};

}  // namespace stiction
