// CANAL: the cascaded Newton augmented Lagrangian of exact Coulomb on half-solved rows. The robust solver where a first-order
// method stalls; several worlds of a pack at a time. Source: [Lee2025], section V. docs/theory.md,
// section 11; README.md lists the deviations.
//
// Outer: freeze De Saxce's correction p_i = mu |s_t| and the multiplier held in l0; inner: the strongly convex
//
//   min_v  1/2 |v - v*|_A^2 + sum 1/2 |l_i|^2_S,   l_i = argmin_{l in K} |l - S^-1 (D l0 - J_i v - e_i - (0, 0, p_i))|_S
//
// by Newton with an exact line search; then l0 = l, p = mu |(J v + e + R l + D (l - l0))_t| through Anderson's acceleration.
// D = w / c is the penalty (c dimensionless), S = D + R: a compliant contact (R > 0) is solved exactly, not softened twice.
// The S-norm projection is the Euclidean one in coordinates S^1/2 l on a cone of friction mu sqrt(S_t / S_n).
// Limits, dry friction, bilateral and soft rows go the same way with clamp as projection and no p.
//
// In the rows' coordinates H = I + Y'GY: masses no longer matter. The inner loop runs in contact space (a contact carries w and
// the impulse `held` with u = Y'held, which stays true along a step):
//   (I + Y'GY) du = Y'(l - held),   dw = Y du,   dheld = l - held - G dw,   slope = dw . (held - l).
//
// A world that is done is frozen by masks; what it computes does not depend on those beside it.
// Cost of a Newton step: Cholesky of (width, width) plus 3/2 width^2 per closed contact.
#pragma once
#include "linalg/anderson_vector.h"
#include "solvers/score.h"
#include "solvers/solver.h"

namespace stiction {

template <class S>
struct CanalOptions {
  static constexpr bool kWide = sizeof(S) == 8;

  S penalty = kWide ? S(300) : S(10);       // c: beta_i = c / w_i, w_i = tr(W_ii) / 3; grows up to the cap
  S penalty_cap = kWide ? S(1e7) : S(100);  // rounding costs eps c V
  S growth = S(10), decrease = S(0.25);     // c grows when |Jv - z| fell by less than `decrease`
  int inner = 30, search = 30;              // caps: Newton steps of an outer pass, evaluations of a line search
  int accelerate = 1;                       // Anderson on the correction
  int patience = 12;                        // passes without 0.7x the best score before Anderson forgets its history
  int uniform = 0;  // the paper's: beta_i = penalty [kg] for all, grown whatever the cascade does

  /// The paper's own numbers: one beta = 1e4 kg, no acceleration.
  HD static CanalOptions paper() {
    CanalOptions o;
    o.penalty = S(1e4), o.penalty_cap = S(1e8), o.accelerate = 0, o.uniform = 1;
    return o;
  }
  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("penalty", o.penalty...), visit("penalty_cap", o.penalty_cap...), visit("growth", o.growth...);
    visit("decrease", o.decrease...), visit("inner", o.inner...), visit("search", o.search...);
    visit("accelerate", o.accelerate...), visit("patience", o.patience...), visit("uniform", o.uniform...);
  }
};

template <class Real>
struct CanalStats {
  Real outer, newton;            // passes made
  Real r_con, row_ratio, scale;  // of the answer: m/s, 1, V in m/s, in this number type
  Mask<Real> converged;          // max(r_con, r_split / 10) <= tolerance V and row_ratio <= tolerance
  Mask<Real> sound;              // false: numbers are not finite; the answer is 0 then
};

namespace canal_detail {

template <class Real>
struct Newton {
  using S = Scalar<Real>;
  using M = Mask<Real>;

  const RowProblem<Real>& P;
  const SolveLimits<S>& limits;
  const CanalOptions<S>& opt;
  Real* answer;
  int n, nc, nr, m;
  CanalStats<Real> stats;
  Real *H, *step, *pull;                                      // (n, n), (n) x2
  Real *w, *held, *lambda, *lambda0, *dw, *dheld, *accepted;  // (m)
  Real *mobility, *soft, *root_t, *root_n;                    // (nc + nr): w_i, D, 1/sqrt(S_t), 1/sqrt(S_n)
  Real* G;                                                    // (6 nc + nr)
  Real *p, *image, *slip_before;                              // (nc)
  AndersonVector<Real> anderson;
  Real penalty, score, best_score;

