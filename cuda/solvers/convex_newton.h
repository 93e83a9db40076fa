// Newton with an exact line search on a convex contact problem in half-solved rows, which SAP solves once and CANAL again and
// again. Sources: [Castro2023], section IV; [Lee2025], section V. docs/theory.md, sections 11 and 14.
//
//   min_u  1/2 |u|^2 + sum 1/2 |l_i|^2_S,   l_i = argmin_{l in K} |l - S^-1 (target_i - w_i - bias_i - (0, 0, lift_i))|_S
//
// u = D^1/2 L (v - v*), w = J v* + Y u. S diagonal, S_t, S_n > 0 of a contact, in 1/kg. The S-norm projection is the Euclidean
// one in coordinates S^1/2 l on a cone of friction mu sqrt(S_t / S_n). Limits, dry friction, bilateral and soft rows go the same
// way with clamp as projection and no lift. For |l|^2_S of these read what has l as its derivative.
//
// In the rows' coordinates H = I + Y'GY: masses no longer matter. A contact carries w and the impulse `held` with u = Y'held,
// which stays true along a step, so that no small difference of large numbers is taken:
//   (I + Y'GY) du = Y'(l - held),   dw = Y du,   dheld = l - held - G dw,   slope = dw . (held - l).
//
// Whoever derives from it owns S, what is subtracted from w, and the order of things; it makes `w` and `held` and calls
// project_all(), puts Y'(l - held) into `step`, then direction(), line_search() and advance().
// Cost of a step: Cholesky of (width, width) plus 3/2 width^2 per closed contact, of the blocks that rows touch.
#pragma once
#include "linalg/gram.h"
#include "solvers/score.h"

namespace stiction {

template <class Real>
struct ConvexNewton {
  using S = Scalar<Real>;
  using M = Mask<Real>;

  const RowProblem<Real>& P;
  int n, nc, nr, m;
  GramMatrix<Real> H;
  Real* step;                            // (n)
  Real *w, *held, *lambda, *dw, *dheld;  // (m)
  Real *root_t, *root_n;                 // (nc + nr): 1/sqrt(S_t), 1/sqrt(S_n)
  Real* G;                               // (6 nc + nr)
  SixDerivative<Real>* G6;               // (nc) of contacts with couples
  Real* mix;                             // (n) of those
  const Real *target, *bias, *lift;      // (m), (m), (nc): whose they are, see above   m/s

  HD explicit ConvexNewton(const RowProblem<Real>& problem)
      : P(problem), n(problem.width), nc(problem.contacts), nr(problem.scalars), m(problem.rows()) {
    H.set_pattern(P.blocks, nc + nr, [&](int k) { return P.touches(k); });
  }

  HD void carve(Arena<Real>& arena) {
    H.carve(n, arena), step = arena.take(n);
    Real** const rows[] = {&w, &held, &lambda, &dw, &dheld};
    for (Real** each : rows) *each = arena.take(m);
    root_t = arena.take(nc + nr), root_n = arena.take(nc + nr), G = arena.take(6 * nc + nr);
    if (P.spins > 0) G6 = arena.template take_as<SixDerivative<Real>>(nc), mix = arena.take(n);
  }

  /// 1 / sqrt(S), 0 of what nothing moves.
  HD Real root_of(int block, Real compliance) const {
    const M moves = P.mobility(block) > Real(0);
    return select(moves, Real(1) / sqrt(select(moves, compliance, Real(1))), Real(0));
  }

  // ---- impulses ---------------------------------------------------------------------------------------------------------

