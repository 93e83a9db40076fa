// SubADMM: the subsystem ADMM of [Lee2025], section VI, on half-solved rows. docs/theory.md, section 9; README.md lists the
// deviations.
//
//   z = J v,  (z, l) in the law:   v = argmin 1/2 |v - v*|_A^2 + 1/2 |J v - z - B^-1 l|_B^2,   then l, z by rows
//
// In units where every penalty is 1, J_i <- B_i^1/2 J_i, with x_i = B_i^1/2 Y_i:
//
//   C = I + sum x_i' x_i = U'U,   z_i = U^-T x_i,   T = J (A + J'B J)^-1 J' = Z Z'
//
// so a pass (passes.h) is one product with the symmetric T (n, n), or with Z twice, and no walk over a tree. Where Y has blocks C is
// eliminated block by block. A world is one subsystem here: nothing is gained by splitting a contact between the two links it
// touches.
#pragma once
#include "linalg/gram.h"
#include "solvers/score.h"
#include "solvers/subadmm/registers.h"
#include "solvers/subadmm/sweeps.h"

namespace stiction {

namespace subadmm_detail {

/// By the lanes of a group together: see passes.h.
template <class Real, class Group>
class Iteration {
 public:
  using S = Scalar<Real>;
  using Passes = stiction::Passes<Real, Group>;
  using Opt = SubAdmmOptions<S>;

  HD Iteration(const Group& g, const RowProblem<Real>& problem, const SolveLimits<S>& limits, const Opt& options,
               Real* answer)
      : g_(g), p_(problem), limits_(limits), opt(options), answer_(answer) {
    x_.g = g;
  }

  /// alone: none of its worlds is going to be solved apart from others.
  HD void carve(Arena<Real>& arena, bool alone = false) {
    x_.contacts = p_.contacts, x_.scalars = p_.scalars, x_.spins = p_.spins, x_.n = p_.rows();
    x_.width = static_cast<int>(Passes::padded(p_.width)), x_.blocks = p_.blocks, x_.apart = p_.apart;
    x_.columns = (p_.width + 1) / 2 * 2;
    const int64_t n = Passes::padded(x_.n), width = x_.width;
    root_ = arena.take(n), C_ = arena.take(x_.apart ? 0 : width * width), u_ = arena.take(3 * width);
    if (x_.apart) gram_.carve(p_.width, arena);
    memory_ = arena.rest();
    const int64_t begin = arena.used();
    x_.carve(arena);
    if constexpr (kWidth<Real> > 1)
      if (!alone && memory_ == nullptr)  // measures
        arena.take(max(int64_t{0}, max(size_in<Real>(), size_in<Narrow>()) - (arena.used() - begin)));
  }

  /// First without the contacts that stay open; worlds where one of them would close after all solve again with all, from there.
  HD SolveStats<Real> solve() {
    if (limits_.iterations < 1) {
      if (g_.rank() == 0) admit(p_, answer_, answer_);
      g_.sync();
      return stats_;
    }
    if constexpr (kWidth<Real> == 1 && Group::kSize > 1)
      if (RegisterPasses<Real, Group>::takes(p_, limits_, opt))
        return solve_in_registers(g_, p_, limits_, opt, answer_, root_, u_);
    parallel_for(g_, p_.contacts - p_.near, [&](int i) {
      const int k = p_.near + i;
      for (int d = 0; d < 3; ++d) answer_[3 * k + d] = Real(0);
      for (int d = 0; p_.spins > 0 && d < 3; ++d) answer_[p_.spin_row(k) + d] = Real(0);
    });
    Mask<Real> done = mask_of<Real>(false);
    if constexpr (kSweepsFirst && Group::kSize == 1) done = sweep();
    done = iterate(p_.near, done);
    if (p_.contacts > p_.near) {
      const Mask<Real> stay = negate(closing());
      if (!all(stay)) done = with_all(negate(stay), done);
    }
    if (limits_.tolerance > 0 && !all(done)) drop_harmful(g_, p_, opt.law(), negate(done), answer_, root_, u_);
    return stats_;
  }

