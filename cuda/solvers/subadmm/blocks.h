// SubADMM of problems with no more than three rows for each lane of a group, for GPUs: lane i has rows 3 i to 3 i + 2, a contact's or up to
// three others, with all their numbers in registers. The same as lanes.h, by fewer lanes: a world of four contacts needs no others than those
// that step it, and all worlds of a warp go on at once.
//
//   T = I - (I + X X')^-1,   X = B^1/2 Y,   by Gauss-Jordan elimination
#pragma once
#include "solvers/subadmm/lanes.h"

namespace stiction {

template <class Real, class Group>
class BlockPasses {
 public:
  using S = Scalar<Real>;
  using V = Vec3<Real>;
  using Opt = SubAdmmOptions<S>;
  static constexpr int kLanes = Group::kSize, kRows = 3 * kLanes;

  HD static bool takes(const RowProblem<Real>& p, const SolveLimits<S>& limits, const Opt& opt) {
    return p.rows() <= kRows && plain_passes(p, limits, opt);
  }

  HD BlockPasses(const Group& g, const RowProblem<Real>& p, const SolveLimits<S>& limits, const Opt& options)
      : g_(g), p_(p), limits_(limits), opt(options), first_(3 * g.rank()), contact_(g.rank() < p.contacts) {}

  /// From the impulses there (n) to the answer. Tells whether the world is done.
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
      lambda_[d] = has && !(contact_ && g_.rank() >= p_.near) ? answer[i] * soft_[d] : zero;
    });
    mu_ = contact_ ? p_.mu[g_.rank()] * soft_[0] * root_[2] : zero;
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
  static constexpr int kColumns = 2;  // of Y at a time

  /// visit(d, i, has): row i is this lane's d-th, if the problem has it.
  template <class Visit>
  HD void each(Visit visit) const {
    UNROLL for (int d = 0; d < 3; ++d) visit(d, first_ + d, first_ + d < p_.rows());
  }
  /// visit(x): a few columns of X, this lane's rows.
  template <class Visit>
  HD void each_column(Visit visit) const {
    for (int a = 0; a < p_.width; a += kColumns) {
      Real x[3][kColumns];
      each([&](int d, int i, bool has) {
        UNROLL for (int c = 0; c < kColumns; ++c)
          x[d][c] = has && a + c < p_.width ? p_.row(i)[a + c] * root_[d] : Real(0);
      });
      visit(x);
    }
  }
  /// Velocities J A^-1 (b + J' l), in units of the penalties.
  HD void velocities(const Real (&l)[3], Real (&v)[3]) const {
    UNROLL for (int d = 0; d < 3; ++d) v[d] = free_[d];
    each_column([&](const Real (&x)[3][kColumns]) {
      UNROLL for (int c = 0; c < kColumns; ++c) {
        const Real u = g_.sum(x[0][c] * l[0] + x[1][c] * l[1] + x[2][c] * l[2]);
        UNROLL for (int d = 0; d < 3; ++d) v[d] = v[d] + x[d][c] * u;
      }
    });
  }
  /// Rows of T, of those that are in: 1 or 0.
  HD void make_operator(const Real (&in)[3], Real (&T)[3][kRows]) const {
    UNROLL for (int d = 0; d < 3; ++d)
      UNROLL for (int j = 0; j < kRows; ++j) T[d][j] = Real(j == first_ + d ? 1 : 0);
    each_column([&](const Real (&x)[3][kColumns]) {
      UNROLL for (int c = 0; c < kColumns; ++c) {
        const Real own[3] = {x[0][c] * in[0], x[1][c] * in[1], x[2][c] * in[2]};
        UNROLL for (int j = 0; j < kRows; ++j) {
          const Real other = g_.from(own[j % 3], j / 3);
          UNROLL for (int d = 0; d < 3; ++d) T[d][j] = T[d][j] + own[d] * other;
        }
      }
    });
    UNROLL for (int k = 0; k < kRows; ++k) {
      const bool pivots = g_.rank() == k / 3;
      const Real inverse = Real(1) / g_.from(T[k % 3][k], k / 3), column[3] = {T[0][k], T[1][k], T[2][k]};
      UNROLL for (int j = 0; j < kRows; ++j) {
        const Real row = j == k ? inverse : g_.from(T[k % 3][j], k / 3) * inverse;
        UNROLL for (int d = 0; d < 3; ++d) {
          const Real other = j == k ? -column[d] * inverse : T[d][j] - column[d] * row;
          T[d][j] = d == k % 3 && pivots ? row : other;
        }
      }
    }
    UNROLL for (int d = 0; d < 3; ++d)
      UNROLL for (int j = 0; j < kRows; ++j) T[d][j] = Real(j == first_ + d ? 1 : 0) - T[d][j];
  }
  /// What a change of this lane's rows counts.
  HD void weigh(Real (&soft)[3]) const {
    each([&](int d, int, bool) { soft[d] = soft_[d]; });
    if (!(limits_.tolerance > 0)) return;
    auto speed = [&](int d) { return abs(free_[d]) * soft_[d]; };
    const Real fast = max(max(speed(0), speed(1)), speed(2));
    each([&](int d, int i, bool has) {
      if (!has) return;
      const Real own = contact_ ? fast : max(speed(d), p_.W[i] * abs(lambda_[d] * root_[d]));
      soft[d] = soft[d] * change_weight(p_, p_.block_of(i), own, limits_.tolerance);
    });
  }

  /// With the first `contacts` of them.
  HD bool iterate(int contacts, SolveStats<Real>& stats) {
    const Real zero(0), one(1);
    Real in[3];
    each([&](int d, int, bool) { in[d] = soft_[d] > zero && !(contact_ && g_.rank() >= contacts) ? one : zero; });
    if (!g_.any(in[0] + in[1] + in[2] > zero)) return true;
    Real T[3][kRows], soft[3], z[3], best[3];
    make_operator(in, T), weigh(soft), velocities(lambda_, z);
    const V free{free_[0] * in[0], free_[1] * in[1], free_[2] * in[2]};
    each([&](int d, int, bool) { z[d] = z[d] * in[d], best[d] = lambda_[d]; });
    const Real allowed = limits_.tolerance > 0 ? p_.scale * limits_.tolerance : Real(-1);
    bool done = false;
    LeastChange<Real> least;
    Anderson<Real, 3> anderson;
    History<V, 3> history;
    anderson.clear(), anderson.clear(history, V{zero, zero, zero});
    const Real alpha(opt.relaxation), rest = one - alpha;
    stats.factorizations = stats.factorizations + one;
    int pass = 0;
    while (pass < limits_.iterations && !done) {
      const Real push[3] = {z[0] - free.x + lambda_[0], z[1] - free.y + lambda_[1], z[2] - free.z + lambda_[2]};
      V y = free;
      UNROLL for (int j = 0; j < kRows; ++j) {
        const Real other = g_.from(push[j % 3], j / 3);
        y.x = y.x + T[0][j] * other, y.y = y.y + T[1][j] * other, y.z = y.z + T[2][j] * other;
      }
      y = y * alpha + V{z[0], z[1], z[2]} * rest - V{lambda_[0], lambda_[1], lambda_[2]};
      if (opt.anderson) {
        anderson.begin_sums();
        anderson.gather(history, y, anderson.own, [](const V& x) { return x; });
        anderson.finish_sums(g_, Real(opt.tikhonov));
        least.hold_back(anderson);
        if (pass >= kWorthKeeping && anderson.pass > 1 && least.look(anderson.last))
          UNROLL for (int d = 0; d < 3; ++d) best[d] = lambda_[d];
        y = anderson.step(history);
      }
      const Real of[3] = {y.x, y.y, y.z};
      const V own{-(y.x + e_[0]) * give_[0], -(y.y + e_[1]) * give_[1], -(y.z + e_[2]) * give_[2]};
      const V cone = project_strict(own, mu_);
      const Real alone[3] = {own.x, own.y, own.z}, together[3] = {cone.x, cone.y, cone.z};
      Real changed = zero, pushed = zero;
      UNROLL for (int d = 0; d < 3; ++d) {
        const Real l = (contact_ ? together[d] : clamp(alone[d], lower_[d], upper_[d])) * in[d];
        const Real next = (of[d] + l) * in[d];
        changed = max(changed, soft[d] * abs(next - z[d])), pushed = max(pushed, soft[d] * abs(l - lambda_[d]));
        lambda_[d] = l, z[d] = next;
      }
      ++pass;
      done = g_.max(max(changed, pushed)) <= allowed_in(pass, allowed);
    }
    stats.iterations = stats.iterations + Real(static_cast<S>(pass));
    if (opt.anderson && !done && pass > kWorthKeeping) UNROLL for (int d = 0; d < 3; ++d) lambda_[d] = best[d];
    Real largest = zero;
    UNROLL for (int d = 0; d < 3; ++d) largest = max(largest, soft[d] * abs(lambda_[d]) * in[d]);
    return done && (!(limits_.tolerance > 0) || g_.max(largest) * kEpsilon<S> <= allowed);
  }
  /// See Iteration::closing.
  HD bool closing() const {
    Real v[3];
    velocities(lambda_, v);
    const int k = g_.rank();
    const bool later = contact_ && k >= p_.near && root_[2] > Real(0);
    return g_.any(later && v[2] + e_[2] < -(p_.scale_of(k) * limits_.tolerance) * root_[2]);
  }

  const Group& g_;
  const RowProblem<Real>& p_;
  const SolveLimits<S>& limits_;
  const Opt& opt;
  const int first_;      // of this lane's rows
  const bool contact_;   // they are one's
  Real soft_[3], root_[3];  // B^-1/2 and B^1/2, 0 of what is not used
  Real free_[3], e_[3], give_[3], lambda_[3], lower_[3], upper_[3], mu_;  // in units of the penalties
};

}  // namespace stiction
