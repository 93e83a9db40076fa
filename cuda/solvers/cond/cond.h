// COND: contact nodalization and diagonalization, [Lee2022], on half-solved rows. docs/theory.md, section 16; README.md lists the
// deviations.
//
// Every contact acts on a node of its own, without mass, at relative velocity x, tied to the joints by a viscous gain k:
//
//   min_u  1/2 |u|^2 + sum 1/2 k |x - J v* - Y u|^2,      [ I + Y'K Y   -Y'K ]       W of the joints: (I + Y'K Y)^-1, exact
//   the law of (x + e + R l, l), l = k (x - J v* - Y u)   [  -K Y         K  ]       W of a node: 1 / k = G (Gamma), diagonal
//
// so that contacts are independent of each other in a pass, and each is a projection (velocity fixed-point iteration):
//
//   x* = J v* + Y u,   l = Proj(-(x* + e) / (G + R)),   x = x* + G l,   u <- (I + Y'K Y)^-1 Y'K (x - J v*)
//
// or, without a factor, u <- u - W ((I + Y'K Y) u - Y'K (x - J v*)) = u - W r, r = u - Y'l, with the diagonal W that makes
// |1 - W (I + Y'K Y)|_F least, or one number of the last two passes, Barzilai and Borwein's. A fixed point has u = Y'l, and the law at the node instead of the joints: an error of G l, 1 / (k w)
// of V. `multiplier` has none: l stays in the trial impulse, which then asks the law of the joints,
//
//   l <- Proj((G l - x* - e) / (G + R)).
//
// Limits, dry friction, bilateral and soft rows have multipliers in both forms, and a clamp for Proj.
//
// Stop: solvers/score.h, tested every `check` passes from the impulses alone, at w = J v* + Y Y'l; of nodes with R + G for R, or no
// node would ever pass. The answer is the best of those tests. Tolerance 0: always `iterations` passes, and the last.
// Cost of a pass: 6 width multiply-adds a contact, width^2 for the joints' inverse; 6 width more where it is tested.
#pragma once
#include "linalg/gram.h"
#include "solvers/cond/options.h"
#include "solvers/score.h"

namespace stiction {

namespace cond_detail {

/// What contacts and other rows act on, one each: its gain, and what the joints and the law leave of it in a pass.
template <class Real>
struct Nodes {
  Real* G;      // (contacts + scalars)  1 / k; 0: not used                      1/kg
  Real *x, *l;  // (n)  velocity x* - J v* from the joints, impulse              m/s, N s

  HD void carve(int blocks, int n, Arena<Real>& arena) { G = arena.take(blocks), x = arena.take(n), l = arena.take(n); }
};

/// The shorter step of Barzilai and Borwein along r of the joints. Their matrix is between 1 and its trace: so is the inverse of
/// the step. The longer one, s's / s'y, loses some problems.
template <class Real>
struct Barzilai {
  using S = Scalar<Real>;
  Real* last;                     // (width)  r of the pass before
  Real shortest, least, resting;  // step; |r| squared yet; passes that are still without it
  int passes;

  HD void begin(Real trace) { shortest = Real(1) / trace, least = resting = Real(0), passes = 0; }
  /// From u and before, with r: 0 where there is none, at first, and for `rest` passes where r is 10 times the least yet.
  HD Real step(int n, const Real* u, const Real* before, const Real* r, int rest) {
    const Real zero(0), one(1);
    Real sy(0), yy(0), rr(0);
    for (int a = 0; a < n; ++a) {
      const Real s = u[a] - before[a], y = r[a] - last[a];
      if (passes > 0) sy = sy + s * y, yy = yy + y * y;
      rr = rr + r[a] * r[a], last[a] = r[a];
    }
    least = passes++ > 0 ? min(least, rr) : rr;
    resting = select(rr > least * S(100), Real(static_cast<S>(rest)), max(resting - one, zero));
    const Mask<Real> on = (sy > zero) & (resting == zero);
    return select(on, clamp(sy / select(on, yy, one), shortest, one), zero);
  }
};

template <class Real>
struct Iteration {
  using S = Scalar<Real>;
  using M = Mask<Real>;

