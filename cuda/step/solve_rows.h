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
  int rows;       // contacts and others
  bool had_hope;  // of the impulses that it came with
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
    Island own{pack, w, touched_in(p, k, w), 1, true};
    if (own.blocks == 0) continue;
    for (int i = n; i-- > first;)
      if (island[i].blocks & own.blocks)
        own.blocks |= island[i].blocks, own.rows += island[i].rows, island[i] = island[--n];
    island[n++] = own;
  }
  return n;
}

/// Some islands in double, each as a world in which nothing else is; to be changed.
template <class Double, class Real>
struct DoubleRows {
  static constexpr int W = kWidth<Double>;
  const FlaggedRows<Real>* packs;
  const Island (&of)[W];
  RowArrays<Double> rows;
  RowProblem<Double> view;

  HD DoubleRows(const FlaggedRows<Real>* from, const Island (&islands)[W], Arena<Double>& arena)
      : packs(from), of(islands) {
    RowCounts most;
    for (int w = 0; w < W; ++w)
      most.contacts = max(most.contacts, problem(w).contacts), most.scalars = max(most.scalars, problem(w).scalars);
    room_ = most.contacts + most.scalars;
    place_ = arena.take_bits(static_cast<int64_t>(W) * room_);
    int contacts = 0, scalars = 0;
    bool couples = false;  // a pack without contacts has none, whatever its model
    for (int w = 0; w < W; ++w) {
      find_places(w), couples = couples || problem(w).spins > 0;
      contacts = max(contacts, contacts_[w]), scalars = max(scalars, scalars_[w]);
    }
    RowCounts counts = problem(0);
    counts.contacts = contacts, counts.scalars = scalars, counts.spins = couples ? contacts : 0;
    rows = RowArrays<Double>(counts);
    rows.near = contacts, rows.blocks = problem(0).blocks;
    rows.carve(arena);
    rows.clear(Serial{});
    Double least(0), scale(0);
    for (int w = 0; w < W; ++w) {
      const RowProblem<Real>& p = problem(w);
      set_lane(least, w, of_lane(p.least_velocity, w)), set_lane(scale, w, of_lane(p.scale, w));
      each_block(w, [&](int k, int from) { copy_block(p, w, k, from); });
      each_row(w, [&](int i, int from) { copy_row(p, w, i, from); });
      take_impulses(w);
    }
    view = rows.view(least, scale);
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
          set_lane(packs[of[w].pack].impulse[to], of[w].world, static_cast<Scalar<Real>>(lane(rows.impulse[i], w)));
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
      if (contacts_[w] > 0) set_lane(carried, w, 0);
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
  HD const RowProblem<Real>& problem(int w) const { return *packs[of[w].pack].rows; }
  HD double of_lane(const Real& x, int w) const { return static_cast<double>(lane(x, of[w].world)); }
  HD void put(Double* to, int w, const Real& x) const { set_lane(*to, w, of_lane(x, w)); }

  /// The contacts of island w, then its other rows, in the order of its problem.
  HD void find_places(int w) {
    const RowProblem<Real>& p = problem(w);
    uint32_t* place = place_ + w * room_;
    contacts_[w] = scalars_[w] = 0;
    for (int k = 0; k < p.contacts + p.scalars; ++k) {
      if ((touched_in(p, k, of[w].world) & of[w].blocks) == 0) continue;
      place[contacts_[w] + scalars_[w]] = static_cast<uint32_t>(k);
      ++(k < p.contacts ? contacts_[w] : scalars_[w]);
    }
  }
  /// visit(k, from) for them: contact k, or another row behind the contacts, here and in the problem.
  template <class Visit>
  HD void each_block(int w, Visit visit) const {
    const uint32_t* place = place_ + w * room_;
    for (int j = 0; j < contacts_[w] + scalars_[w]; ++j)
      visit(j < contacts_[w] ? j : j - contacts_[w] + rows.contacts, static_cast<int>(place[j]));
  }
  /// visit(i, from) for the rows of those.
  template <class Visit>
  HD void each_row(int w, Visit visit) const {
    const RowProblem<Real>& p = problem(w);
    each_block(w, [&](int k, int from) {
      if (k >= rows.contacts) return visit(rows.scalar_row(k - rows.contacts), p.scalar_row(from - p.contacts));
      for (int d = 0; d < 3; ++d) visit(3 * k + d, 3 * from + d);
      for (int d = 0; d < 3 && rows.spins > 0; ++d) visit(rows.spin_row(k) + d, p.spin_row(from) + d);
    });
  }
  HD void copy_block(const RowProblem<Real>& p, int w, int k, int from) {
    rows.touched[k] |= touched_in(p, from, of[w].world);
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
    each_row(w, [&](int i, int from) { put(rows.impulse + i, w, packs[of[w].pack].impulse[from]); });
  }

  int room_;
  uint32_t* place_;  // (W, room)
  int contacts_[W], scalars_[W];
};

/// The solver that was asked for, from the impulses there to its answer.
template <class Double, class Rows>
HD_ONCE CanalStats<Double> ask(Rows& d, const FallbackPlan& plan, double tolerance, Double* memory) {
  CanalStats<Double> stats;
  const SolveLimits<double> limits{kChosenIterations, tolerance};
  const SolverOptions<double> options = aimed_at<double>(plan.solver, plan.law);
  static_cast<SolveStats<Double>&>(stats) =
      solve_rows<Double>(Serial{}, d.view, limits, options, memory, d.rows.impulse);
  stats.score = d.score(plan.law, memory);
  stats.converged = stats.score.worst() <= Double(tolerance), stats.sound = stats.score.worst() < kLost<Double>;
  return stats;
}

/// fall_back for n islands, as many at a time as Double has lanes: a first try, which puts those that need a second one in front and
/// tells how many they are, or the second.
template <class Double, bool kAnySolver, class Real>
HD_ONCE int improve(FlaggedRows<Real>* packs, const FallbackPlan& plan, Island* island, int n, bool second,
                    void* memory) {
  using Rows = DoubleRows<Double, Real>;
  constexpr int W = Rows::W;
  SolveLimits<double> sweeps, slow, limits;
  sweeps.tolerance = slow.tolerance = limits.tolerance = kAsked * plan.certify;
  sweeps.iterations = kExactSweeps, slow.iterations = kSlowSweeps;
  limits.iterations = second ? kSecondPasses : kNewtonPasses;
  BisectionOptions<double> exact;
  exact.coulomb = 1, exact.accelerate = 0;
  CanalOptions<double> options;
  options.inner = 10;
  const Double hopeless(max(kHopeless, plan.certify)), most(kLargestPush<Scalar<Real>>);
  int hard = 0;

  for (int next = 0; next < n; next += W) {
    Island of[W];  // something finite where there are fewer; what becomes of it is not looked at
    for (int w = 0; w < W; ++w) of[w] = island[min(next + w, n - 1)];
    Arena<Double> arena(static_cast<Double*>(memory));
    Rows d(packs, of, arena);
    const RowScore<Double> before = d.score(plan.law, arena.rest());
    Mask<Double> used = before.worst() > Double(limits.tolerance);
    for (int w = n - next; w < W; ++w) set_lane(used, w, 0);
    if (!any(used)) continue;
    const bool chain = plan.solver < 0;
    auto solved = [&](const Mask<Double>& which) {
      if constexpr (kAnySolver && kWidth<Double> == 1)
        if (!chain) return ask<Double>(d, plan, limits.tolerance, arena.rest());
      return Canal::improve(d.view, limits, options, which, arena.rest(), d.rows.impulse);
    };
    if (const Mask<Double> carried = d.without_couples(); chain && !second && any(carried)) {
      RowProblem<Double> plain = d.view;
      plain.spins = 0;
      const Double swept =
          solve_with<Bisection, Double>(Serial{}, plain, sweeps, exact, arena.rest(), d.rows.impulse).iterations;
      d.take_impulses(negate(carried & (swept < Double(kExactSweeps))));
    }
    CanalStats<Double> stats = solved(used);
    auto bounded = [&] { return stats.sound & (d.largest_push() <= most * stats.score.scale); };
    auto answers = [&] { return bounded() & (stats.score.own <= hopeless * stats.score.scale); };
    d.put(used & bounded() & (stats.converged | (stats.score.own * before.scale <= before.own * stats.score.scale)));
    if (!second) {
      const Mask<Double> hoped = before.own <= hopeless * before.scale,
                         fine = negate(used) | (stats.converged & (hoped | answers()));
      for (int w = 0; w < W && next + w < n; ++w)
        if (!lane(fine, w)) of[w].had_hope = lane(hoped, w), island[hard++] = of[w];
      continue;
    }

    // What asks for too much may be near all the same, with pushes that grew as long as they were let.
    const Mask<Double> left = used & negate(stats.converged),
                       grown = left & (stats.score.own > hopeless * stats.score.scale * kDoubtful) &
                               (d.largest_push() > stats.score.scale * kUnlikelyPush);
    if (any(left)) {
      d.drop_impulses(left);
      if (chain) solve_with<Pgs, Double>(Serial{}, d.view, slow, PgsOptions<double>{}, arena.rest(), d.rows.impulse);
      const auto found =
          chain ? Canal::improve(d.view, {0, limits.tolerance}, options, left, arena.rest(), d.rows.impulse)
                : solved(left);
      const Mask<Double> better = left & found.converged;
      stats.take(found, better);
      d.put(better & bounded());
    }

    if (!chain) continue;  // that a solver fails does not say that nothing solves it
    Mask<Double> hoped = mask_of<Double>(true);
    for (int w = 0; w < W; ++w)
      if (!of[w].had_hope) set_lane(hoped, w, 0);
    const Mask<Double> lost = used & negate(answers() | hoped);
    const Mask<Double> grew = grown & negate(lost | stats.converged);
    if (!any(lost | grew)) continue;
    d.give_up_recovery(lost | grew);
    stats = Canal::improve(d.view, limits, options, lost | grew, arena.rest(), d.rows.impulse);
    const Mask<Double> unsolved = lost & negate(answers());
    d.drop_impulses(unsolved);  // nothing is pushed by what is not understood
    d.put(lost | (grew & stats.converged));
    for (int w = 0; w < W; ++w)
      if (lane(unsolved, w)) set_lane(packs[of[w].pack].without, of[w].world, kWidth<Real> == 1 ? 1 : -1);
  }
  return hard;
}

/// Those with as many rows lie side by side.
HD void sort_by_rows(Island* island, int n) {
  for (int i = 1; i < n; ++i) {
    const Island own = island[i];
    int to = i;
    for (; to > 0 && island[to - 1].rows > own.rows; --to) island[to] = island[to - 1];
    island[to] = own;
  }
}

}  // namespace fallback_detail

template <class Real, bool kAnySolver>
HD_CALL void fall_back(FlaggedRows<Real>* packs, int count, const FallbackPlan& plan, void* memory) {
  using Wide = DoubleOf<Real>;
  fallback_detail::Island island[kImprovedTogether<Real> * kWidth<Real> * ColumnBlocks::kMost];
  int n = 0;
  for (int pack = 0; pack < count; ++pack) {
    packs[pack].without = mask_of<Real>(false);
    for (int w = 0; w < kWidth<Real>; ++w)
      if (lane(packs[pack].worlds, w)) n = fallback_detail::add_islands(*packs[pack].rows, pack, w, island, n);
  }
  fallback_detail::sort_by_rows(island, n);
  for (const bool second : {false, true}) {
    // An island alone fills a register by its columns; which way is taken changes no bit.
    if (4 * n <= kWidth<Wide> || plan.solver >= 0)
      n = fallback_detail::improve<double, kAnySolver>(packs, plan, island, n, second, memory);
    else n = fallback_detail::improve<Wide, kAnySolver>(packs, plan, island, n, second, memory);
  }
}

}  // namespace stiction