  HD Newton(const RowProblem<Real>& problem, const SolveLimits<S>& limits_, const CanalOptions<S>& options, Real* l)
      : P(problem),
        limits(limits_),
        opt(options),
        answer(l),
        n(problem.width),
        nc(problem.contacts),
        nr(problem.scalars),
        m(problem.rows()) {}

  HD void carve(Arena<Real>& arena) {
    H = arena.take(static_cast<int64_t>(n) * n), step = arena.take(n), pull = arena.take(n);
    Real** const rows[] = {&w, &held, &lambda, &lambda0, &dw, &dheld, &accepted};
    for (Real** each : rows) *each = arena.take(m);
    Real** const blocks[] = {&mobility, &soft, &root_t, &root_n};
    for (Real** each : blocks) *each = arena.take(nc + nr);
    Real** const contacts[] = {&p, &image, &slip_before};
    for (Real** each : contacts) *each = arena.take(nc);
    G = arena.take(6 * nc + nr);
    anderson.carve(nc, arena);
  }

  HD int block_of(int i) const { return i < 3 * nc ? i / 3 : i - 2 * nc; }

  HD void set_penalty() {
    const Real zero(0), one(1);
    for (int k = 0; k < nc + nr; ++k) {
      const int i = k < nc ? 3 * k : 2 * nc + k;
      const Real D = opt.uniform ? one / penalty : mobility[k] / penalty;
      const M moves = mobility[k] > zero;
      soft[k] = D;
      root_t[k] = select(moves, one / sqrt(select(moves, D + P.R[i], one)), zero);
      root_n[k] = k < nc ? select(moves, one / sqrt(select(moves, D + P.R[i + 2], one)), zero) : root_t[k];
    }
  }

  // ---- impulses of the inner problem ------------------------------------------------------------------------------------

  /// S^1/2 l* of contact i at relative velocity (x, y, z).
  HD Vec3<Real> trial(int i, Real x, Real y, Real z) const {
    const Real *l = lambda0 + 3 * i, *e = P.e + 3 * i, D = soft[i];
    return {root_t[i] * (D * l[0] - x - e[0]), root_t[i] * (D * l[1] - y - e[1]),
            root_n[i] * (D * l[2] - z - e[2] - p[i])};
  }
  HD Real friction(int i) const {
    const M moves = root_t[i] > Real(0);
    return select(moves, P.mu[i] * root_n[i] / select(moves, root_t[i], Real(1)), Real(0));
  }
  HD Vec3<Real> impulse(int i, Vec3<Real> scaled) const {
    const Vec3<Real> l = project_proximal(scaled, friction(i));
    return {root_t[i] * l.x, root_t[i] * l.y, root_n[i] * l.z};
  }
  HD Real row_impulse(int r, Real w_r) const {
    const Real root = root_t[nc + r];
    return clamp((soft[nc + r] * lambda0[3 * nc + r] - w_r - P.e[3 * nc + r]) * root * root, lower(r), upper(r));
  }
  HD Real lower(int r) const { return select(mobility[nc + r] > Real(0), P.lower[r], Real(0)); }
  HD Real upper(int r) const { return select(mobility[nc + r] > Real(0), P.upper[r], Real(0)); }

  HD void project_all() {
    for (int i = 0; i < nc; ++i) {
      const Vec3<Real> l = impulse(i, trial(i, w[3 * i], w[3 * i + 1], w[3 * i + 2]));
      lambda[3 * i] = l.x, lambda[3 * i + 1] = l.y, lambda[3 * i + 2] = l.z;
    }
    for (int r = 0; r < nr; ++r) lambda[3 * nc + r] = row_impulse(r, w[3 * nc + r]);
  }

  HD SymMat3<Real> contact_stiffness(int i, Vec3<Real> scaled) const {
    const SymMat3<Real> d = projection_derivative(scaled, friction(i));
    const Real t = root_t[i], z = root_n[i];
    return {d.xx * t * t, d.xy * t * t, d.xz * t * z, d.yy * t * t, d.yz * t * z, d.zz * z * z};
  }
  HD Real row_stiffness(int r, Real l) const {
    return select((l > lower(r)) & (l < upper(r)), root_t[nc + r] * root_t[nc + r], Real(0));
  }

  // ---- inner problem: Newton --------------------------------------------------------------------------------------------

