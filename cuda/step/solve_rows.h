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
  int pack, world;
  uint32_t blocks;
  int contacts, scalars;
  // What became of it by Newton: what it came with was no hopeless answer; it is solved; it has an answer; it has pushes that grew.
  bool hoped = true, solved = false, answered = false, grown = false;

  HD int rows() const { return contacts + scalars; }
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
HD int add_islands(const RowProblem<Real>& p, int pack, int w, Island* island, int n) {
  const int first = n;
  for (int k = 0; k < p.contacts + p.scalars; ++k) {
    Island own{pack, w, touched_in(p, k, w), k < p.contacts, k >= p.contacts};
    if (own.blocks == 0) continue;
    for (int i = n; i-- > first;) {
      if ((island[i].blocks & own.blocks) == 0) continue;
      own.blocks |= island[i].blocks, own.contacts += island[i].contacts, own.scalars += island[i].scalars;
      island[i] = island[--n];
    }
    island[n++] = own;
  }
  return n;
}

/// Islands in double, each as a world in which nothing else is; to be changed. A lane takes one after the other.
template <class Double, class Real>
struct DoubleRows {
  static constexpr int W = kWidth<Double>;
  using Lanes = Mask<Double>;

  Island of[W];  // what the lanes have
  Lanes used;    // lanes that have one
  RowArrays<Double> rows;
  RowProblem<Double> view;

  /// With room for any of n islands; lanes are empty. Of a group's lanes one `writes`.
  HD DoubleRows(const FlaggedRows<Real>* packs, const Island* island, int n, Arena<Double>& arena, bool writes = true)
      : used(mask_of<Double>(false)), packs_(packs), room_(0), writes_(writes) {
    RowCounts counts = problem(island[0]);
    counts.contacts = counts.scalars = 0;
    bool couples = false;  // a pack without contacts has none, whatever its model
    for (int k = 0; k < n; ++k) {
      couples = couples || problem(island[k]).spins > 0;
      counts.contacts = max(counts.contacts, island[k].contacts),
      counts.scalars = max(counts.scalars, island[k].scalars);
    }
    counts.spins = couples ? counts.contacts : 0;
    room_ = counts.contacts + counts.scalars, place_ = arena.take_bits(static_cast<int64_t>(W) * room_);
    rows = RowArrays<Double>(counts);
    rows.near = counts.contacts, rows.blocks = problem(island[0]).blocks;
    rows.carve(arena);
    view = rows.view(Double(1), Double(1));
    if (!writes_) return;
    rows.clear(Serial{});
    for (int k = 0; k < n; ++k)
      each_place(island[k], [&](int to, int, uint32_t touched) { rows.touched[to] |= touched; });
  }
  /// Lane w takes an island.
  HD void load(int w, const Island& island) {
    if (writes_ && lane(used, w))
      for (Double* x = rows.Y; x < reinterpret_cast<Double*>(rows.touched); ++x) set_lane(*x, w, 0.0);
    of[w] = island, set_lane(used, w, -1);
    const RowProblem<Real>& p = problem(island);
    set_lane(view.least_velocity, w, of_lane(p.least_velocity, w)), set_lane(view.scale, w, of_lane(p.scale, w));
    if (!writes_) return;
    each_place(island, [&](int to, int from, uint32_t) { place_[w * room_ + to] = static_cast<uint32_t>(from); });
    each_block(w, [&](int k, int from) { copy_block(p, w, k, from); });
    each_row(w, [&](int i, int from) { copy_row(p, w, i, from); });
    take_impulses(w);
  }
  /// Impulses as they were.
  HD void take_impulses(const Mask<Double>& which) {
    for (int w = 0; w < W; ++w)
      if (lane(which, w)) take_impulses(w);
  }
  /// Gives the impulses of these islands back.
  HD void put(const Mask<Double>& which) const {
    for (int w = 0; w < W; ++w)
      if (lane(which, w))
        each_row(w, [&](int i, int to) {
          set_lane(packs_[of[w].pack].impulse[to], of[w].world, static_cast<Scalar<Real>>(lane(rows.impulse[i], w)));
        });
  }
  /// Of the impulses there. memory: width numbers.
  HD RowScore<Double> score(Law law, Double* memory) const {
    view.push(rows.impulse, memory);
    return score_rows(view, law, rows.impulse, [&](int i) { return view.slip(i, rows.impulse, memory); });
  }

