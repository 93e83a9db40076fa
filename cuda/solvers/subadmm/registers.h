// SubADMM of problems with no more rows than the registers of a group's lanes take, for GPUs: the passes of passes.h, with
//
//   T = I - (I + X X')^-1,   X = B^1/2 Y
//
// by Gauss-Jordan elimination; I + X X' has eigenvalues from 1 on, so that no pivot is small. Rounded otherwise than there: no bit of
// it is a CPU's.
//
// Lane i has kOwn rows from kOwn i on, with all their numbers. Three are a contact's, or up to three others: a world of four contacts needs
// no other lanes than those that step it, and all worlds of a warp go on at once. One is what many lanes have: those of a contact tell
// each other what it would have without the cone.
#pragma once
#include "core/group.h"
#include "linalg/anderson.h"
#include "math/cone.h"
#include "solvers/score.h"
#include "solvers/subadmm/options.h"
#include "solvers/subadmm/passes.h"

namespace stiction {

template <class Real, class Group>
class RegisterPasses {
 public:
  using S = Scalar<Real>;
  using V = Vec3<Real>;
  using Opt = SubAdmmOptions<S>;
  static constexpr int kOwn = Group::kSize > 8 ? 1 : 3, kRows = kOwn * Group::kSize;
  using Own = Real[kOwn];  // of this lane's rows

  /// Where rows fit, and passes are all that is asked for, as by default: couples, the convex law, and penalties that change are for passes.h.
  HD static bool takes(const RowProblem<Real>& p, const SolveLimits<S>& limits, const Opt& opt) {
    return p.rows() <= kRows && p.spins == 0 && limits.iterations > 0 && opt.penalty == kPenaltyNormalTangential &&
           !opt.convex;
  }

  HD RegisterPasses(const Group& g, const RowProblem<Real>& p, const SolveLimits<S>& limits, const Opt& options)
      : g_(g),
        p_(p),
        limits_(limits),
        opt(options),
        first_(kOwn * g.rank()),
        k_(first_ / 3),
        contact_(k_ < p.contacts) {}

  /// From the impulses there (n) to the answer, which is written by all lanes. Tells whether the world is done.
  HD bool solve(Real* answer, SolveStats<Real>& stats) {
    const Real zero(0), one(1);
    each([&](int d, int i, bool has) {
      const Real W = has ? p_.W[i] : zero;
      const int scalar = i - 3 * p_.contacts;
      const bool bounded = has && !contact_;
      lower_[d] = bounded ? p_.lower[scalar] : zero, upper_[d] = bounded ? p_.upper[scalar] : zero;
      const bool one_sided = bounded && lower_[d] == zero && upper_[d] > zero;
      soft_[d] = sqrt(W * Real(S(contact_ ? 1 / kContactPenalty : one_sided ? 1 / kLimitPenalty : 1)));
      root_[d] = soft_[d] > zero ? one / soft_[d] : zero;
      free_[d] = has ? p_.free[i] * root_[d] : zero;
      e_[d] = has ? p_.e[i] * root_[d] : zero;
      give_[d] = one / (one + (has ? p_.R[i] : zero) * root_[d] * root_[d]);
      lower_[d] = lower_[d] * soft_[d], upper_[d] = upper_[d] * soft_[d];
      lambda_[d] = has && !(contact_ && k_ >= p_.near) ? answer[i] * soft_[d] : zero;
    });
    const Real soft_t = of_contact(soft_).x, root_n = of_contact(root_).z;
    mu_ = contact_ ? p_.mu[k_] * soft_t * root_n : zero;
    bool done;
    for (int contacts = p_.near;; contacts = p_.contacts) {
      done = iterate(contacts, stats);
      if (contacts == p_.contacts || !closing()) break;
    }
    each([&](int d, int i, bool has) {
      if (has) answer[i] = lambda_[d] * root_[d];
    });
    g_.sync();
    return done;
  }

 private:
  static constexpr int kColumns = kOwn == 1 ? 4 : 2;  // of Y at a time

