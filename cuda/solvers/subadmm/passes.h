// The passes of SubADMM (subadmm.h), in units where every penalty is 1:
//
//   J v = J v* + T (z - J v* + l),   T = Z Z',   y = alpha J v + (1 - alpha) z - l,   l = projection(-(y + e) / (1 + R)),   z = y + l
//
// The lanes of a group share all numbers and each make some of them, every one in the order in which a lane alone would; only what
// Anderson sums, and the largest changes, go from lane to lane.
//
// T is kept for worlds where that is less work than the factor Z (n, width): those with at most 2 width rows of their own, if rows are
// not apart. What a world does must not depend on how many rows its pack has, so a mixed pack does both.
//
// Worlds of a pack need different numbers of passes. When half of a wide pack is done, the rest goes on in a narrower one,
// whose passes cost half as much; what a world computes does not depend on who is beside it. Moving costs about two passes, so
// it comes when some more are to be expected.
//
// The plain iteration comes nearer with every pass; an extrapolated one need not. A world that ran out of passes answers with
// the multipliers that a pass changed least, of those after the first kWorthKeeping; one that has come no nearer for kPatience
// passes goes on plainly (many contacts at one place make extrapolation jump to and fro), or with extrapolation again.
#pragma once
#include "core/arena.h"
#include "core/group.h"
#include "linalg/anderson.h"
#include "linalg/column_blocks.h"
#include "math/cone.h"
#include "solvers/subadmm/adaptive.h"
#include "solvers/subadmm/options.h"
#include "solvers/subadmm/some_worlds.h"

namespace stiction {

/// B W_ii; of rows that are no limits 1. On rollouts of robots these need 10 to 15 % fewer passes than 1 throughout.
inline constexpr double kContactPenalty = 1.5, kLimitPenalty = 5;
/// The first passes, and what a change in them is to be of what is allowed later. What a pass changes is less than what is left, W B times
/// as much where rows are coupled: a warm start that is just good enough leaves gaps to drift, until a step has to solve anew and finds
/// another of the answers that are good enough. Feet, and fingers about a cube, changed their forces by percents so.
inline constexpr int kFirstPasses = 2;
inline constexpr double kFirstChange = 0.1;
/// Passes before the best one is kept, and without a better one before a world goes on in another way.
inline constexpr int kWorthKeeping = 30, kPatience = 100;

/// A change counts as V over that of its row's trees, or over what is known of the row's `own` velocity where that is less:
/// beside a leg that swings at 20 rad/s single precision does not know 1e-5 of 0.02 m/s, nor what W l leaves where a linkage is
/// under load.
template <class Problem, class Real>
HD Real change_weight(const Problem& p, int block, Real own, Scalar<Real> tolerance) {
  using S = Scalar<Real>;
  const Real rounding(S(8) * kEpsilon<S> / tolerance), V = max(p.scale, Real(1e-20f)), scale = p.scale_of(block);
  return V / max(select(scale > Real(0), scale, V), own * rounding);
}

/// What pass `pass`, from 1, may change for a world to be done; negative: never.
template <class Real>
HD Real allowed_in(int pass, Real allowed) {
  return pass <= kFirstPasses ? allowed * Scalar<Real>(kFirstChange) : allowed;
}

/// The pass that changed the multipliers least, and whether worlds go on without extrapolation.
template <class Real>
struct LeastChange {
  Real square = Real(1e30f);  // of that change, in units of the penalties
  Real idle = Real(0);        // passes since then
  Mask<Real> plain = mask_of<Real>(false);

  /// Before a pass changes l, by how much is known already. Returns the worlds that it changes least so far.
  HD Mask<Real> look(Real change) {
    const auto better = change < square;
    square = min(square, change), idle = select(better, Real(0), idle + Real(1));
    const Mask<Real> stuck = idle > Real(Scalar<Real>(kPatience));
    plain = select(stuck, negate(plain), plain), idle = select(stuck, Real(0), idle);
    return better;
  }
  template <int Depth>
  HD void hold_back(Anderson<Real, Depth>& anderson) const {
    if (!any(plain)) return;
    UNROLL for (int j = 0; j < Depth; ++j) anderson.gamma[j] = select(plain, Real(0), anderson.gamma[j]);
  }
};

/// Contacts first, then the other rows.
template <class Real, class Group = Serial>
class Passes {
 public:
  using S = Scalar<Real>;
  using Entry = History<Real, 3>;
  using Opt = SubAdmmOptions<S>;
  using Narrow = typename NarrowerPack<Real>::Type;
  static constexpr int kBlock = 4;
  static constexpr bool kNarrows = kWidth<Narrow> < kWidth<Real>;
  /// Rows that one lane makes at once: alone it would wait for each of its sums.
  static constexpr int kRows = Group::kSize == 1 ? kBlock : 1;

