// Projected Gauss-Seidel on the Delassus operator: the plain baseline, exact Coulomb by the strict projection.
//
// One sweep, contacts in order, then rows in order; w is always that of the newest impulses:
//
//   l_n <- max(0, l_n - r_n (w_n + e_n + R_n l_n)),           r_n = a / (W_zz + R_n)
//   l_t <- disk of radius mu l_n ( l_t - r_t (w_t + e_t + R_t l_t) ),  r_t = a / (max(W_xx, W_yy) + R_t)
//   row <- clamp(l - a (w + e + R l) / (W_kk + R), lower, upper)
//
// a = relaxation, 0.6 by default: 1 / max with a = 1 cycles on 8 % of quadruped states, 1 / min on many more. Both tangents are
// updated from the same w: with one after the other a sliding contact's fixed point is not Coulomb's. The normal goes first.
//
// Stop: r_con <= tolerance V, r_split <= 10 tolerance V and r_row <= tolerance V_row, the natural residuals of contact/residual_dense.h taken from W and q,
// tested every `check` sweeps; tolerance 0: always `sweeps` sweeps. A world that has converged is frozen by select.
//
// Shapes: DelassusProblem of contact/dense.h; R_t equal for both tangents; W finite also in inactive entries. Real may be a
// pack. Inactive contacts, and those nothing can move (W_ii = 0), get l = 0. No workspace. NaN: never converged.
// Cost of a sweep: (3 contacts + rows)^2 multiply-adds; of a test as much again.
#pragma once
#include "contact/dense.h"
#include "math/cone.h"

namespace stiction {

template <class Real>
struct PgsOptions {
  using T = Scalar<Real>;
  int sweeps = 200;
  int check = 4;  // sweeps between two tests
  T relaxation = T(0.6);
  T tolerance = sizeof(T) == 8 ? T(1e-8) : T(1e-5);  // times V; 0: fixed number of sweeps
  Real least_velocity =
      Real(T(1e-4));  // of each world: floor of V: max(g h, 1e-4); |q| of a bare problem             m/s
};

template <class Real>
struct PgsStats {
  Real iterations;           // sweeps that changed this world
  Real r_con, r_row, scale;  // of the result; scale = V                                                            m/s
  Mask<Real> converged;
};

namespace pgs_detail {

template <class Real>
struct Sweeper {
  using Number = Scalar<Real>;

  const PgsOptions<Real>& opt;
  DelassusProblem<Real>& P;
  int n, nc;

  HD Real velocity(int k) const {
    const Real* row = P.W + k * n;
    Real sum = P.q[k];
    for (int j = 0; j < n; ++j) sum = sum + row[j] * P.impulse[j];
    return sum;
  }
  HD Real sigma(int k) const { return velocity(k) + P.e[k] + P.R[k] * P.impulse[k]; }
  HD Real diagonal(int k) const { return P.W[k * n + k]; }
  HD Real mobility(int i) const {
    return (diagonal(3 * i) + diagonal(3 * i + 1) + diagonal(3 * i + 2)) * Number(1.0 / 3.0);
  }
  /// relaxation / g where g > 0, else 0.
  HD Real pace(Real g) const {
    auto moves = g > Real(0);
    return select(moves, Real(opt.relaxation) / select(moves, g, Real(1)), Real(0));
  }
  HD Mask<Real> acts(int i) const {
    if (i < nc) return P.active[i] & (mobility(i) > Real(0));
    return P.active[i] & (diagonal(2 * nc + i) > Real(0));
  }

  /// Impulses that the cone, the bounds and the masks allow.
  HD void admit() {
    Real zero(0);
    for (int i = 0; i < nc; ++i) {
      Real* l = P.impulse + 3 * i;
      Vec3<Real> a = project_strict(Vec3<Real>{l[0], l[1], l[2]}, P.mu[i]);
      auto on = acts(i);
      l[0] = select(on, a.x, zero), l[1] = select(on, a.y, zero), l[2] = select(on, a.z, zero);
    }
    for (int r = 0; r < P.rows; ++r) {
      Real& l = P.impulse[3 * nc + r];
      l = select(acts(nc + r), clamp(l, P.lower[r], P.upper[r]), zero);
    }
  }