 private:
  template <class Other, class OtherGroup>
  friend class Iteration;
  using Narrow = typename Passes::Narrow;
  static constexpr int kBlock = Passes::kBlock, kRows = Passes::kRows;
  /// The problem's row of row i of those that take part.
  HD int row_of(int i) const { return i < 3 * x_.contacts ? i : i + 3 * (p_.contacts - x_.contacts); }

  /// With the first `contacts` of them. Worlds that are done keep their answer. Returns those that are done then: which stopped, and
  /// not because their impulses are so large that nothing changes them.
  HD_ONCE Mask<Real> iterate(int contacts, Mask<Real> done) {
    if (all(done)) return done;
    const Mask<Real> kept = done;
    x_.contacts = contacts, x_.spins = p_.spins > 0 ? contacts : 0, x_.n = x_.spin_row(x_.spins);
    Arena<Real> arena(memory_);
    x_.carve(arena);
    done = done | (prepare() == Real(0));
    if (opt.anderson) x_.forget();
    const bool adaptive = opt.penalty == kPenaltyAdaptive;
    const Real allowed = limits_.tolerance > 0 ? p_.scale * limits_.tolerance : Real(-1);
    const int most = limits_.iterations;
    Real largest(0);
    Real total(1);  // what the penalties have been scaled by
    for (int pass = 0; pass < most && !all(done);) {
      const int last = adaptive ? min(pass + kAdaptivePasses, most) : most;
      stats_.factorizations = select(done, stats_.factorizations, stats_.factorizations + Real(1));
      const AdmmChange<Real> change = x_.run(opt, most, allowed, pass, last, done, stats_.iterations);
      if (adaptive && pass == last && !all(done)) {
        rescale(sqrt(adapted(change, done, total)));
        if (opt.anderson) x_.forget();
      }
    }
    parallel_for(g_, x_.n, [&](int i) {
      Real& to = answer_[row_of(i)];
      to = select(kept, to, x_.lambda[i] * root_[i]);
      largest = maximum(largest, x_.soft[i] * abs(x_.lambda[i]));
    });
    if (limits_.tolerance > 0) done = done & (kept | (g_.max(largest) * kEpsilon<S> <= allowed));
    return done;
  }
  /// Before the passes. Returns the worlds that are done with that.
  HD Mask<Real> sweep() {
    const bool none = opt.sweeps < 1 || p_.spins > 0 || p_.apart || opt.convex || !(limits_.tolerance > 0);
    if (none || !any(p_.lone)) return mask_of<Real>(false);
    Sweeps<Real> sweeps(p_, answer_);
    if (!any(sweeps.takes())) return mask_of<Real>(false);
    Arena<Real> arena(memory_);
    sweeps.carve(arena);
    return sweeps.run(min(opt.sweeps, limits_.iterations), limits_.tolerance, Real(opt.tikhonov), stats_.iterations);
  }
  /// Solves `open` worlds again, with all contacts. Returns those that are done then.
  HD Mask<Real> with_all(const Mask<Real>& open, const Mask<Real>& done) {
    if constexpr (kWidth<Real> > 1)
      if (!p_.apart)
        return lanes_of<Real>(open) > kWidth<Narrow> ? apart_in<Real>(open, done) : apart_in<Narrow>(open, done);
    return iterate(p_.contacts, negate(open)) & (done | open);
  }
  /// In a problem that has their rows alone.
  template <class To>
  HD_ONCE Mask<Real> apart_in(const Mask<Real>& open, Mask<Real> done) {
    Arena<To> arena(reinterpret_cast<To*>(memory_));
    const SomeWorlds<To, Real> some(p_, open, answer_, arena);
    const RowProblem<To> problem = some.view();
    const SolveLimits<Scalar<To>>& limits = limits_;
    Iteration<To, Group> own(g_, problem, limits, opt, some.rows.impulse);
    own.carve(arena, true);
    const Mask<To> found = own.iterate(problem.contacts, some.others());
    some.put(answer_);
    some.each_world([&](int there, int here) {
      auto add = [&](Real& to, const To& more) { set_lane(to, there, lane(to, there) + lane(more, here)); };
      add(stats_.iterations, own.stats_.iterations), add(stats_.factorizations, own.stats_.factorizations);
      set_lane(done, there, lane(found, here));
    });
    return done;
  }
  /// Memory for that.
  template <class To>
  HD int64_t size_in() const {
    RowProblem<To> largest;
    static_cast<RowCounts&>(largest) = p_;
    Arena<To> arena;
    Iteration<To, Group>(g_, largest, limits_, opt, nullptr).carve(arena, true);
    return (arena.used() + SomeWorlds<To, Real>::size(p_)) * sizeof(To) / sizeof(Real) + 1;
  }
  /// Worlds where a contact that was left out closes faster than its gap allows, by more than tolerance V.
  HD Mask<Real> closing() const {
    p_.push(g_, answer_, u_);
    auto found = mask_of<Real>(false);
    parallel_for(g_, p_.contacts - p_.near, [&](int i) {
      const int k = p_.near + i, n = 3 * k + 2;
      found = found | ((p_.W[n] > Real(0)) & (p_.velocity(n, u_) + p_.e[n] < -(p_.scale_of(k) * limits_.tolerance)));
    });
    return g_.either(found);
  }

