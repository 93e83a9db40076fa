// What step/solvers.h and step/fallback.h declare: compiled once per number type, not once per kind of step.
#pragma once
#include "solvers/admm/admm.h"
#include "solvers/bisection/bisection.h"
#include "solvers/canal/canal.h"
#include "solvers/cond/cond.h"
#include "solvers/pgs/pgs.h"
#include "solvers/sap/sap.h"
#include "solvers/subadmm/subadmm.h"
#include "step/fallback.h"
#include "step/islands.h"
#include "step/solvers.h"

namespace stiction {

template <class Real>
HD_CALL int64_t solver_memory(const SolverOptions<Scalar<Real>>& o, const RowCounts& most) {
  const int64_t solver =
      with_solver(o, [&](auto own, const auto&) { return decltype(own)::template memory<Real>(most); });
  if (!most.by_island) return solver;
  Arena<Real> places;
  places.take_bits(3 * places_size<Real>(most)), places.take_bits(places_size<Real>(most)), places.take(most.width);
  return places.used() + RowArrays<Real>::size(most) + solver;
}

template <class Real>
HD_CALL int64_t fallback_bytes(const FallbackPlan& plan, const RowCounts& most) {
  using Double = DoubleOf<Real>;
  RowCounts island = most;
  island.apart = true, island.by_island = false;
  Arena<Double> places;
  for (int i = 0; i < kImprovedTogether<Real>; ++i) places.take_bits(3 * places_size<Real>(most));
  places.take_bits(places_size<Double>(island)), places.take(2 * most.width);
  int64_t solver = max(max(Canal::memory<Double>(island), SubAdmm::memory<Double>(island)),
                       max(Bisection::memory<Double>(island), Pgs::memory<Double>(island)));
  if (plan.solver >= 0) solver = max(solver, solver_memory<double>(aimed_at<double>(plan.solver, plan.law), island));
  return static_cast<int64_t>(sizeof(Double)) * (places.used() + RowArrays<Double>::size(island) + solver);
}

template <class Solver, class Real, class Group>
HD_ONCE SolveStats<Real> solve_with(const Group& g, const RowProblem<Real>& problem,
                                    const SolveLimits<Scalar<Real>>& limits,
                                    const typename Solver::template Options<Scalar<Real>>& options, Real* memory,
                                    Real* impulse) {
  static_assert(ContactSolver<Solver, Real>);
  return Solver::template solve<Real>(g, problem, limits, options, memory, impulse);
}

/// Rounds in which contacts that close are let in, before all others of their worlds are.
inline constexpr int kRounds = 6;

/// The islands of a pack's worlds, as many at a time as there are lanes.
template <class Solver, class Real>
HD_ONCE SolveStats<Real> solve_islands(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                       const typename Solver::template Options<Scalar<Real>>& options, Real* memory,
                                       Real* impulse) {
  constexpr int W = kWidth<Real>;
  Arena<Real> arena(memory);
  uint32_t* table = arena.take_bits(3 * places_size<Real>(problem));
  Real* u = arena.take(problem.width);
  for (int i = 0; i < problem.rows(); ++i) {
    const int k = problem.block_of(i);
    const bool waits = k >= problem.near && k < problem.contacts;
    impulse[i] = select(problem.W[i] > Real(0), waits ? Real(0) : impulse[i], Real(0));
  }
  const FlaggedRows<Real> all{&problem, impulse, mask_of<Real>(true), mask_of<Real>(false), table};
  begin_islands(all);
  Island island[W * ColumnBlocks::kMost];
  SolveStats<Real> stats;
  Mask<Real> worlds = all.worlds;
  for (int round = 0; any(worlds); ++round) {
    int n = 0;
    for (int w = 0; w < W; ++w)
      if (lane(worlds, w)) n = add_islands(all, 0, w, island, n);
    n = keep_fresh(island, n);
    sort_by_rows(island, n);
    SolveStats<Real> most;
    for (int next = 0, count; next < n; next += count) {
      count = min(W, n - next);
      Arena<Real> rest(arena.rest());
      IslandRows<Real, Real> own(&all, island + next, count, rest);
      own.load_all(island + next, count);
      const SolveStats<Real> found =
          solve_with<Solver, Real>(Serial{}, own.view, limits, options, rest.rest(), own.rows.impulse);
      own.put(own.used);
      for (int w = 0; w < count; ++w) {
        const int world = own.of[w].world;
        set_lane(most.iterations, world, max(lane(most.iterations, world), lane(found.iterations, w)));
        set_lane(most.factorizations, world, max(lane(most.factorizations, world), lane(found.factorizations, w)));
      }
    }
    stats.iterations = stats.iterations + most.iterations;
    stats.factorizations = stats.factorizations + most.factorizations;
    worlds = let_in(all, worlds, limits.tolerance, round == kRounds, u);
  }
  return stats;
}

template <class Real, class Group>
HD_CALL SolveStats<Real> solve_rows(const Group& g, const RowProblem<Real>& problem,
                                    const SolveLimits<Scalar<Real>>& limits, const SolverOptions<Scalar<Real>>& options,
                                    Real* memory, Real* impulse) {
  if constexpr (Group::kSize == 1)
    if (problem.by_island)
      return with_solver(options, [&](auto solver, const auto& own) {
        return solve_islands<decltype(solver), Real>(problem, limits, own, memory, impulse);
      });
  return with_solver(options, [&](auto solver, const auto& own) {
    return solve_with<decltype(solver), Real>(g, problem, limits, own, memory, impulse);
  });
}

namespace fallback_detail {

/// Packs of which worlds are to be improved, how, and with what memory.
template <class Real>
struct Improvement {
  FlaggedRows<Real>* packs;
  const FallbackPlan& plan;
  void* memory;
};

/// What a fallback asks of answers. Real: of the steps.
template <class Double, class Real>
struct Demand {
  double tolerance;
  Double hopeless;

