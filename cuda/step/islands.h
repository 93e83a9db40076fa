// Islands: bodies of a world that its rows couple with each other and nothing else, as contact problems of their own. In a heap they are
// small and many: one is solved beside others of its size, of whatever worlds, in columns and rows of its own.
//
// Contacts that the free motion does not close wait: they would make one island of all that is near each other. Where bodies as they are
// pushed close one, it is let in, and what it couples is solved again, from there.
#pragma once
#include "solvers/score.h"
#include "step/fallback.h"

namespace stiction {

struct Island {
  int pack, world;
  uint32_t blocks;  // of the world's columns
  int contacts, scalars;
  bool fresh;                     // no solver has seen some of it
  uint32_t first = ~uint32_t(0);  // contact, or other row behind the contacts; each tells the next; ~0: no more
  // What became of it by Newton: what it came with was no hopeless answer; it is solved; it has an answer; it has pushes that grew,
  // and beyond what more passes are worth.
  bool hoped = true, solved = false, answered = false, grown = false, jammed = false;

  HD int rows() const { return contacts + scalars; }
  HD void join(const Island& other) {
    blocks |= other.blocks, contacts += other.contacts, scalars += other.scalars, fresh |= other.fresh;
  }
};

/// One number for each contact, or other row behind the contacts, of each world. A pack's table has three.
template <class Real>
HD int64_t places_size(const RowCounts& most) {
  return static_cast<int64_t>(kWidth<Real>) * (most.contacts + most.scalars);
}
/// The blocks that contact k, or another row behind the contacts, touches in world w, touched[k, w]: often less than in all of a pack.
template <class Real>
HD_ONCE void find_touched(const RowProblem<Real>& p, uint32_t* touched) {
  constexpr int W = kWidth<Real>;
  for (int k = 0; k < p.contacts + p.scalars; ++k, touched += W) {
    for (int w = 0; w < W; ++w) touched[w] = 0;
    ColumnBlocks::each(p.touches(k), [&](int b) {
      auto none = mask_of<Real>(true);
      p.each_row(k, [&](int i) {
        for (int a = p.blocks.begin[b]; a < p.blocks.begin[b + 1]; ++a) none = none & (p.row(i)[a] == Real(0));
      });
      for (int w = 0; w < W; ++w) touched[w] |= (lane(none, w) ? 0u : 1u) << b;
    });
  }
}

/// Begins a pack's table: contacts wait that stay open in the free motion and push nothing.
template <class Real>
HD_ONCE void begin_islands(const FlaggedRows<Real>& of) {
  const RowProblem<Real>& p = *of.rows;
  find_touched(p, &of.waits(0, 0));
  for (int k = 0; k < p.contacts + p.scalars; ++k) {
    auto pushes = mask_of<Real>(k < p.near || k >= p.contacts);
    p.each_row(k, [&](int i) { pushes = pushes | (abs(of.impulse[i]) > Real(0)); });
    for (int w = 0; w < kWidth<Real>; ++w) of.touches(k, w) = lane(pushes, w) ? of.waits(k, w) : 0;
  }
}
/// What has been solved waits no more. Lets contacts in that close faster than their gaps allow, by more than tolerance V, and all others of
/// these worlds, too, if `every`. Returns these worlds, of `worlds`. u (width).
template <class Real>
HD_ONCE Mask<Real> let_in(const FlaggedRows<Real>& of, const Mask<Real>& worlds, double tolerance, bool every,
                          Real* u) {
  const RowProblem<Real>& p = *of.rows;
  const Scalar<Real> part(static_cast<Scalar<Real>>(tolerance));
  auto open = mask_of<Real>(false);
  for (int k = 0; k < p.contacts + p.scalars; ++k)
    for (int w = 0; w < kWidth<Real>; ++w)
      if (lane(worlds, w) && of.touches(k, w) != 0) of.waits(k, w) = 0;
  for (int a = 0; a < p.width; ++a) u[a] = Real(0);
  for (int i = 0; i < p.rows(); ++i)
    if (any(abs(of.impulse[i]) > Real(0))) p.add_push(i, of.impulse[i], u);
  auto closes = [&](int k) {
    const int n = 3 * k + 2;
    return worlds & (p.W[n] > Real(0)) & (p.velocity(n, u) + p.e[n] < -(p.scale_of(k) * part));
  };
  auto admit = [&](int k, const Mask<Real>& which) {
    for (int w = 0; w < kWidth<Real>; ++w)
      if (lane(which, w) && of.waits(k, w) != 0) of.touches(k, w) = of.waits(k, w), set_lane(open, w, -1);
  };
  for (int k = p.near; k < p.contacts; ++k) admit(k, closes(k));
  for (int k = p.near; every && k < p.contacts; ++k) admit(k, open);
  return open;
}

/// Adds the islands of world w of a pack to n others, and their rows to the pack's table if this lane `writes`. Returns how many there
/// are then.
template <class Real>
HD int add_islands(const FlaggedRows<Real>& of, int pack, int w, Island* island, int n, bool writes = true) {
  const RowProblem<Real>& p = *of.rows;
  int owner[ColumnBlocks::kMost];  // the island that has a block
  uint32_t owned = 0;
  auto own = [&](uint32_t blocks, int i) { ColumnBlocks::each(blocks, [&](int b) { owner[b] = i; }); };
  for (int k = 0; k < p.contacts + p.scalars; ++k) {
    const uint32_t touched = of.touches(k, w);
    if (touched == 0) continue;
    int i = (touched & owned) != 0 ? owner[lowest_bit(touched & owned)] : n;
    if (i == n) island[n++] = {pack, w, 0, 0, 0, false};
    Island* to = island + i;
    for (uint32_t others; (others = touched & owned & ~to->blocks) != 0;) {
      const int other = owner[lowest_bit(others)], last = --n;
      to->join(island[other]);
      own(island[other].blocks, i);
      if (other == last) continue;
      island[other] = island[last], own(island[other].blocks, other);
      if (i == last) i = other, to = island + i;
    }
    own(touched & ~to->blocks, i);
    owned |= touched, to->join({pack, w, touched, k < p.contacts, k >= p.contacts, of.waits(k, w) != 0});
  }
  for (int k = p.contacts + p.scalars; writes && k-- > 0;)
    if (const uint32_t touched = of.touches(k, w); touched != 0) {
      uint32_t& first = island[owner[lowest_bit(touched)]].first;
      of.next(k, w) = first, first = static_cast<uint32_t>(k);
    }
  return n;
}

/// Puts those in front that are fresh. Returns how many they are.
HD int keep_fresh(Island* island, int n) {
  int kept = 0;
  for (int k = 0; k < n; ++k)
    if (island[k].fresh) island[kept++] = island[k];
  return kept;
}

/// Those with as many rows lie side by side, and of these the same bodies of several worlds: Shell's sort, of some thousands where
/// worlds are heaps.
HD void sort_by_rows(Island* island, int n) {
  auto before = [](const Island& a, const Island& b) {
    if (a.rows() != b.rows()) return a.rows() < b.rows();
    if (a.blocks != b.blocks) return a.blocks < b.blocks;
    return a.pack != b.pack ? a.pack < b.pack : a.world < b.world;
  };
  for (int gap = n / 2; gap > 0; gap /= 2)
    for (int i = gap; i < n; ++i) {
      const Island own = island[i];
      int to = i;
      for (; to >= gap && before(own, island[to - gap]); to -= gap) island[to] = island[to - gap];
      island[to] = own;
    }
}

/// Islands in the lanes of To, each as a world in which nothing else is, with its blocks first; to be changed. A lane takes
/// one after the other.
template <class To, class Real>
struct IslandRows {
  static constexpr int W = kWidth<To>;
  using Lanes = Mask<To>;

