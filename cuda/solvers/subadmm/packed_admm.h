// SubADMM's iteration on packed rows: what a CPU runs for worlds that are small enough (contact/packed_rows.h).
//
// In units where every penalty is 1, J_i <- B_i^1/2 J_i, and in the free motion's coordinates, with x_i = B_i^1/2 y_i:
//
//   C = I + sum x_i x_i' = U'U,   z_i = U^-T x_i,   T = J H^-1 J' = Z Z'
//
// so a pass (packed_passes.h) is one product with the symmetric T (n, n), and no walk over the tree. Every row keeps one
// slack: T is dense anyway, so nothing is gained by splitting a contact between its two links. Relaxation, Anderson
// acceleration and stop are those of subadmm.h; every penalty rule gives 1.5 times its B for contacts, and limits 5 / W_ii.
#pragma once
#include "contact/pack_rows.h"
#include "solvers/subadmm/packed_passes.h"

namespace stiction {

template <class L>
class PackedAdmm {
 public:
  using Real = typename L::Real;
  using S = Scalar<Real>;
  using Passes = PackedPasses<Real>;
  /// Reals of PackedRows::memory; 0: the model's worlds are too large.
  static int64_t memory_size(const typename L::Model& m) {
    using Rows = PackedRows<L>;
    if (!Rows::possible(m)) return 0;
    const int64_t n = Passes::padded(Rows::most_rows(m)), width = Passes::padded(Rows::width_of(m));
    return Rows::memory_size(m) + n * (2 + width) + width * width + Passes::memory_size(n);
  }

  explicit PackedAdmm(const PackedRows<L>& rows) : rows_(rows), width_(static_cast<int>(Passes::padded(rows.width))) {
    const int64_t n = Passes::padded(rows.size());
    answer_ = rows.rest, root_ = answer_ + n, C_ = root_ + n, Z_ = C_ + static_cast<int64_t>(width_) * width_;
    x_.carve(Z_ + n * width_, rows.size());
  }

  /// The warm start on entry to solve(), the answer on its exit, by PackedRows' rows.
  Real* lambda() { return answer_; }

  /// Returns the iterations of each world. First without the contacts left for later; worlds where one of them would close
  /// after all solve again with all, from there.
  Real solve(const Options<S>& opt, Real scale) {
    x_.near = x_.contacts = rows_.near, x_.scalars = rows_.scalars, x_.n = rows_.near_size();
    for (int i = x_.n; i < rows_.size(); ++i) answer_[i] = Real(0);
    auto done = negate(rows_.fits);
    Real count = iterate(opt, scale, done);
    if (rows_.contacts == rows_.near) return count;
    done = done | negate(closing(scale * opt.tolerance));
    if (all(done)) return count;
    x_.contacts = rows_.contacts, x_.n = rows_.size();
    return count + iterate(opt, scale, done);
  }

 private:
  // B W_ii; of rows that are no limits 1. On rollouts of robots these need 10 to 15 % fewer passes than 1 throughout.
  static constexpr double kContactPenalty = 1.5, kLimitPenalty = 5;
  static constexpr int kBlock = Passes::kBlock;

  /// Worlds that are done keep their answer.
  Real iterate(const Options<S>& opt, Real scale, Mask<Real> done) {
    const Mask<Real> kept = done;
    prepare(opt);
    if (opt.anderson) x_.forget();
    const bool adaptive = opt.penalty == kPenaltyAdaptive;
    const Real allowed = opt.tolerance > 0 ? scale * opt.tolerance : Real(-1);
    Real count(0), total(1);  // total: what the penalties have been scaled by
    for (int pass = 0; pass < opt.iterations && !all(done);) {
      const int last = adaptive ? min(pass + kAdaptivePasses, opt.iterations) : opt.iterations;
      const AdmmChange<Real> change = x_.run(opt, allowed, pass, last, done, count);
      if (adaptive && pass == last && !all(done)) {
        rescale(sqrt(adapted(change, done, total)));
        if (opt.anderson) x_.forget();
      }
    }
    for (int i = 0; i < x_.n; ++i) answer_[i] = select(kept, answer_[i], x_.lambda[i] * root_[i]);
    return count;
  }