  HD Real product(const Real* a, const Real* b) const {
    Real sum(0);
    for (int k = 0; k < n; ++k) sum = sum + a[k] * b[k];
    return sum;
  }

  /// G and the upper triangle of H = I + Y'GY.
  HD void assemble() {
    const Real zero(0);
    for (int i = 0; i < n * n; ++i) H[i] = zero;
    for (int k = 0; k < n; ++k) H[k * n + k] = Real(1);
    for (int i = 0; i < nc; ++i) {
      const SymMat3<Real> g = contact_stiffness(i, trial(i, w[3 * i], w[3 * i + 1], w[3 * i + 2]));
      Real* keep = G + 6 * i;
      keep[0] = g.xx, keep[1] = g.xy, keep[2] = g.xz, keep[3] = g.yy, keep[4] = g.yz, keep[5] = g.zz;
      if (all(g.zz == zero)) continue;
      const Real *a = P.row(3 * i), *b = a + n, *c = b + n;
      for (int k = 0; k < n; ++k) {
        const Real x = g.xx * a[k] + g.xy * b[k] + g.xz * c[k], y = g.xy * a[k] + g.yy * b[k] + g.yz * c[k],
                   z = g.xz * a[k] + g.yz * b[k] + g.zz * c[k];
        if (all((x == zero) & (y == zero) & (z == zero))) continue;
        Real* row = H + k * n;
        for (int j = k; j < n; ++j) row[j] = row[j] + (x * a[j] + y * b[j] + z * c[j]);
      }
    }
    for (int r = 0; r < nr; ++r) {
      const Real g = G[6 * nc + r] = row_stiffness(r, lambda[3 * nc + r]);
      if (all(g == zero)) continue;
      const Real* a = P.row(3 * nc + r);
      for (int k = 0; k < n; ++k) {
        const Real x = g * a[k];
        if (all(x == zero)) continue;
        for (int j = k; j < n; ++j) H[k * n + j] = H[k * n + j] + x * a[j];
      }
    }
  }

  /// step = the Newton direction du; dw, dheld.
  HD void direction() {
    assemble();
    cholesky_factor(n, H, Real(S(0.5)));  // H >= I
    cholesky_solve(n, H, step);
    for (int i = 0; i < m; ++i) dw[i] = product(P.row(i), step);
    for (int i = 0; i < nc; ++i) {
      const Real *g = G + 6 * i, *d = dw + 3 * i, *l = lambda + 3 * i, *h = held + 3 * i;
      Real* out = dheld + 3 * i;
      out[0] = l[0] - h[0] - (g[0] * d[0] + g[1] * d[1] + g[2] * d[2]);
      out[1] = l[1] - h[1] - (g[1] * d[0] + g[3] * d[1] + g[4] * d[2]);
      out[2] = l[2] - h[2] - (g[2] * d[0] + g[4] * d[1] + g[5] * d[2]);
    }
    for (int r = 0; r < nr; ++r) {
      const int k = 3 * nc + r;
      dheld[k] = lambda[k] - held[k] - G[6 * nc + r] * dw[k];
    }
  }

  /// Derivative of the inner objective at `x` along the step, and its curvature.
  HD Real slope(Real x, Real& curvature) const {
    Real sum(0);
    curvature = Real(0);
    for (int i = 0; i < nc; ++i) {
      const Real *d = dw + 3 * i, *h = held + 3 * i, *dh = dheld + 3 * i, *v = w + 3 * i;
      const Vec3<Real> scaled = trial(i, v[0] + x * d[0], v[1] + x * d[1], v[2] + x * d[2]), l = impulse(i, scaled),
                       along = {d[0], d[1], d[2]};
      sum = sum + (d[0] * (h[0] + x * dh[0] - l.x) + d[1] * (h[1] + x * dh[1] - l.y) + d[2] * (h[2] + x * dh[2] - l.z));
      curvature =
          curvature + (d[0] * dh[0] + d[1] * dh[1] + d[2] * dh[2] + dot(along, contact_stiffness(i, scaled) * along));
    }
    for (int r = 0; r < nr; ++r) {
      const int k = 3 * nc + r;
      const Real l = row_impulse(r, w[k] + x * dw[k]);
      sum = sum + dw[k] * (held[k] + x * dheld[k] - l);
      curvature = curvature + (dw[k] * dheld[k] + dw[k] * dw[k] * row_stiffness(r, l));
    }
    return sum;
  }