  HD explicit Demand(const FallbackPlan& plan)
      : tolerance(kAsked * plan.certify), hopeless(max(kHopeless, plan.certify)) {}
  HD Mask<Double> open(const RowScore<Double>& of) const { return of.worst() > Double(tolerance); }
  HD Mask<Double> hopeful(const RowScore<Double>& of) const { return of.own <= hopeless * of.scale; }
  HD Mask<Double> bounded(const Double& push, const RowScore<Double>& of, const Mask<Double>& solved) const {
    return push <= of.scale * select(solved, Double(kLargestPush), Double(kLargestNearPush<Scalar<Real>>));
  }
  HD Mask<Double> grown(const Double& push, const RowScore<Double>& of, double beyond) const {
    return (of.own > hopeless * of.scale * Double(kDoubtful)) & (push > of.scale * Double(beyond));
  }
  HD Mask<Double> jammed(const Double& passes, const Double& push, const RowScore<Double>& of) const {
    return (passes >= Double(kJammedPasses)) & grown(push, of, kJammedPush);
  }
  HD SolveLimits<double> limits(int iterations) const { return {iterations, tolerance}; }
};

/// The solver that was asked for: from what is there, on from what that gave, then from nothing.
template <class Real>
HD_ONCE void ask(const Improvement<Real>& improvement, const Island* island, int n) {
  const auto& [packs, plan, memory] = improvement;
  const Demand<double, Real> demand(plan);
  const SolverOptions<double> options = aimed_at<double>(plan.solver, plan.law);
  for (int k = 0; k < n; ++k) {
    Arena<double> arena(static_cast<double*>(memory));
    IslandRows<double, Real> d(packs, island + k, 1, arena);
    d.load(0, island[k]);
    for (int attempt = 0; attempt < 3; ++attempt) {
      const RowScore<double> before = d.score(plan.law, arena.rest());
      if (!demand.open(before)) break;
      if (attempt == 2) d.drop_impulses(true);
      solve_rows<double>(Serial{}, d.view, demand.limits(kChosenIterations), options, arena.rest(), d.rows.impulse);
      const RowScore<double> after = d.score(plan.law, arena.rest());
      const bool solved = !demand.open(after), nearer = after.own * before.scale <= before.own * after.scale;
      const bool bounded = after.worst() < kLost<double> && demand.bounded(d.largest_push(), after, solved);
      if (bounded && (solved || (nearer && attempt < 2))) d.put(true);
      if (solved && (bounded || demand.hopeful(before))) break;
      d.take_impulses(true);
    }
  }
}

/// solve(rows, open, memory) of islands that `fits` as they are, as many at a time as there are lanes: takes the answers within `accepted`
/// of those that it tells it has tried, puts the other islands in front, and tells how many they are. Of a group the first lane does all
/// else.
template <class Double, class Real, class Group, class Fits, class Solve>
HD int try_each(const Group& g, const Improvement<Real>& improvement, double accepted, Island* island, int n, Fits fits,
                Solve solve) {
  constexpr int W = kWidth<Double>;
  const auto& [packs, plan, memory] = improvement;
  const Demand<Double, Real> demand(plan);
  const Mask<Double> none = mask_of<Double>(false);
  const bool first = g.rank() == 0;
  int left = 0;
  for (int next = 0, count; next < n; next += count) {
    for (count = 0; count < min(W, n - next) && fits(island[next + count]);) ++count;
    if (count == 0) {
      island[left++] = island[next], count = 1;
      continue;
    }
    Arena<Double> arena(static_cast<Double*>(memory));
    IslandRows<Double, Real> d(packs, island + next, count, arena, first);
    for (int w = 0; w < count; ++w) d.load(w, island[next + w]);
    Mask<Double> open = g.either(first ? d.used & demand.open(d.score(plan.law, arena.rest())) : none);
    if (any(open)) {
      g.sync();  // what the first lane has written
      const Mask<Double> tried = solve(d, open, arena.rest());
      g.sync();
      Mask<Double> solved = none;
      if (first && any(tried)) {
        const RowScore<Double> after = d.score(plan.law, arena.rest());
        solved = tried & (after.worst() <= Double(accepted));
        solved = solved & demand.bounded(d.largest_push(), after, solved);
        d.put(solved);
      }
      open = open & negate(g.either(solved));
    }
    for (int w = 0; w < count; ++w)
      if (lane(open, w)) island[left++] = d.of[w];
    g.sync();  // memory is to be used again
  }
  return left;
}

/// SubADMM in double, from what there is.
template <class Double, class Real, class Group>
HD_ONCE int repeat(const Group& g, const Improvement<Real>& improvement, Island* island, int n) {
  constexpr bool kShared = Group::kSize > 1;
  const double asked = Demand<Double, Real>(improvement.plan).tolerance, tolerance = kRepeatedPart * asked;
  const SolveLimits<double> limits{kShared ? kSharedPasses : kRepeatedPasses, tolerance};
  auto small = [](const Island& of) { return of.rows() <= (kShared ? kMostShared : kMostRepeated); };
  auto solve = [&](IslandRows<Double, Real>& d, const Mask<Double>& open, Double* scratch) {
    solve_with<SubAdmm, Double>(g, d.view, limits, SubAdmmOptions<double>{}, scratch, d.rows.impulse);
    return open;
  };
  return try_each<Double>(g, improvement, kShared ? kSharedPart * asked : 10 * tolerance, island, n, small, solve);
}

/// Each contact in turn exactly.
template <class Double, class Real>
HD_ONCE int sweep(const Improvement<Real>& improvement, Island* island, int n) {
  const Demand<Double, Real> demand(improvement.plan);
  BisectionOptions<double> exact;
  exact.coulomb = 1, exact.accelerate = 0;
  auto solve = [&](IslandRows<Double, Real>& d, const Mask<Double>& open, Double* scratch) {
    const Mask<Double> carried = open & d.without_couples();
    if (!any(carried)) return carried;
    RowProblem<Double> plain = d.view;
    plain.spins = 0;
    solve_with<Bisection, Double>(Serial{}, plain, demand.limits(kExactSweeps), exact, scratch, d.rows.impulse);
    return carried;
  };
  auto any_size = [](const Island&) { return true; };
  return try_each<Double>(Serial{}, improvement, demand.tolerance, island, n, any_size, solve);
}

/// How many of n islands, by their rows in order, need little more room than the first.
HD int alike(const Island* island, int n) {
  int k = 1;
  while (k < n && island[k].rows() <= 2 * island[0].rows()) ++k;
  return k;
}

/// Newton, of as many islands at a time as there are lanes: one that is done makes room for the next. Puts those in front that are
/// neither solved nor answered as well as can be hoped, and tells how many they are.
template <class Double, class Real>
HD_ONCE int newton(const Improvement<Real>& improvement, Island* island, int n, int passes) {
  const auto& [packs, plan, memory] = improvement;
  using Lanes = Mask<Double>;
  constexpr int W = kWidth<Double>;
  const Demand<Double, Real> demand(plan);
  const SolveLimits<double> limits = demand.limits(passes);
  const CanalOptions<double> options;
  const Lanes none = mask_of<Double>(false);
  int left = 0;
  for (int first = 0, count; first < n; first += count) {
    count = alike(island + first, n - first);
    Arena<Double> arena(static_cast<Double*>(memory));
    IslandRows<Double, Real> d(packs, island + first, count, arena);
    Double* scratch = arena.take(d.view.width);
    auto solver = Canal::iteration(d.view, limits, options, arena.rest(), d.rows.impulse);
    const CanalStats<Double>& stats = solver.stats;
    RowScore<Double> before = stats.score;
    Lanes busy = none, fresh = none, had_hope = none;
    for (int next = 0;;) {
      for (int w = 0; w < W && next < count; ++w) {
        if (lane(busy, w)) continue;
        for (; next < count && island[first + next].jammed; ++next) island[left++] = island[first + next];
        if (next == count) break;
        set_lane(had_hope, w, -island[first + next].hoped), set_lane(fresh, w, -1);
        d.load(w, island[first + next++]);
      }
      if (any(fresh)) {
        before.take(d.score(plan.law, scratch), fresh);
        solver.begin(any(busy) ? fresh : mask_of<Double>(true));
        busy = busy | fresh, fresh = none;
      }
      if (!any(busy)) break;
      Lanes running = busy & solver.unsolved();
      while (!any(busy & negate(running))) {
        running = solver.tick(running);
        running = running & negate(demand.jammed(stats.iterations, d.largest_push(), stats.score));
      }
      const Lanes done = busy & negate(running);
      busy = running;

      solver.judge(done);
      const Double push = d.largest_push();
      const RowScore<Double>& after = stats.score;
      const Lanes open = done & demand.open(before), hoped = had_hope & demand.hopeful(before);
      const Lanes bounded = stats.sound & demand.bounded(push, after, stats.converged),
                  answered = bounded & demand.hopeful(after);
      d.put(open & bounded & (stats.converged | (after.own * before.scale <= before.own * after.scale)));
      const Lanes grown = negate(stats.converged) & demand.grown(push, after, kUnlikelyPush);
      const Lanes jammed = demand.jammed(stats.iterations, push, after);
      const Lanes hard = open & negate(stats.converged & (hoped | answered));
      for (int w = 0; w < W; ++w) {
        if (!lane(hard, w)) continue;
        Island& of = island[left++] = d.of[w];
        of.hoped = lane(hoped, w), of.solved = lane(stats.converged, w);
        of.answered = lane(answered, w), of.grown = lane(grown, w), of.jammed = lane(jammed, w);
      }
    }
  }
  return left;
}

/// What Newton leaves: sweeps from nothing; then without recovery what has no answer, or pushes that grew; then no impulses.
template <class Double, class Real>
HD_ONCE void last_resort(const Improvement<Real>& improvement, const Island* island, int n) {
  const auto& [packs, plan, memory] = improvement;
  using Lanes = Mask<Double>;
  constexpr int W = kWidth<Double>;
  const Demand<Double, Real> demand(plan);
  const CanalOptions<double> options;
  for (int next = 0; next < n; next += W) {
    const int count = min(W, n - next);
    Arena<Double> arena(static_cast<Double*>(memory));
    IslandRows<Double, Real> d(packs, island + next, count, arena);
    Lanes hoped = mask_of<Double>(false), solved = hoped, answered = hoped, grown = hoped, jammed = hoped;
    for (int w = 0; w < count; ++w) {
      const Island& of = island[next + w];
      d.load(w, of);
      set_lane(hoped, w, -of.hoped), set_lane(solved, w, -of.solved), set_lane(answered, w, -of.answered);
      set_lane(grown, w, -of.grown), set_lane(jammed, w, -of.jammed);
    }
    auto answers = [&](const CanalStats<Double>& stats) {
      return stats.sound & demand.bounded(d.largest_push(), stats.score, stats.converged) & demand.hopeful(stats.score);
    };
    if (const Lanes open = d.used & negate(solved | jammed); any(open)) {
      d.drop_impulses(open);
      solve_with<Pgs, Double>(Serial{}, d.view, demand.limits(kSlowSweeps), PgsOptions<double>{}, arena.rest(),
                              d.rows.impulse);
      const CanalStats<Double> found =
          Canal::improve(d.view, demand.limits(0), options, open, arena.rest(), d.rows.impulse);
      const Lanes better = open & found.converged & answers(found);
      d.put(better);
      solved = solved | better, answered = answered | better;
    }
    // What asks for too much may be near all the same, with pushes that grew as long as they were let.
    const Lanes lost = d.used & negate(answered | hoped), grew = grown & negate(lost | solved);
    if (!any(lost | grew)) continue;
    d.give_up_recovery(lost | grew);
    const CanalStats<Double> stats =
        Canal::improve(d.view, demand.limits(kSecondPasses), options, lost | grew, arena.rest(), d.rows.impulse);
    const Lanes unsolved = lost & negate(answers(stats));
    d.drop_impulses(unsolved);  // nothing is pushed by what is not understood
    d.put(lost | (grew & stats.converged));
    for (int w = 0; w < W; ++w)
      if (lane(unsolved, w)) set_lane(packs[d.of[w].pack].without, d.of[w].world, -1);
  }
}

}  // namespace fallback_detail

template <class Real, bool kAnySolver, class Group>
HD_CALL void fall_back(const Group& g, FlaggedRows<Real>* packs, int count, const FallbackPlan& plan, void* memory) {
  using Wide = DoubleOf<Real>;
  Island island[kImprovedTogether<Real> * kWidth<Real> * ColumnBlocks::kMost];
  Arena<Wide> arena(static_cast<Wide*>(memory));
  const bool first = g.rank() == 0;
  int width = 0;
  for (int pack = 0; pack < count; ++pack) {
    FlaggedRows<Real>& of = packs[pack];
    of.without = mask_of<Real>(false);
    if (!any(of.worlds)) continue;
    of.table = arena.take_bits(3 * places_size<Real>(*of.rows)), width = max(width, of.rows->width);
    if (first) begin_islands(of);
    g.sync();
  }
  Real* u = reinterpret_cast<Real*>(arena.take(width));
  const fallback_detail::Improvement<Real> all{packs, plan, arena.rest()};
  const double tolerance = fallback_detail::Demand<double, Real>(plan).tolerance;
  Mask<Real> open[kImprovedTogether<Real>];
  for (int pack = 0; pack < count; ++pack) open[pack] = packs[pack].worlds;
  // An island alone fills a register by its columns; which way is taken changes no bit.
  int n = 0;
  auto by = [&](auto stage) {
    sort_by_rows(island, n);
    return 4 * n <= kWidth<Wide> ? stage(double{}) : stage(Wide{});
  };
  for (int round = 0;; ++round) {
    n = 0;
    for (int pack = 0; pack < count; ++pack)
      for (int w = 0; w < kWidth<Real>; ++w)
        if (lane(open[pack], w)) n = add_islands(packs[pack], pack, w, island, n, first);
    n = keep_fresh(island, n);
    if (n == 0) return;
    if (plan.solver >= 0) {
      if constexpr (kAnySolver) fallback_detail::ask(all, island, n);
    } else {
      n = by([&](auto x) { return fallback_detail::repeat<decltype(x)>(g, all, island, n); });
      if (first) {
        n = by([&](auto x) { return fallback_detail::sweep<decltype(x)>(all, island, n); });
        for (const int passes : {kNewtonPasses, kSecondPasses})
          n = by([&](auto x) { return fallback_detail::newton<decltype(x)>(all, island, n, passes); });
        by([&](auto x) { return fallback_detail::last_resort<decltype(x)>(all, island, n), 0; });
      }
    }
    g.sync();  // what the first lane has written
    for (int pack = 0; pack < count; ++pack)
      if (any(open[pack]))
        open[pack] =
            g.either(first ? let_in(packs[pack], open[pack], tolerance, round == kRounds, u) : mask_of<Real>(false));
    g.sync();
  }
}

}  // namespace stiction
