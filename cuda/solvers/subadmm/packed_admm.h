// SubADMM's iteration on packed rows: what a CPU runs for worlds that are small enough (contact/packed_rows.h).
//
// With y_i = D^-1/2 L^-T J_i', all in the free motion's coordinates, C = I + sum B_i y_i y_i' = U'U and z_i = U^-T y_i:
//
//   T = J H^-1 J' = Z Z'   hence   J v = J v* + T (B (z - J v*) + l)
//
// so a pass is one product with the symmetric T (n, n), and no walk over the tree. Every row keeps one slack: T is dense
// anyway, so nothing is gained by splitting a contact between its two links. Relaxation, Anderson acceleration and stop are
// those of subadmm.h; every penalty rule gives 1.5 times its B for contacts, and limits 5 / W_ii.
#pragma once
#include "contact/pack_rows.h"
#include "core/options.h"
#include "math/cone.h"
#include "solvers/subadmm/adaptive.h"
#include "solvers/subadmm/anderson.h"

namespace stiction {

template <class L>
class PackedAdmm {
 public:
  using Real = typename L::Real;
  using S = Scalar<Real>;
  using Entry = History<Real, 3>;
  /// Reals of PackedRows::memory; 0: the model's worlds are too large.
  static int64_t memory_size(const typename L::Model& m) {
    using Rows = PackedRows<L>;
    if (!Rows::possible(m)) return 0;
    const int64_t n = padded(Rows::most_rows(m)), width = Rows::width_of(m);
    return Rows::memory_size(m) + n * (7 + kEntryReals + width) + width * width + triangle(n);
  }

  explicit PackedAdmm(const PackedRows<L>& rows) : rows_(rows), width_(rows.width) {
    Real* at = rows.rest;
    auto take = [&at](int64_t count) {
      Real* begin = at;
      at += count;
      return begin;
    };
    const int n = rows.size();
    beta_ = take(n), soft_ = take(n), z_ = take(n), y_ = take(n), lambda_ = take(n), w_ = take(padded(n));
    history_ = reinterpret_cast<Entry*>(take(n * kEntryReals));
    C_ = take(static_cast<int64_t>(width_) * width_), T_ = take(triangle(padded(n)));
    push_ = take(padded(n)), Z_ = take(static_cast<int64_t>(n) * width_);
  }

  /// The warm start on entry to solve(), the answer on its exit, by PackedRows' rows.
  Real* lambda() { return lambda_; }

  /// Returns the iterations of each world. First without the contacts left for later; worlds where one of them would close
  /// after all solve again with all, from there.
  Real solve(const Options<S>& opt, Real scale) {
    contacts_ = rows_.near, n_ = rows_.near_size();
    for (int i = n_; i < rows_.size(); ++i) lambda_[i] = Real(0);
    auto done = negate(rows_.fits);
    Real count = iterate(opt, scale, done);
    if (rows_.contacts == rows_.near) return count;
    done = done | negate(closing(scale * opt.tolerance));
    if (all(done)) return count;
    contacts_ = rows_.contacts, n_ = rows_.size();
    return count + iterate(opt, scale, done);
  }

 private:
  /// Worlds that are done keep their l.
  Real iterate(const Options<S>& opt, Real scale, Mask<Real> done) {
    prepare(opt);
    if (opt.anderson) forget();
    const bool adaptive = opt.penalty == kPenaltyAdaptive, stopping = opt.tolerance > 0;
    Real count(0), total(1);  // total: what the penalties have been scaled by
    const Real alpha(opt.relaxation), rest = Real(1) - alpha;
    for (int pass = 0; pass < opt.iterations; ++pass) {
      velocities();
      for (int i = 0; i < n_; ++i) y_[i] = beta_[i] * (w_[i] * alpha + z_[i] * rest) - lambda_[i];
      if (opt.anderson) accelerate(Real(opt.tikhonov));
      const AdmmChange<Real> change = stopping || adaptive ? multipliers<true>(done) : multipliers<false>(done);
      count = select(done, count, count + Real(1));
      if (stopping) {
        done = done | (change.largest() <= scale * opt.tolerance);
        if (all(done)) break;
      }
      if (adaptive && (pass + 1) % kAdaptivePasses == 0) {
        const Real by = adapted(change, done, total), inverse = Real(1) / by;
        for (int i = 0; i < n_; ++i) beta_[i] = beta_[i] * by, soft_[i] = soft_[i] * inverse;
        make_operator();
        if (opt.anderson) forget();
      }
    }
    return count;
  }