  /// S^1/2 l* of contact i at relative velocity (x, y, z).
  HD Vec3<Real> trial(int i, Real x, Real y, Real z) const {
    const Real *t = target + 3 * i, *e = bias + 3 * i;
    return {root_t[i] * (t[0] - x - e[0]), root_t[i] * (t[1] - y - e[1]), root_n[i] * (t[2] - z - e[2] - lift[i])};
  }
  HD Real friction(int i) const {
    const M moves = root_t[i] > Real(0);
    return select(moves, P.mu[i] * root_n[i] / select(moves, root_t[i], Real(1)), Real(0));
  }
  HD Vec3<Real> impulse(int i, Vec3<Real> scaled) const {
    const Vec3<Real> l = project_proximal(scaled, friction(i));
    return {root_t[i] * l.x, root_t[i] * l.y, root_n[i] * l.z};
  }
  /// The same with the couple, at the velocities of the rows, w by default; and l.
  template <class Velocity>
  HD SixVec<Real> six_trial(int i, Velocity velocity) const {
    const int c = P.spin_row(i);
    auto of = [&](int k) { return root_t[i] * (target[k] - velocity(k) - bias[k]); };
    return {trial(i, velocity(3 * i), velocity(3 * i + 1), velocity(3 * i + 2)), {of(c), of(c + 1), of(c + 2)}};
  }
  HD SixVec<Real> six_trial(int i) const {
    return six_trial(i, [&](int k) { return w[k]; });
  }
  HD SixVec<Real> unscaled(int i, const SixVec<Real>& l) const {
    return {{root_t[i] * l.l.x, root_t[i] * l.l.y, root_n[i] * l.l.z}, l.c * root_t[i]};
  }
  HD SixVec<Real> six_impulse(int i, const SixVec<Real>& scaled) const {
    return unscaled(i, project_proximal(scaled, friction(i)));
  }
  HD SixVec<Real> six(int i, const Real* x) const { return six_of(P, i, x); }
  HD static Real product(const SixVec<Real>& a, const SixVec<Real>& b) { return dot(a.l, b.l) + dot(a.c, b.c); }
  /// G d of contact i.
  HD SixVec<Real> stiffness_times(int i, const SixDerivative<Real>& g, const SixVec<Real>& d) const {
    const SixVec<Real> scaled = unscaled(i, d);
    const Real along = product(g.t, scaled), out = along * g.along + scaled.l.z * g.mixed;
    SixVec<Real> to = scaled * g.across;
    to.l = to.l + g.t.l * out, to.c = to.c + g.t.c * out, to.l.z = along * g.mixed + scaled.l.z * g.normal;
    return unscaled(i, to);
  }

  /// l* of row r at velocity w_r.
  HD Real row_trial(int r, Real w_r) const {
    const Real root = root_t[nc + r];
    return (target[3 * nc + r] - w_r - bias[3 * nc + r]) * root * root;
  }
  HD Real row_impulse(int r, Real w_r) const { return clamp(row_trial(r, w_r), lower(r), upper(r)); }
  HD Real lower(int r) const { return select(P.W[3 * nc + r] > Real(0), P.lower[r], Real(0)); }
  HD Real upper(int r) const { return select(P.W[3 * nc + r] > Real(0), P.upper[r], Real(0)); }

