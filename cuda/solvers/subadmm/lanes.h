// SubADMM of problems with no more rows than a group has lanes, for GPUs: row i is lane i's, which has all its numbers in registers.
// The passes of passes.h, with T on the smaller side, by rows where X = B^1/2 Y has fewer of them than columns:
//
//   T = I - (I + X X')^-1
//
// by Gauss-Jordan elimination; I + X X' has eigenvalues from 1 on, so that no pivot is small. Rounded
// otherwise than there: no bit of it is a CPU's.
#pragma once
#include "core/group.h"
#include "linalg/anderson.h"
#include "math/cone.h"
#include "solvers/score.h"
#include "solvers/subadmm/options.h"
#include "solvers/subadmm/passes.h"

namespace stiction {

/// Whether passes are all that is asked for, as by default; couples and the convex law, and penalties that change, are for passes.h.
template <class Real, class S>
HD bool plain_passes(const RowProblem<Real>& p, const SolveLimits<S>& limits, const SubAdmmOptions<S>& opt) {
  return p.spins == 0 && limits.iterations > 0 && opt.penalty == kPenaltyNormalTangential && !opt.convex;
}

template <class Real, class Group>
class LanePasses {
 public:
  using S = Scalar<Real>;
  using Opt = SubAdmmOptions<S>;
  static constexpr int kRows = Group::kSize;

  HD static bool takes(const RowProblem<Real>& p, const SolveLimits<S>& limits, const Opt& opt) {
    return p.rows() <= kRows && plain_passes(p, limits, opt);
  }

  HD LanePasses(const Group& g, const RowProblem<Real>& p, const SolveLimits<S>& limits, const Opt& options)
      : g_(g),
        p_(p),
        limits_(limits),
        opt(options),
        i_(g.rank()),
        contact_(i_ < 3 * p.contacts),
        block_(p.block_of(min(i_, max(p.rows() - 1, 0)))),
        first_(contact_ ? 3 * block_ : min(i_, Group::kSize - 3)) {}

  /// From the impulses there (n) to the answer, which is written by all lanes. Tells whether the world is done.
  HD bool solve(Real* answer, SolveStats<Real>& stats) {
    const bool has = i_ < p_.rows();
    const Real zero(0), one(1), W = has ? p_.W[i_] : zero;
    const int scalar = block_ - p_.contacts;
    const bool bounded = has && !contact_;
    if (bounded) lower_ = p_.lower[scalar], upper_ = p_.upper[scalar];
    const bool one_sided = bounded && lower_ == zero && upper_ > zero;
    soft_ = sqrt(W * Real(S(contact_ ? 1 / kContactPenalty : one_sided ? 1 / kLimitPenalty : 1)));
    root_ = soft_ > zero ? one / soft_ : zero;
    free_ = has ? p_.free[i_] : zero, W_ = W;
    e_ = has ? p_.e[i_] * root_ : zero;
    give_ = one / (one + (has ? p_.R[i_] : zero) * root_ * root_);
    const Real soft_t = g_.from(soft_, first_), root_n = g_.from(root_, first_ + 2);
    mu_ = contact_ ? p_.mu[block_] * soft_t * root_n : zero;
    lower_ = lower_ * soft_, upper_ = upper_ * soft_;
    const Real fx = g_.from(free_, first_), fy = g_.from(free_, first_ + 1), fz = g_.from(free_, first_ + 2);
    fast_ = max(max(abs(fx), abs(fy)), abs(fz));
    const bool later = contact_ && block_ >= p_.near;
    lambda_ = has && !later ? answer[i_] * soft_ : zero;
    multiply_rows();
    bool done;
    for (int contacts = p_.near;; contacts = p_.contacts) {
      done = iterate(contacts, stats);
      if (contacts == p_.contacts || !closing()) break;
    }
    if (has) answer[i_] = lambda_ * root_;
    g_.sync();
    return done;
  }

 private:
  /// W of X, this lane's row.
  HD void multiply_rows() {
    constexpr int kColumns = 4;
    UNROLL for (int j = 0; j < kRows; ++j) delassus_[j] = Real(0);
    const bool has = i_ < p_.rows();
    const Real* y = p_.row(has ? i_ : 0);
    for (int a = 0; a < p_.width; a += kColumns) {
      Real x[kColumns];
      UNROLL for (int c = 0; c < kColumns; ++c) x[c] = has && a + c < p_.width ? y[a + c] * root_ : Real(0);
      UNROLL for (int j = 0; j < kRows; ++j)
        UNROLL for (int c = 0; c < kColumns; ++c) delassus_[j] = delassus_[j] + x[c] * g_.from(x[c], j);
    }
  }
  /// Row of T, of the rows that are `in`: 1 or 0.
  HD void invert(Real in, Real (&T)[kRows]) const {
    UNROLL for (int j = 0; j < kRows; ++j) {
      T[j] = delassus_[j] * in * g_.from(in, j) + Real(j == i_ ? 1 : 0);
    }
    UNROLL for (int k = 0; k < kRows; ++k) {
      const bool pivots = i_ == k;
      const Real inverse = Real(1) / g_.from(T[k], k), own = T[k];
      UNROLL for (int j = 0; j < kRows; ++j) {
        const Real row = g_.from(T[j], k) * inverse;
        if (j == k) T[j] = pivots ? inverse : -own * inverse;
        else T[j] = pivots ? row : T[j] - own * row;
      }
    }
    UNROLL for (int j = 0; j < kRows; ++j) T[j] = Real(j == i_ ? 1 : 0) - T[j];
  }
  /// What a change of this row counts.
  HD Real weight() const {
    if (!(limits_.tolerance > 0)) return soft_;
    const Real own = contact_ ? fast_ : max(abs(free_), W_ * abs(lambda_ * root_));
    return soft_ * change_weight(p_, block_, own, limits_.tolerance);
  }