  /// u = Y' l.
  void push_of(const Real* lambda, Real* u) const {
    for (int a = 0; a < width_; ++a) u[a] = Real(0);
    for (int j = 0; j < n_; ++j)
      for (int a = 0; a < width_; ++a) u[a] = u[a] + row(j)[a] * lambda[j];
  }
  /// J_j v of u.
  Real velocity_of_row(int j, const Real* u) const {
    Real w = rows_.free[j];
    for (int a = 0; a < width_; ++a) w = w + row(j)[a] * u[a];
    return w;
  }
  /// Worlds where a contact left for later closes faster than its gap allows, by more than `allowed`.
  Mask<Real> closing(Real allowed) const {
    Real u[PackedRows<L>::kDofs];
    push_of(lambda_, u);
    auto found = mask_of<Real>(false);
    for (int k = rows_.near; k < rows_.contacts; ++k) {
      const int n = rows_.contact_row(k) + 2;
      found = found | ((rows_.W[n] > Real(0)) & (velocity_of_row(n, u) + rows_.e[n] < -allowed));
    }
    return found;
  }

  // B W_ii; of rows that are no limits 1. On rollouts of robots these need 10 to 15 % fewer passes than 1 throughout.
  static constexpr double kContactPenalty = 1.5, kLimitPenalty = 5;
  static constexpr int kBlock = 4, kEntryReals = sizeof(Entry) / sizeof(Real);
  static int64_t padded(int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }
  /// Entries of a symmetric matrix that is stored by blocks of kBlock rows, up to and with the diagonal's: block I begins at
  /// triangle(kBlock I) and holds column j of its rows at kBlock j.
  static int64_t triangle(int64_t n) { return n * (n + kBlock) / 2; }

  void prepare(const Options<S>& opt) {
    const Real zero(0), one(1);
    const bool one_for_a_contact = opt.penalty == kPenaltyPerContact || opt.penalty == kPenaltyPaper;
    Real sum(0), count(0);
    for (int k = 0; k < contacts_; ++k) {
      const int i = rows_.contact_row(k);
      for (int d = 0; d < 3; ++d) soft_[i + d] = rows_.W[i + d] * S(1 / kContactPenalty);
      if (!one_for_a_contact) continue;
      const Real mean = (soft_[i] * Real(2) + soft_[i + 2]) * Real(1.0f / 3);
      for (int d = 0; d < 3; ++d) soft_[i + d] = mean;
      sum = sum + mean, count = count + select(mean > zero, one, zero);
    }
    if (opt.penalty == kPenaltyPaper) {
      const Real common = sum / max(count, one);
      for (int k = 0; k < contacts_; ++k)
        for (int i = rows_.contact_row(k), d = 0; d < 3; ++d) soft_[i + d] = select(soft_[i + d] > zero, common, zero);
    }
    for (int k = 0; k < rows_.scalars; ++k) {
      const int i = rows_.scalar_row(k);
      const auto one_sided = (rows_.lower[k] == zero) & (rows_.upper[k] > zero);
      soft_[i] = rows_.W[i] * select(one_sided, Real(S(1 / kLimitPenalty)), one);
    }
    for (int i = 0; i < n_; ++i) beta_[i] = select(soft_[i] > zero, one / select(soft_[i] > zero, soft_[i], one), zero);

    // z = J A^-1 (b + J' l), from the warm start.
    Real u[PackedRows<L>::kDofs];
    push_of(lambda_, u);
    for (int j = 0; j < n_; ++j) z_[j] = velocity_of_row(j, u);
    make_operator();
  }
  /// T of the present penalties.
  void make_operator() {
    assemble_matrix();
    factor_matrix();
    solve_rows();
    multiply_rows();
  }
  Real* row(int j) const { return rows_.Y + static_cast<int64_t>(j) * width_; }

