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
// A fixed point has u = Y'l, and the law at the node instead of the joints: an error of G l, 1 / (k w) of V. `multiplier` has
// none: l stays in the trial impulse, which then asks the law of the joints,
//
//   l <- Proj((G l - x* - e) / (G + R)).
//
// Limits, dry friction, bilateral and soft rows have multipliers in both forms, and a clamp for Proj.
//
// Stop: tested every `check` passes from the impulses alone, at w = J v* + Y Y'l: con (ccp, if `convex`) <= tolerance V, split <=
// 10 tolerance V and every row <= tolerance V_row, the natural residuals of contact/law.h; of nodes with R + G for R, or no node
// would ever pass. The answer is the best of those tests. Tolerance 0: always `iterations` passes, and the last.
// Cost of a pass: 6 width multiply-adds a contact, width^2 for the joints; 6 width more where it is tested.
#pragma once
#include "linalg/small_cholesky.h"
#include "solvers/solver.h"

namespace stiction {

template <class S>
struct CondOptions {
  int multiplier = 1;    // no error of 1 / gain; 0: the paper's nodes
  int convex = 0;        // the proximal projection: the convex relaxation of Coulomb's law
  S gain = S(2);         // k = gain / w of multipliers, w = tr(W_ii) / 3
  S node_gain = S(1e4);  // of nodes
  int chebyshev = 1;     // acceleration of nodes
  S under_relaxation = S(0.9);
  int start = 8;  // plain passes before it, and after it went astray
  int check = 4;  // passes between two tests

  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("multiplier", o.multiplier...), visit("convex", o.convex...), visit("gain", o.gain...);
    visit("node_gain", o.node_gain...), visit("chebyshev", o.chebyshev...);
    visit("under_relaxation", o.under_relaxation...), visit("start", o.start...), visit("check", o.check...);
  }
};

namespace cond_detail {

/// What contacts and other rows act on, one each: its gain, and what the joints and the law leave of it in a pass.
template <class Real>
struct Nodes {
  Real* G;      // (contacts + scalars)  1 / k; 0: not used                      1/kg
  Real *x, *l;  // (n)  velocity x* - J v* from the joints, impulse              m/s, N s

  HD void carve(int blocks, int n, Arena<Real>& arena) { G = arena.take(blocks), x = arena.take(n), l = arena.take(n); }
};

template <class Real>
struct Iteration {
  using S = Scalar<Real>;
  using M = Mask<Real>;

  const RowProblem<Real>& p;
  const SolveLimits<S>& limits;
  const CondOptions<S>& opt;
  Real* answer;
  Nodes<Real> node;
  Real *H, *u, *next, *before;  // (width, width), (width): joints now, after the pass, before

  HD Iteration(const RowProblem<Real>& problem, const SolveLimits<S>& limits_, const CondOptions<S>& options, Real* l)
      : p(problem), limits(limits_), opt(options), answer(l) {}

  HD void carve(Arena<Real>& arena) {
    node.carve(p.contacts + p.scalars, p.rows(), arena);
    H = arena.take(static_cast<int64_t>(p.width) * p.width);
    u = arena.take(p.width), next = arena.take(p.width), before = arena.take(p.width);
  }

  HD Real product(int i, const Real* a) const {
    const Real* y = p.row(i);
    Real sum(0);
    for (int k = 0; k < p.width; ++k) sum = sum + y[k] * a[k];
    return sum;
  }

