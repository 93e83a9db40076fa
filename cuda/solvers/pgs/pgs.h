// Projected Gauss-Seidel: the plain baseline, exact Coulomb by the strict projection. docs/theory.md, section 10.
//
// One sweep (solvers/gauss_seidel.h), w = J v* + Y u always that of the newest impulses:
//
//   l_n <- max(0, l_n - r_n (w_n + e_n + R_n l_n)),           r_n = a / (W_n + R_n)
//   l_t <- disk of radius mu l_n ( l_t - r_t (w_t + e_t + R_t l_t) ),  r_t = a / (max(W_11, W_22) + R_t)
//   row <- clamp(l - a (w + e + R l) / (W_kk + R), lower, upper)
//
// a = relaxation, 0.6 by default: 1 / max with a = 1 cycles on 8 % of quadruped states, 1 / min on many more. Both tangents are
// updated from the same w: with one after the other a sliding contact's fixed point is not Coulomb's. The normal goes first.
//
// Stop: solvers/score.h, tested every `check` sweeps; tolerance 0: always `iterations` sweeps.
// Cost of a sweep: 6 width multiply-adds a contact, 2 width another row.
#pragma once
#include "solvers/gauss_seidel.h"
#include "solvers/pgs/options.h"

namespace stiction {

namespace pgs_detail {

template <class Real>
struct Sweeper : GaussSeidel<Real> {
  using Base = GaussSeidel<Real>;
  using S = Scalar<Real>;
  using M = Mask<Real>;
  using Base::p, Base::l, Base::take, Base::slip;

  const PgsOptions<S>& opt;
  Real* most_t;  // (contacts) max(W_11, W_22)

  HD Sweeper(const RowProblem<Real>& problem, const SolveLimits<S>& limits, const PgsOptions<S>& options, Real* impulse)
      : Base(problem, limits, impulse), opt(options) {}
  HD void carve(Arena<Real>& arena) { Base::carve(arena), most_t = arena.take(p.contacts); }

  /// relaxation / g where g > 0, else 0.
  HD Real pace(Real g) const {
    const M moves = g > Real(0);
    return select(moves, Real(opt.relaxation) / select(moves, g, Real(1)), Real(0));
  }
  HD void put(const M& on, int i, Real next) { take(on, i, next, next - l[i]); }

  /// The tangents and the couple of contact k, each at its own pace: the nearest point in units in which those are 1.
  HD void six(const M& on, int k, Real step) {
    const int i = 3 * k, c = p.spin_row(k);
    const Real zero(0), one(1), tx = l[i] - step * slip(i), ty = l[i + 1] - step * slip(i + 1);
    const M moves = step > zero;
    const Real per = one / select(moves, step, one);
    Real trial[3], weight[3], unit[3];
    for (int d = 0; d < 3; ++d) {
      const Real own = pace(p.W[c + d]);
      weight[d] = own * per, trial[d] = l[c + d] - own * slip(c + d);
      unit[d] = select(own > zero, trial[d] / sqrt(select(own > zero, weight[d], one)), zero);
    }
    const auto k6 = project_ellipsoid(tx * tx + ty * ty, Vec3<Real>{unit[0], unit[1], unit[2]},
                                      Vec3<Real>{weight[0], weight[1], weight[2]}, l[i + 2] * p.mu[k]);
    put(on, i, tx * k6.tangent), put(on, i + 1, ty * k6.tangent);
    const Real factor[3] = {k6.couple.x, k6.couple.y, k6.couple.z};
    for (int d = 0; d < 3; ++d) put(on & (weight[d] > zero), c + d, trial[d] * factor[d]);
  }

  HD void sweep(const M& running) {
    Base::sweep(
        running,
        [&](const M& on, int k) {
          const int i = 3 * k;
          put(on, i + 2, max(l[i + 2] - pace(p.W[i + 2] + p.R[i + 2]) * slip(i + 2), Real(0)));
          const Real step = pace(most_t[k] + p.R[i]);
          if (p.spins > 0) return six(on, k, step);
          const Vec3<Real> t =
              project_strict(Vec3<Real>{l[i] - step * slip(i), l[i + 1] - step * slip(i + 1), l[i + 2]}, p.mu[k]);
          put(on, i, t.x), put(on, i + 1, t.y);
        },
        [&](const M& on, int k, int i) {
          put(on, i, clamp(l[i] - pace(p.W[i] + p.R[i]) * slip(i), p.lower[k], p.upper[k]));
        });
  }
  HD SolveStats<Real> solve() {
    for (int i = 0; i < 3 * p.contacts; i += 3)
      most_t[i / 3] = max(p.W[i], max(p.along(i, p.row(i)), p.along(i + 1, p.row(i + 1))));
    return Base::solve(
        p, opt.law(), opt.check, [&](const M& running) { sweep(running); }, [&](int i) { return slip(i); });
  }
};

}  // namespace pgs_detail

}  // namespace stiction