  const RowProblem<Real>& p;
  const SolveLimits<S>& limits;
  const CondOptions<S>& opt;
  Best<Real> best;
  Nodes<Real> node;
  GramMatrix<Real> H;       // I + Y'K Y
  Real *u, *next, *before;  // (width): joints now, after the pass, before
  Real* diagonal;           // (width)   W of the joints, if it is one
  Barzilai<Real> barzilai;
  const bool barzilai_steps = opt.joints == kCondBarzilai && !opt.multiplier;

  HD Iteration(const RowProblem<Real>& problem, const SolveLimits<S>& limits_, const CondOptions<S>& options, Real* l)
      : p(problem), limits(limits_), opt(options), best{l} {}

  HD void carve(Arena<Real>& arena) {
    node.carve(p.contacts + p.scalars, p.rows(), arena);
    H.carve(p.width, arena);
    u = arena.take(p.width), next = arena.take(p.width), before = arena.take(p.width);
    diagonal = arena.take(p.width), barzilai.last = arena.take(p.width);
  }

  /// Gains, and the warm start as far as cone and bounds allow.
  HD void begin() {
    for (int k = 0; k < p.contacts + p.scalars; ++k)
      node.G[k] = p.mobility(k) / (k < p.contacts && !opt.multiplier ? opt.node_gain : opt.gain);
    admit(p, best.impulse, node.l);
    p.push(node.l, u);
    for (int i = 0; i < p.rows(); ++i) best.impulse[i] = node.l[i];
    for (int a = 0; a < p.width; ++a) before[a] = u[a];
  }
  HD void factor() {
    H.set_pattern(p.blocks, p.contacts + p.scalars, [&](int k) { return p.touches(k); });
    H.begin();
    for (int i = 0; i < p.rows(); ++i) {
      const Real G = node.G[p.block_of(i)];
      const M on = G > Real(0);
      H.add(select(on, Real(1) / select(on, G, Real(1)), Real(0)), p.row(i), p.touches(p.block_of(i)));
    }
    if (opt.joints == kCondInverse) return H.factor();
    H.nearest_diagonal(diagonal);
    barzilai.begin(H.trace());
  }

  // ---- a pass -----------------------------------------------------------------------------------------------------------

  /// (held l - x* - e) / (G + R), the trial impulse of row i.
  HD Real trial(int i, Real G, bool multiplier) const {
    const Real held = multiplier ? G * node.l[i] : Real(0), soft = G + p.R[i];
    const M on = G > Real(0);
    return select(on, (held - node.x[i] - p.free[i] - p.e[i]) / select(on, soft, Real(1)), Real(0));
  }
  /// Node velocities of joints u, and the impulses that the law gives them, in worlds `which`.
  HD void project(const M& which) {
    const bool multiplier = opt.multiplier != 0;
    for (int i = 0; i < p.rows(); ++i) node.x[i] = p.along(i, u);
    for (int k = 0; k < p.contacts; ++k) {
      const int i = 3 * k;
      const Real G = node.G[k], zero(0), one(1);
      const Vec3<Real> t{trial(i, G, multiplier), trial(i + 1, G, multiplier), trial(i + 2, G, multiplier)};
      Vec3<Real> f;
      if (opt.convex) {
        const M on = G > zero;
        f = project_weighted(t, p.mu[k], sqrt(select(on, (G + p.R[i]) / select(on, G + p.R[i + 2], one), one)));
      } else {
        f = project_strict(t, p.mu[k]);
      }
      node.l[i] = select(which, f.x, node.l[i]), node.l[i + 1] = select(which, f.y, node.l[i + 1]);
      node.l[i + 2] = select(which, f.z, node.l[i + 2]);
    }
    for (int k = 0; k < p.scalars; ++k) {
      const int i = p.scalar_row(k);
      const Real G = node.G[p.contacts + k];
      const Real f = select(G > Real(0), clamp(trial(i, G, true), p.lower[k], p.upper[k]), Real(0));
      node.l[i] = select(which, f, node.l[i]);
    }
  }
  /// next = (I + Y'K Y)^-1 Y'(K x* + l), or u - W (u - Y'l): the joints after the pass.
  HD void pull() {
    const Real zero(0), one(1);
    if (opt.joints != kCondInverse) {
      p.push(node.l, next);
      for (int a = 0; a < p.width; ++a) next[a] = u[a] - next[a];
      Real w(0);
      if (barzilai_steps) w = barzilai.step(p.width, u, before, next, opt.start);
      const M one_number = w > zero;
      for (int a = 0; a < p.width; ++a) next[a] = u[a] - select(one_number, w, diagonal[a]) * next[a];
      return;
    }
    for (int a = 0; a < p.width; ++a) next[a] = zero;
    for (int i = 0; i < p.rows(); ++i) {
      const Real G = node.G[p.block_of(i)];
      const M on = G > zero;
      p.add_push(i, select(on, node.x[i] / select(on, G, one) + node.l[i], zero), next);
    }
    H.solve(next);
  }