  /// Gains, the joints' factor, and the warm start as far as cone and bounds allow.
  HD void begin() {
    const Real zero(0), one(1);
    const S gain = opt.multiplier ? opt.gain : opt.node_gain;
    for (int i = 0; i < p.width * p.width; ++i) H[i] = zero;
    for (int k = 0; k < p.width; ++k) H[k * p.width + k] = one;
    for (int k = 0; k < p.contacts + p.scalars; ++k) {
      const bool contact = k < p.contacts;
      const Real G = node.G[k] = p.mobility(k) / (contact ? gain : opt.gain);
      const M on = G > zero;
      const Real K = select(on, one / select(on, G, one), zero);
      const int first = contact ? 3 * k : p.scalar_row(k - p.contacts);
      for (int i = first; i < first + (contact ? 3 : 1); ++i) {
        const Real* y = p.row(i);
        for (int a = 0; a < p.width; ++a) {
          const Real ka = K * y[a];
          if (all(ka == zero)) continue;
          for (int b = a; b < p.width; ++b) H[a * p.width + b] = H[a * p.width + b] + ka * y[b];
        }
        answer[i] = select(on, answer[i], zero);
      }
      if (contact) {
        const Vec3<Real> f = project_strict(Vec3<Real>{answer[first], answer[first + 1], answer[first + 2]}, p.mu[k]);
        answer[first] = f.x, answer[first + 1] = f.y, answer[first + 2] = f.z;
      } else {
        answer[first] = select(on, clamp(answer[first], p.lower[k - p.contacts], p.upper[k - p.contacts]), zero);
      }
    }
    cholesky_factor(p.width, H, Real(S(0.5)));  // H >= I
    p.push(answer, u);
    for (int i = 0; i < p.rows(); ++i) node.l[i] = answer[i];
    for (int k = 0; k < p.width; ++k) before[k] = u[k];
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
    for (int i = 0; i < p.rows(); ++i) node.x[i] = product(i, u);
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
  /// next = (I + Y'K Y)^-1 Y'(K x* + l): the joints after the pass.
  HD void pull() {
    const Real zero(0), one(1);
    for (int a = 0; a < p.width; ++a) next[a] = zero;
    for (int i = 0; i < p.rows(); ++i) {
      const Real G = node.G[i < 3 * p.contacts ? i / 3 : i - 2 * p.contacts];
      const M on = G > zero;
      p.add_push(i, select(on, node.x[i] / select(on, G, one) + node.l[i], zero), next);
    }
    cholesky_solve(p.width, H, next);
  }

  // ---- the certificate --------------------------------------------------------------------------------------------------

  /// How many times the tolerance the impulses are away, of worlds `which`; the best yet becomes the answer.
  HD_ONCE Real score(const M& which, Real& best) {
    const Real zero(0), one(1);
    Real V = p.least_velocity, own(0), split(0), ratio(0), sum(0);
    p.push(node.l, next);
    for (int k = 0; k < p.contacts; ++k) {
      const int i = 3 * k;
      const M on = node.G[k] > zero;
      const Real more = opt.multiplier ? zero : node.G[k];
      const Real* l = node.l + i;
      auto slip = [&](int a) { return p.free[i + a] + product(i + a, next) + p.e[i + a] + (p.R[i + a] + more) * l[a]; };
      const Vec3<Real> f{l[0], l[1], l[2]}, s{slip(0), slip(1), slip(2)};
      const ContactResidual<Real> r = contact_residual(f, s, p.mu[k], select(on, p.mobility(k), one));
      const Real fast = max(max(abs(p.free[i]), abs(p.free[i + 1])), abs(p.free[i + 2]));
      V = max(V, select(on & ((f.z > zero) | (p.e[i + 2] <= zero)), fast, zero));
      own = max(own, select(on, opt.convex ? r.ccp : r.con, zero));
      if (!opt.convex) split = max(split, select(on, r.split, zero));
      sum = sum + select(on, abs(s.x) + abs(s.y) + abs(s.z), zero);
    }
    for (int k = 0; k < p.scalars; ++k) {
      const int i = p.scalar_row(k);
      const M on = node.G[p.contacts + k] > zero;
      const Real s = p.free[i] + product(i, next) + p.e[i] + p.R[i] * node.l[i];
      const Real r = row_residual(node.l[i], s, p.lower[k], p.upper[k], select(on, p.W[i], one));
      ratio = max(ratio, select(on, r / max(abs(p.free[i]), p.least_velocity), zero));
      sum = sum + select(on, abs(s), zero);
    }
    const Real found = select(is_finite(sum), max(max(own, split * S(0.1)) / V, ratio), Real(S(1e30)));
    const M better = which & (found < best);
    best = select(better, found, best);
    for (int i = 0; i < p.rows(); ++i) answer[i] = select(better, node.l[i], answer[i]);
    return found;
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

  HD Real solve() {
    const bool until = limits.tolerance > 0, accelerated = opt.chebyshev && !opt.multiplier;
    const Real zero(0), one(1), limit(limits.tolerance);
    Real count(0), best(S(1e29)), contacts(0);
    begin();
    for (int k = 0; k < p.contacts; ++k) contacts = contacts + select(node.G[k] > zero, one, zero);
    const Real stiff = contacts * opt.node_gain, radius = stiff / (one + stiff);
    Chebyshev chebyshev{radius * radius, one, Real(S(1e29)), zero};
    M running = mask_of<Real>(true);
    if (until) running = score(running, best) > limit;
    for (int k = 1; k <= limits.iterations && any(running); ++k) {
      project(running);
      pull();
      if (accelerated) extrapolate(chebyshev);
      for (int a = 0; a < p.width; ++a)
        before[a] = select(running, u[a], before[a]), u[a] = select(running, next[a], u[a]);
      count = count + select(running, one, zero);
      if (until && (k % opt.check == 0 || k == limits.iterations)) running = running & (score(running, best) > limit);
    }
    if (!until)
      for (int i = 0; i < p.rows(); ++i) answer[i] = node.l[i];
    return count;
  }
};

}  // namespace cond_detail

struct Cond {
  static constexpr const char* kName = "cond";
  template <class S>
  using Options = CondOptions<S>;
  template <class S>
  HD static Law law(const Options<S>& o) {
    return o.convex ? Law::kConvex : Law::kCoulomb;
  }
  template <class Real>
  HD static int64_t memory(const RowCounts& most) {
    return measured<Real>(most, [](const RowProblem<Real>& largest, Arena<Real>& arena) {
      cond_detail::Iteration<Real>(largest, {}, {}, nullptr).carve(arena);
    });
  }
  template <class Real>
  HD static SolveStats<Real> solve(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                   const Options<Scalar<Real>>& options, Real* memory, Real* impulse) {
    cond_detail::Iteration<Real> iteration(problem, limits, options, impulse);
    Arena<Real> arena(memory);
    iteration.carve(arena);
    return {iteration.solve()};
  }
};

}  // namespace stiction