  /// 1 / B into soft.
  HD void penalties() {
    const Real zero(0), one(1);
    const bool one_for_a_contact = opt.penalty == kPenaltyPerContact || opt.penalty == kPenaltyCommon;
    Real sum(0), count(0);
    parallel_for(g_, x_.contacts, [&](int k) {
      const int i = 3 * k;
      for (int d = 0; d < 3; ++d) x_.soft[i + d] = p_.W[i + d] * S(1 / kContactPenalty);
      if (!one_for_a_contact) return;
      const Real mean = (x_.soft[i] * Real(2) + x_.soft[i + 2]) * Real(1.0f / 3);
      for (int d = 0; d < 3; ++d) x_.soft[i + d] = mean;
      sum = sum + mean, count = count + select(mean > zero, one, zero);
    });
    if (opt.penalty == kPenaltyCommon) {
      const Real common = g_.sum(sum) / max(g_.sum(count), one);
      parallel_for(g_, 3 * x_.contacts, [&](int i) { x_.soft[i] = select(x_.soft[i] > zero, common, zero); });
    }
    parallel_for(g_, x_.scalars, [&](int k) {
      const auto one_sided = (p_.lower[k] == zero) & (p_.upper[k] > zero);
      x_.soft[3 * x_.contacts + k] = p_.W[p_.scalar_row(k)] * select(one_sided, Real(S(1 / kLimitPenalty)), one);
    });
    parallel_for(g_, 3 * x_.spins, [&](int j) {  // the convex projection wants one for all tangents
      const int i = x_.spin_row(0) + j;
      const Real own = p_.W[row_of(i)] * S(1 / kContactPenalty);
      x_.soft[i] = opt.convex ? select(own > zero, x_.soft[3 * x_.block_of(i)], zero) : own;
    });
  }
  /// Everything in the units of the penalties; z = J A^-1 (b + J' l), from the warm start. Returns how many rows each world has.
  HD Real prepare() {
    const Real zero(0), one(1);
    Real rows(0);
    penalties();
    const Real of_contact(static_cast<S>(x_.spins > 0 ? 6 : 3));  // those of couples, too, that it has none of
    parallel_for(g_, x_.contacts + x_.scalars, [&](int k) {
      rows = rows + select(p_.mobility(block_of(k)) > zero, k < x_.contacts ? of_contact : one, zero);
    });
    rows = g_.sum(rows);
    x_.small = rows <= Real(static_cast<S>(x_.most_small()));
    if (kWidth<Real> == 1 && x_.n > x_.most_small()) x_.small = mask_of<Real>(false);  // alone T has room for no more
    p_.push(g_, answer_, u_);
    parallel_for(g_, x_.n, [&](int i) {
      const auto used = x_.soft[i] > zero;
      x_.soft[i] = sqrt(x_.soft[i]);
      root_[i] = select(used, one / select(used, x_.soft[i], one), zero);
      const int row = row_of(i);
      x_.free[i] = p_.free[row] * root_[i], x_.e[i] = p_.e[row] * root_[i];
      x_.z[i] = p_.velocity(row, u_) * root_[i], x_.lambda[i] = answer_[row] * x_.soft[i];
      x_.push[i] = x_.z[i] - x_.free[i] + x_.lambda[i];
    });
    parallel_for(g_, padding(), [&](int i) { x_.free[x_.n + i] = x_.push[x_.n + i] = zero; });
    parallel_for(g_, x_.contacts, [&](int k) {
      const int i = 3 * k;
      x_.mu[k] = p_.mu[k] * x_.soft[i] * root_[i + 2];
      for (int d = 0; x_.spins > 0 && d < 3; ++d) {
        const Real weight = root_[x_.spin_row(k) + d] * x_.soft[i];
        x_.turn[3 * k + d] = weight * weight;
      }
    });
    parallel_for(g_, x_.scalars, [&](int k) {
      const Real soft = x_.soft[3 * x_.contacts + k];
      x_.lower[k] = p_.lower[k] * soft, x_.upper[k] = p_.upper[k] * soft;
    });
    weigh_changes();
    if (x_.apart && g_.rank() == 0) find_pattern();
    make_operator();
    return rows;
  }
  HD int padding() const { return static_cast<int>(Passes::padded(x_.n)) - x_.n; }
  HD void weigh_changes() {
    if (!(limits_.tolerance > 0)) return;
    auto weight = [&](int block, Real own) { return change_weight(p_, block, own, limits_.tolerance); };
    parallel_for(g_, x_.contacts, [&](int k) {
      const Real *v = p_.free + 3 * k, w = weight(k, max(max(abs(v[0]), abs(v[1])), abs(v[2])));
      for (int d = 0; d < 3; ++d) x_.soft[3 * k + d] = x_.soft[3 * k + d] * w;
    });
    parallel_for(g_, x_.n - 3 * x_.contacts, [&](int j) {
      const int i = 3 * x_.contacts + j, row = row_of(i);
      x_.soft[i] = x_.soft[i] * weight(p_.block_of(row), max(abs(p_.free[row]), p_.W[row] * abs(answer_[row])));
    });
  }
  /// Penalties times by^2.
  HD void rescale(Real by) {
    const Real inverse = Real(1) / by;
    parallel_for(g_, x_.n, [&](int i) {
      root_[i] = root_[i] * by, x_.soft[i] = x_.soft[i] * inverse;
      x_.free[i] = x_.free[i] * by, x_.e[i] = x_.e[i] * by, x_.z[i] = x_.z[i] * by,
      x_.lambda[i] = x_.lambda[i] * inverse;
      x_.push[i] = x_.z[i] - x_.free[i] + x_.lambda[i];
    });
    parallel_for(g_, x_.scalars,
                 [&](int k) { x_.lower[k] = x_.lower[k] * inverse, x_.upper[k] = x_.upper[k] * inverse; });
    make_operator();
  }