  /// u = Y' l.
  void push_of(const Real* lambda, Real* u) const {
    for (int a = 0; a < rows_.width; ++a) u[a] = Real(0);
    for (int j = 0; j < x_.n; ++j)
      for (int a = 0; a < rows_.width; ++a) u[a] = u[a] + row(j)[a] * lambda[j];
  }
  /// J_j v of u.
  Real velocity_of_row(int j, const Real* u) const {
    Real w = rows_.free[j];
    for (int a = 0; a < rows_.width; ++a) w = w + row(j)[a] * u[a];
    return w;
  }
  const Real* row(int j) const { return rows_.Y + static_cast<int64_t>(j) * rows_.width; }
  /// Worlds where a contact left for later closes faster than its gap allows, by more than `allowed`.
  Mask<Real> closing(Real allowed) const {
    Real u[PackedRows<L>::kDofs];
    push_of(answer_, u);
    auto found = mask_of<Real>(false);
    for (int k = rows_.near; k < rows_.contacts; ++k) {
      const int n = rows_.contact_row(k) + 2;
      found = found | ((rows_.W[n] > Real(0)) & (velocity_of_row(n, u) + rows_.e[n] < -allowed));
    }
    return found;
  }

  /// 1 / B into soft.
  void penalties(const Options<S>& opt) {
    const Real zero(0), one(1);
    const bool one_for_a_contact = opt.penalty == kPenaltyPerContact || opt.penalty == kPenaltyPaper;
    Real sum(0), count(0);
    for (int k = 0; k < x_.contacts; ++k) {
      const int i = rows_.contact_row(k);
      for (int d = 0; d < 3; ++d) x_.soft[i + d] = rows_.W[i + d] * S(1 / kContactPenalty);
      if (!one_for_a_contact) continue;
      const Real mean = (x_.soft[i] * Real(2) + x_.soft[i + 2]) * Real(1.0f / 3);
      for (int d = 0; d < 3; ++d) x_.soft[i + d] = mean;
      sum = sum + mean, count = count + select(mean > zero, one, zero);
    }
    if (opt.penalty == kPenaltyPaper) {
      const Real common = sum / max(count, one);
      for (int k = 0; k < x_.contacts; ++k)
        for (int i = rows_.contact_row(k), d = 0; d < 3; ++d)
          x_.soft[i + d] = select(x_.soft[i + d] > zero, common, zero);
    }
    for (int k = 0; k < rows_.scalars; ++k) {
      const int i = rows_.scalar_row(k);
      const auto one_sided = (rows_.lower[k] == zero) & (rows_.upper[k] > zero);
      x_.soft[i] = rows_.W[i] * select(one_sided, Real(S(1 / kLimitPenalty)), one);
    }
  }
  /// Everything in the units of the penalties; z = J A^-1 (b + J' l), from the warm start.
  void prepare(const Options<S>& opt) {
    const Real zero(0), one(1);
    penalties(opt);
    Real u[PackedRows<L>::kDofs];
    push_of(answer_, u);
    for (int i = 0; i < x_.n; ++i) {
      const auto used = x_.soft[i] > zero;
      x_.soft[i] = sqrt(x_.soft[i]);
      root_[i] = select(used, one / select(used, x_.soft[i], one), zero);
      x_.free[i] = rows_.free[i] * root_[i], x_.e[i] = rows_.e[i] * root_[i];
      x_.z[i] = velocity_of_row(i, u) * root_[i], x_.lambda[i] = answer_[i] * x_.soft[i];
      x_.push[i] = x_.z[i] - x_.free[i] + x_.lambda[i];
    }
    for (int i = x_.n; i < Passes::padded(x_.n); ++i) x_.free[i] = x_.push[i] = zero;
    for (int k = 0; k < x_.contacts; ++k) {
      const int i = rows_.contact_row(k);
      x_.mu[k] = rows_.mu[k] * x_.soft[i] * root_[i + 2];
    }
    for (int k = 0; k < rows_.scalars; ++k) {
      const Real soft = x_.soft[rows_.scalar_row(k)];
      x_.lower[k] = rows_.lower[k] * soft, x_.upper[k] = rows_.upper[k] * soft;
    }
    make_operator();
  }
  /// Penalties times by^2.
  void rescale(Real by) {
    const Real inverse = Real(1) / by;
    for (int i = 0; i < x_.n; ++i) {
      root_[i] = root_[i] * by, x_.soft[i] = x_.soft[i] * inverse;
      x_.free[i] = x_.free[i] * by, x_.e[i] = x_.e[i] * by, x_.z[i] = x_.z[i] * by,
      x_.lambda[i] = x_.lambda[i] * inverse;
      x_.push[i] = x_.z[i] - x_.free[i] + x_.lambda[i];
    }
    for (int k = 0; k < rows_.scalars; ++k) x_.lower[k] = x_.lower[k] * inverse, x_.upper[k] = x_.upper[k] * inverse;
    make_operator();
  }

