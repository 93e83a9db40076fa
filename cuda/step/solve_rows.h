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

/// Bodies of a world that its rows couple with each other and nothing else: blocks of its columns.
struct Island {
  int world;
  uint32_t blocks;
};

/// What contact k, or another row behind the contacts, touches in world w: often less than in all of a pack.
template <class Real>
HD uint32_t touched_in(const RowProblem<Real>& p, int k, int w) {
  uint32_t set = 0;
  p.each_row(k, [&](int i) {
    ColumnBlocks::each(p.touches(k), [&](int b) {
      for (int a = p.blocks.begin[b]; a < p.blocks.begin[b + 1]; ++a)
        if (lane(p.row(i)[a], w) != 0) set |= uint32_t(1) << b;
    });
  });
  return set;
}

/// Adds the islands of world w to n others. Returns how many there are then.
template <class Real>
HD int add_islands(const RowProblem<Real>& p, int w, Island* island, int n) {
  const int first = n;
  for (int k = 0; k < p.contacts + p.scalars; ++k) {
    uint32_t set = touched_in(p, k, w);
    if (set == 0) continue;
    for (int i = n; i-- > first;)
      if (island[i].blocks & set) set |= island[i].blocks, island[i] = island[--n];
    island[n++] = {w, set};
  }
  return n;
}

/// Some islands of a problem in double, each as a world in which nothing else is; to be changed.
template <class Double, class Real>
struct DoubleRows {
  static constexpr int W = kWidth<Double>;
  const RowProblem<Real>& from;
  const Island (&of)[W];
  RowArrays<Double> rows;
  RowProblem<Double> view;

