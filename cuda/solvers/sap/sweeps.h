// What SAP begins with, and goes on with between Newton's steps: a few sweeps of Gauss-Seidel on the dual of its convex problem,
// contacts in order, then rows. They cost little beside one factor and find which contacts hold, slide and open; Newton does the
// rest. R and e are the caller's, with the proximal term where it has one.
//
//   contact   l <- Proj(l - s / r), r = |W_ii + R|_F >= its largest eigenvalue, `kInner` times while the others rest, with
//             Nesterov's momentum, dropped where it points uphill, until a step changes less than the tolerance asks
//   row       l <- clamp(l - s / (W_kk + R))
//
// Sweeps begin where Anderson's acceleration says (SweepStart); a world rests where one changes less than the tolerance asks.
// With couples a contact has six rows, and r is |W_ii + R|_F of the three of its force and the sum of W_kk + R of the others.
#pragma once
#include "solvers/gauss_seidel.h"

namespace stiction {

/// W_ii + R of a contact with couples: of its force, of its couple, and what each does to the other (rows of the force).
template <class Real>
struct SixBlock {
  const SymMat3<Real>&force, &couple;
  const Real* between;  // (3, 3)
};
template <class Real>
HD SixVec<Real> operator*(const SixBlock<Real>& W, const SixVec<Real>& x) {
  const Real* b = W.between;
  const Vec3<Real> rows[] = {{b[0], b[1], b[2]}, {b[3], b[4], b[5]}, {b[6], b[7], b[8]}};
  return {W.force * x.l + Vec3<Real>{dot(rows[0], x.c), dot(rows[1], x.c), dot(rows[2], x.c)},
          W.couple * x.c + rows[0] * x.l.x + rows[1] * x.l.y + rows[2] * x.l.z};
}

template <class Real>
struct ConvexSweeps : GaussSeidel<Real> {
  using Base = GaussSeidel<Real>;
  using M = Mask<Real>;
  using Base::p, Base::l;

  static constexpr int kInner = 16;
  static constexpr Scalar<Real> kEnough = 0.1;  // of the tolerance: what steps and sweeps are to change no more

  SymMat3<Real>*block, *spin_block;  // (contacts) W_ii + R of forces, and of couples
  Real* coupling;                    // (contacts, 9)
  Real* rate;                        // (contacts) 1 / r
  SweepStart<Real> start;
  const Real *R, *e;  // (n) of the problem swept, in place of its own   1/kg, m/s

  HD ConvexSweeps(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits)
      : Base(problem, limits, nullptr) {}
  HD void carve(Arena<Real>& arena) {
    this->u = arena.take(p.width);  // no sweep is tested, so none is the best
    const int couples = p.spins > 0 ? p.contacts : 0;
    block = arena.template take_as<SymMat3<Real>>(p.contacts), rate = arena.take(p.contacts);
    spin_block = arena.template take_as<SymMat3<Real>>(couples), coupling = arena.take(9 * couples);
    start.carve(p.rows(), arena);
  }

  HD Real slip(int i) const { return p.velocity(i, this->u) + e[i] + R[i] * l[i]; }
  HD void prepare_couple(int k, Real R_t) {
    const int c = p.spin_row(k);
    SymMat3<Real>& b = spin_block[k];
    b = Base::own_block(p, c);
    b.xx = b.xx + R_t, b.yy = b.yy + R_t, b.zz = b.zz + R_t;
    for (int i = 0; i < 9; ++i) coupling[9 * k + i] = p.along(3 * k + i / 3, p.row(c + i % 3));
  }
  HD void prepare() {
    for (int k = 0; k < p.contacts; ++k) {
      const Real R_t = R[3 * k];
      SymMat3<Real>& b = block[k];
      b = Base::own_block(p, 3 * k);
      b.xx = b.xx + R_t, b.yy = b.yy + R_t, b.zz = b.zz + R[3 * k + 2];
      if (p.spins > 0) prepare_couple(k, R_t);
      Real bound = sqrt(b.xx * b.xx + b.yy * b.yy + b.zz * b.zz + (b.xy * b.xy + b.xz * b.xz + b.yz * b.yz) * Real(2));
      for (int i = p.spin_row(k); p.spins > 0 && i < p.spin_row(k + 1); ++i) bound = bound + p.W[i] + R_t;
      rate[k] = select(bound > Real(0), Real(1) / bound, Real(0));
    }
  }
  /// What contact k is to push with, from `f` at slip s, of its own block; by projected steps.
  template <class Vector, class Block>
  HD Vector nearest(const M& on, int k, Vector f, Vector s, const Block& W) const {
    Vector ahead = f, slip_ahead = s;
    const Real enough = p.scale_of(k) * rate[k] * (kEnough * Base::limits.tolerance);
    Real age(0);
    M moving = on;
    for (int step = 0; step < kInner && any(moving); ++step) {
      const Vector next = project_proximal(ahead - slip_ahead * rate[k], p.mu[k]),
                   slip_next = slip_ahead + W * (next - ahead);
      age = select(dot(ahead - next, next - f) > Real(0), Real(0), age + Real(1));
      const Real momentum = age / (age + Real(3));
      const M far = largest(next - ahead) > enough;
      ahead = next + (next - f) * momentum, slip_ahead = slip_next + (slip_next - s) * momentum;
      f = select(moving, next, f), s = slip_next;
      moving = moving & far;
    }
    return f;
  }
  HD void solve_contact(const M& on, int k) {
    const int i = 3 * k;
    const Vec3<Real> old{l[i], l[i + 1], l[i + 2]},
        f = nearest(on, k, old, Vec3<Real>{slip(i), slip(i + 1), slip(i + 2)}, block[k]);
    put(on, i, f.x, old.x), put(on, i + 1, f.y, old.y), put(on, i + 2, f.z, old.z);
  }
  HD void solve_six(const M& on, int k) {
    const int i = 3 * k, c = p.spin_row(k);
    auto turns = [&](int row, Real x) { return select(p.W[row] > Real(0), x, Real(0)); };
    auto turning = [&](auto x) { return Vec3<Real>{turns(c, x(c)), turns(c + 1, x(c + 1)), turns(c + 2, x(c + 2))}; };
    const SixVec<Real> old{{l[i], l[i + 1], l[i + 2]}, turning([&](int row) { return l[row]; })},
        s{{slip(i), slip(i + 1), slip(i + 2)}, turning([&](int row) { return slip(row); })},
        f = nearest(on, k, old, s, SixBlock<Real>{block[k], spin_block[k], coupling + 9 * k});
    put(on, i, f.l.x, old.l.x), put(on, i + 1, f.l.y, old.l.y), put(on, i + 2, f.l.z, old.l.z);
    put(on, c, f.c.x, old.c.x), put(on, c + 1, f.c.y, old.c.y), put(on, c + 2, f.c.z, old.c.z);
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
            const Real W = select(on, p.W[i] + R[i], Real(1)), next = clamp(l[i] - slip(i) / W, p.lower[r], p.upper[r]);
            put(on, i, next, l[i]);
          });
    }
  }
};

}  // namespace stiction