  Group g;
  int contacts, scalars, spins, n;         // spins: contacts, or 0
  int width, columns;                      // of Z, padded for blocks; of those at most the last is 0 throughout
  bool apart;                              // Z has numbers in the blocks only that its rows touch
  ColumnBlocks blocks;                     // of Z
  uint32_t* touched;                       // (contacts + scalars) of a contact's three rows of Z, or of another's one
  // By rows: v* and bias, give 1 / (1 + R), soft B^-1/2 (m/s of a unit) as changes count; by contacts and scalars: mu, bounds.
  Real *free, *e, *give, *soft, *mu, *lower, *upper;
  Real* turn;               // (3 spins) weight of a couple's square in the cone, where that of a tangent is 1
  Real *z, *lambda, *push;  // push: z - J v* + l, what T is multiplied with
  Real* best;               // l, where it was changed least
  Real* Z;                  // (padded n, width), rows behind the last are 0; what is not touched is not set
  Real*
      T;  // symmetric, by blocks of kBlock rows up to and with the diagonal's, see triangle(); where some world is small
  Mask<Real> small;  // worlds that go by T

  /// For `n` rows, of this pack and of the narrower one.
  HD void carve(Arena<Real>& arena) {
    const int64_t begin = arena.used(), size = padded(n);
    touched = arena.take_bits(contacts + scalars);
    const int64_t bits = arena.used() - begin;  // take as much in the narrower one
    Real** const vectors[] = {&free, &e, &give, &soft, &mu, &lower, &upper, &z, &lambda, &push, &best, &w_};
    for (Real** vector : vectors) *vector = arena.take(size);
    turn = arena.take(3 * spins);
    history_ = arena.template take_as<Entry>(size);
    Z = arena.take(size * width), T = arena.take(triangle(rows_of_T()));
    other_ = arena.take(size), sum_ = arena.take(width);
    rest_ = arena.take(kNarrows ? (arena.used() - begin + 1) / 2 + bits : 0);
  }
  /// The first row of the couple of contact k.
  HD int spin_row(int k) const { return 3 * contacts + scalars + 3 * k; }
  /// The contact, or other row behind the contacts, that row i belongs to.
  HD int block_of(int i) const {
    return i < 3 * contacts ? i / 3 : i < spin_row(0) ? i - 2 * contacts : (i - spin_row(0)) / 3;
  }
  /// Worlds of so many rows go by T, larger ones by Z. A pack's T has all rows of the pack.
  HD int most_small() const { return apart ? -1 : 2 * width; }
  HD int64_t rows_of_T() const {
    return apart ? 0 : kWidth<Real> > 1 ? padded(n) : min(static_cast<int>(padded(n)), 2 * width);
  }
  HD static int64_t padded(int64_t rows) { return (rows + kBlock - 1) / kBlock * kBlock; }
  /// Block I of T begins at triangle(kBlock I) and holds column j of its rows at kBlock j.
  HD static int64_t triangle(int64_t rows) { return rows * (rows + kBlock) / 2; }

  HD void forget() {
    anderson_.clear();
    parallel_for(g, n, [&](int i) { anderson_.clear(history_[i], Real(0)), best[i] = lambda[i]; });
    least_ = {};
  }

  /// From pass `pass` to `last` of at most `most`, or until all worlds are done, which they are when nothing changes by more than `allowed` m/s
  /// (allowed_in; negative: never). Returns what the last pass changed. `count`: passes of each world.
  HD AdmmChange<Real> run(const Opt& opt, int most, Real allowed, int& pass, int last, Mask<Real>& done, Real& count) {
    AdmmChange<Real> change;
    while (pass < last) {
      velocities();
      images(opt);
      if (opt.anderson && pass >= kWorthKeeping && anderson_.pass > 1) keep_best();
      change = opt.anderson ? multipliers<true>(opt, done) : multipliers<false>(opt, done);
      count = select(done, count, count + Real(1)), ++pass;
      done = done | (change.largest() <= allowed_in(pass, allowed));
      const int left = kWidth<Real> - lanes_of<Real>(done);
      if (left == 0) break;
      if constexpr (kNarrows)
        if (left <= kWidth<Narrow> && pass >= kWorthMoving && opt.penalty != kPenaltyAdaptive) {
          run_narrow(opt, most, allowed, pass, last, done, count);
          return change;
        }
    }
    if (opt.anderson && pass == most && pass > kWorthKeeping)
      parallel_for(g, n, [&](int i) { lambda[i] = select(done, lambda[i], best[i]); });
    return change;
  }

