// What SAP begins with: a few sweeps of Gauss-Seidel on the dual of its convex problem, contacts in order, then rows. They cost
// little beside one factor and find which contacts hold, slide and open; Newton does the rest.
//
//   contact   l <- Proj(l - s / r), r = |W_ii + R|_F >= its largest eigenvalue, `kInner` times while the others rest, with
//             Nesterov's momentum, dropped where it points uphill, until a step changes less than the tolerance asks
//   row       l <- clamp(l - s / (W_kk + R))
//
// Sweeps begin where Anderson's acceleration says (SweepStart); a world rests where one changes less than the tolerance asks.
// With couples one step a contact, r the sum of its six W_kk + R.
#pragma once
#include "solvers/gauss_seidel.h"

namespace stiction {

template <class Real>
struct ConvexSweeps : GaussSeidel<Real> {
  using Base = GaussSeidel<Real>;
  using M = Mask<Real>;
  using Base::p, Base::l, Base::slip;

  static constexpr int kInner = 16;
  static constexpr Scalar<Real> kEnough = 0.1;  // of the tolerance: what steps and sweeps are to change no more

  SymMat3<Real>* block;  // (contacts) W_ii + R
  Real* rate;            // (contacts) 1 / r
  SweepStart<Real> start;

  HD ConvexSweeps(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits)
      : Base(problem, limits, nullptr) {}
  HD void carve(Arena<Real>& arena) {
    this->u = arena.take(p.width);  // no sweep is tested, so none is the best
    block = arena.template take_as<SymMat3<Real>>(p.contacts), rate = arena.take(p.contacts);
    start.carve(p.rows(), arena);
  }

  HD void prepare() {
    for (int k = 0; k < p.contacts; ++k) {
      const Real R_t = p.R[3 * k];
      SymMat3<Real>& b = block[k];
      b = Base::own_block(k);
      b.xx = b.xx + R_t, b.yy = b.yy + R_t, b.zz = b.zz + p.R[3 * k + 2];
      Real bound = sqrt(b.xx * b.xx + b.yy * b.yy + b.zz * b.zz + (b.xy * b.xy + b.xz * b.xz + b.yz * b.yz) * Real(2));
      for (int i = p.spin_row(k); p.spins > 0 && i < p.spin_row(k + 1); ++i) bound = bound + p.W[i] + R_t;
      rate[k] = select(bound > Real(0), Real(1) / bound, Real(0));
    }
  }
  HD void solve_contact(const M& on, int k) {
    const int i = 3 * k;
    const Vec3<Real> old{l[i], l[i + 1], l[i + 2]};
    Vec3<Real> s{slip(i), slip(i + 1), slip(i + 2)}, f = old, ahead = old, slip_ahead = s;
    const Real enough = p.scale_of(k) * rate[k] * (kEnough * Base::limits.tolerance);
    Real age(0);
    M moving = on;
    for (int step = 0; step < kInner && any(moving); ++step) {
      const Vec3<Real> next = project_proximal(ahead - slip_ahead * rate[k], p.mu[k]),
                       slip_next = slip_ahead + block[k] * (next - ahead);
      age = select(dot(ahead - next, next - f) > Real(0), Real(0), age + Real(1));
      const Real momentum = age / (age + Real(3));
      const Vec3<Real> change = next - ahead;
      const M far = max(max(abs(change.x), abs(change.y)), abs(change.z)) > enough;
      ahead = next + (next - f) * momentum, slip_ahead = slip_next + (slip_next - s) * momentum;
      f = select(moving, next, f), s = slip_next;
      moving = moving & far;
    }
    put(on, i, f.x, old.x), put(on, i + 1, f.y, old.y), put(on, i + 2, f.z, old.z);
  }
  HD void solve_six(const M& on, int k) {
    const int i = 3 * k, c = p.spin_row(k);
    auto step = [&](int row) { return l[row] - slip(row) * rate[k]; };
    const SixVec<Real> next = project_proximal(
        SixVec<Real>{{step(i), step(i + 1), step(i + 2)}, {step(c), step(c + 1), step(c + 2)}}, p.mu[k]);
    put(on, i, next.l.x, l[i]), put(on, i + 1, next.l.y, l[i + 1]), put(on, i + 2, next.l.z, l[i + 2]);
    auto put_spin = [&](int row, Real to) { put(on & (p.W[row] > Real(0)), row, to, l[row]); };
    put_spin(c, next.c.x), put_spin(c + 1, next.c.y), put_spin(c + 2, next.c.z);
  }
  HD void put(const M& on, int i, Real next, Real from) { Base::take(on, i, next, next - from); }

  /// `impulse` of worlds `which` after so many sweeps.
  HD_ONCE void run(const M& which, int sweeps, Real* impulse) {
    l = impulse;
    prepare();
    p.push(l, this->u);
    start.begin(p);
    const Real enough(kEnough * Base::limits.tolerance);
    M running = which;
    for (int k = 0; k < sweeps; ++k) {
      if (k > 0) running = running & (start.moved(p, l) > enough);
      if (!any(running)) break;
      start.next(p, running, l, this->u);
      Base::sweep(
          running, [&](const M& on, int i) { p.spins > 0 ? solve_six(on, i) : solve_contact(on, i); },
          [&](const M& on, int r, int i) {
            const Real W = select(on, p.W[i] + p.R[i], Real(1)),
                       next = clamp(l[i] - slip(i) / W, p.lower[r], p.upper[r]);
            put(on, i, next, l[i]);
          });
    }
  }
};

}  // namespace stiction
