// Per-contact bisection, [Hwangbo2018], RaiSim's solver: Gauss-Seidel over contacts, each solved exactly (one_contact.h) while
// the others rest. docs/theory.md, section 15; README.md lists the deviations.
//
// One sweep, contacts in order, then rows in order; s = J v* + Y u + e + R l is always that of the newest impulses, because
// u = Y'l is kept:
//
//   contact   l <- l + a (the impulse of W_ii + R at c = s - (W_ii + R) l  -  l),   a: 1 -> 0.7, (a - 0.7) 0.99 a sweep
//   row       l <- l + a (clamp(l - s / (W_kk + R), lower, upper) - l)
//
// Maximum dissipation by default: the sliding impulse is the one that leaves the least energy at the contact, not the one against
// the slip. They are the same where the normal impulse does not move the tangents, W_nt = 0. `coulomb`: the exact law.
//
// Stop: mdp (con, if `coulomb`) <= tolerance V, split <= 10 tolerance V and every row <= tolerance V_row, the natural residuals of
// contact/law.h, tested after every sweep, when u is made anew; tolerance 0: always `iterations` sweeps.
// Cost of a sweep: 6 width multiply-adds a contact and 6 more for the test, 2 and 2 for another row; about 10 evaluations of G,
// 30 operations each, where a contact slides.
#pragma once
#include "solvers/bisection/one_contact.h"
#include "solvers/solver.h"

namespace stiction {

template <class S>
struct BisectionOptions {
  int coulomb = 0;       // the exact law instead of maximum dissipation
  int stepping = 0;      // the paper's search for the angle, instead of a closed bracket and Illinois' false position
  int evaluations = 64;  // of one search, at most
  S relaxation = S(1), least_relaxation = S(0.7),
    decay = S(0.99);  // a of the first sweep, of the last; towards it in a sweep

  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("coulomb", o.coulomb...), visit("stepping", o.stepping...), visit("evaluations", o.evaluations...);
    visit("relaxation", o.relaxation...), visit("least_relaxation", o.least_relaxation...), visit("decay", o.decay...);
  }
};

namespace bisection_detail {

template <class Real>
struct Sweeper {
  using S = Scalar<Real>;

  const RowProblem<Real>& p;
  const SolveLimits<S>& limits;
  const BisectionOptions<S>& opt;
  Real* l;
  Real* u;                    // (width)
  ContactBlock<Real>* block;  // (contacts)

  HD void carve(Arena<Real>& arena) {
    u = arena.take(p.width), block = arena.template take_as<ContactBlock<Real>>(p.contacts);
  }

  HD Real sigma(int i) const { return p.velocity(i, u) + p.e[i] + p.R[i] * l[i]; }
  HD Real product(int i, int j) const {
    const Real *x = p.row(i), *y = p.row(j);
    Real sum(0);
    for (int a = 0; a < p.width; ++a) sum = sum + x[a] * y[a];
    return sum;
  }

  /// Impulses that the cone and the bounds allow; rows that are not used get 0.
  HD void begin() {
    const Real zero(0);
    for (int k = 0; k < p.contacts; ++k) {
      const int i = 3 * k;
      Real* f = l + i;
      const Vec3<Real> a = project_strict(Vec3<Real>{f[0], f[1], f[2]}, p.mu[k]);
      const Mask<Real> on = p.W[i] > zero;
      f[0] = select(on, a.x, zero), f[1] = select(on, a.y, zero), f[2] = select(on, a.z, zero);
      const SymMat3<Real> W{product(i, i),         product(i, i + 1),     product(i, i + 2),
                            product(i + 1, i + 1), product(i + 1, i + 2), product(i + 2, i + 2)};
      block[k] = contact_block(W, p.R[i], p.R[i + 2], p.W[i + 2]);
    }
    for (int k = 0; k < p.scalars; ++k) {
      Real& f = l[p.scalar_row(k)];
      f = select(p.W[p.scalar_row(k)] > zero, clamp(f, p.lower[k], p.upper[k]), zero);
    }
    p.push(l, u);
  }