 private:
  template <class Other, class OtherGroup>
  friend class Passes;
  static constexpr int kWorthMoving = 8, kEntryReals = sizeof(Entry) / sizeof(Real);

  /// The worlds that are not done, and some others to fill the pack, go on in a narrower one.
  HD void run_narrow(const Opt& opt, int most, Real allowed, int& pass, int last, Mask<Real>& done, Real& count) {
    const Index<Real> from = in_front<Real>(negate(done));
    auto take = [&from](const Real& x) { return narrowed<Narrow>(x, from); };
    Passes<Narrow> some;
    some.contacts = contacts, some.scalars = scalars, some.spins = spins, some.n = n, some.width = width,
    some.columns = columns, some.blocks = blocks, some.apart = apart;
    Arena<Narrow> arena(reinterpret_cast<Narrow*>(rest_));
    some.carve(arena);
    some.assign(*this, take);
    Mask<Narrow> rest_done = narrowed_mask<Narrow, Real>(done, from);
    Narrow rest_count = take(count);
    some.run(opt, most, take(allowed), pass, last, rest_done, rest_count);
    for (int w = 0; w < kWidth<Narrow>; ++w) {
      const int to = lane(from, w);
      set_lane(count, to, lane(rest_count, w)), set_lane(done, to, lane(rest_done, w));
      for (int i = 0; i < n; ++i) set_lane(lambda[i], to, lane(some.lambda[i], w));
    }
  }
  template <class Wide, class Take>
  HD void assign(const Passes<Wide>& x, Take take) {
    auto copy = [&take](int64_t count, const Wide* from, Real* to) {
      for (int64_t i = 0; i < count; ++i) to[i] = take(from[i]);
    };
    const int64_t size = padded(n);
    copy(size, x.free, free), copy(n, x.e, e), copy(n, x.give, give), copy(n, x.soft, soft);
    copy(contacts, x.mu, mu), copy(scalars, x.lower, lower), copy(scalars, x.upper, upper);
    copy(3 * spins, x.turn, turn);
    copy(n, x.z, z), copy(n, x.lambda, lambda), copy(size, x.push, push), copy(n, x.best, best);
    if (any(x.small)) copy(triangle(size), x.T, T);
    if (!all(x.small)) {
      if (!apart) copy(size * width, x.Z, Z);
      else
        for (int i = 0; i < n; ++i)
          blocks.each_run(x.touched[block_of(i)], [&](int from, int to) {
            const int64_t at = static_cast<int64_t>(i) * width + from;
            copy(to - from, x.Z + at, Z + at);
          });
      for (int k = 0; k < contacts + scalars; ++k) touched[k] = x.touched[k];
    }
    small = take(select(x.small, Wide(1), Wide(0))) > Real(0);
    copy(n * kEntryReals, reinterpret_cast<const Wide*>(x.history_), reinterpret_cast<Real*>(history_));
    anderson_.assign(x.anderson_, take);
    least_ = {take(x.least_.square), take(x.least_.idle), take(select(x.least_.plain, Wide(1), Wide(0))) > Real(0)};
  }