  HD DoubleRows(const RowProblem<Real>& p, const Island (&islands)[W], const Real* impulse, Arena<Double>& arena)
      : from(p), of(islands), rows(static_cast<const RowCounts&>(p)) {
    rows.near = p.near, rows.blocks = p.blocks;
    rows.carve(arena);
    auto copy = [&](int64_t n, const Real* a, Double* b) {
      for (int64_t i = 0; i < n; ++i) b[i] = taken(a[i]);
    };
    const int64_t n = p.rows();
    copy(n * p.width, p.Y, rows.Y), copy(n, p.free, rows.free), copy(n, p.e, rows.e), copy(n, p.R, rows.R);
    copy(n, p.W, rows.W), copy(p.contacts, p.mu, rows.mu), copy(p.scalars, p.lower, rows.lower);
    copy(p.scalars, p.upper, rows.upper), copy(n, impulse, rows.impulse);
    if (p.by_tree) copy(p.contacts + p.scalars, p.scales, rows.scale);
    for (int k = 0; k < p.contacts + p.scalars; ++k) rows.touched[k] = 0;
    for (int w = 0; w < W; ++w)
      for (int k = 0; k < p.contacts + p.scalars; ++k) {
        const uint32_t set = touched_in(p, k, of[w].world);
        if (set & of[w].blocks) rows.touched[k] |= set;
        else p.each_row(k, [&](int i) { leave_out(i, k, w); });
      }
    view = rows.view(taken(p.least_velocity), taken(p.scale));
  }
  HD Double taken(const Real& x) const {
    Double y;
    for (int w = 0; w < W; ++w) set_lane(y, w, static_cast<double>(lane(x, of[w].world)));
    return y;
  }
  /// Row i, of block k, is in a place that lane w does not use.
  HD void leave_out(int i, int k, int w) {
    for (int a = 0; a < rows.width; ++a) set_lane(rows.Y[static_cast<int64_t>(i) * rows.width + a], w, 0.0);
    set_lane(rows.free[i], w, 0.0), set_lane(rows.e[i], w, 0.0), set_lane(rows.R[i], w, 0.0);
    set_lane(rows.W[i], w, 0.0), set_lane(rows.impulse[i], w, 0.0);
    if (rows.by_tree) set_lane(rows.scale[k], w, 0.0);
  }
  /// visit(i, w) for all rows i of the islands in lanes w.
  template <class Visit>
  HD void each_of(const Mask<Double>& which, Visit visit) const {
    for (int w = 0; w < W; ++w)
      for (int k = 0; lane(which, w) && k < rows.contacts + rows.scalars; ++k)
        if (touched_in(from, k, of[w].world) & of[w].blocks) from.each_row(k, [&](int i) { visit(i, w); });
  }
  /// Gives the impulses of these islands back.
  HD void put(const Mask<Double>& which, Real* impulse) const {
    each_of(which, [&](int i, int w) {
      set_lane(impulse[i], of[w].world, static_cast<Scalar<Real>>(lane(rows.impulse[i], w)));
    });
  }
  /// Of the impulses there. memory: width numbers.
  HD RowScore<Double> score(Double* memory) const {
    view.push(rows.impulse, memory);
    return score_rows(view, Law::kCoulomb, rows.impulse, [&](int i) { return view.slip(i, rows.impulse, memory); });
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
  HD void take_impulses(const Real* impulse, const Mask<Double>& which) {
    each_of(which,
            [&](int i, int w) { set_lane(rows.impulse[i], w, static_cast<double>(lane(impulse[i], of[w].world))); });
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

/// fall_back for n islands, as many at a time as Double has lanes.
template <class Double, class Real>
HD_ONCE Mask<Real> improve(const RowProblem<Real>& problem, double certify, const Island* island, int n, void* memory,
                           Real* impulse) {
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

  for (int next = 0; next < n; next += W) {
    Island of[W];  // something finite where there are fewer; what becomes of it is not looked at
    for (int w = 0; w < W; ++w) of[w] = island[min(next + w, n - 1)];
    Arena<Double> arena(static_cast<Double*>(memory));
    Rows d(problem, of, impulse, arena);
    const RowScore<Double> before = d.score(arena.rest());
    Mask<Double> used = before.worst() > Double(limits.tolerance);
    for (int w = n - next; w < W; ++w) set_lane(used, w, 0);
    if (!any(used)) continue;
    auto keep = [&](const Mask<Double>& which) { d.put(which, impulse); };
    if (problem.spins == 0) {  // which it cannot carry
      const Double swept =
          solve_with<Bisection, Double>(Serial{}, d.view, sweeps, exact, arena.rest(), d.rows.impulse).iterations;
      d.take_impulses(impulse, negate(swept < Double(kExactSweeps)));
    }
    CanalStats<Double> stats = Canal::improve(d.view, limits, options, used, arena.rest(), d.rows.impulse);
    auto bounded = [&] { return stats.sound & (d.largest_push() <= most * stats.score.scale); };
    auto answers = [&] { return bounded() & (stats.score.own <= hopeless * stats.score.scale); };
    keep(used & bounded() & (stats.converged | (stats.score.own * before.scale <= before.own * stats.score.scale)));

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

    const Mask<Double> lost = used & negate(answers() | (before.own <= hopeless * before.scale));
    const Mask<Double> grew = grown & negate(lost | stats.converged);
    if (!any(lost | grew)) continue;
    d.give_up_recovery(lost | grew);
    stats = Canal::improve(d.view, limits, options, lost | grew, arena.rest(), d.rows.impulse);
    const Mask<Double> unsolved = lost & negate(answers());
    d.drop_impulses(unsolved);  // nothing is pushed by what is not understood
    keep(lost | (grew & stats.converged));
    for (int w = 0; w < W; ++w)
      if (lane(unsolved, w)) set_lane(without, of[w].world, kWidth<Real> == 1 ? 1 : -1);
  }
  return without;
}

}  // namespace fallback_detail

template <class Real>
HD_CALL Mask<Real> fall_back(const RowProblem<Real>& problem, Scalar<Real> certify, const Mask<Real>& flagged,
                             void* memory, Real* impulse) {
  using Wide = typename DoubleOf<Real>::Type;
  fallback_detail::Island island[kWidth<Real> * ColumnBlocks::kMost];
  int n = 0;
  for (int w = 0; w < kWidth<Real>; ++w)
    if (lane(flagged, w)) n = fallback_detail::add_islands(problem, w, island, n);
  // An island alone fills a register by its columns; which way is taken changes no bit.
  if (4 * n <= kWidth<Wide>)
    return fallback_detail::improve<double>(problem, static_cast<double>(certify), island, n, memory, impulse);
  return fallback_detail::improve<Wide>(problem, static_cast<double>(certify), island, n, memory, impulse);
}

}  // namespace stiction
