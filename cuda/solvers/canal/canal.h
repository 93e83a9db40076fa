// CANAL: the cascaded Newton augmented Lagrangian of exact Coulomb on a dense problem. The robust solver for few worlds: a
// fallback where a first-order method stalls. Source: J. Lee et al., "Variations of Augmented Lagrangian for
// Robotic Multi-Contact Simulation", section V. README.md lists the deviations.
//
// Outer: freeze De Saxce's correction p_i = mu |s_t| and the multiplier held in l0; inner: the strongly convex
//
//   min_v  1/2 v'A v - b'v + sum 1/2 |l_i|^2_S,   l_i = argmin_{l in K} |l - S^-1 (D l0 - J_i v - e_i - (0, 0, p_i))|_S
//
// by Newton with an exact line search; then l0 = l, p = mu |(J v + e + R l + D (l - l0))_t| through Anderson's acceleration.
// D = w / c is the penalty (c dimensionless), S = D + R: a compliant contact (R > 0) is solved exactly, not softened twice.
// The S-norm projection is the Euclidean one in coordinates S^1/2 l on a cone of friction mu sqrt(S_t / S_n).
// Limits, dry friction, bilateral and soft rows go the same way with clamp as projection and no p.
//
// Coordinates: A = U'U, y = U v, X = J U^-1, so that W = X X' and H = I + X'GX: masses no longer matter. The inner loop runs in
// contact space (a contact carries w = X y and the impulse `held` with y = free + X'held, which stays true along a step):
//   (I + X'GX) dy = X'(l - held),   dw = X dy,   dheld = l - held - G dw,   slope = dw . (held - l).
//
// Shapes: problem of contact/dense.h, R_t equal for both tangents. A SPD. T is float or double.
// Errors: none thrown; CanalStats says what happened. A contact nothing can move (W_ii = 0) gets l = 0.
// Cost of a Newton step: Cholesky of (nv, nv) plus 3/2 nv^2 per closed contact.
#pragma once
#include "contact/dense.h"
#include "linalg/small_cholesky.h"
#include "math/cone.h"
#include "solvers/canal/anderson_dense.h"

namespace stiction {

template <class T>
struct CanalOptions {
  static constexpr bool kWide = sizeof(T) == 8;

  T tolerance = kWide ? T(1e-8) : T(1e-5);   // converged: r_con <= tolerance V and r_row <= tolerance V_row
  T least_velocity = T(1e-4);                // floor of V: max(g h, 1e-4); |q| of a bare Delassus problem      m/s
  T penalty = kWide ? T(300) : T(10);        // c: beta_i = c / w_i, w_i = tr(W_ii) / 3; grows up to the cap
  T penalty_cap = kWide ? T(1e7) : T(100);   // rounding costs eps c V
  T growth = T(10), decrease = T(0.25);      // c grows when |Jv - z| fell by less than `decrease`
  int outer = 200, inner = 30, search = 30;  // caps: outer passes, Newton steps each, line-search evaluations each
  bool accelerate = true;                    // Anderson on the correction
  int patience = 12;                         // passes without 0.7x the best score before Anderson forgets its history
  bool uniform = false;  // the paper's: beta_i = penalty [kg] for all, grown whatever the cascade does

  /// The paper's own numbers: one beta = 1e4 kg, no acceleration.
  HD static CanalOptions paper() {
    CanalOptions o;
    o.penalty = T(1e4), o.penalty_cap = T(1e8), o.accelerate = false, o.uniform = true;
    return o;
  }
};

template <class T>
struct CanalStats {
  int outer, newton;      // passes made
  int immovable;          // contacts and rows with W_ii = 0
  T r_con, r_row, scale;  // of the result: m/s (certificate of contact/residual_dense.h, here in T); scale = V
  bool converged;         // never without the certificate of the very (v, impulse) returned
  bool sound;             // false: A not positive definite or numbers not finite; impulse = 0 then
};

/// Numbers of type T that `canal` needs.
HD int canal_workspace_size(int nv, int contacts, int rows) {
  int m = 3 * contacts + rows, blocks = contacts + rows;
  return 2 * nv * nv + m * nv + 4 * nv + 8 * m + 5 * blocks + 6 * contacts + rows + 4 * contacts +
         AndersonDense<float>::workspace_size(contacts);
}

namespace canal_detail {

template <class T>
struct Solver {
  const CanalOptions<T>& opt;
  DenseProblem<T>& P;
  int n, nc, nr, m;
  CanalStats<T> stats;
  T *U, *H, *X, *free, *y, *step, *pull;                          // (n, n) x2, (m, n), (n) x4
  T *w, *held, *lambda, *lambda0, *dw, *dheld, *best, *accepted;  // (m)
  T *mobility, *soft, *root_t, *root_n, *fast;  // (nc + nr): w_i, D, 1/sqrt(S_t), 1/sqrt(S_n), |J_i v*|
  T* G;                                         // (6 nc + nr)
  T *p, *image, *slip_before;                   // (nc)
  AndersonDense<T> anderson;
  T penalty, score, best_score;

