// What a fallback works on: islands of the worlds that are flagged, as half-solved rows in double, and what is asked of them.
#pragma once
#include "solvers/score.h"
#include "step/fallback.h"

namespace stiction {

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

}  // namespace fallback_detail

}  // namespace stiction
