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
// Rigid rows without bounds, as those of closed loops, are solved exactly whatever a contact does (bilateral.h).
//
// Sweeps begin where Anderson's acceleration says (SweepStart).
//
// Stop: solvers/score.h, tested after every sweep; tolerance 0: always `iterations` sweeps.
// Cost of a sweep: 6 width multiply-adds a contact, 6 more for the test and 3 for where it begins, 2, 2 and 1 for another row; 30
// a row for Anderson; about 10 evaluations of G, 30 operations each, where a contact slides.
#pragma once
#include "solvers/bisection/bilateral.h"
#include "solvers/bisection/options.h"
#include "solvers/gauss_seidel.h"
#include "solvers/one_contact.h"

namespace stiction {

namespace bisection_detail {

template <class Real>
struct Sweeper : GaussSeidel<Real> {
  using Base = GaussSeidel<Real>;
  using S = Scalar<Real>;
  using M = Mask<Real>;
  using Base::p, Base::l, Base::u;

  const BilateralRows<Real>* held;  // the rows that p has no more; null: none
  const RowProblem<Real>& asked;    // with them
  const BisectionOptions<S>& opt;
  ContactBlock<Real>* block;  // (contacts)
  S relaxation;
  SweepStart<Real> start;

  HD Sweeper(const RowProblem<Real>& problem, const BilateralRows<Real>* without, const SolveLimits<S>& limits,
             const BisectionOptions<S>& options, Real* impulse)
      : Base(problem, limits, impulse),
        held(without),
        asked(without ? without->p : problem),
        opt(options),
        relaxation(options.relaxation) {}
  HD void carve(Arena<Real>& arena) {
    Base::carve(arena), block = arena.template take_as<ContactBlock<Real>>(p.contacts);
    start.carve(p.rows(), arena);
  }

  HD Real slip(int i) const {
    const Real s = p.free[i] + asked.along(i, u) + p.e[i] + p.R[i] * l[i];
    return held ? select(held->holds(i), Real(0), s) : s;
  }
  HD void prepare(int k) {
    const Real R_t = p.R[3 * k], R_n = p.R[3 * k + 2];
    block[k] = contact_block(Base::own_block(asked, 3 * k), R_t, R_n, p.W[3 * k + 2]);
    if (!held) return;
    auto W = [&](int a, int b) { return asked.along(3 * k + a, p.row(3 * k + b)); };
    const SymMat3<Real> follows{W(0, 0), W(0, 1), W(0, 2), W(1, 1), W(1, 2), W(2, 2)};
    const Vec2<Real> bend = block[k].bend;
    const Real least = (follows.xx + follows.yy + follows.zz) * S(kLeastMobility);
    block[k] = contact_block(follows, R_t, R_n, least);
    block[k].bend = bend;
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
    for (int k = 0; k < p.contacts; ++k) prepare(k);
    if (opt.accelerate) start.begin(p);
    auto slip_of = [&](int i) { return slip(i); };
    const SolveStats<Real> stats = Base::solve(asked, opt.law(), 1, [&](const M& running) { sweep(running); }, slip_of);
    const M missed = this->best.score > Real(Base::limits.tolerance);
    if (held && Base::limits.tolerance > S(0) && any(missed)) {  // no contacts may be better; equalities hold then, too
      for (int i = 0; i < p.rows(); ++i) l[i] = Real(0);
      p.push(l, u);
      this->best.take(missed, score_rows(asked, opt.law(), l, slip_of).worst(), l, p.rows());
      for (int i = 0; i < p.rows(); ++i) l[i] = this->best.impulse[i];
    }
    return stats;
  }
};

/// Sweeps over all but bilateral rows, and those.
template <class Real>
struct Iteration {
  using S = Scalar<Real>;

  const RowProblem<Real>& p;
  const SolveLimits<S>& limits;
  const BisectionOptions<S>& opt;
  Real* l;
  BilateralRows<Real> bilateral;
  Real* left;  // memory, the sweeper's

  HD Iteration(const RowProblem<Real>& problem, const SolveLimits<S>& limits_, const BisectionOptions<S>& options,
               Real* impulse)
      : p(problem), limits(limits_), opt(options), l(impulse), bilateral(problem) {}
  HD void carve(Arena<Real>& arena) {
    if (p.scalars > 0) bilateral.carve(arena);
    left = arena.rest();
    Sweeper<Real>(p, nullptr, limits, opt, l).carve(arena);
  }
  HD SolveStats<Real> solve() {
    const bool closed = bilateral.some();
    const RowProblem<Real> others = closed ? bilateral.others() : p;
    Sweeper<Real> sweeper(others, closed ? &bilateral : nullptr, limits, opt, l);
    Arena<Real> arena(left);
    sweeper.carve(arena);
    const SolveStats<Real> stats = sweeper.solve();
    if (closed) bilateral.finish(l);
    return stats;
  }
};

}  // namespace bisection_detail

}  // namespace stiction