  /// Z and T, and 1 / (1 + R), of the present penalties.
  HD_ONCE void make_operator() {
    const Real one(1);
    parallel_for(g_, x_.n, [&](int i) { x_.give[i] = one / (one + p_.R[row_of(i)] * root_[i] * root_[i]); });
    if (x_.apart) {
      if (g_.rank() == 0) make_blocks();
      return g_.sync();
    }
    parallel_for(g_, x_.n, [&](int i) {
      const Real* y = p_.row(row_of(i));
      for (int d = 1; d < kBlock; ++d) solved(i)[x_.width - d] = Real(0);  // of these some are padding
      for (int a = 0; a < p_.width; ++a) solved(i)[a] = y[a] * root_[i];
    });
    parallel_for(g_, padding(), [&](int i) {
      for (int a = 0; a < x_.width; ++a) solved(x_.n + i)[a] = Real(0);
    });
    assemble_matrix();
    factor_matrix();
    solve_rows();
    if (any(x_.small)) multiply_rows();
  }
  HD Real* solved(int j) const { return x_.Z + static_cast<int64_t>(j) * x_.width; }

  /// C = I + sum x x', lower triangle.
  HD void assemble_matrix() {
    const int width = x_.width;
    parallel_for(g_, x_.columns / 2, [&](int half) {
      const int a = 2 * half;
      for (int b = 0; b <= a; b += kBlock) {
        Real sum[2][kBlock];
        for (int r = 0; r < kBlock; ++r) sum[0][r] = Real(a == b + r ? 1 : 0), sum[1][r] = Real(a + 1 == b + r ? 1 : 0);
        for (int j = 0; j < x_.n; ++j) {
          const Real *x = solved(j), x0 = x[a], x1 = x[a + 1];
          for (int r = 0; r < kBlock; ++r) sum[0][r] = sum[0][r] + x0 * x[b + r], sum[1][r] = sum[1][r] + x1 * x[b + r];
        }
        for (int r = 0; r < kBlock; ++r) C_[a * width + b + r] = sum[0][r], C_[(a + 1) * width + b + r] = sum[1][r];
      }
    });
  }
  /// C = U'U, columns of U' in the lower triangle, 1 / U_aa on the diagonal. C >= I. Column by column, of which a number takes all that
  /// those before take from it at once: in a register.
  HD void factor_matrix() {
    const int width = x_.width, columns = x_.columns;
    for (int k = 0; k < columns; ++k) {
      const int left = columns - k, blocks = left / kRows;
      parallel_for(g_, blocks + left % kRows, [&](int i) {
        if (i < blocks) reduce<kRows>(k + i * kRows, k);
        else reduce<1>(k + blocks * kRows + i - blocks, k);
      });
      const Real inverse = Real(1) / sqrt(C_[k * width + k]);
      parallel_for(g_, left - 1, [&](int i) {
        Real& l = C_[(k + 1 + i) * width + k];
        l = l * inverse;
      });
      if (g_.rank() == 0) C_[k * width + k] = inverse;  // which all have read
    }
    g_.sync();
  }
  /// Takes from column k of C, in R rows from a, what the columns before it have of it.
  template <int R>
  HD void reduce(int a, int k) {
    const int width = x_.width;
    const Real* by = C_ + k * width;
    Real *row = C_ + a * width, sum[R];
    for (int r = 0; r < R; ++r) sum[r] = row[r * width + k];
    for (int j = 0; j < k; ++j)
      for (int r = 0; r < R; ++r) sum[r] = sum[r] - row[r * width + j] * by[j];
    for (int r = 0; r < R; ++r) row[r * width + k] = sum[r];
  }
  /// Z in the place of x, several rows and columns at once: one alone would wait for each of its sums.
  HD void solve_rows() {
    const int width = x_.width;
    parallel_for(g_, (x_.n + padding()) / kRows, [&](int step) {
      Real* z = solved(step * kRows);
      for (int a = 0; a < x_.columns; a += 2) {
        const Real *c0 = C_ + a * width, *c1 = c0 + width;
        Real sum[2][kRows];
        for (int r = 0; r < kRows; ++r) sum[0][r] = z[r * width + a], sum[1][r] = z[r * width + a + 1];
        for (int b = 0; b < a; ++b)
          for (int r = 0; r < kRows; ++r) {
            const Real x = z[r * width + b];
            sum[0][r] = sum[0][r] - c0[b] * x, sum[1][r] = sum[1][r] - c1[b] * x;
          }
        for (int r = 0; r < kRows; ++r) {
          const Real x = sum[0][r] * c0[a];
          z[r * width + a] = x, z[r * width + a + 1] = (sum[1][r] - c1[a] * x) * c1[a + 1];
        }
      }
    });
  }

