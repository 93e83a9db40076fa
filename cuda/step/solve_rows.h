// What step/solvers.h and step/fallback.h declare: compiled once per number type, not once per kind of step.
#pragma once
#include "step/fallback.h"
#include "step/solvers.h"

namespace stiction {

template <class Solver, class Real, class Group>
HD_ONCE SolveStats<Real> solve_with(const Group& g, const RowProblem<Real>& problem,
                                    const SolveLimits<Scalar<Real>>& limits,
                                    const typename Solver::template Options<Scalar<Real>>& options, Real* memory,
                                    Real* impulse) {
  static_assert(ContactSolver<Solver, Real>);
  return Solver::template solve<Real>(g, problem, limits, options, memory, impulse);
}

template <class Real, class Group>
HD_CALL SolveStats<Real> solve_rows(const Group& g, const RowProblem<Real>& problem,
                                    const SolveLimits<Scalar<Real>>& limits, const SolverOptions<Scalar<Real>>& options,
                                    Real* memory, Real* impulse) {
  return with_solver(options, [&](auto solver, const auto& own) {
    return solve_with<decltype(solver), Real>(g, problem, limits, own, memory, impulse);
  });
}

namespace fallback_detail {

/// Some worlds of a problem in double, to be changed.
template <class Double, class Real>
struct DoubleRows {
  static constexpr int W = kWidth<Double>;
  RowArrays<Double> rows;
  RowProblem<Double> view;

  HD DoubleRows(const RowProblem<Real>& p, const int (&from)[W], const Real* impulse, Arena<Double>& arena)
      : rows(static_cast<const RowCounts&>(p)) {
    rows.near = p.near, rows.blocks = p.blocks;
    rows.carve(arena);
    auto copy = [&](int64_t n, const Real* a, Double* b) {
      for (int64_t i = 0; i < n; ++i) b[i] = taken(a[i], from);
    };
    const int64_t n = p.rows();
    copy(n * p.width, p.Y, rows.Y), copy(n, p.free, rows.free), copy(n, p.e, rows.e), copy(n, p.R, rows.R);
    copy(n, p.W, rows.W), copy(p.contacts, p.mu, rows.mu), copy(p.scalars, p.lower, rows.lower);
    copy(p.scalars, p.upper, rows.upper), copy(n, impulse, rows.impulse);
    if (p.by_tree) copy(p.contacts + p.scalars, p.scales, rows.scale);
    for (int k = 0; k < p.contacts + p.scalars; ++k) rows.touched[k] = touched(k);
    view = rows.view(taken(p.least_velocity, from), taken(p.scale, from));
  }
  HD static Double taken(const Real& x, const int (&from)[W]) {
    Double y;
    for (int w = 0; w < W; ++w) set_lane(y, w, static_cast<double>(lane(x, from[w])));
    return y;
  }
  /// What these worlds touch: often less than all of a pack.
  HD uint32_t touched(int k) const {
    const bool contact = k < rows.contacts;
    const int first = contact ? 3 * k : 2 * rows.contacts + k, count = contact ? 3 : 1;
    return touched_by(first, count) | (contact && rows.spins > 0 ? touched_by(rows.spin_row(k), 3) : 0);
  }
  HD uint32_t touched_by(int first, int count) const {
    uint32_t set = 0;
    for (int b = 0; b < rows.blocks.count; ++b) {
      Double most(0);
      for (int i = first; i < first + count; ++i)
        for (int a = rows.blocks.begin[b]; a < rows.blocks.begin[b + 1]; ++a)
          most = max(most, abs(rows.Y[static_cast<int64_t>(i) * rows.width + a]));
      if (any(most > Double(0))) set |= uint32_t(1) << b;
    }
    return set;
  }