  HD_ONCE void project_all() {
    for (int i = 0; i < nc; ++i) {
      if (P.spins > 0) {
        put_six(P, i, six_impulse(i, six_trial(i)), lambda);
        continue;
      }
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

  // ---- a step -----------------------------------------------------------------------------------------------------------

  /// step = Y'(l - held), minus the gradient; dheld = l - held.
  HD void descend() {
    for (int i = 0; i < m; ++i) dheld[i] = lambda[i] - held[i];
    P.push(dheld, step);
  }

  /// Y_i' G Y_i of contact i with its couple, row by row: five alike, and the two of [along, mixed; mixed, normal].
  HD void add_six(int i, const SixDerivative<Real>& g) {
    const Real zero(0), t = root_t[i], z = root_n[i], wide = g.across * t * t;
    const uint32_t touched = P.touches(i);
    const int c = P.spin_row(i), row[5] = {3 * i, 3 * i + 1, c, c + 1, c + 2};
    const Real direction[5] = {g.t.l.x, g.t.l.y, g.t.c.x, g.t.c.y, g.t.c.z};
    const bool slides = !all((g.along == zero) & (g.mixed == zero));
    for (const int k : row) H.add(wide, P.row(k), touched);
    const M pushed = g.normal > zero;
    const Real ratio = select(pushed, g.mixed / select(pushed, g.normal, Real(1)), zero);
    P.blocks.each_run(touched, [&](int begin, int end) {
      for (int a = begin; a < end; ++a) {
        mix[a] = zero;
        for (int k = 0; slides && k < 5; ++k) mix[a] = mix[a] + P.row(row[k])[a] * (direction[k] * t);
      }
    });
    if (slides) H.add(g.along - g.mixed * ratio, mix, touched);
    P.blocks.each_run(touched, [&](int begin, int end) {
      for (int a = begin; a < end; ++a) mix[a] = mix[a] * ratio + P.row(3 * i + 2)[a] * z;
    });
    H.add(g.normal, mix, touched);
  }

  /// G, and H = I + Y'GY.
  HD void assemble() {
    H.begin();
    for (int i = 0; i < nc; ++i) {
      if (P.spins > 0) {
        G6[i] = projection_derivative(six_trial(i), friction(i));
        if (!all(G6[i].normal == Real(0))) add_six(i, G6[i]);
        continue;
      }
      const SymMat3<Real> g = contact_stiffness(i, trial(i, w[3 * i], w[3 * i + 1], w[3 * i + 2]));
      Real* keep = G + 6 * i;
      keep[0] = g.xx, keep[1] = g.xy, keep[2] = g.xz, keep[3] = g.yy, keep[4] = g.yz, keep[5] = g.zz;
      if (!all(g.zz == Real(0))) H.add(g, P.row(3 * i), P.touches(i));
    }
    for (int r = 0; r < nr; ++r) {
      const Real g = G[6 * nc + r] = row_stiffness(r, lambda[3 * nc + r]);
      if (!all(g == Real(0))) H.add(g, P.row(3 * nc + r), P.touches(nc + r));
    }
  }

  /// step, Y'(l - held) on entry, = the Newton direction du; dw, dheld.
  HD_ONCE void direction() {
    assemble();
    H.factor(), H.solve(step);
    for (int i = 0; i < m; ++i) dw[i] = P.along(i, step);
    for (int i = 0; i < nc; ++i) {
      if (P.spins > 0) {
        put_six(P, i, six(i, lambda) - six(i, held) - stiffness_times(i, G6[i], six(i, dw)), dheld);
        continue;
      }
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

  /// Derivative of the objective at `x` along the step, and its curvature.
  HD Real slope(Real x, Real& curvature) const {
    Real sum(0);
    curvature = Real(0);
    for (int i = 0; i < nc; ++i) {
      if (P.spins > 0) {
        const SixVec<Real> at = six_trial(i, [&](int k) { return w[k] + x * dw[k]; }), l = six_impulse(i, at),
                           d6 = six(i, dw), dh6 = six(i, dheld);
        const SixDerivative<Real> g = projection_derivative(at, friction(i));
        sum = sum + (product(d6, six(i, held) - l) + product(d6, dh6) * x);
        curvature = curvature + (product(d6, dh6) + product(d6, stiffness_times(i, g, d6)));
        continue;
      }
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
  HD_ONCE Real line_search(M searching, int evaluations) const {
    Real curvature, low(0), high(1), x(1);
    const Real goal = abs(slope(Real(0), curvature)) * S(0.05);
    for (int k = 0; k < evaluations; ++k) {
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

  /// Worlds `which` take x of the step.
  HD void advance(const M& which, Real x) {
    for (int i = 0; i < m; ++i)
      w[i] = select(which, w[i] + x * dw[i], w[i]), held[i] = select(which, held[i] + x * dheld[i], held[i]);
  }
};

}  // namespace stiction