  /// With the first `contacts` of them.
  HD bool iterate(int contacts, SolveStats<Real>& stats) {
    const Real zero(0), one(1);
    const bool in = soft_ > zero && !(contact_ && block_ >= contacts);
    if (!g_.any(in)) return true;
    Real T[kRows];
    invert(in ? one : zero, T);
    const Real free = in ? free_ * root_ : zero, soft = weight();
    const Real allowed = limits_.tolerance > 0 ? p_.scale * limits_.tolerance : Real(-1);
    Real z = free;
    UNROLL for (int j = 0; j < kRows; ++j) z = z + delassus_[j] * g_.from(lambda_, j);
    z = in ? z : zero;
    Real push = z - free + lambda_, best = lambda_;
    bool done = false;
    LeastChange<Real> least;
    Anderson<Real, 3> anderson;
    History<Real, 3> history;
    anderson.clear(), anderson.clear(history, zero);
    const Real alpha(opt.relaxation), rest = one - alpha;
    stats.factorizations = stats.factorizations + one;
    int pass = 0;
    while (pass < limits_.iterations && !done) {
      Real y = free;
      UNROLL for (int j = 0; j < kRows; ++j) y = y + T[j] * g_.from(push, j);
      y = y * alpha + z * rest - lambda_;
      if (opt.anderson) {
        anderson.begin_sums();
        anderson.gather(history, y, anderson.own, [](Real x) { return x; });
        anderson.finish_sums(g_, Real(opt.tikhonov));
        least.hold_back(anderson);
        if (pass >= kWorthKeeping && anderson.pass > 1 && least.look(anderson.last)) best = lambda_;
        y = anderson.step(history);
      }
      const Real own = -(y + e_) * give_;
      const Vec3<Real> f{g_.from(own, first_), g_.from(own, first_ + 1), g_.from(own, first_ + 2)};
      const Vec3<Real> cone = project_strict(f, mu_);
      const int axis = i_ - first_;
      Real l = axis == 0 ? cone.x : axis == 1 ? cone.y : cone.z;
      l = !in ? zero : contact_ ? l : clamp(own, lower_, upper_);
      const Real next = in ? y + l : zero;
      const Real dz = g_.max(soft * abs(next - z)), dl = g_.max(soft * abs(l - lambda_));
      lambda_ = l, z = next, push = z - free + lambda_;
      ++pass;
      done = max(dz, dl) <= allowed_in(pass, allowed);
    }
    stats.iterations = stats.iterations + Real(static_cast<S>(pass));
    if (opt.anderson && !done && pass > kWorthKeeping) lambda_ = best;
    if (limits_.tolerance > 0) done = done && g_.max(in ? soft * abs(lambda_) : zero) * kEpsilon<S> <= allowed;
    return done;
  }
  /// See Iteration::closing.
  HD bool closing() const {
    Real velocity = free_ * root_;
    UNROLL for (int j = 0; j < kRows; ++j) velocity = velocity + delassus_[j] * g_.from(lambda_, j);
    const bool later = contact_ && block_ >= p_.near && i_ == first_ + 2 && root_ > Real(0);
    return g_.any(later && velocity + e_ < -(p_.scale_of(block_) * limits_.tolerance) * root_);
  }

  const Group& g_;
  const RowProblem<Real>& p_;
  const SolveLimits<S>& limits_;
  const Opt& opt;
  const int i_;         // this lane's row
  const bool contact_;  // which is one of a contact
  const int block_, first_;  // its contact or other row, as RowCounts::block_of; the contact's first row
  Real soft_, root_;    // B^-1/2 and B^1/2, 0 of what is not used
  Real free_, W_, e_, give_, mu_, lambda_, fast_, lower_ = Real(0), upper_ = Real(0);  // free, W: as the problem has them
  Real delassus_[kRows];
};

/// By LanePasses or BlockPasses (blocks.h), which take the problem; an answer that is worse than no impulses is dropped. none (n), u (width):
/// scratch, which the lanes share.
template <template <class, class> class InRegisters, class Real, class Group>
HD SolveStats<Real> solve_in_registers(const Group& g, const RowProblem<Real>& p,
                                       const SolveLimits<Scalar<Real>>& limits,
                                       const SubAdmmOptions<Scalar<Real>>& options, Real* answer, Real* none, Real* u) {
  SolveStats<Real> stats;
  const bool done = InRegisters<Real, Group>(g, p, limits, options).solve(answer, stats);
  if (limits.tolerance > 0 && !done) drop_harmful(g, p, options.law(), true, answer, none, u);
  return stats;
}

}  // namespace stiction