  /// C = I + sum B y y', lower triangle.
  void assemble_matrix() {
    for (int a = 0; a < width_; ++a)
      for (int b = 0; b <= a; b += kBlock) {
        Real sum[kBlock];
        for (int r = 0; r < kBlock; ++r) sum[r] = Real(a == b + r ? 1 : 0);
        for (int j = 0; j < n_; ++j) {
          const Real *y = row(j), x = y[a] * beta_[j];
          for (int r = 0; r < kBlock; ++r) sum[r] = sum[r] + x * y[min(b + r, a)];
        }
        for (int r = 0; r < kBlock && b + r <= a; ++r) C_[a * width_ + b + r] = sum[r];
      }
  }
  /// C = U'U, columns of U' in the lower triangle, 1 / U_aa on the diagonal. C >= I.
  void factor_matrix() {
    for (int k = 0; k < width_; ++k) {
      const Real inverse = Real(1) / sqrt(C_[k * width_ + k]);
      C_[k * width_ + k] = inverse;
      for (int a = k + 1; a < width_; ++a) C_[a * width_ + k] = C_[a * width_ + k] * inverse;
      for (int a = k + 1; a < width_; ++a) {
        const Real l = C_[a * width_ + k];
        for (int b = k + 1; b <= a; ++b) C_[a * width_ + b] = C_[a * width_ + b] - l * C_[b * width_ + k];
      }
    }
  }
  /// Z, several rows at once: one alone would wait for each of its sums.
  void solve_rows() {
    int j = 0;
    for (; j + kBlock <= n_; j += kBlock) solve_some<kBlock>(row(j), solved(j));
    for (; j < n_; ++j) solve_some<1>(row(j), solved(j));
  }
  Real* solved(int j) const { return Z_ + static_cast<int64_t>(j) * width_; }
  template <int N>
  void solve_some(const Real* y, Real* z) const {
    for (int a = 0; a < width_; ++a) {
      Real sum[N];
      for (int r = 0; r < N; ++r) sum[r] = y[r * width_ + a];
      for (int b = 0; b < a; ++b)
        for (int r = 0; r < N; ++r) sum[r] = sum[r] - C_[a * width_ + b] * z[r * width_ + b];
      for (int r = 0; r < N; ++r) z[r * width_ + a] = sum[r] * C_[a * width_ + a];
    }
  }

  /// T = Z Z', the padding 0.
  void multiply_rows() {
    Real* block = T_;
    for (int i = 0; i < n_; i += kBlock)
      for (int j = 0; j < i + kBlock; ++j, block += kBlock) {
        Real sum[kBlock];
        for (int r = 0; r < kBlock; ++r) sum[r] = Real(0);
        if (j < n_) {
          const Real* right = solved(j);
          const Real* left[kBlock];
          for (int r = 0; r < kBlock; ++r) left[r] = solved(min(i + r, n_ - 1));
          for (int a = 0; a < width_; ++a)
            for (int r = 0; r < kBlock; ++r) sum[r] = sum[r] + left[r][a] * right[a];
        }
        for (int r = 0; r < kBlock; ++r) block[r] = i + r < n_ ? sum[r] : Real(0);
      }
  }

  /// w = J v. Every sum runs over the columns in order, whoever adds: above the diagonal it is the row of the other index.
  void velocities() {
    const Real zero(0);
    for (int i = 0; i < n_; ++i) push_[i] = beta_[i] * (z_[i] - rows_.free[i]) + lambda_[i];
    for (int i = n_; i < padded(n_); ++i) push_[i] = zero;
    const Real* block = T_;
    for (int i = 0; i < n_; i += kBlock) {
      Real sum[kBlock], push[kBlock];
      for (int r = 0; r < kBlock; ++r) sum[r] = i + r < n_ ? rows_.free[i + r] : zero, push[r] = push_[i + r];
      for (int j = 0; j < i; ++j, block += kBlock) {
        Real wj = w_[j];
        const Real pj = push_[j];
        for (int r = 0; r < kBlock; ++r) sum[r] = sum[r] + block[r] * pj, wj = wj + block[r] * push[r];
        w_[j] = wj;
      }
      for (int j = 0; j < kBlock; ++j, block += kBlock)
        for (int r = 0; r < kBlock; ++r) sum[r] = sum[r] + block[r] * push[j];
      for (int r = 0; r < kBlock; ++r) w_[i + r] = sum[r];
    }
  }