  /// visit(d, i, has): row i is this lane's d-th, if the problem has it.
  template <class Visit>
  HD void each(Visit visit) const {
    UNROLL for (int d = 0; d < kOwn; ++d) visit(d, first_ + d, first_ + d < p_.rows());
  }
  /// Of the three rows of this lane's contact. Collective; where the lane has none, whatever.
  HD V of_contact(const Own& x) const {
    if constexpr (kOwn == 3) return {x[0], x[1], x[2]};
    else {
      const int from = min(3 * k_, kRows - 3);
      return {g_.from(x[0], from), g_.from(x[0], from + 1), g_.from(x[0], from + 2)};
    }
  }
  /// The contact's axis that the lane's d-th row is.
  HD int axis(int d) const { return kOwn == 3 ? d : first_ - 3 * k_; }
  /// visit(x): a few columns of X, this lane's rows.
  template <class Visit>
  HD void each_column(Visit visit) const {
    for (int a = 0; a < p_.width; a += kColumns) {
      Real x[kOwn][kColumns];
      each([&](int d, int i, bool has) {
        UNROLL for (int c = 0; c < kColumns; ++c)
          x[d][c] = has && a + c < p_.width ? p_.row(i)[a + c] * root_[d] : Real(0);
      });
      visit(x);
    }
  }
  /// Velocities J A^-1 (b + J' l), in units of the penalties.
  HD void velocities(const Own& l, Own& v) const {
    UNROLL for (int d = 0; d < kOwn; ++d) v[d] = free_[d];
    each_column([&](const Real (&x)[kOwn][kColumns]) {
      UNROLL for (int c = 0; c < kColumns; ++c) {
        Real u(0);
        UNROLL for (int d = 0; d < kOwn; ++d) u = u + x[d][c] * l[d];
        u = g_.sum(u);
        UNROLL for (int d = 0; d < kOwn; ++d) v[d] = v[d] + x[d][c] * u;
      }
    });
  }
  /// Rows of T, of those that are in: 1 or 0.
  HD void make_operator(const Own& in, Real (&T)[kOwn][kRows]) const {
    UNROLL for (int d = 0; d < kOwn; ++d)
      UNROLL for (int j = 0; j < kRows; ++j) T[d][j] = Real(j == first_ + d ? 1 : 0);
    each_column([&](const Real (&x)[kOwn][kColumns]) {
      UNROLL for (int c = 0; c < kColumns; ++c) {
        Own own;
        UNROLL for (int d = 0; d < kOwn; ++d) own[d] = x[d][c] * in[d];
        UNROLL for (int j = 0; j < kRows; ++j) {
          const Real other = of_row(own, j);
          UNROLL for (int d = 0; d < kOwn; ++d) T[d][j] = T[d][j] + own[d] * other;
        }
      }
    });
    UNROLL for (int k = 0; k < kRows; ++k) {
      const bool pivots = g_.rank() == k / kOwn;
      const Real inverse = Real(1) / g_.from(T[k % kOwn][k], k / kOwn);
      Own column;
      UNROLL for (int d = 0; d < kOwn; ++d) column[d] = T[d][k];
      UNROLL for (int j = 0; j < kRows; ++j) {
        const Real row = j == k ? inverse : g_.from(T[k % kOwn][j], k / kOwn) * inverse;
        UNROLL for (int d = 0; d < kOwn; ++d) {
          const Real other = j == k ? -column[d] * inverse : T[d][j] - column[d] * row;
          T[d][j] = d == k % kOwn && pivots ? row : other;
        }
      }
    }
    UNROLL for (int d = 0; d < kOwn; ++d)
      UNROLL for (int j = 0; j < kRows; ++j) T[d][j] = Real(j == first_ + d ? 1 : 0) - T[d][j];
  }
  /// x of row j, whoever has it.
  HD Real of_row(const Own& x, int j) const { return g_.from(x[j % kOwn], j / kOwn); }
  /// What a change of this lane's rows counts.
  HD void weigh(Own& soft) const {
    Own speed;
    each([&](int d, int, bool) { soft[d] = soft_[d], speed[d] = abs(free_[d]) * soft_[d]; });
    if (!(limits_.tolerance > 0)) return;
    const V three = of_contact(speed);
    const Real fast = max(max(three.x, three.y), three.z);
    each([&](int d, int i, bool has) {
      if (!has) return;
      const Real own = contact_ ? fast : max(speed[d], p_.W[i] * abs(lambda_[d] * root_[d]));
      soft[d] = soft[d] * change_weight(p_, p_.block_of(i), own, limits_.tolerance);
    });
  }