  HD Solver(DenseProblem<T>& problem, const CanalOptions<T>& options, T* at)
      : opt(options),
        P(problem),
        n(problem.nv),
        nc(problem.contacts),
        nr(problem.rows),
        m(3 * problem.contacts + problem.rows) {
    auto take = [&at](int size) {
      T* place = at;
      at += size;
      return place;
    };
    U = take(n * n), H = take(n * n), X = take(m * n);
    free = take(n), y = take(n), step = take(n), pull = take(n);
    w = take(m), held = take(m), lambda = take(m), lambda0 = take(m), dw = take(m), dheld = take(m), best = take(m);
    accepted = take(m);
    mobility = take(nc + nr), soft = take(nc + nr), root_t = take(nc + nr), root_n = take(nc + nr),
    fast = take(nc + nr);
    G = take(6 * nc + nr);
    p = take(nc), image = take(nc), slip_before = take(nc);
    anderson.start(nc, at);
    stats = {0, 0, 0, T(0), T(0), opt.least_velocity, false, true};
    penalty = opt.penalty;
  }

  // ---- the problem in coordinates y = U v -------------------------------------------------------------------------------

  HD const T* jacobian(int k) const { return k < 3 * nc ? P.J + k * n : P.J_row + (k - 3 * nc) * n; }
  HD T product(const T* a, const T* b) const {
    T sum(0);
    for (int k = 0; k < n; ++k) sum += a[k] * b[k];
    return sum;
  }
  /// x += X'l.
  HD void add_push(const T* l, T* x) const {
    for (int i = 0; i < m; ++i) {
      T a = l[i];
      if (a == T(0)) continue;
      const T* row = X + i * n;
      for (int k = 0; k < n; ++k) x[k] += a * row[k];
    }
  }

  /// Factors A, maps J, measures mobilities and free velocities. False: A is not positive definite.
  HD_CALL bool prepare() {
    T floor(0);
    for (int i = 0; i < n * n; ++i) U[i] = P.A[i];
    for (int k = 0; k < n; ++k) free[k] = P.b[k];
    if (!cholesky_factor(n, U, floor)) return false;
    solve_lower(n, U, free);
    for (int i = 0; i < m; ++i) {
      T* row = X + i * n;
      const T* J = jacobian(i);
      for (int k = 0; k < n; ++k) row[k] = J[k];
      solve_lower(n, U, row);
    }
    for (int i = 0; i < nc + nr; ++i) {
      int first = i < nc ? 3 * i : 2 * nc + i, count = i < nc ? 3 : 1;
      T square(0), speed(0);
      for (int a = first; a < first + count; ++a) {
        square += product(X + a * n, X + a * n);
        speed = max(speed, abs(product(X + a * n, free)));
      }
      mobility[i] = square / T(count), fast[i] = speed;
      if (!(mobility[i] > T(0))) ++stats.immovable;
    }
    return true;
  }

  HD void set_penalty() {
    for (int i = 0; i < nc + nr; ++i) {
      T D = opt.uniform ? T(1) / penalty : mobility[i] / penalty;
      bool moves = mobility[i] > T(0), contact = i < nc;
      T R_t = contact ? P.R[3 * i] : P.R_row[i - nc], R_n = contact ? P.R[3 * i + 2] : R_t;
      soft[i] = D;
      root_t[i] = moves ? T(1) / sqrt(D + R_t) : T(0);
      root_n[i] = moves ? T(1) / sqrt(D + R_n) : T(0);
    }
  }