  /// Overlaps, limits that are passed and joints that drifted apart need not close any more. Starts from no impulses.
  HD void give_up_recovery(const Mask<Double>& which) {
    const Double zero(0);
    for (int i = 0; i < 3 * rows.contacts; ++i) rows.e[i] = select(which, max(rows.e[i], zero), rows.e[i]);
    for (int k = 0; k < rows.scalars; ++k) {
      Double& e = rows.e[3 * rows.contacts + k];
      const Mask<Double> rigid = which & (rows.R[3 * rows.contacts + k] == zero);
      e = select(rigid, select(rows.lower[k] == zero, max(e, zero), zero), e);
    }
    drop_impulses(which);
  }
  /// Impulses as they were.
  HD void take_impulses(const Real* impulse, const int (&from)[W], const Mask<Double>& which) {
    for (int i = 0; i < rows.rows(); ++i) rows.impulse[i] = select(which, taken(impulse[i], from), rows.impulse[i]);
  }
  HD void drop_impulses(const Mask<Double>& which) {
    for (int i = 0; i < rows.rows(); ++i) rows.impulse[i] = select(which, Double(0), rows.impulse[i]);
  }
  /// The largest W_nn |l| of the contacts, m/s.
  HD Double largest_push() const {
    Double most(0);
    for (int i = 0; i < 3 * rows.contacts; ++i) most = max(most, abs(rows.impulse[i]) * rows.W[i / 3 * 3 + 2]);
    return most;
  }
};

/// fall_back for the flagged worlds, as many at a time as Double has lanes.
template <class Double, class Real>
HD_ONCE Mask<Real> improve(const RowProblem<Real>& problem, double certify, const Mask<Real>& flagged,
                           const FallbackScore<Real>& before, void* memory, Real* impulse) {
  using Rows = DoubleRows<Double, Real>;
  constexpr int W = Rows::W;
  SolveLimits<double> sweeps, slow, limits;
  sweeps.tolerance = slow.tolerance = limits.tolerance = 0.1 * certify;
  sweeps.iterations = kExactSweeps, slow.iterations = kSlowSweeps, limits.iterations = 30;
  BisectionOptions<double> exact;
  exact.coulomb = 1;
  CanalOptions<double> options;
  options.inner = 10;
  const Double hopeless(max(kHopeless, certify)), most(kLargestPush<Scalar<Real>>);
  Mask<Real> without = mask_of<Real>(false);

  for (int next = 0; next < kWidth<Real>;) {
    int from[W], count = 0;
    for (; next < kWidth<Real> && count < W; ++next)
      if (lane(flagged, next)) {
        if (count == 0)
          for (int& w : from) w = next;  // something finite where there are fewer; what becomes of it is not looked at
        from[count++] = next;
      }
    if (count == 0) break;

    Arena<Double> arena(static_cast<Double*>(memory));
    Rows d(problem, from, impulse, arena);
    Mask<Double> used{};
    for (int w = 0; w < count; ++w) set_lane(used, w, W == 1 ? 1 : -1);
    const Double r_con = Rows::taken(before.r_con, from), scale = Rows::taken(before.scale, from);
    auto keep = [&](const Mask<Double>& which) {
      for (int w = 0; w < count; ++w)
        if (lane(which, w))
          for (int i = 0; i < problem.rows(); ++i)
            set_lane(impulse[i], from[w], static_cast<Scalar<Real>>(lane(d.rows.impulse[i], w)));
    };
    if (problem.spins == 0) {  // which it cannot carry
      const Double swept =
          solve_with<Bisection, Double>(Serial{}, d.view, sweeps, exact, arena.rest(), d.rows.impulse).iterations;
      d.take_impulses(impulse, from, negate(swept < Double(kExactSweeps)));
    }
    CanalStats<Double> stats = Canal::improve(d.view, limits, options, used, arena.rest(), d.rows.impulse);
    auto bounded = [&] { return stats.sound & (d.largest_push() <= most * stats.score.scale); };
    auto answers = [&] { return bounded() & (stats.score.own <= hopeless * stats.score.scale); };
    keep(used & bounded() & (stats.converged | (stats.score.own * scale <= r_con * stats.score.scale)));

    // What asks for too much may be near all the same, with pushes that grew as long as they were let.
    const Mask<Double> left = used & negate(stats.converged),
                       grown = left & (stats.score.own > hopeless * stats.score.scale * kDoubtful) &
                               (d.largest_push() > stats.score.scale * kUnlikelyPush);
    if (any(left)) {
      d.drop_impulses(left);
      solve_with<Pgs, Double>(Serial{}, d.view, slow, PgsOptions<double>{}, arena.rest(), d.rows.impulse);
      const auto found = Canal::improve(d.view, {0, limits.tolerance}, options, left, arena.rest(), d.rows.impulse);
      const Mask<Double> better = left & found.converged;
      stats.take(found, better);
      keep(better & bounded());
    }

    const Mask<Double> lost = used & negate(answers() | (r_con <= hopeless * scale));
    const Mask<Double> grew = grown & negate(lost | stats.converged);
    if (!any(lost | grew)) continue;
    d.give_up_recovery(lost | grew);
    stats = Canal::improve(d.view, limits, options, lost | grew, arena.rest(), d.rows.impulse);
    const Mask<Double> unsolved = lost & negate(answers());
    d.drop_impulses(unsolved);  // nothing is pushed by what is not understood
    keep(lost | (grew & stats.converged));
    for (int w = 0; w < count; ++w)
      if (lane(unsolved, w)) set_lane(without, from[w], kWidth<Real> == 1 ? 1 : -1);
  }
  return without;
}

}  // namespace fallback_detail

template <class Real>
HD_CALL Mask<Real> fall_back(const RowProblem<Real>& problem, Scalar<Real> certify, const Mask<Real>& flagged,
                             const FallbackScore<Real>& before, void* memory, Real* impulse) {
  using Wide = typename DoubleOf<Real>::Type;
  int worlds = 0;
  for (int w = 0; w < kWidth<Real>; ++w) worlds += lane(flagged, w) ? 1 : 0;
  // A world alone fills a register by its columns; which way is taken changes no bit.
  if (4 * worlds <= kWidth<Wide>)
    return fallback_detail::improve<double>(problem, static_cast<double>(certify), flagged, before, memory, impulse);
  return fallback_detail::improve<Wide>(problem, static_cast<double>(certify), flagged, before, memory, impulse);
}

}  // namespace stiction