  void forget() {
    anderson_.clear();
    for (int i = 0; i < n_; ++i) anderson_.clear(history_[i], Real(0));
  }
  void accelerate(Real tikhonov) {
    anderson_.begin_sums();
    for (int i = 0; i < n_; ++i)
      anderson_.gather(history_[i], y_[i], anderson_.own, [&](Real x) { return x * soft_[i]; });
    anderson_.finish_sums(typename L::Group{}, tikhonov);
    for (int i = 0; i < n_; ++i) y_[i] = anderson_.step(history_[i]);
  }

  /// l and z from y; their largest changes. Worlds that are done keep theirs.
  template <bool kWatched>
  AdmmChange<Real> multipliers(Mask<Real> done) {
    const Real one(1);
    AdmmChange<Real> change;
    auto put = [&](int i, Real lambda) {
      const Real z = soft_[i] * (y_[i] + lambda);
      if constexpr (kWatched) {
        change.add(abs(z - z_[i]), soft_[i] * abs(lambda - lambda_[i]));
        lambda_[i] = select(done, lambda_[i], lambda), z_[i] = select(done, z_[i], z);
      } else {
        lambda_[i] = lambda, z_[i] = z;
      }
    };
    for (int k = 0; k < contacts_; ++k) {
      const int i = rows_.contact_row(k);
      auto trial = [&](int j) { return -(y_[j] + beta_[j] * rows_.e[j]) / (one + beta_[j] * rows_.R[j]); };
      const Vec3<Real> l = project_strict(Vec3<Real>{trial(i), trial(i + 1), trial(i + 2)}, rows_.mu[k]);
      put(i, l.x), put(i + 1, l.y), put(i + 2, l.z);
    }
    for (int k = 0; k < rows_.scalars; ++k) {
      const int i = rows_.scalar_row(k);
      put(i, clamp(-(y_[i] + beta_[i] * rows_.e[i]) / (one + beta_[i] * rows_.R[i]), rows_.lower[k], rows_.upper[k]));
    }
    return change;
  }

  const PackedRows<L>& rows_;
  int contacts_, n_, width_;  // those that take part now
  Real *beta_, *soft_, *z_, *y_, *w_, *lambda_, *push_, *Z_, *C_, *T_;
  Entry* history_;
  Anderson<Real, 3> anderson_;
};

/// l and its places: the warm start into the rows, the answer back.
template <class L, class Visit>
void each_packed(const typename L::Model& m, const Contacts<L>& contacts, const ContactProblem<L>& problem,
                 Impulses<L>& l, Visit visit) {
  using Real = typename L::Real;
  const typename L::Group g;
  const PackedRows<L>& packed = problem.packed;
  auto contact = [&](Real place, Vec3<Real>& f) {
    PackedPlaces<Real>(place).each([&](int k, const Mask<Real>& is) {
      const int i = packed.contact_row(k);
      visit(is, i, f.x), visit(is, i + 1, f.y), visit(is, i + 2, f.z);
    });
  };
  auto scalar = [&](bool, const Real& place, Real& f) {
    PackedPlaces<Real>(place).each([&](int k, const Mask<Real>& is) { visit(is, packed.scalar_row(k), f); });
  };
  each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) { contact(packed.slot.slot[c], l.slot.slot[c]); });
  for (int i = 0; i < contacts.pairs; ++i) contact(packed.pair[i], l.pair[i]);
  each_dof_row<L>(g, m, problem.limit_live, scalar, packed.limit, l.limit);
  each_dof_row<L>(g, m, problem.friction_live, scalar, packed.friction, l.friction);
  for (int i = 0; i < m.ties; ++i)
    if (problem.tie_live[i]) scalar(true, packed.tie[i], l.tie[i]);
}

}  // namespace stiction