  HD void velocities() {
    const bool some = any(small);
    if (some) by_operator(w_);
    if (all(small)) return;
    by_factor(some ? other_ : w_);
    if (!some) return;
    parallel_for(g, n, [&](int i) { w_[i] = select(small, w_[i], other_[i]); });
  }
  /// w = J v = free + Z (Z' push).
  HD void by_factor(Real* out) {
    if (apart) return by_blocks(out);
    Real* sum = sum_;
    parallel_for(g, columns, [&](int a) { sum[a] = Real(0); });
    if constexpr (Group::kSize == 1)
      for (int i = 0; i < n; ++i) {
        const Real *row = Z + static_cast<int64_t>(i) * width, p = push[i];
        for (int a = 0; a < columns; ++a) sum[a] = sum[a] + row[a] * p;
      }
    else
      parallel_for(g, columns, [&](int a) {
        for (int i = 0; i < n; ++i) sum[a] = sum[a] + Z[static_cast<int64_t>(i) * width + a] * push[i];
      });
    parallel_for(g, static_cast<int>(padded(n)) / kRows, [&](int step) {
      const int i = step * kRows;
      const Real* row = Z + static_cast<int64_t>(i) * width;
      Real w[kRows];
      for (int r = 0; r < kRows; ++r) w[r] = free[i + r];
      for (int a = 0; a < columns; ++a)
        for (int r = 0; r < kRows; ++r) w[r] = w[r] + row[r * width + a] * sum[a];
      for (int r = 0; r < kRows; ++r) out[i + r] = w[r];
    });
  }
  /// sum = Z' push in the columns of those blocks alone.
  HD void sum_blocks(uint32_t which) {
    Real* sum = sum_;
    auto add_three = [&](int k, int i) {
      const Real *row = Z + static_cast<int64_t>(i) * width, *p = push + i, p0 = p[0], p1 = p[1], p2 = p[2];
      blocks.each_run(touched[k] & which, [&](int from, int to) {
        for (int a = from; a < to; ++a) sum[a] = sum[a] + (row[a] * p0 + row[width + a] * p1 + row[2 * width + a] * p2);
      });
    };
    for (int k = 0; k < contacts; ++k) add_three(k, 3 * k);
    for (int k = contacts; k < contacts + scalars; ++k) {
      const Real *row = Z + (2ll * contacts + k) * width, p = push[2 * contacts + k];
      blocks.each_run(touched[k] & which, [&](int from, int to) {
        for (int a = from; a < to; ++a) sum[a] = sum[a] + row[a] * p;
      });
    }
    for (int k = 0; k < spins; ++k) add_three(k, spin_row(k));
  }
  HD void by_blocks(Real* out) {
    Real* sum = sum_;
    parallel_for(g, width, [&](int a) { sum[a] = Real(0); });
    if constexpr (Group::kSize == 1) sum_blocks(~uint32_t(0));
    else parallel_for(g, blocks.count, [&](int b) { sum_blocks(uint32_t(1) << b); });
    auto take_three = [&](int k, int i) {
      const Real *row = Z + static_cast<int64_t>(i) * width, *v = free + i;
      Real w0 = v[0], w1 = v[1], w2 = v[2];
      blocks.each_run(touched[k], [&](int from, int to) {
        for (int a = from; a < to; ++a)
          w0 = w0 + row[a] * sum[a], w1 = w1 + row[width + a] * sum[a], w2 = w2 + row[2 * width + a] * sum[a];
      });
      out[i] = w0, out[i + 1] = w1, out[i + 2] = w2;
    };
    parallel_for(g, contacts, [&](int k) {
      take_three(k, 3 * k);
      if (spins > 0) take_three(k, spin_row(k));
    });
    parallel_for(g, scalars, [&](int k) {
      const int i = 3 * contacts + k;
      const Real* row = Z + static_cast<int64_t>(i) * width;
      Real w = free[i];
      blocks.each_run(touched[contacts + k], [&](int from, int to) {
        for (int a = from; a < to; ++a) w = w + row[a] * sum[a];
      });
      out[i] = w;
    });
  }
  /// The same by T. Every sum runs over the columns in order, whoever adds: above the diagonal it is the row of the other index.
  HD void by_operator(Real* out) {
    if constexpr (Group::kSize > 1)
      parallel_for(g, n, [&](int i) {
        const int own = i / kBlock * kBlock;  // where the row's block begins
        const Real* row = T + triangle(own) + (i - own);
        Real sum = free[i];
        for (int j = 0; j < own + kBlock; ++j) sum = sum + row[kBlock * j] * push[j];
        for (int top = own + kBlock; top < padded(n); top += kBlock) {
          const Real* block = T + triangle(top) + kBlock * i;
          for (int r = 0; r < kBlock; ++r) sum = sum + block[r] * push[top + r];
        }
        out[i] = sum;
      });
    else sweep_operator(out);
  }
  HD void sweep_operator(Real* out) {
    const Real* block = T;
    for (int i = 0; i < n; i += kBlock) {
      Real sum[kBlock], own[kBlock];
      for (int r = 0; r < kBlock; ++r) sum[r] = free[i + r], own[r] = push[i + r];
      for (int j = 0; j < i; ++j, block += kBlock) {
        Real wj = out[j];
        const Real pj = push[j];
        for (int r = 0; r < kBlock; ++r) sum[r] = sum[r] + block[r] * pj, wj = wj + block[r] * own[r];
        out[j] = wj;
      }
      for (int j = 0; j < kBlock; ++j, block += kBlock)
        for (int r = 0; r < kBlock; ++r) sum[r] = sum[r] + block[r] * own[j];
      for (int r = 0; r < kBlock; ++r) out[i + r] = sum[r];
    }
  }

