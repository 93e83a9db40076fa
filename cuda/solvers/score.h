// How well impulses solve half-solved rows, by the solver's own arithmetic: the natural residuals of contact/law.h over all contacts
// and rows of a world. What solvers stop on and compare iterates by; the certificate is computed elsewhere, from v itself.
#pragma once
#include "contact/law.h"
#include "contact/row_problem.h"

namespace stiction {

template <class Real>
struct RowScore {
  Real con, split, row_ratio;  // largest: m/s, m/s, of |J v*|
  Real scale;                  // V of these impulses, m/s
  Mask<Real> finite;

  /// The worst of con / V, split / 10 V and row / V_row; 1e30 where something is not finite.
  HD Real worst() const {
    const Real score = max(max(con, split * Scalar<Real>(0.1)) / scale, row_ratio);
    return select(finite & is_finite(score), score, Real(Scalar<Real>(1e30)));
  }
  HD Mask<Real> below(Scalar<Real> tolerance) const {
    return (max(con, split * Scalar<Real>(0.1)) <= scale * tolerance) & (row_ratio <= Real(tolerance));
  }
};

/// Of impulses l (n) at velocities w(i), each asked for once and in order. Rows with W = 0 do not count.
template <class Real, class Velocity>
HD RowScore<Real> score_rows(const RowProblem<Real>& p, const Real* l, Velocity w) {
  const Real zero(0), one(1);
  Real con(0), split(0), ratio(0), scale = p.least_velocity, sum(0);
  for (int k = 0; k < p.contacts; ++k) {
    const int i = 3 * k;
    const Real g = p.mobility(k);
    const Mask<Real> on = g > zero;
    const Vec3<Real> f{l[i], l[i + 1], l[i + 2]};
    const Vec3<Real> s{w(i) + p.e[i] + p.R[i] * f.x, w(i + 1) + p.e[i + 1] + p.R[i + 1] * f.y,
                       w(i + 2) + p.e[i + 2] + p.R[i + 2] * f.z};
    const Mask<Real> touching = on & ((max(max(abs(f.x), abs(f.y)), abs(f.z)) > zero) | (p.e[i + 2] <= zero));
    const Real fast = max(max(abs(p.free[i]), abs(p.free[i + 1])), abs(p.free[i + 2]));
    scale = max(scale, select(touching, fast, zero));
    const ContactResidual<Real> r = contact_residual(f, s, p.mu[k], select(on, g, one));
    con = max(con, select(on, r.con, zero)), split = max(split, select(on, r.split, zero));
    sum = sum + select(on, r.con + r.split, zero);
  }
  for (int k = 0; k < p.scalars; ++k) {
    const int i = p.scalar_row(k);
    const Mask<Real> on = p.W[i] > zero;
    const Real s = w(i) + p.e[i] + p.R[i] * l[i];
    const Real d = row_residual(l[i], s, p.lower[k], p.upper[k], select(on, p.W[i], one));
    ratio = max(ratio, select(on, d / max(abs(p.free[i]), p.least_velocity), zero));
    sum = sum + select(on, abs(s), zero);
  }
  return {con, split, ratio, scale, is_finite(sum)};
}

}  // namespace stiction