  // ---- impulses of the inner problem ------------------------------------------------------------------------------------

  /// S^1/2 l* of contact i at relative velocity w.
  HD Vec3<T> trial(int i, T x, T y, T z) const {
    const T *l = lambda0 + 3 * i, *e = P.e + 3 * i;
    T D = soft[i];
    return {root_t[i] * (D * l[0] - x - e[0]), root_t[i] * (D * l[1] - y - e[1]),
            root_n[i] * (D * l[2] - z - e[2] - p[i])};
  }
  HD T friction(int i) const { return root_t[i] > T(0) ? P.mu[i] * root_n[i] / root_t[i] : T(0); }
  HD Vec3<T> impulse(int i, Vec3<T> scaled) const {
    Vec3<T> l = project_proximal(scaled, friction(i));
    return {root_t[i] * l.x, root_t[i] * l.y, root_n[i] * l.z};
  }
  HD T row_impulse(int r, T w) const {
    T root = root_t[nc + r];
    return clamp((soft[nc + r] * lambda0[3 * nc + r] - w - P.e_row[r]) * root * root, lower(r), upper(r));
  }
  HD T lower(int r) const { return mobility[nc + r] > T(0) ? P.lower[r] : T(0); }
  HD T upper(int r) const { return mobility[nc + r] > T(0) ? P.upper[r] : T(0); }

  HD_CALL void project_all() {
    for (int i = 0; i < nc; ++i) {
      Vec3<T> l = impulse(i, trial(i, w[3 * i], w[3 * i + 1], w[3 * i + 2]));
      lambda[3 * i] = l.x, lambda[3 * i + 1] = l.y, lambda[3 * i + 2] = l.z;
    }
    for (int r = 0; r < nr; ++r) lambda[3 * nc + r] = row_impulse(r, w[3 * nc + r]);
  }

  HD SymMat3<T> contact_stiffness(int i, Vec3<T> scaled) const {
    SymMat3<T> d = projection_derivative(scaled, friction(i));
    T t = root_t[i], z = root_n[i];
    return {d.xx * t * t, d.xy * t * t, d.xz * t * z, d.yy * t * t, d.yz * t * z, d.zz * z * z};
  }
  HD T row_stiffness(int r, T l) const { return l > lower(r) && l < upper(r) ? root_t[nc + r] * root_t[nc + r] : T(0); }

  // ---- inner problem: Newton --------------------------------------------------------------------------------------------

  /// G and the upper triangle of H = I + X'GX.
  HD_CALL void assemble() {
    for (int i = 0; i < n * n; ++i) H[i] = T(0);
    for (int k = 0; k < n; ++k) H[k * n + k] = T(1);
    for (int i = 0; i < nc; ++i) {
      SymMat3<T> g = contact_stiffness(i, trial(i, w[3 * i], w[3 * i + 1], w[3 * i + 2]));
      T* keep = G + 6 * i;
      keep[0] = g.xx, keep[1] = g.xy, keep[2] = g.xz, keep[3] = g.yy, keep[4] = g.yz, keep[5] = g.zz;
      if (g.zz == T(0)) continue;
      const T *a = X + 3 * i * n, *b = a + n, *c = b + n;
      for (int k = 0; k < n; ++k) {
        T x = g.xx * a[k] + g.xy * b[k] + g.xz * c[k], y = g.xy * a[k] + g.yy * b[k] + g.yz * c[k];
        T z = g.xz * a[k] + g.yz * b[k] + g.zz * c[k];
        if (x == T(0) && y == T(0) && z == T(0)) continue;
        T* row = H + k * n;
        for (int j = k; j < n; ++j) row[j] += x * a[j] + y * b[j] + z * c[j];
      }
    }
    for (int r = 0; r < nr; ++r) {
      T g = G[6 * nc + r] = row_stiffness(r, lambda[3 * nc + r]);
      if (g == T(0)) continue;
      const T* a = X + (3 * nc + r) * n;
      for (int k = 0; k < n; ++k) {
        T x = g * a[k];
        if (x == T(0)) continue;
        for (int j = k; j < n; ++j) H[k * n + j] += x * a[j];
      }
    }
  }