  /// Those of worlds `running` whose impulses do not pass; the best yet are the answer.
  HD_ONCE M unsolved(const M& running) {
    p.push(node.l, next);
    const Real score = score_rows(p, opt.law(), node.l, [&](int i) {
                         const Real s = p.slip(i, node.l, next);
                         return opt.multiplier || i >= 3 * p.contacts ? s : s + node.G[i / 3] * node.l[i];
                       }).worst();
    best.take(running, score, node.l, p.rows());
    return running & (score > Real(limits.tolerance));
  }

  // ---- the iteration ----------------------------------------------------------------------------------------------------

  HD Real distance(const Real* a, const Real* b) const {
    Real sum(0);
    for (int k = 0; k < p.width; ++k) sum = sum + (a[k] - b[k]) * (a[k] - b[k]);
    return sqrt(sum);
  }

  /// Chebyshev's semi-iteration of nodes: next is v** on entry, v+ on exit.
  struct Chebyshev {
    Real radius, weight, last,
        plain;  // of the iteration, squared; nu; |v** - v| of the last pass; passes since the start
  };
  HD void extrapolate(Chebyshev& c) const {
    const Real zero(0), one(1), four(4), moved = distance(next, u), start(static_cast<S>(opt.start));
    const M astray = (moved > c.last * S(2)) & (c.plain > start);
    c.plain = select(astray, zero, c.plain + one), c.last = moved;
    const M begins = c.plain == start, on = c.plain > start;
    const Real first = Real(2) / (Real(2) - c.radius), then = four / (four - c.radius * c.weight);
    c.weight = select(begins, first, select(on, then, one));
    for (int a = 0; a < p.width; ++a) {
      const Real far = c.weight * ((next[a] - u[a]) * opt.under_relaxation + u[a] - before[a]) + before[a];
      next[a] = select(begins | on, far, next[a]);
    }
  }

  HD SolveStats<Real> solve() {
    const bool until = limits.tolerance > 0, accelerated = opt.chebyshev && !opt.multiplier && !barzilai_steps;
    const Real zero(0), one(1);
    begin();
    const M running = until ? unsolved(mask_of<Real>(true)) : mask_of<Real>(true);
    if (!any(running) || limits.iterations < 1) return {};
    factor();
    Real contacts(0);
    for (int k = 0; k < p.contacts; ++k) contacts = contacts + select(node.G[k] > zero, one, zero);
    const Real stiff = contacts * opt.node_gain, radius = stiff / (one + stiff);
    Chebyshev chebyshev{radius * radius, one, Real(kUntried<Real>), zero};
    const Real passes = iterate<Real>(
        limits.iterations, opt.check, running,
        [&](const M& on) {
          project(on);
          pull();
          if (accelerated) extrapolate(chebyshev);
          for (int a = 0; a < p.width; ++a) before[a] = select(on, u[a], before[a]), u[a] = select(on, next[a], u[a]);
        },
        [&](const M& on) { return until ? unsolved(on) : on; });
    for (int i = 0; i < p.rows() && !until; ++i) best.impulse[i] = node.l[i];
    return {passes, select(running, opt.joints == kCondInverse ? one : zero, zero)};
  }
};

}  // namespace cond_detail

}  // namespace stiction