  /// Safeguarded Newton (rtsafe) for the zero of the slope in (0, 1]; 1 if the objective still falls, or hardly rises, there.
  HD Real line_search(M searching) const {
    Real curvature, low(0), high(1), x(1);
    const Real goal = abs(slope(Real(0), curvature)) * S(0.05);
    for (int k = 0; k < opt.search; ++k) {
      const Real s = slope(x, curvature);
      M enough = abs(s) <= goal;
      if (k == 0) enough = enough | (s < Real(0));
      searching = searching & negate(enough);
      if (!any(searching)) break;
      const M above = s > Real(0);
      high = select(searching & above, x, high), low = select(searching & negate(above), x, low);
      const Real next = x - s / curvature;
      x = select(searching, select((next > low) & (next < high), next, (low + high) * S(0.5)), x);
    }
    return x;
  }

  /// What rounding alone may leave of the gradient.
  HD Real noise() const {
    Real sum(0);
    for (int i = 0; i < m; ++i) {
      const int block = block_of(i);
      const bool normal = i < 3 * nc && i % 3 == 2;
      const Real root = normal ? root_n[block] : root_t[block];
      const Real size = root * root * (abs(w[i]) + abs(P.e[i]) + (normal ? abs(p[block]) : Real(0))) + abs(lambda[i]);
      sum = sum + mobility[block] * size * size;
    }
    return sqrt(sum) * (S(2) * kEpsilon<S>);
  }

  /// Solves the inner problem of worlds `which` to |gradient| <= accuracy |Y'l|.
  HD void newton(const M& which, Real accuracy) {
    project_all();
    for (int k = 0; k < opt.inner; ++k) {
      for (int i = 0; i < m; ++i) dheld[i] = lambda[i] - held[i];
      P.push(dheld, step);  // minus the gradient u - Y'l
      P.push(lambda, pull);
      const Real gradient = sqrt(product(step, step)), size = sqrt(product(pull, pull));
      const M going = which & (gradient > max(accuracy * size, noise()));
      if (!any(going)) return;
      direction();
      const Real x = line_search(going);
      for (int i = 0; i < m; ++i)
        w[i] = select(going, w[i] + x * dw[i], w[i]), held[i] = select(going, held[i] + x * dheld[i], held[i]);
      project_all();
      stats.newton = stats.newton + select(going, Real(1), Real(0));
    }
  }

  // ---- outer iteration --------------------------------------------------------------------------------------------------

  /// mu |s_t| of contact i, with what the multiplier still moves if l0 is given.
  HD Real correction(int i, const Real* v, const Real* l, const Real* l0) const {
    const Real R = P.R[3 * i];
    Real x = v[0] + P.e[3 * i] + R * l[0], y = v[1] + P.e[3 * i + 1] + R * l[1];
    if (l0) x = x + soft[i] * (l[0] - l0[0]), y = y + soft[i] * (l[1] - l0[1]);
    return P.mu[i] * sqrt(x * x + y * y);
  }

  /// Residuals of impulses l at velocities v into stats and score (solvers/score.h).
  HD void certify(const Real* l, const Real* v) {
    const RowScore<Real> r = score_rows(P, l, [v](int i) { return v[i]; });
    stats.r_con = r.con, stats.row_ratio = r.row_ratio, stats.scale = r.scale, score = r.worst();
  }

  /// Takes l, projected strictly, as the present point: accepted, w, held; of worlds `which` keeps it if it is the best yet.
  HD void accept(const M& which, const Real* l) {
    const Real zero(0);
    for (int i = 0; i < nc; ++i) {
      const M on = mobility[i] > zero;
      const Vec3<Real> x = project_strict(
          Vec3<Real>{select(on, l[3 * i], zero), select(on, l[3 * i + 1], zero), select(on, l[3 * i + 2], zero)},
          P.mu[i]);
      accepted[3 * i] = x.x, accepted[3 * i + 1] = x.y, accepted[3 * i + 2] = x.z;
    }
    for (int r = 0; r < nr; ++r) accepted[3 * nc + r] = clamp(l[3 * nc + r], lower(r), upper(r));
    P.push(accepted, pull);
    for (int i = 0; i < m; ++i) w[i] = P.velocity(i, pull), held[i] = accepted[i];
    certify(accepted, w);
    const M better = which & (score < best_score);
    best_score = select(better, score, best_score);
    for (int i = 0; i < m; ++i) answer[i] = select(better, accepted[i], answer[i]);
  }