  /// step = the Newton direction dy; dw, dheld.
  HD_CALL void direction() {
    assemble();
    cholesky_factor(n, H, T(0.5));  // H >= I
    cholesky_solve(n, H, step);
    for (int i = 0; i < m; ++i) dw[i] = product(X + i * n, step);
    for (int i = 0; i < nc; ++i) {
      const T *g = G + 6 * i, *d = dw + 3 * i, *l = lambda + 3 * i, *h = held + 3 * i;
      T* out = dheld + 3 * i;
      out[0] = l[0] - h[0] - (g[0] * d[0] + g[1] * d[1] + g[2] * d[2]);
      out[1] = l[1] - h[1] - (g[1] * d[0] + g[3] * d[1] + g[4] * d[2]);
      out[2] = l[2] - h[2] - (g[2] * d[0] + g[4] * d[1] + g[5] * d[2]);
    }
    for (int r = 0; r < nr; ++r) {
      int k = 3 * nc + r;
      dheld[k] = lambda[k] - held[k] - G[6 * nc + r] * dw[k];
    }
  }

  /// Derivative of the inner objective at `x` along the step, and its curvature.
  HD_CALL T slope(T x, T& curvature) const {
    T sum(0);
    curvature = T(0);
    for (int i = 0; i < nc; ++i) {
      const T *d = dw + 3 * i, *h = held + 3 * i, *dh = dheld + 3 * i, *u = w + 3 * i;
      Vec3<T> scaled = trial(i, u[0] + x * d[0], u[1] + x * d[1], u[2] + x * d[2]), l = impulse(i, scaled),
              v = {d[0], d[1], d[2]};
      sum += d[0] * (h[0] + x * dh[0] - l.x) + d[1] * (h[1] + x * dh[1] - l.y) + d[2] * (h[2] + x * dh[2] - l.z);
      curvature += d[0] * dh[0] + d[1] * dh[1] + d[2] * dh[2] + dot(v, contact_stiffness(i, scaled) * v);
    }
    for (int r = 0; r < nr; ++r) {
      int k = 3 * nc + r;
      T l = row_impulse(r, w[k] + x * dw[k]);
      sum += dw[k] * (held[k] + x * dheld[k] - l);
      curvature += dw[k] * dheld[k] + dw[k] * dw[k] * row_stiffness(r, l);
    }
    return sum;
  }

  /// Safeguarded Newton (rtsafe) for the zero of the slope in (0, 1]; 1 if the objective still falls, or hardly rises, there.
  HD T line_search() const {
    T curvature, first = slope(T(0), curvature), goal = T(0.05) * abs(first), low(0), high(1), x(1);
    for (int k = 0; k < opt.search; ++k) {
      T s = slope(x, curvature);
      if (abs(s) <= goal || (k == 0 && s < T(0))) break;
      (s > T(0) ? high : low) = x;
      T next = x - s / curvature;
      x = next > low && next < high ? next : (low + high) * T(0.5);
    }
    return x;
  }

  /// What rounding alone may leave of the gradient.
  HD T noise() const {
    T sum(0);
    for (int i = 0; i < m; ++i) {
      int block = i < 3 * nc ? i / 3 : i - 2 * nc;
      bool normal = i < 3 * nc && i % 3 == 2;
      T root = normal ? root_n[block] : root_t[block], e = i < 3 * nc ? P.e[i] : P.e_row[i - 3 * nc];
      T size = root * root * (abs(w[i]) + abs(e) + (normal ? abs(p[block]) : T(0))) + abs(lambda[i]);
      sum += mobility[block] * size * size;
    }
    return T(2) * kEpsilon<T> * sqrt(sum);
  }

  /// Solves the inner problem to |gradient| <= accuracy max(|y|, |X'l|).
  HD_CALL void newton(T accuracy) {
    project_all();
    for (int k = 0; k < opt.inner; ++k) {
      for (int j = 0; j < n; ++j) step[j] = pull[j] = T(0), y[j] = free[j];
      for (int i = 0; i < m; ++i) dheld[i] = lambda[i] - held[i];
      add_push(dheld, step);  // minus the gradient y - free - X'l
      add_push(lambda, pull);
      add_push(held, y);
      T gradient = sqrt(product(step, step)), size = sqrt(max(product(pull, pull), product(y, y)));
      if (!(gradient > max(accuracy * size, noise()))) return;
      direction();
      T x = line_search();
      for (int i = 0; i < m; ++i) w[i] += x * dw[i], held[i] += x * dheld[i];
      project_all();
      ++stats.newton;
    }
  }