  HD void sweep(Mask<Real> running) {
    for (int i = 0; i < nc; ++i) {
      int k = 3 * i;
      Real* l = P.impulse + k;
      auto on = running & acts(i);
      if (!any(on)) continue;
      Real n_step = pace(diagonal(k + 2) + P.R[k + 2]);
      l[2] = select(on, max(l[2] - n_step * sigma(k + 2), Real(0)), l[2]);
      Real t_step = pace(max(diagonal(k), diagonal(k + 1)) + P.R[k]);
      Vec3<Real> t = project_strict(Vec3<Real>{l[0] - t_step * sigma(k), l[1] - t_step * sigma(k + 1), l[2]}, P.mu[i]);
      l[0] = select(on, t.x, l[0]), l[1] = select(on, t.y, l[1]);
    }
    for (int r = 0; r < P.rows; ++r) {
      int k = 3 * nc + r;
      auto on = running & acts(nc + r);
      if (!any(on)) continue;
      Real l = P.impulse[k], next = clamp(l - pace(diagonal(k) + P.R[k]) * sigma(k), P.lower[r], P.upper[r]);
      P.impulse[k] = select(on, next, l);
    }
  }

  /// r_con and r_split of contact i, m/s.
  HD Real contact_residual(int i, Real& split) const {
    int k = 3 * i;
    Real g = mobility(i), mu = P.mu[i], zero(0);
    Vec3<Real> s = {sigma(k), sigma(k + 1), sigma(k + 2)}, l = {P.impulse[k], P.impulse[k + 1], P.impulse[k + 2]};
    Vec3<Real> held = l * g, next = held - s;
    Vec3<Real> disk = project_strict(Vec3<Real>{next.x, next.y, held.z}, mu);
    split = max(abs(held.z - max(next.z, zero)), norm(Vec3<Real>{held.x - disk.x, held.y - disk.y, zero}));
    next.z = next.z - mu * sqrt(s.x * s.x + s.y * s.y);
    return norm(held - project_proximal(next, mu));
  }

  /// r_con, r_row, scale and converged of the present impulses.
  HD void test(PgsStats<Real>& out) const {
    Real zero(0), least = opt.least_velocity, ratio(0), sum(0), split(0);
    out.r_con = out.r_row = zero, out.scale = least;
    for (int i = 0; i < nc; ++i) {
      int k = 3 * i;
      auto on = acts(i);
      if (!any(on)) continue;
      Real half_way, r = select(on, contact_residual(i, half_way), zero),
                     pushed = max(abs(P.impulse[k]), abs(P.impulse[k + 1]));
      Real fast = max(max(abs(P.q[k]), abs(P.q[k + 1])), abs(P.q[k + 2]));
      auto touching = on & ((max(pushed, P.impulse[k + 2]) > zero) | (P.e[k + 2] <= zero));
      out.scale = max(out.scale, select(touching, fast, zero));
      out.r_con = max(out.r_con, r), split = max(split, select(on, half_way, zero)), sum = sum + r;
    }
    for (int r = 0; r < P.rows; ++r) {
      int k = 3 * nc + r;
      auto on = acts(nc + r);
      if (!any(on)) continue;
      Real g = select(on, diagonal(k), Real(1)), s = sigma(k), l = P.impulse[k];
      Real d = select(on, abs(l - clamp(l - s / g, P.lower[r], P.upper[r])) * g, zero);
      out.r_row = max(out.r_row, d), ratio = max(ratio, d / max(abs(P.q[k]), least)),
      sum = sum + select(on, s * s, zero);
    }
    Real limit(opt.tolerance);
    out.converged = (max(out.r_con, split * Number(0.1)) <= limit * out.scale) & (ratio <= limit) & is_finite(sum);
  }
};

}  // namespace pgs_detail

/// Solves `problem` in place: impulse is the warm start on entry, the solution on exit.
template <class Real>
HD_CALL PgsStats<Real> pgs(DelassusProblem<Real>& problem, const PgsOptions<Real>& options) {
  pgs_detail::Sweeper<Real> s{options, problem, 3 * problem.contacts + problem.rows, problem.contacts};
  PgsStats<Real> stats;
  bool until = options.tolerance > 0;
  stats.iterations = Real(0);
  s.admit();
  s.test(stats);
  Mask<Real> running = until ? negate(stats.converged) : mask_of<Real>(true);
  for (int k = 1; k <= options.sweeps && any(running); ++k) {
    s.sweep(running);
    stats.iterations = stats.iterations + select(running, Real(1), Real(0));
    if (until && (k % options.check == 0 || k == options.sweeps)) {
      s.test(stats);
      running = running & negate(stats.converged);
    }
  }
  if (!until) s.test(stats);
  return stats;
}

}  // namespace stiction
