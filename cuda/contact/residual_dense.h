// The accuracy certificate of a dense problem, evaluated in double from the very numbers the solver got, whatever its type.
// It shares nothing with the solvers but the cone's projection, dissipative_slip and the Cholesky factor.
//
//   r_dyn   |D (A v - b - J'l)| / max(|D b|, |D J'l|, least_momentum),   D = diag(A)^-1/2           1
//   r_con   max_i  |g_i l_i - P(g_i l_i - s_i - (0, 0, mu |s_t|))|,      s = J v + e + R l          m/s
//   r_split max_i  of |g l_n - max(0, g l_n - s_n)| and |g l_t - D(g l_t - s_t)|, D = disk of radius mu g l_n   m/s
//           couples are three tangential directions more, in r_con, r_split and r_ccp; r_mdp does not see them
//   r_ccp   r_con without the correction mu |s_t|: the convex solvers' score                     m/s
//   r_mdp   r_con of s as maximum dissipation has it (dissipative_slip of contact/law.h, W_nt of the exact block)   m/s
//   r_row   the same for interval rows, P = clamp to g [lower, upper]                               m/s, rad/s
//   r_cone  max_i  g_i max(0, |l_t| - mu l_n, -l_n) / V                                             1
//   V       max |J_i v*| over contacts with l_i != 0 or e_n <= 0 (touching), at least least_velocity m/s
//
// r_con goes blind at large friction: with l = 0 a contact closing at speed u while sliding has r_con near u / mu. r_split,
// Signorini and Coulomb each with its own projection, does not; it is 0 for the same (v, l). Solvers here call converged what
// passes r_con <= tolerance V and r_split <= 10 tolerance V; the second binds only where mu is far above 1.
//
// g = tr(W_ii) / 3 of the exact block W_ii = J_i A^-1 J_i', W_kk for a row; P = the nearest impulse in the cone (a cone does not
// mind the factor g, and velocities have a sane size whatever the masses). Rows are judged one by one against
// V_k = max(|J_k v*|, least_velocity): row_ratio = max r_k / V_k. A contact or row that nothing can move (g = 0) must have l = 0;
// it is counted in `immovable` and left out of the maxima.
//
// Preconditions: A symmetric positive definite, else factored = false and every residual is infinite; so too for NaN anywhere.
// Cost: nv^2 (nv / 6 + contacts + rows / 3) multiply-adds.
#pragma once
#include "contact/dense.h"
#include "contact/law.h"
#include "linalg/small_cholesky.h"
#include "math/cone.h"