  // ---- outer iteration --------------------------------------------------------------------------------------------------

  HD T slip(int i, const T* u, const T* l, const T* l0) const {
    T R = P.R[3 * i], D = soft[i], x = u[0] + P.e[3 * i] + R * l[0], y = u[1] + P.e[3 * i + 1] + R * l[1];
    if (l0) x += D * (l[0] - l0[0]), y += D * (l[1] - l0[1]);
    return sqrt(x * x + y * y);
  }

  /// Residuals of impulses l at velocities u: r_con, V, r_row into stats; returns the worst of r_con / V, r_split / 10 V
  /// (contact/residual_dense.h) and r_row / V_row.
  HD_CALL T certify(const T* l, const T* u) {
    T con(0), row(0), ratio(0), scale = opt.least_velocity, bad(0), split(0);
    for (int i = 0; i < nc; ++i) {
      T g = mobility[i], mu = P.mu[i];
      const T *li = l + 3 * i, *ui = u + 3 * i, *e = P.e + 3 * i, *R = P.R + 3 * i;
      if (!(g > T(0))) continue;
      if (li[0] != T(0) || li[1] != T(0) || li[2] != T(0) || e[2] <= T(0)) scale = max(scale, fast[i]);
      Vec3<T> s = {ui[0] + e[0] + R[0] * li[0], ui[1] + e[1] + R[1] * li[1], ui[2] + e[2] + R[2] * li[2]};
      Vec3<T> held_g = {g * li[0], g * li[1], g * li[2]}, next = held_g - s;
      T reach = sqrt(next.x * next.x + next.y * next.y), limit = mu * held_g.z,
        shrink = reach > limit ? limit / reach : T(1);
      split = max(split, max(abs(held_g.z - max(next.z, T(0))),
                             norm(Vec3<T>{held_g.x - next.x * shrink, held_g.y - next.y * shrink, T(0)})));
      next.z -= mu * sqrt(s.x * s.x + s.y * s.y);
      T r = norm(held_g - project_proximal(next, mu));
      con = max(con, r), bad += r;
    }
    for (int r = 0; r < nr; ++r) {
      int k = 3 * nc + r;
      T g = mobility[nc + r];
      if (!(g > T(0))) continue;
      T s = u[k] + P.e_row[r] + P.R_row[r] * l[k], d = g * abs(l[k] - clamp(l[k] - s / g, lower(r), upper(r)));
      row = max(row, d), ratio = max(ratio, d / max(fast[nc + r], opt.least_velocity)), bad += s * s;
    }
    stats.r_con = con, stats.r_row = row, stats.scale = scale;
    score = max(max(con, T(0.1) * split) / scale, ratio);
    if (!is_finite(bad) || !is_finite(score)) score = T(1e30f);
    return score;
  }

  /// Takes l, projected strictly, as the present point: accepted, y, w = X y, held; keeps it if it is the best yet.
  HD_CALL void accept(const T* l) {
    for (int i = 0; i < nc; ++i) {
      T on = mobility[i] > T(0) ? T(1) : T(0);
      Vec3<T> x = project_strict(Vec3<T>{l[3 * i] * on, l[3 * i + 1] * on, l[3 * i + 2] * on}, P.mu[i]);
      accepted[3 * i] = x.x, accepted[3 * i + 1] = x.y, accepted[3 * i + 2] = x.z;
    }
    for (int r = 0; r < nr; ++r) accepted[3 * nc + r] = clamp(l[3 * nc + r], lower(r), upper(r));
    for (int k = 0; k < n; ++k) y[k] = free[k];
    add_push(accepted, y);
    for (int i = 0; i < m; ++i) w[i] = product(X + i * n, y), held[i] = accepted[i];
    if (certify(accepted, w) < best_score) {
      best_score = score;
      for (int i = 0; i < m; ++i) best[i] = accepted[i];
    }
  }