  /// T, and 1 / (1 + R), of the present penalties.
  void make_operator() {
    const Real one(1);
    for (int i = 0; i < x_.n; ++i) {
      x_.give[i] = one / (one + rows_.R[i] * root_[i] * root_[i]);
      for (int a = 0; a < rows_.width; ++a) solved(i)[a] = row(i)[a] * root_[i];
      for (int a = rows_.width; a < width_; ++a) solved(i)[a] = Real(0);
    }
    for (int i = x_.n; i < Passes::padded(x_.n); ++i)
      for (int a = 0; a < width_; ++a) solved(i)[a] = Real(0);
    assemble_matrix();
    factor_matrix();
    solve_rows();
    multiply_rows();
  }
  Real* solved(int j) const { return Z_ + static_cast<int64_t>(j) * width_; }

  /// C = I + sum x x', lower triangle.
  void assemble_matrix() {
    for (int a = 0; a < width_; a += 2)
      for (int b = 0; b <= a; b += kBlock) {
        Real sum[2][kBlock];
        for (int r = 0; r < kBlock; ++r) sum[0][r] = Real(a == b + r ? 1 : 0), sum[1][r] = Real(a + 1 == b + r ? 1 : 0);
        for (int j = 0; j < x_.n; ++j) {
          const Real *x = solved(j), x0 = x[a], x1 = x[a + 1];
          for (int r = 0; r < kBlock; ++r) sum[0][r] = sum[0][r] + x0 * x[b + r], sum[1][r] = sum[1][r] + x1 * x[b + r];
        }
        for (int r = 0; r < kBlock; ++r) C_[a * width_ + b + r] = sum[0][r], C_[(a + 1) * width_ + b + r] = sum[1][r];
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
  /// Z in the place of x, several rows and columns at once: one alone would wait for each of its sums.
  void solve_rows() {
    for (int j = 0; j < x_.n; j += kBlock) {
      Real* z = solved(j);
      for (int a = 0; a < width_; a += 2) {
        const Real *c0 = C_ + a * width_, *c1 = c0 + width_;
        Real sum[2][kBlock];
        for (int r = 0; r < kBlock; ++r) sum[0][r] = z[r * width_ + a], sum[1][r] = z[r * width_ + a + 1];
        for (int b = 0; b < a; ++b)
          for (int r = 0; r < kBlock; ++r) {
            const Real x = z[r * width_ + b];
            sum[0][r] = sum[0][r] - c0[b] * x, sum[1][r] = sum[1][r] - c1[b] * x;
          }
        for (int r = 0; r < kBlock; ++r) {
          const Real x = sum[0][r] * c0[a];
          z[r * width_ + a] = x, z[r * width_ + a + 1] = (sum[1][r] - c1[a] * x) * c1[a + 1];
        }
      }
    }
  }

  /// T = Z Z', the padding 0.
  void multiply_rows() {
    Real* block = x_.T;
    for (int i = 0; i < x_.n; i += kBlock)
      for (int j = 0; j < i + kBlock; j += 2, block += 2 * kBlock) {
        const Real *left = solved(i), *right = solved(j);
        Real sum[2][kBlock];
        for (int r = 0; r < kBlock; ++r) sum[0][r] = sum[1][r] = Real(0);
        for (int a = 0; a < width_; ++a) {
          const Real x0 = right[a], x1 = right[width_ + a];
          for (int r = 0; r < kBlock; ++r) {
            const Real x = left[r * width_ + a];
            sum[0][r] = sum[0][r] + x * x0, sum[1][r] = sum[1][r] + x * x1;
          }
        }
        for (int r = 0; r < kBlock; ++r) block[r] = sum[0][r], block[kBlock + r] = sum[1][r];
      }
  }

  const PackedRows<L>& rows_;
  int width_;     // of Z, a multiple of kBlock
  Passes x_;      // of those rows that take part now
  Real* answer_;  // l, N s
  Real* root_;    // B^1/2
  Real *C_, *Z_;
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