namespace stiction {

struct DenseResidual {
  double r_dyn, r_con, r_split, r_ccp, r_mdp, r_row, row_ratio, r_cone, scale;
  int immovable;
  bool factored;
};

struct DenseResidualOptions {
  double least_velocity = 1e-4;  // max(g h, 1e-4), or |q| of a bare Delassus problem   m/s
  double least_momentum = 0;     // sqrt(mean moving mass) g h                           sqrt(kg) m/s
};

/// Doubles that residual_dense needs.
HD int residual_dense_workspace(int nv) { return nv * nv + 5 * nv; }

namespace residual_detail {

inline constexpr double kInfinity = 1e300;

/// NaN counts as the worst.
HD double worst(double a, double b) { return b <= a ? a : b < kInfinity ? b : kInfinity; }

template <class T>
HD double row_times(int n, const T* row, const double* x) {
  double sum = 0;
  for (int k = 0; k < n; ++k) sum += double(row[k]) * x[k];
  return sum;
}

/// J_k A^-1 J_k'.
template <class T>
HD double row_mobility(int n, const double* U, const T* row, double* x) {
  for (int k = 0; k < n; ++k) x[k] = row[k];
  solve_lower(n, U, x);
  double sum = 0;
  for (int k = 0; k < n; ++k) sum += x[k] * x[k];
  return sum;
}

template <class T>
HD void dynamics(const DenseProblem<T>& p, const double* v, double least, double* defect, double* push,
                 DenseResidual& out) {
  int n = p.nv;
  for (int k = 0; k < n; ++k) push[k] = 0;
  for (int i = 0; i < 3 * p.contacts; ++i)
    for (int k = 0; k < n; ++k) push[k] += double(p.J[i * n + k]) * p.impulse[i];
  for (int i = 0; i < p.rows; ++i)
    for (int k = 0; k < n; ++k) push[k] += double(p.J_row[i * n + k]) * p.row_impulse[i];
  for (int i = 0; i < 3 * p.spins; ++i)
    for (int k = 0; k < n; ++k) push[k] += double(p.J_spin[i * n + k]) * p.spin_impulse[i];
  double square = 0, load = 0, pushed = 0;
  for (int k = 0; k < n; ++k) {
    double inverse = 1 / double(p.A[k * n + k]), b = p.b[k];
    defect[k] = row_times(n, p.A + k * n, v) - b - push[k];
    square += defect[k] * defect[k] * inverse, load += b * b * inverse, pushed += push[k] * push[k] * inverse;
  }
  double base = max(max(sqrt(load), sqrt(pushed)), least);
  out.r_dyn = worst(0, square == 0 ? 0 : sqrt(square) / base);
}

template <class T>
HD void contact(const DenseProblem<T>& p, int i, const double* U, const double* v, const double* free, double* x,
                double& overreach, DenseResidual& out) {
  int n = p.nv;
  double g = 0, s[3], l[3], fast = 0, W_n = 0, *y_n = x + n, coupling[2] = {0, 0};
  for (int a = 2; a >= 0; --a) {
    const T* row = p.J + (3 * i + a) * n;
    const double W_aa = row_mobility(n, U, row, x);
    g += W_aa / 3;
    if (a == 2) W_n = W_aa;
    for (int k = 0; k < n; ++k)
      if (a == 2) y_n[k] = x[k];
      else coupling[a] += y_n[k] * x[k];
    l[a] = p.impulse[3 * i + a];
    s[a] = row_times(n, row, v) + double(p.e[3 * i + a]) + double(p.R[3 * i + a]) * l[a];
    fast = worst(fast, abs(row_times(n, row, free)));
  }
  W_n = max(W_n, kLeastMobility * 3 * g) + double(p.R[3 * i + 2]);
  if (W_n > 0) coupling[0] /= W_n, coupling[1] /= W_n;
  SixVec<double> held{{g * l[0], g * l[1], g * l[2]}, {0, 0, 0}}, slip{{s[0], s[1], s[2]}, {0, 0, 0}};
  bool pushed = l[0] != 0 || l[1] != 0 || l[2] != 0;
  if (p.spins > 0) {
    const T *rows = p.J_spin + 3 * i * n, *c = p.spin_impulse + 3 * i;
    held.c = Vec3<double>{double(c[0]), double(c[1]), double(c[2])} * g;
    pushed = pushed || c[0] != 0 || c[1] != 0 || c[2] != 0;
    slip.c = {row_times(n, rows, v), row_times(n, rows + n, v), row_times(n, rows + 2 * n, v)};
  }
  if (g == 0) {
    ++out.immovable;
    if (pushed) out.r_con = out.r_split = out.r_ccp = out.r_mdp = kInfinity;
    return;
  }
  if (pushed || p.e[3 * i + 2] <= T(0)) out.scale = worst(out.scale, fast);
  const double mu = p.mu[i];
  const SixVec<double> convex = held - slip;
  SixVec<double> exact = convex;
  exact.l.z -= mu * tangential(slip);
  const double limit = mu * held.l.z, reach = tangential(convex), shrink = reach > limit ? limit / reach : 1.0;
  out.r_split = worst(out.r_split, abs(held.l.z - max(convex.l.z, 0.0)));
  out.r_split = worst(out.r_split, tangential(held - with_tangents(convex, shrink, 0.0)));
  out.r_con = worst(out.r_con, norm(held - project_proximal(exact, mu)));
  out.r_ccp = worst(out.r_ccp, norm(held - project_proximal(convex, mu)));
  const Vec3<double> d = dissipative_slip({l[0], l[1], l[2]}, slip.l, mu, {coupling[0], coupling[1]});
  const Vec3<double> next = held.l - d - Vec3<double>{0, 0, mu * sqrt(d.x * d.x + d.y * d.y)};
  out.r_mdp = worst(out.r_mdp, norm(held.l - project_proximal(next, mu)));
  overreach = worst(overreach, max(tangential(held) - mu * held.l.z, -held.l.z));
}

template <class T>
HD void row(const DenseProblem<T>& p, int i, const double* U, const double* v, const double* free, double least,
            double* x, DenseResidual& out) {
  int n = p.nv;
  const T* J = p.J_row + i * n;
  double g = row_mobility(n, U, J, x), l = p.row_impulse[i];
  if (g == 0) {
    ++out.immovable;
    if (l != 0) out.r_row = out.row_ratio = kInfinity;
    return;
  }
  double s = row_times(n, J, v) + double(p.e_row[i]) + double(p.R_row[i]) * l;
  double r = abs(l - clamp(l - s / g, double(p.lower[i]), double(p.upper[i]))) * g;
  if (!(s * s >= 0)) r = kInfinity;  // clamp forgets a NaN
  out.r_row = worst(out.r_row, r);
  out.row_ratio = worst(out.row_ratio, r / max(abs(row_times(n, J, free)), least));
}

}  // namespace residual_detail

/// Certificate of (v, problem.impulse, problem.row_impulse).
template <class T>
HD DenseResidual residual_dense(const DenseProblem<T>& p, const T* velocity, const DenseResidualOptions& options,
                                double* workspace) {
  using namespace residual_detail;
  int n = p.nv;
  double *U = workspace, *v = U + n * n, *free = v + n, *x = free + n, *push = x + 2 * n;
  DenseResidual out = {
      kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, options.least_velocity,
      0,         true};
  for (int i = 0; i < n * n; ++i) U[i] = p.A[i];
  for (int k = 0; k < n; ++k) {
    v[k] = velocity[k], free[k] = p.b[k];
    out.factored &= p.A[k * n + k] > T(0);
  }
  out.factored &= cholesky_factor(n, U, 0.0);
  if (!out.factored) return out;
  cholesky_solve(n, U, free);
  dynamics(p, v, options.least_momentum, x, push, out);
  out.r_con = out.r_split = out.r_ccp = out.r_mdp = out.r_row = out.row_ratio = 0;
  double overreach = 0;
  for (int i = 0; i < p.contacts; ++i) contact(p, i, U, v, free, x, overreach, out);
  for (int i = 0; i < p.rows; ++i) row(p, i, U, v, free, options.least_velocity, x, out);
  out.r_cone = overreach / out.scale;
  return out;
}

}  // namespace stiction