  /// T = Z Z', the padding 0.
  HD void multiply_rows() {
    const int width = x_.width;
    parallel_for(g_, (x_.n + padding()) / kRows, [&](int step) {
      const int i = step * kRows, own = i / kBlock * kBlock;
      Real* block = x_.T + Passes::triangle(own) + (i - own);
      for (int j = 0; j < own + kBlock; j += 2, block += 2 * kBlock) {
        const Real *left = solved(i), *right = solved(j);
        Real sum[2][kRows];
        for (int r = 0; r < kRows; ++r) sum[0][r] = sum[1][r] = Real(0);
        for (int a = 0; a < x_.columns; ++a) {
          const Real x0 = right[a], x1 = right[width + a];
          for (int r = 0; r < kRows; ++r) {
            const Real x = left[r * width + a];
            sum[0][r] = sum[0][r] + x * x0, sum[1][r] = sum[1][r] + x * x1;
          }
        }
        for (int r = 0; r < kRows; ++r) block[r] = sum[0][r], block[kBlock + r] = sum[1][r];
      }
    });
  }

  // ---- Z where Y has blocks -----------------------------------------------------------------------------------------------

  /// The problem's contact, or other row behind the contacts, for that of those that take part.
  HD int block_of(int k) const { return k < x_.contacts ? k : k - x_.contacts + p_.contacts; }