  Island of[W];  // what the lanes have
  Lanes used;    // lanes that have one
  RowArrays<To> rows;
  RowProblem<To> view;

  /// With room for any of n islands; lanes are empty. Of a group's lanes one `writes`.
  HD IslandRows(const FlaggedRows<Real>* packs, const Island* island, int n, Arena<To>& arena, bool writes = true)
      : used(mask_of<To>(false)), packs_(packs), room_(0), writes_(writes) {
    RowCounts counts = problem(island[0]);
    counts.contacts = counts.scalars = 0, counts.apart = true, counts.by_island = false;
    bool couples = false;  // a pack without contacts has none, whatever its model
    ColumnBlocks blocks(0);
    blocks.count = 0;
    for (int k = 0; k < n; ++k) {
      const RowProblem<Real>& p = problem(island[k]);
      couples = couples || p.spins > 0;
      counts.contacts = max(counts.contacts, island[k].contacts),
      counts.scalars = max(counts.scalars, island[k].scalars);
      int own = 0;
      ColumnBlocks::each(island[k].blocks, [&](int b) {  // begin[] has sizes
        int& size = blocks.begin[own];
        size = max(own++ < blocks.count ? size : 0, p.blocks.size(b));
        blocks.count = max(blocks.count, own);
      });
    }
    int columns = 0;
    for (int b = 0; b <= blocks.count; ++b) {
      const int size = b < blocks.count ? blocks.begin[b] : 0;
      blocks.begin[b] = columns, columns += size;
    }
    packed_ = columns <= counts.width;
    if (!packed_) blocks = problem(island[0]).blocks;
    counts.width = blocks.columns(), counts.spins = couples ? counts.contacts : 0;
    room_ = counts.contacts + counts.scalars, place_ = arena.take_bits(static_cast<int64_t>(W) * room_);
    rows = RowArrays<To>(counts);
    rows.near = counts.contacts, rows.blocks = blocks;
    rows.carve(arena);
    view = rows.view(To(1), To(1));
    if (!writes_) return;
    rows.clear(Serial{});
    for (int k = 0; k < n; ++k)
      each_place(island[k], [&](int to, int, uint32_t touched) { rows.touched[to] |= own_blocks(island[k], touched); });
  }
  /// Lane w takes an island.
  HD void load(int w, const Island& island) {
    if (writes_ && lane(used, w))
      for (To* x = rows.Y; x < reinterpret_cast<To*>(rows.touched); ++x) set_lane(*x, w, Scalar<To>(0));
    take_place(w, island);
    if (!writes_) return;
    const auto take = [&](const Real& from, To& to) { set_lane(to, w, of_lane(from, w)); };
    for (int k = 0; k < room_; ++k)
      if (place(w, k) != kFree) copy(w, k, take);
  }
  /// Lanes take the first islands, of one pack: what several have of the same rows is moved at once.
  HD void load_all(const Island* island, int count) {
    static_assert(sizeof(To) == sizeof(Real));
    if constexpr (W == 1) {
      load(0, *island);
    } else {
      Index<Real> world{};
      for (int w = 0; w < count; ++w) take_place(w, island[w]), set_lane(world, w, of[w].world);
      for (int k = 0; k < room_; ++k)
        for (uint32_t left = lanes_with(k, count); left != 0;) {
          const int first = lowest_bit(left);
          Mask<Real> same = mask_of<Real>(false);
          for (int w = first; w < count; ++w)
            if (left >> w & 1 && alike(first, w, k)) set_lane(same, w, -1), left &= ~(1u << w);
          copy(first, k, [&](const Real& from, Real& to) { to = select(same, permuted(from, world), to); });
        }
    }
  }
  /// Impulses as they were.
  HD void take_impulses(const Mask<To>& which) {
    for (int w = 0; w < W; ++w)
      if (lane(which, w)) take_impulses(w);
  }
  /// Gives the impulses of these islands back.
  HD void put(const Mask<To>& which) const {
    for (int w = 0; w < W; ++w)
      if (lane(which, w))
        each_row(w, [&](int i, int to) {
          set_lane(packs_[of[w].pack].impulse[to], of[w].world, static_cast<Scalar<Real>>(lane(rows.impulse[i], w)));
        });
  }
  /// Of the impulses there. memory: width numbers.
  HD RowScore<To> score(Law law, To* memory) const {
    view.push(rows.impulse, memory);
    return score_rows(view, law, rows.impulse, [&](int i) { return view.slip(i, rows.impulse, memory); });
  }