  /// Islands that Bisection can carry, by what is theirs, whoever is beside them.
  HD Mask<Double> without_couples() const {
    auto carried = mask_of<Double>(true);
    for (int w = 0; w < W && view.spins > 0; ++w)
      if (lane(used, w) && of[w].contacts > 0) set_lane(carried, w, 0);
    return carried;
  }

  /// Overlaps, limits that are passed and joints that drifted apart need not close any more, but do not get worse as bodies turn
  /// together. Starts from no impulses.
  HD void give_up_recovery(const Mask<Double>& which) {
    const Double zero(0);
    for (int k = 0; k < rows.contacts; ++k) {
      Double& e = rows.e[3 * k + 2];
      e = select(which, max(e, rows.bend[k]), e);
    }
    for (int k = 0; k < rows.scalars; ++k) {
      Double& e = rows.e[3 * rows.contacts + k];
      const Double& bend = rows.bend[rows.contacts + k];
      const Mask<Double> rigid = which & (rows.R[3 * rows.contacts + k] == zero);
      e = select(rigid, select(rows.lower[k] == zero, max(e, bend), bend), e);
    }
    drop_impulses(which);
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

 private:
  HD const RowProblem<Real>& problem(const Island& island) const { return *packs_[island.pack].rows; }
  HD double of_lane(const Real& x, int w) const { return static_cast<double>(lane(x, of[w].world)); }
  HD void put(Double* to, int w, const Real& x) const { set_lane(*to, w, of_lane(x, w)); }

  /// visit(to, from, touched) for the contacts of an island, then its other rows, in the order of its problem: contact or, behind the
  /// contacts, another row, here and in the problem, and the blocks that it touches.
  template <class Visit>
  HD void each_place(const Island& island, Visit visit) const {
    const RowProblem<Real>& p = problem(island);
    int contact = 0, scalar = rows.contacts;
    for (int k = 0; k < p.contacts + p.scalars; ++k)
      if (const uint32_t touched = touched_in(p, k, island.world); touched & island.blocks)
        visit(k < p.contacts ? contact++ : scalar++, k, touched);
  }
  /// visit(to, from) for those of lane w.
  template <class Visit>
  HD void each_block(int w, Visit visit) const {
    const uint32_t* place = place_ + w * room_;
    for (int k = 0; k < of[w].contacts; ++k) visit(k, static_cast<int>(place[k]));
    for (int k = rows.contacts; k < rows.contacts + of[w].scalars; ++k) visit(k, static_cast<int>(place[k]));
  }
  /// visit(i, from) for the rows of those.
  template <class Visit>
  HD void each_row(int w, Visit visit) const {
    const RowProblem<Real>& p = problem(of[w]);
    each_block(w, [&](int k, int from) {
      if (k >= rows.contacts) return visit(rows.scalar_row(k - rows.contacts), p.scalar_row(from - p.contacts));
      for (int d = 0; d < 3; ++d) visit(3 * k + d, 3 * from + d);
      for (int d = 0; d < 3 && rows.spins > 0; ++d) visit(rows.spin_row(k) + d, p.spin_row(from) + d);
    });
  }
  HD void copy_block(const RowProblem<Real>& p, int w, int k, int from) {
    if (p.bend) put(rows.bend + k, w, p.bend[from]);
    if (rows.by_tree) put(rows.scale + k, w, p.scales[from]);
    if (k < rows.contacts) return put(rows.mu + k, w, p.mu[from]);
    put(rows.lower + k - rows.contacts, w, p.lower[from - p.contacts]);
    put(rows.upper + k - rows.contacts, w, p.upper[from - p.contacts]);
  }
  HD void copy_row(const RowProblem<Real>& p, int w, int i, int from) {
    for (int a = 0; a < p.width; ++a) put(rows.Y + static_cast<int64_t>(i) * rows.width + a, w, p.row(from)[a]);
    put(rows.free + i, w, p.free[from]), put(rows.e + i, w, p.e[from]), put(rows.R + i, w, p.R[from]);
    put(rows.W + i, w, p.W[from]);
  }
  HD void take_impulses(int w) {
    each_row(w, [&](int i, int from) { put(rows.impulse + i, w, packs_[of[w].pack].impulse[from]); });
  }

  const FlaggedRows<Real>* packs_;
  int room_;
  bool writes_;
  uint32_t* place_;  // (W, room)
};

/// What is asked of answers. Real: of the steps.
template <class Double, class Real>
struct Demand {
  double tolerance;
  Double hopeless, most;

