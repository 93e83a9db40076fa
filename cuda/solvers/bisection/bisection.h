// Per-contact bisection, [Hwangbo2018], RaiSim's solver: Gauss-Seidel over contacts, each solved exactly (one_contact.h) while
// the others rest. docs/theory.md, section 15; README.md lists the deviations.
//
// One sweep (solvers/gauss_seidel.h), s = J v* + Y u + e + R l always that of the newest impulses:
//
//   contact   l <- l + a (the impulse of W_ii + R at c = s - (W_ii + R) l  -  l),   a: 1 -> 0.7, (a - 0.7) 0.99 a sweep
//   row       l <- l + a (clamp(l - s / (W_kk + R), lower, upper) - l)
//
// Maximum dissipation by default: the sliding impulse is the one that leaves the least energy at the contact, not the one against
// the slip. They are the same where the normal impulse does not move the tangents, W_nt = 0. `coulomb`: the exact law.
//
// Sweeps begin where Anderson's acceleration says (SweepStart).
//
// Stop: solvers/score.h, tested after every sweep; tolerance 0: always `iterations` sweeps.
// Cost of a sweep: 6 width multiply-adds a contact, 6 more for the test and 3 for where it begins, 2, 2 and 1 for another row; 30
// a row for Anderson; about 10 evaluations of G, 30 operations each, where a contact slides.
#pragma once
#include "solvers/bisection/one_contact.h"
#include "solvers/bisection/options.h"
#include "solvers/gauss_seidel.h"

namespace stiction {

namespace bisection_detail {

template <class Real>
struct Sweeper : GaussSeidel<Real> {
  using Base = GaussSeidel<Real>;
  using S = Scalar<Real>;
  using M = Mask<Real>;
  using Base::p, Base::l, Base::u, Base::slip;

  const BisectionOptions<S>& opt;
  ContactBlock<Real>* block;  // (contacts)
  S relaxation;
  SweepStart<Real> start;

  HD Sweeper(const RowProblem<Real>& problem, const SolveLimits<S>& limits, const BisectionOptions<S>& options,
             Real* impulse)
      : Base(problem, limits, impulse), opt(options), relaxation(options.relaxation) {}
  HD void carve(Arena<Real>& arena) {
    Base::carve(arena), block = arena.template take_as<ContactBlock<Real>>(p.contacts);
    start.carve(p.rows(), arena);
  }

  HD void add(const M& on, int i, Real change) { Base::take(on, i, l[i] + change, change); }

  HD void solve_one(const M& on, int k) {
    const int i = 3 * k;
    const ContactBlock<Real>& b = block[k];
    const Vec3<Real> f{l[i], l[i + 1], l[i + 2]}, s{slip(i), slip(i + 1), slip(i + 2)};
    const Real c_n = s.z - b.W_nn * (f.z + b.coupling.x * f.x + b.coupling.y * f.y);
    const Vec2<Real> reduced{s.x - b.coupling.x * s.z - (b.S_xx * f.x + b.S_xy * f.y),
                             s.y - b.coupling.y * s.z - (b.S_xy * f.x + b.S_yy * f.y)};
    const SlipSearch<S> search{opt.coulomb, opt.stepping, opt.evaluations};
    const Vec3<Real> best = solve_contact(b, c_n, reduced, p.mu[k], on, search);
    const Real part = select(best.z > Real(0), Real(relaxation), Real(1));  // what opens gets 0, not less and less
    add(on, i, (best.x - f.x) * part), add(on, i + 1, (best.y - f.y) * part), add(on, i + 2, (best.z - f.z) * part);
  }
  HD void sweep(const M& running) {
    if (opt.accelerate) start.next(p, running, l, u);
    Base::sweep(
        running, [&](const M& on, int k) { solve_one(on, k); },
        [&](const M& on, int k, int i) {
          const Real W = select(on, p.W[i] + p.R[i], Real(1));
          add(on, i, (clamp(l[i] - slip(i) / W, p.lower[k], p.upper[k]) - l[i]) * relaxation);
        });
    relaxation = opt.least_relaxation + opt.decay * (relaxation - opt.least_relaxation);
  }
  HD SolveStats<Real> solve() {
    for (int k = 0; k < p.contacts; ++k)
      block[k] = contact_block(Base::own_block(3 * k), p.R[3 * k], p.R[3 * k + 2], p.W[3 * k + 2]);
    if (opt.accelerate) start.begin(p);
    return Base::solve(opt.law(), 1, [&](const M& running) { sweep(running); });
  }
};

}  // namespace bisection_detail

}  // namespace stiction