  /// y into w, or into the history that takes a better one of it.
  HD void images(const Opt& opt) {
    const Real alpha(opt.relaxation), rest = Real(1) - alpha;
    auto image = [&](int i) IN_PLACE { return w_[i] * alpha + z[i] * rest - lambda[i]; };
    if (!opt.anderson) return parallel_for(g, n, [&](int i) IN_PLACE { w_[i] = image(i); });
    auto sums = anderson_.begin_sums();
    parallel_for(g, n, [&](int i) IN_PLACE { sums.gather(history_[i], image(i), [](Real x) IN_PLACE { return x; }); });
    anderson_.finish_sums(g, sums, Real(opt.tikhonov));
    least_.hold_back(anderson_);
  }

  HD void keep_best() {
    const auto better = least_.look(anderson_.last);
    parallel_for(g, n, [&](int i) { best[i] = select(better, lambda[i], best[i]); });
  }

  /// l of contact k with its couple, where nothing but cone and normal compliance acts.
  HD SixVec<Real> six(const Opt& opt, int k, const SixVec<Real>& free) const {
    if (opt.convex) return project_weighted(free, mu[k], sqrt(give[3 * k + 2]));
    const Real n = max(free.l.z, Real(0));
    const auto by = project_ellipsoid(free.l.x * free.l.x + free.l.y * free.l.y, free.c,
                                      Vec3<Real>{turn[3 * k], turn[3 * k + 1], turn[3 * k + 2]}, n * mu[k]);
    return {{free.l.x * by.tangent, free.l.y * by.tangent, n},
            {free.c.x * by.couple.x, free.c.y * by.couple.y, free.c.z * by.couple.z}};
  }
  /// l and z from y; their largest changes. Worlds that are done keep theirs.
  template <bool kAccelerated>
  HD AdmmChange<Real> multipliers(const Opt& opt, Mask<Real> done) {
    AdmmChange<Real> change;
    const auto by = anderson_.extrapolation();
    auto y = [&](int i) IN_PLACE { return kAccelerated ? by.step(history_[i]) : w_[i]; };
    auto put = [&](int i, Real yi, Real l) IN_PLACE {
      const Real zi = yi + l;
      change.add(soft[i] * abs(zi - z[i]), soft[i] * abs(l - lambda[i]));
      lambda[i] = select(done, lambda[i], l), z[i] = select(done, z[i], zi);
      push[i] = z[i] - free[i] + lambda[i];
    };
    parallel_for(g, contacts, [&](int k) IN_PLACE {
      const int i = 3 * k;
      const Vec3<Real> a{y(i), y(i + 1), y(i + 2)};
      const Vec3<Real> free{-(a.x + e[i]) * give[i], -(a.y + e[i + 1]) * give[i + 1], -(a.z + e[i + 2]) * give[i + 2]};
      if (spins > 0) {  // R = 0 along the tangents
        const int c = spin_row(k);
        const Vec3<Real> ac{y(c), y(c + 1), y(c + 2)};
        const SixVec<Real> l = six(opt, k, {free, -ac});
        put(i, a.x, l.l.x), put(i + 1, a.y, l.l.y), put(i + 2, a.z, l.l.z);
        put(c, ac.x, l.c.x), put(c + 1, ac.y, l.c.y), put(c + 2, ac.z, l.c.z);
        return;
      }
      const Vec3<Real> l =
          opt.convex ? project_weighted(free, mu[k], sqrt(give[i + 2] / give[i])) : project_strict(free, mu[k]);
      put(i, a.x, l.x), put(i + 1, a.y, l.y), put(i + 2, a.z, l.z);
    });
    parallel_for(g, scalars, [&](int k) IN_PLACE {
      const int i = 3 * contacts + k;
      const Real a = y(i);
      put(i, a, clamp(-(a + e[i]) * give[i], lower[k], upper[k]));
    });
    return {g.max(change.z), g.max(change.lambda)};
  }

  Real *w_, *other_;  // J v; by the factor, where both are needed
  Real* sum_;         // Z' push
  LeastChange<Real> least_;
  Real* rest_;        // of the memory
  Entry* history_;
  Anderson<Real, 3> anderson_;
};

}  // namespace stiction