  /// With the first `contacts` of them.
  HD bool iterate(int contacts, SolveStats<Real>& stats) {
    const Real zero(0), one(1);
    Own in;
    bool some = false;
    each([&](int d, int, bool) {
      in[d] = soft_[d] > zero && !(contact_ && k_ >= contacts) ? one : zero, some = some || in[d] > zero;
    });
    if (!g_.any(some)) return true;
    Real T[kOwn][kRows];
    Own soft, free, z, push, y, best;
    make_operator(in, T), weigh(soft), velocities(lambda_, z);
    each([&](int d, int, bool) {
      free[d] = free_[d] * in[d], z[d] = z[d] * in[d], push[d] = z[d] - free[d] + lambda_[d], best[d] = lambda_[d];
    });
    const Real allowed = limits_.tolerance > 0 ? p_.scale * limits_.tolerance : Real(-1);
    bool done = false;
    LeastChange<Real> least;
    Anderson<Real, 3> anderson;
    History<Real, 3> history[kOwn];
    anderson.clear();
    each([&](int d, int, bool) { anderson.clear(history[d], zero); });
    const Real alpha(opt.relaxation), rest = one - alpha;
    stats.factorizations = stats.factorizations + one;
    int pass = 0;
    while (pass < limits_.iterations && !done) {
      each([&](int d, int, bool) { y[d] = free[d]; });
      UNROLL for (int j = 0; j < kRows; ++j) {
        const Real other = of_row(push, j);
        UNROLL for (int d = 0; d < kOwn; ++d) y[d] = y[d] + T[d][j] * other;
      }
      each([&](int d, int, bool) { y[d] = y[d] * alpha + z[d] * rest - lambda_[d]; });
      if (opt.anderson) {
        auto sums = anderson.begin_sums();
        each([&](int d, int, bool) { sums.gather(history[d], y[d], [](Real x) { return x; }); });
        anderson.finish_sums(g_, sums, Real(opt.tikhonov));
        least.hold_back(anderson);
        if (pass >= kWorthKeeping && anderson.pass > 1 && least.look(anderson.last))
          each([&](int d, int, bool) { best[d] = lambda_[d]; });
        const auto by = anderson.extrapolation();
        each([&](int d, int, bool) { y[d] = by.step(history[d]); });
      }
      Own own;
      each([&](int d, int, bool) { own[d] = -(y[d] + e_[d]) * give_[d]; });
      const V cone = project_strict(of_contact(own), mu_);
      Real changed = zero;
      each([&](int d, int, bool) {
        const Real of_axis = axis(d) == 0 ? cone.x : axis(d) == 1 ? cone.y : cone.z;
        const Real l = (contact_ ? of_axis : clamp(own[d], lower_[d], upper_[d])) * in[d], next = (y[d] + l) * in[d];
        changed = max(changed, soft[d] * max(abs(next - z[d]), abs(l - lambda_[d])));
        lambda_[d] = l, z[d] = next, push[d] = next - free[d] + l;
      });
      ++pass;
      done = g_.max(changed) <= allowed_in(pass, allowed);
    }
    stats.iterations = stats.iterations + Real(static_cast<S>(pass));
    if (opt.anderson && !done && pass > kWorthKeeping) each([&](int d, int, bool) { lambda_[d] = best[d]; });
    Real largest = zero;
    each([&](int d, int, bool) { largest = max(largest, soft[d] * abs(lambda_[d]) * in[d]); });
    return done && (!(limits_.tolerance > 0) || g_.max(largest) * kEpsilon<S> <= allowed);
  }
  /// See Iteration::closing.
  HD bool closing() const {
    Own v;
    velocities(lambda_, v);
    bool closes = false;
    each([&](int d, int, bool) {
      const bool later = contact_ && k_ >= p_.near && axis(d) == 2 && root_[d] > Real(0);
      closes = closes || (later && v[d] + e_[d] < -(p_.scale_of(k_) * limits_.tolerance) * root_[d]);
    });
    return g_.any(closes);
  }

  const Group& g_;
  const RowProblem<Real>& p_;
  const SolveLimits<S>& limits_;
  const Opt& opt;
  const int first_, k_;  // of its rows; the contact that they are of
  const bool contact_;   // if they are
  Own soft_, root_;      // B^-1/2 and B^1/2, 0 of what is not used
  Own free_, e_, give_, lambda_, lower_, upper_;  // in units of the penalties
  Real mu_;              // likewise
};

/// By RegisterPasses, which take the problem; an answer that is worse than no impulses is dropped. none (n), u (width): scratch, which the
/// lanes share.
template <class Real, class Group>
HD SolveStats<Real> solve_in_registers(const Group& g, const RowProblem<Real>& p,
                                       const SolveLimits<Scalar<Real>>& limits,
                                       const SubAdmmOptions<Scalar<Real>>& options, Real* answer, Real* none, Real* u) {
  SolveStats<Real> stats;
  const bool done = RegisterPasses<Real, Group>(g, p, limits, options).solve(answer, stats);
  if (limits.tolerance > 0 && !done) drop_harmful(g, p, options.law(), true, answer, none, u);
  return stats;
}

}  // namespace stiction