  /// Islands that Bisection can carry, by what is theirs, whoever is beside them.
  HD Mask<To> without_couples() const {
    auto carried = mask_of<To>(true);
    for (int w = 0; w < W && view.spins > 0; ++w)
      if (lane(used, w) && of[w].contacts > 0) set_lane(carried, w, 0);
    return carried;
  }

  /// Overlaps, limits that are passed and joints that drifted apart need not close any more, but do not get worse as bodies turn
  /// together. Starts from no impulses.
  HD void give_up_recovery(const Mask<To>& which) {
    const To zero(0);
    for (int k = 0; k < rows.contacts; ++k) {
      To& e = rows.e[3 * k + 2];
      e = select(which, max(e, rows.bend[k]), e);
    }
    for (int k = 0; k < rows.scalars; ++k) {
      To& e = rows.e[3 * rows.contacts + k];
      const To& bend = rows.bend[rows.contacts + k];
      const Mask<To> rigid = which & (rows.R[3 * rows.contacts + k] == zero);
      e = select(rigid, select(rows.lower[k] == zero, max(e, bend), bend), e);
    }
    drop_impulses(which);
  }
  HD void drop_impulses(const Mask<To>& which) {
    for (int i = 0; i < rows.rows(); ++i) rows.impulse[i] = select(which, To(0), rows.impulse[i]);
  }
  /// The largest W_nn |l| of the contacts, m/s.
  HD To largest_push() const {
    To most(0);
    for (int i = 0; i < 3 * rows.contacts; ++i) most = max(most, abs(rows.impulse[i]) * rows.W[i / 3 * 3 + 2]);
    return most;
  }