  HD void take(const Mask<Real>& on, int i, Real change) {
    change = select(on, change, Real(0));
    l[i] = select(on, l[i] + change, l[i]);
    p.add_push(i, change, u);
  }
  HD void sweep(const Mask<Real>& running, S relaxation) {
    const SlipSearch<S> search{opt.coulomb, opt.stepping, opt.evaluations};
    for (int k = 0; k < p.contacts; ++k) {
      const int i = 3 * k;
      const Mask<Real> on = running & (p.W[i] > Real(0));
      if (!any(on)) continue;
      const ContactBlock<Real>& b = block[k];
      const Vec3<Real> f{l[i], l[i + 1], l[i + 2]}, s{sigma(i), sigma(i + 1), sigma(i + 2)};
      const Real c_n = s.z - b.W_nn * (f.z + b.coupling.x * f.x + b.coupling.y * f.y);
      const Vec2<Real> reduced{s.x - b.coupling.x * s.z - (b.S_xx * f.x + b.S_xy * f.y),
                               s.y - b.coupling.y * s.z - (b.S_xy * f.x + b.S_yy * f.y)};
      const Vec3<Real> best = solve_contact(b, c_n, reduced, p.mu[k], on, search);
      const Real part = select(best.z > Real(0), Real(relaxation), Real(1));  // what opens gets 0, not less and less
      take(on, i, (best.x - f.x) * part), take(on, i + 1, (best.y - f.y) * part),
          take(on, i + 2, (best.z - f.z) * part);
    }
    for (int k = 0; k < p.scalars; ++k) {
      const int i = p.scalar_row(k);
      const Mask<Real> on = running & (p.W[i] > Real(0));
      if (!any(on)) continue;
      const Real W = select(on, p.W[i] + p.R[i], Real(1));
      take(on, i, (clamp(l[i] - sigma(i) / W, p.lower[k], p.upper[k]) - l[i]) * relaxation);
    }
  }

  /// Worlds whose impulses pass; u is made anew from them.
  HD_ONCE Mask<Real> converged() {
    const Real zero(0), one(1);
    Real V = p.least_velocity, own(0), split(0), ratio(0);
    p.push(l, u);
    for (int k = 0; k < p.contacts; ++k) {
      const int i = 3 * k;
      const Mask<Real> on = p.W[i] > zero;
      const Vec3<Real> f{l[i], l[i + 1], l[i + 2]};
      Vec3<Real> s{sigma(i), sigma(i + 1), sigma(i + 2)};
      if (!opt.coulomb) s = dissipative_slip(f, s, p.mu[k], block[k].coupling);
      const ContactResidual<Real> r = contact_residual(f, s, p.mu[k], select(on, p.mobility(k), one));
      const Real fast = max(max(abs(p.free[i]), abs(p.free[i + 1])), abs(p.free[i + 2]));
      V = max(V, select(on & ((f.z > zero) | (p.e[i + 2] <= zero)), fast, zero));
      own = max(own, select(on, r.con, zero)), split = max(split, select(on, r.split, zero));
    }
    for (int k = 0; k < p.scalars; ++k) {
      const int i = p.scalar_row(k);
      const Mask<Real> on = p.W[i] > zero;
      const Real r = row_residual(l[i], sigma(i), p.lower[k], p.upper[k], select(on, p.W[i], one));
      ratio = max(ratio, select(on, r / max(abs(p.free[i]), p.least_velocity), zero));
    }
    const Real limit(limits.tolerance);
    return (max(own, split * S(0.1)) <= limit * V) & (ratio <= limit);
  }

  HD Real solve() {
    const bool until = limits.tolerance > 0;
    Real count(0);
    S relaxation = opt.relaxation;
    begin();
    Mask<Real> running = until ? negate(converged()) : mask_of<Real>(true);
    for (int k = 1; k <= limits.iterations && any(running); ++k) {
      sweep(running, relaxation);
      count = count + select(running, Real(1), Real(0));
      if (until) running = running & negate(converged());
      relaxation = opt.least_relaxation + opt.decay * (relaxation - opt.least_relaxation);
    }
    return count;
  }
};

}  // namespace bisection_detail

struct Bisection {
  static constexpr const char* kName = "bisection";
  template <class S>
  using Options = BisectionOptions<S>;
  template <class S>
  HD static Law law(const Options<S>& o) {
    return o.coulomb ? Law::kCoulomb : Law::kDissipation;
  }
  template <class Real>
  HD static int64_t memory(const RowCounts& most) {
    return measured<Real>(most, [](const RowProblem<Real>& largest, Arena<Real>& arena) {
      bisection_detail::Sweeper<Real>{largest, {}, {}, nullptr, nullptr, nullptr}.carve(arena);
    });
  }
  template <class Real>
  HD static SolveStats<Real> solve(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                   const Options<Scalar<Real>>& options, Real* memory, Real* impulse) {
    bisection_detail::Sweeper<Real> sweeper{problem, limits, options, impulse, nullptr, nullptr};
    Arena<Real> arena(memory);
    sweeper.carve(arena);
    return {sweeper.solve()};
  }
};

}  // namespace stiction
