// Contact problems of one size as half-solved rows (contact/row_problem.h), without a model around them, and the kernel that
// solves them: the same solve_rows() that a step calls.
#pragma once
#include "step/solvers.h"

namespace stiction {

/// Row-major, one problem after the other, in double; n = rows(). Finite.
struct RowBatch : RowCounts {
  int problems = 0;
  const double* Y = nullptr;                                // (problems, n, width)      1/sqrt(kg)
  const double *free = nullptr, *e = nullptr;               // (problems, n)             m/s
  const double* R = nullptr;                                // (problems, n)             1/kg, equal for t1, t2
  const double* mu = nullptr;                               // (problems, contacts)
  const double *lower = nullptr, *upper = nullptr;          // (problems, scalars)     N s
  const double* least_velocity = nullptr;                   // (problems)                m/s, > 0
  double* impulse = nullptr;                                // (problems, n)             start, then answer; N s
  double *iterations = nullptr, *factorizations = nullptr;  // (problems)      SolveStats
};

template <class T>
struct SolveJob {
  RowBatch batch;
  SolverOptions<T> solver;
  SolveLimits<T> limits;
};

/// What a thread does for packs first .. last - 1 of a batch, with memory of its own, 64-byte aligned.
template <class Real>
struct RowBatchKernel {
  using T = Scalar<Real>;

  static int64_t bytes(const SolveJob<T>& job) {
    return static_cast<int64_t>(sizeof(Real)) *
           (RowArrays<Real>::size(job.batch) + solver_memory<Real>(job.solver, job.batch));
  }

  static void solve(const SolveJob<T>& job, int first, int last, void* memory) {
    const RowBatch& batch = job.batch;
    for (int pack = first; pack < last; ++pack) {
      Arena<Real> arena(static_cast<Real*>(memory));
      RowArrays<Real> rows(batch);
      rows.carve(arena);
      for (int64_t i = 0; i < rows.used; ++i) rows.Y[i] = Real(0);  // places without a problem
      rows.near = rows.contacts;
      Real least(1), scale(1);
      const int begin = pack * kWidth<Real>, count = min(kWidth<Real>, batch.problems - begin);
      for (int w = 0; w < count; ++w) fill(batch, begin + w, w, rows, least, scale);
      const SolveStats<Real> stats =
          solve_rows(Serial{}, rows.view(least, scale), job.limits, job.solver, arena.rest(), rows.impulse);
      for (int w = 0; w < count; ++w) {
        const int64_t at = begin + w, n = batch.rows();
        for (int64_t i = 0; i < n; ++i) batch.impulse[at * n + i] = static_cast<double>(lane(rows.impulse[i], w));
        batch.iterations[at] = static_cast<double>(lane(stats.iterations, w));
        batch.factorizations[at] = static_cast<double>(lane(stats.factorizations, w));
      }
    }
  }

 private:
  /// Below this part of the mean over contacts a contact's W_ii is rounding: nothing moves it, it gets no impulse.
  static constexpr double kImmovable = 1e-14;

  static void fill(const RowBatch& b, int64_t from, int w, RowArrays<Real>& rows, Real& least, Real& scale) {
    const int n = b.rows(), nc = b.contacts;
    const double* Y = b.Y + from * n * b.width;
    auto put = [w](Real& to, double value) { set_lane(to, w, static_cast<T>(value)); };
    auto copy = [&](Real* to, const double* all, int64_t size) {
      for (int64_t i = 0; i < size; ++i) put(to[i], all[from * size + i]);
    };
    copy(rows.Y, b.Y, static_cast<int64_t>(n) * b.width);
    copy(rows.free, b.free, n), copy(rows.e, b.e, n), copy(rows.R, b.R, n), copy(rows.impulse, b.impulse, n);
    copy(rows.mu, b.mu, nc), copy(rows.lower, b.lower, b.scalars), copy(rows.upper, b.upper, b.scalars);

    auto square = [&](int i) {
      double sum = 0;
      for (int64_t a = i * static_cast<int64_t>(b.width), end = a + b.width; a < end; ++a) sum += Y[a] * Y[a];
      return sum;
    };
    double all = 0;
    for (int i = 0; i < n; ++i) all += square(i);
    const double rounding = kImmovable * all / max(n, 1);
    for (int k = 0; k < nc; ++k) {  // as contact/assemble.h has them
      const double t = square(3 * k) + square(3 * k + 1), trace = t + square(3 * k + 2), floor = kLeastMobility * trace;
      if (!(trace > 3 * rounding)) continue;
      put(rows.W[3 * k], max(0.5 * t, floor)), put(rows.W[3 * k + 1], max(0.5 * t, floor));
      put(rows.W[3 * k + 2], max(trace - t, floor));
    }
    for (int i = 3 * nc; i < n; ++i)
      if (const double W = square(i); W > rounding) put(rows.W[i], W);

    double V = b.least_velocity[from];
    put(least, V);
    for (int k = 0; k < nc; ++k) {
      const int64_t i = from * n + 3 * k;
      if (b.e[i + 2] > 0 && !(b.impulse[i + 2] > 0)) continue;
      for (int d = 0; d < 3; ++d) V = max(V, abs(b.free[i + d]));
    }
    put(scale, V);
  }
};

}  // namespace stiction