 private:
  static constexpr uint32_t kFree = ~uint32_t(0);

  HD const RowProblem<Real>& problem(const Island& island) const { return *packs_[island.pack].rows; }
  HD Scalar<To> of_lane(const Real& x, int w) const { return static_cast<Scalar<To>>(lane(x, of[w].world)); }

  /// The block here of one that the island has.
  HD int own_block(const Island& island, int block) const {
    return packed_ ? number_of_bits(island.blocks & ~(~uint32_t(0) << block)) : block;
  }
  HD uint32_t own_blocks(const Island& island, uint32_t touched) const {
    uint32_t own = 0;
    ColumnBlocks::each(touched, [&](int b) { own |= uint32_t(1) << own_block(island, b); });
    return own;
  }
  /// visit(to, from, touched) for the contacts of an island, then its other rows, in the order of its problem: contact or, behind the
  /// contacts, another row, here and in the problem, and the blocks that it touches there.
  template <class Visit>
  HD void each_place(const Island& island, Visit visit) const {
    const RowProblem<Real>& p = problem(island);
    const FlaggedRows<Real>& pack = packs_[island.pack];
    int contact = 0, scalar = rows.contacts;
    for (uint32_t at = island.first; at != kFree; at = pack.next(static_cast<int>(at), island.world)) {
      const int k = static_cast<int>(at);
      visit(k < p.contacts ? contact++ : scalar++, k, pack.touches(k, island.world));
    }
  }
  /// visit(i, from) for the rows of a contact, or another, here and in a problem.
  template <class Visit>
  HD void each_row_of(const RowProblem<Real>& p, int to, int from, Visit visit) const {
    if (to >= rows.contacts) return visit(rows.scalar_row(to - rows.contacts), p.scalar_row(from - p.contacts));
    for (int d = 0; d < 3; ++d) visit(3 * to + d, 3 * from + d);
    for (int d = 0; d < 3 && rows.spins > 0; ++d) visit(rows.spin_row(to) + d, p.spin_row(from) + d);
  }
  HD uint32_t& place(int w, int k) { return place_[w * room_ + k]; }
  HD uint32_t place(int w, int k) const { return place_[w * room_ + k]; }
  HD void take_place(int w, const Island& island) {
    of[w] = island, set_lane(used, w, -1);
    const RowProblem<Real>& p = problem(island);
    set_lane(view.columns, w, static_cast<Scalar<To>>(p.blocks.width(island.blocks)));
    set_lane(view.least_velocity, w, of_lane(p.least_velocity, w)), set_lane(view.scale, w, of_lane(p.scale, w));
    if (!writes_) return;
    for (int k = 0; k < room_; ++k) place(w, k) = kFree;
    each_place(island, [&](int to, int from, uint32_t) { place(w, to) = static_cast<uint32_t>(from); });
  }
  /// The lanes of the first `count` that have something in place k.
  HD uint32_t lanes_with(int k, int count) const {
    uint32_t lanes = 0;
    for (int w = 0; w < count; ++w) lanes |= (place(w, k) != kFree ? 1u : 0u) << w;
    return lanes;
  }
  HD uint32_t touched_in(int w, int k) const {
    return packs_[of[w].pack].touches(static_cast<int>(place(w, k)), of[w].world);
  }
  /// Whether two lanes have the same rows in place k, in the same columns.
  HD bool alike(int v, int w, int k) const {
    const uint32_t touched = touched_in(v, k);
    return place(v, k) == place(w, k) && touched == touched_in(w, k) &&
           own_blocks(of[v], touched) == own_blocks(of[w], touched);
  }
  /// visit(i, from) for the rows of lane w.
  template <class Visit>
  HD void each_row(int w, Visit visit) const {
    for (int k = 0; k < room_; ++k)
      if (const uint32_t from = place(w, k); from != kFree)
        each_row_of(problem(of[w]), k, static_cast<int>(from), visit);
  }
  /// take(from, to) for all numbers of place k of lane w.
  template <class Take>
  HD void copy(int w, int k, Take take) {
    const RowProblem<Real>& p = problem(of[w]);
    const int from = static_cast<int>(place(w, k));
    const uint32_t touched = touched_in(w, k);
    if (p.bend) take(p.bend[from], rows.bend[k]);
    if (rows.by_tree) take(p.scales[from], rows.scale[k]);
    if (k < rows.contacts) {
      take(p.mu[from], rows.mu[k]);
    } else {
      take(p.lower[from - p.contacts], rows.lower[k - rows.contacts]);
      take(p.upper[from - p.contacts], rows.upper[k - rows.contacts]);
    }
    const Real* impulse = packs_[of[w].pack].impulse;
    each_row_of(p, k, from, [&](int i, int row) {
      take(p.free[row], rows.free[i]), take(p.e[row], rows.e[i]), take(p.R[row], rows.R[i]);
      take(p.W[row], rows.W[i]), take(impulse[row], rows.impulse[i]);
    });
    ColumnBlocks::each(touched, [&](int b) {
      const int begin = p.blocks.begin[b], columns = p.blocks.size(b), own = rows.blocks.begin[own_block(of[w], b)];
      each_row_of(p, k, from, [&](int i, int row) {
        const Real* x = p.row(row) + begin;
        To* y = rows.Y + static_cast<int64_t>(i) * rows.width + own;
        for (int a = 0; a < columns; ++a) take(x[a], y[a]);
      });
    });
  }
  HD void take_impulses(int w) {
    each_row(w, [&](int i, int from) { set_lane(rows.impulse[i], w, of_lane(packs_[of[w].pack].impulse[from], w)); });
  }

  const FlaggedRows<Real>* packs_;
  int room_;
  bool writes_;
  bool packed_;      // else blocks are where they were: sizes differ too much
  uint32_t* place_;  // (W, room)  what each place has, or kFree
};

}  // namespace stiction