  HD void find_pattern() {
    const int rows = x_.contacts + x_.scalars;
    gram_.set_pattern(x_.blocks, rows, [&](int k) { return p_.touches(block_of(k)); });
    for (int k = 0; k < rows; ++k) x_.touched[k] = gram_.reached(p_.touches(block_of(k)));
  }
  HD void make_blocks() {
    const Real zero(0);
    gram_.begin();
    for (int k = 0; k < x_.contacts; ++k) {
      const Real* b = root_ + 3 * k;
      const SymMat3<Real> B{b[0] * b[0], zero, zero, b[1] * b[1], zero, b[2] * b[2]};
      gram_.add(B, p_.row(3 * k), p_.touches(k));
    }
    for (int i = 3 * x_.contacts; i < x_.n; ++i) {
      const int row = row_of(i);
      gram_.add(root_[i] * root_[i], p_.row(row), p_.touches(p_.block_of(row)));
    }
    gram_.factor();
    for (int k = 0; k < x_.contacts; ++k) solve_block<3>(k, 3 * k);
    for (int k = 0; k < x_.scalars; ++k) solve_block<1>(x_.contacts + k, 3 * x_.contacts + k);
    for (int k = 0; k < x_.spins; ++k) solve_block<3>(k, x_.spin_row(k));
  }
  /// z = U^-T x of those rows.
  template <int R>
  HD void solve_block(int block, int row) {
    const Real* y = p_.row(row_of(row));
    const uint32_t own = p_.touches(block_of(block)), all = x_.touched[block];
    x_.blocks.each_run(own, [&](int from, int to) {
      for (int a = from; a < to; ++a)
        for (int d = 0; d < R; ++d) u_[R * a + d] = y[d * p_.width + a] * root_[row + d];
    });
    x_.blocks.each_run(all & ~own, [&](int from, int to) {
      for (int a = R * from; a < R * to; ++a) u_[a] = Real(0);
    });
    gram_.template solve_lower<R>(all, u_);
    Real* z = solved(row);
    x_.blocks.each_run(all, [&](int from, int to) {
      for (int a = from; a < to; ++a)
        for (int d = 0; d < R; ++d) z[d * x_.width + a] = u_[R * a + d];
    });
  }

  const Group& g_;
  const RowProblem<Real>& p_;
  const SolveLimits<S>& limits_;
  const Opt& opt;
  Passes x_;      // of those rows that take part now
  Real* answer_;  // l, N s
  Real* root_;    // B^1/2
  SolveStats<Real> stats_;
  GramMatrix<Real> gram_;  // I + sum x' x where Y has blocks, and C_ where not
  Real *C_, *u_, *memory_;
};

}  // namespace subadmm_detail

}  // namespace stiction