  HD explicit Demand(const FallbackPlan& plan)
      : tolerance(kAsked * plan.certify), hopeless(max(kHopeless, plan.certify)), most(kLargestPush<Scalar<Real>>) {}
  HD Mask<Double> open(const RowScore<Double>& of) const { return of.worst() > Double(tolerance); }
  HD Mask<Double> hopeful(const RowScore<Double>& of) const { return of.own <= hopeless * of.scale; }
  HD Mask<Double> bounded(const Double& push, const RowScore<Double>& of) const { return push <= most * of.scale; }
  HD SolveLimits<double> limits(int iterations) const { return {iterations, tolerance}; }
};
/// Of Newton in a fallback.
HD CanalOptions<double> newton_options() {
  CanalOptions<double> options;
  options.inner = 10;
  return options;
}

/// The solver that was asked for: from what is there, on from what that gave, then from nothing.
template <class Real>
HD_ONCE void ask(FlaggedRows<Real>* packs, const FallbackPlan& plan, const Island* island, int n, void* memory) {
  const Demand<double, Real> demand(plan);
  const SolverOptions<double> options = aimed_at<double>(plan.solver, plan.law);
  for (int k = 0; k < n; ++k) {
    Arena<double> arena(static_cast<double*>(memory));
    DoubleRows<double, Real> d(packs, island + k, 1, arena);
    d.load(0, island[k]);
    for (int attempt = 0; attempt < 3; ++attempt) {
      const RowScore<double> before = d.score(plan.law, arena.rest());
      if (!demand.open(before)) break;
      if (attempt == 2) d.drop_impulses(true);
      solve_rows<double>(Serial{}, d.view, demand.limits(kChosenIterations), options, arena.rest(), d.rows.impulse);
      const RowScore<double> after = d.score(plan.law, arena.rest());
      const bool bounded = after.worst() < kLost<double> && demand.bounded(d.largest_push(), after);
      const bool solved = !demand.open(after), nearer = after.own * before.scale <= before.own * after.scale;
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
HD int try_each(const Group& g, FlaggedRows<Real>* packs, const FallbackPlan& plan, double accepted, Island* island,
                int n, void* memory, Fits fits, Solve solve) {
  constexpr int W = kWidth<Double>;
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
    DoubleRows<Double, Real> d(packs, island + next, count, arena, first);
    for (int w = 0; w < count; ++w) d.load(w, island[next + w]);
    Mask<Double> open = g.either(first ? d.used & demand.open(d.score(plan.law, arena.rest())) : none);
    if (any(open)) {
      g.sync();  // what the first lane has written
      const Mask<Double> tried = solve(d, open, arena.rest());
      g.sync();
      Mask<Double> solved = none;
      if (first && any(tried)) {
        const RowScore<Double> after = d.score(plan.law, arena.rest());
        solved = tried & (after.worst() <= Double(accepted)) & demand.bounded(d.largest_push(), after);
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
HD_ONCE int repeat(const Group& g, FlaggedRows<Real>* packs, const FallbackPlan& plan, Island* island, int n,
                   void* memory) {
  const SolveLimits<double> limits{kRepeatedPasses, kRepeatedPart * Demand<Double, Real>(plan).tolerance};
  auto small = [](const Island& of) { return of.rows() <= kMostRepeated; };
  auto solve = [&](DoubleRows<Double, Real>& d, const Mask<Double>& open, Double* scratch) {
    solve_with<SubAdmm, Double>(g, d.view, limits, SubAdmmOptions<double>{}, scratch, d.rows.impulse);
    return open;
  };
  return try_each<Double>(g, packs, plan, 10 * limits.tolerance, island, n, memory, small, solve);
}

/// Each contact in turn exactly.
template <class Double, class Real>
HD_ONCE int sweep(FlaggedRows<Real>* packs, const FallbackPlan& plan, Island* island, int n, void* memory) {
  const Demand<Double, Real> demand(plan);
  BisectionOptions<double> exact;
  exact.coulomb = 1, exact.accelerate = 0;
  auto solve = [&](DoubleRows<Double, Real>& d, const Mask<Double>& open, Double* scratch) {
    const Mask<Double> carried = open & d.without_couples();
    if (!any(carried)) return carried;
    RowProblem<Double> plain = d.view;
    plain.spins = 0;
    solve_with<Bisection, Double>(Serial{}, plain, demand.limits(kExactSweeps), exact, scratch, d.rows.impulse);
    return carried;
  };
  auto any_size = [](const Island&) { return true; };
  return try_each<Double>(Serial{}, packs, plan, demand.tolerance, island, n, memory, any_size, solve);
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
HD_ONCE int newton(FlaggedRows<Real>* packs, const FallbackPlan& plan, Island* island, int n, int passes,
                   void* memory) {
  using Lanes = Mask<Double>;
  constexpr int W = kWidth<Double>;
  const Demand<Double, Real> demand(plan);
  const SolveLimits<double> limits = demand.limits(passes);
  const CanalOptions<double> options = newton_options();
  const Lanes none = mask_of<Double>(false);
  int left = 0;
  for (int first = 0, count; first < n; first += count) {
    count = alike(island + first, n - first);
    Arena<Double> arena(static_cast<Double*>(memory));
    DoubleRows<Double, Real> d(packs, island + first, count, arena);
    Double* scratch = arena.take(d.view.width);
    auto solver = Canal::iteration(d.view, limits, options, arena.rest(), d.rows.impulse);
    const CanalStats<Double>& stats = solver.stats;
    RowScore<Double> before = stats.score;
    Lanes busy = none, fresh = none, had_hope = none;
    for (int next = 0;;) {
      for (int w = 0; w < W && next < count; ++w) {
        if (lane(busy, w)) continue;
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
      while (!any(busy & negate(running))) running = solver.tick(running);
      const Lanes done = busy & negate(running);
      busy = running;

      solver.judge(done);
      const Double push = d.largest_push();
      const RowScore<Double>& after = stats.score;
      const Lanes open = done & demand.open(before), hoped = had_hope & demand.hopeful(before);
      const Lanes bounded = stats.sound & demand.bounded(push, after), answered = bounded & demand.hopeful(after);
      d.put(open & bounded & (stats.converged | (after.own * before.scale <= before.own * after.scale)));
      const Lanes grown = negate(stats.converged) & (after.own > demand.hopeless * after.scale * Double(kDoubtful)) &
                          (push > after.scale * Double(kUnlikelyPush));
      const Lanes hard = open & negate(stats.converged & (hoped | answered));
      for (int w = 0; w < W; ++w) {
        if (!lane(hard, w)) continue;
        Island& of = island[left++] = d.of[w];
        of.hoped = lane(hoped, w), of.solved = lane(stats.converged, w);
        of.answered = lane(answered, w), of.grown = lane(grown, w);
      }
    }
  }
  return left;
}

/// What Newton leaves: sweeps from nothing; then without recovery what has no answer, or pushes that grew; then no impulses.
template <class Double, class Real>
HD_ONCE void last_resort(FlaggedRows<Real>* packs, const FallbackPlan& plan, const Island* island, int n,
                         void* memory) {
  using Lanes = Mask<Double>;
  constexpr int W = kWidth<Double>;
  const Demand<Double, Real> demand(plan);
  const CanalOptions<double> options = newton_options();
  for (int next = 0; next < n; next += W) {
    const int count = min(W, n - next);
    Arena<Double> arena(static_cast<Double*>(memory));
    DoubleRows<Double, Real> d(packs, island + next, count, arena);
    Lanes hoped = mask_of<Double>(false), solved = hoped, answered = hoped, grown = hoped;
    for (int w = 0; w < count; ++w) {
      const Island& of = island[next + w];
      d.load(w, of);
      set_lane(hoped, w, -of.hoped), set_lane(solved, w, -of.solved), set_lane(answered, w, -of.answered);
      set_lane(grown, w, -of.grown);
    }
    auto answers = [&](const CanalStats<Double>& stats) {
      return stats.sound & demand.bounded(d.largest_push(), stats.score) & demand.hopeful(stats.score);
    };
    if (const Lanes open = d.used & negate(solved); any(open)) {
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

/// Those with as many rows lie side by side: Shell's sort, of some thousands where worlds are heaps.
HD void sort_by_rows(Island* island, int n) {
  for (int gap = n / 2; gap > 0; gap /= 2)
    for (int i = gap; i < n; ++i) {
      const Island own = island[i];
      int to = i;
      for (; to >= gap && island[to - gap].rows() > own.rows(); to -= gap) island[to] = island[to - gap];
      island[to] = own;
    }
}

}  // namespace fallback_detail

template <class Real, bool kAnySolver, class Group>
HD_CALL void fall_back(const Group& g, FlaggedRows<Real>* packs, int count, const FallbackPlan& plan, void* memory) {
  using Wide = DoubleOf<Real>;
  fallback_detail::Island island[kImprovedTogether<Real> * kWidth<Real> * ColumnBlocks::kMost];
  int n = 0;
  for (int pack = 0; pack < count; ++pack) {
    packs[pack].without = mask_of<Real>(false);
    for (int w = 0; w < kWidth<Real>; ++w)
      if (lane(packs[pack].worlds, w)) n = fallback_detail::add_islands(*packs[pack].rows, pack, w, island, n);
  }
  if (plan.solver >= 0) {
    if constexpr (kAnySolver) fallback_detail::ask(packs, plan, island, n, memory);
    return;
  }
  // An island alone fills a register by its columns; which way is taken changes no bit.
  auto by = [&](auto stage) {
    fallback_detail::sort_by_rows(island, n);
    return 4 * n <= kWidth<Wide> ? stage(double{}) : stage(Wide{});
  };
  n = by([&](auto x) { return fallback_detail::repeat<decltype(x)>(g, packs, plan, island, n, memory); });
  if (g.rank() != 0) return;
  n = by([&](auto x) { return fallback_detail::sweep<decltype(x)>(packs, plan, island, n, memory); });
  for (const int passes : {kNewtonPasses, kSecondPasses})
    n = by([&](auto x) { return fallback_detail::newton<decltype(x)>(packs, plan, island, n, passes, memory); });
  by([&](auto x) { return fallback_detail::last_resort<decltype(x)>(packs, plan, island, n, memory), 0; });
}

}  // namespace stiction