  /// Warm start: the caller's impulses where they are finite.
  HD void begin() {
    const Real zero(0);
    best_score = Real(S(1e29)), penalty = Real(opt.penalty);
    stats.outer = stats.newton = zero;
    for (int k = 0; k < nc + nr; ++k) mobility[k] = P.mobility(k);
    for (int i = 0; i < m; ++i) lambda[i] = select(is_finite(answer[i]), answer[i], zero), answer[i] = zero;
    accept(mask_of<Real>(true), lambda);
    for (int i = 0; i < nc; ++i) p[i] = slip_before[i] = correction(i, w + 3 * i, accepted + 3 * i, nullptr);
    for (int i = 0; i < m; ++i) lambda0[i] = accepted[i];
    set_penalty();
    anderson.begin();
  }

  HD void outer_loop(M which) {
    const Real zero(0), one(1), limit(limits.tolerance);
    Real last_defect(S(1e29)), mark = best_score, idle(0);
    for (int k = 0; k < limits.iterations; ++k) {
      which = which & (best_score > limit) & (score < Real(S(1e29)));
      if (!any(which)) return;
      newton(which, max(Real(kEpsilon<S> * S(4500)), min(Real(S(1e-3)), score * S(0.01))));
      stats.outer = stats.outer + select(which, one, zero);
      Real gap(0), moved(0);  // |Jv - z|, and how far the correction moved, m/s
      for (int i = 0; i < m; ++i) gap = max(gap, soft[block_of(i)] * abs(lambda[i] - lambda0[i]));
      for (int i = 0; i < nc; ++i) {
        image[i] = correction(i, w + 3 * i, lambda + 3 * i, lambda0 + 3 * i);
        moved = max(moved, abs(image[i] - slip_before[i]));
        slip_before[i] = image[i];
      }
      accept(which, lambda);
      const M progress = best_score < mark * S(0.7);
      mark = select(progress, best_score, mark), idle = select(progress, zero, idle + one);
      const M stuck = idle > Real(S(opt.patience));
      anderson.forget(stuck), idle = select(stuck, zero, idle);
      if (opt.accelerate) anderson.advance(p, image);
      for (int i = 0; i < nc; ++i) p[i] = max(image[i], zero);
      for (int i = 0; i < m; ++i) lambda0[i] = accepted[i];
      M stiffer = gap > last_defect * opt.decrease;
      if (!opt.uniform) stiffer = stiffer & (gap > moved);
      penalty = select(stiffer, min(penalty * opt.growth, Real(opt.penalty_cap)), penalty);
      set_penalty();
      last_defect = gap;
    }
  }

  /// The certificate of the answer itself.
  HD void finish() {
    P.push(answer, pull);
    for (int i = 0; i < m; ++i) w[i] = P.velocity(i, pull);
    certify(answer, w);
    stats.converged = score <= Real(limits.tolerance);
    stats.sound = best_score < Real(S(1e29));
  }
};

}  // namespace canal_detail

struct Canal {
  static constexpr const char* kName = "canal";
  template <class S>
  using Options = CanalOptions<S>;
  template <class S>
  HD static Law law(const Options<S>&) {
    return Law::kCoulomb;
  }
  template <class Real>
  HD static int64_t memory(const RowCounts& most) {
    return measured<Real>(most, [](const RowProblem<Real>& largest, Arena<Real>& arena) {
      canal_detail::Newton<Real>(largest, {}, {}, nullptr).carve(arena);
    });
  }
  /// Of worlds `which`, with what became of it; iterations limit the outer passes.
  template <class Real>
  HD static CanalStats<Real> improve(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                     const Options<Scalar<Real>>& options, const Mask<Real>& which, Real* memory,
                                     Real* impulse) {
    canal_detail::Newton<Real> newton(problem, limits, options, impulse);
    Arena<Real> arena(memory);
    newton.carve(arena);
    newton.begin();
    newton.outer_loop(which);
    newton.finish();
    return newton.stats;
  }
  template <class Real>
  HD static SolveStats<Real> solve(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                   const Options<Scalar<Real>>& options, Real* memory, Real* impulse) {
    const auto stats = improve(problem, limits, options, mask_of<Real>(true), memory, impulse);
    return {stats.outer, stats.newton};
  }
};

}  // namespace stiction