  /// Warm start: the caller's impulses where they are finite.
  HD void begin() {
    best_score = T(1e29f);
    for (int i = 0; i < m; ++i) {
      T l = i < 3 * nc ? P.impulse[i] : P.row_impulse[i - 3 * nc];
      lambda[i] = is_finite(l) ? l : T(0), best[i] = T(0);
    }
    accept(lambda);
    for (int i = 0; i < nc; ++i) p[i] = slip_before[i] = P.mu[i] * slip(i, w + 3 * i, accepted + 3 * i, nullptr);
    for (int i = 0; i < m; ++i) lambda0[i] = accepted[i];
    set_penalty();
  }

  /// After an inner solve: |Jv - z| (largest, m/s) and the next correction's image.
  HD T defect() const {
    T worst(0);
    for (int i = 0; i < m; ++i) worst = max(worst, soft[i < 3 * nc ? i / 3 : i - 2 * nc] * abs(lambda[i] - lambda0[i]));
    return worst;
  }

  HD void outer_loop() {
    T last_defect = T(1e29f), mark = best_score;
    int idle = 0;
    for (int k = 0; k < opt.outer && best_score > opt.tolerance && score < T(1e29f); ++k) {
      T least = kEpsilon<T> * T(4500), accuracy = max(least, min(T(1e-3f), T(0.01) * score));
      newton(accuracy);
      ++stats.outer;
      T gap = defect(), moved(0);
      for (int i = 0; i < nc; ++i) {
        image[i] = P.mu[i] * slip(i, w + 3 * i, lambda + 3 * i, lambda0 + 3 * i);
        moved = max(moved, abs(image[i] - slip_before[i]));
        slip_before[i] = image[i];
      }
      accept(lambda);
      ++idle;
      if (best_score < T(0.7) * mark) mark = best_score, idle = 0;
      if (idle > opt.patience) anderson.restart(), idle = 0;
      if (opt.accelerate) anderson.advance(p, image);
      for (int i = 0; i < nc; ++i) p[i] = max(image[i], T(0));
      for (int i = 0; i < m; ++i) lambda0[i] = accepted[i];
      if (gap > opt.decrease * last_defect && (opt.uniform || gap > moved) && penalty < opt.penalty_cap) {
        penalty = min(penalty * opt.growth, opt.penalty_cap);
        set_penalty();
      }
      last_defect = gap;
    }
  }

  /// v = A^-1 (b + J'best) with one refinement, and the certificate of that very pair from J itself.
  HD void finish(T* v) {
    for (int i = 0; i < m; ++i) (i < 3 * nc ? P.impulse[i] : P.row_impulse[i - 3 * nc]) = best[i];
    for (int k = 0; k < n; ++k) v[k] = T(0);
    for (int pass = 0; pass < 2; ++pass) {
      for (int k = 0; k < n; ++k) step[k] = P.b[k] - product(P.A + k * n, v);
      for (int i = 0; i < m; ++i) {
        const T* J = jacobian(i);
        if (best[i] != T(0))
          for (int k = 0; k < n; ++k) step[k] += best[i] * J[k];
      }
      cholesky_solve(n, U, step);
      for (int k = 0; k < n; ++k) v[k] += step[k];
    }
    for (int i = 0; i < m; ++i) w[i] = product(jacobian(i), v);
    certify(best, w);
    stats.converged = score <= opt.tolerance;
  }
};

}  // namespace canal_detail

/// Solves `problem`: impulse and row_impulse (warm start on entry), v (nv). Workspace: canal_workspace_size numbers.
template <class T>
HD_CALL CanalStats<T> canal(DenseProblem<T>& problem, const CanalOptions<T>& options, T* workspace, T* v) {
  canal_detail::Solver<T> s(problem, options, workspace);
  bool sound = s.prepare();
  if (sound) {
    s.begin();
    sound = s.score < T(1e29f);
  }
  if (!sound) {
    for (int i = 0; i < s.m; ++i) (i < 3 * s.nc ? problem.impulse[i] : problem.row_impulse[i - 3 * s.nc]) = T(0);
    for (int k = 0; k < s.n; ++k) v[k] = T(0);
    s.stats.r_con = s.stats.r_row = T(1e30f), s.stats.sound = false;
    return s.stats;
  }
  s.outer_loop();
  s.finish(v);
  return s.stats;
}

}  // namespace stiction
