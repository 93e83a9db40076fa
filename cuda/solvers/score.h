// What every solver stops on and compares iterates by, and the loop that stops: the natural residuals of contact/law.h over all
// contacts and rows of a world, by the solver's own arithmetic. The certificate is computed elsewhere, from v itself.
//
//   score = max(own / V, split / 10 V, r_row / V_row)     own: con, ccp or mdp, as the law is; no split in the convex law
//
// V: of these impulses, of the world; where that differs from tree to tree, of the contact and what the problem says of its trees.
// A world is done when its score is at most the tolerance.
#pragma once
#include "contact/law.h"
#include "solvers/solver.h"

namespace stiction {

/// Scores of what is not finite, and of nothing at all.
template <class Real> inline constexpr auto kLost = Scalar<Real>(1e30);
template <class Real> inline constexpr auto kUntried = Scalar<Real>(1e29);

template <class Real>
struct RowScore {
  Real own, split;  // largest of the law, and of its parts apart, each times V over its own    m/s
  Real row_ratio;   // largest of other rows, of max(|J v*|, least velocity)
  Real scale;       // V of these impulses                           m/s
  Mask<Real> finite;

  HD Real worst() const {
    const Real score = max(max(own, split * Scalar<Real>(0.1)) / scale, row_ratio);
    return select(finite & is_finite(score), score, Real(kLost<Real>));
  }
  /// Another one of worlds `which`.
  HD void take(const RowScore& other, const Mask<Real>& which) {
    auto put = [&which](const auto& from, auto& to) { to = select(which, from, to); };
    put(other.own, own), put(other.split, split), put(other.row_ratio, row_ratio), put(other.scale, scale);
    put(other.finite, finite);
  }
};

/// The six rows of contact k of `x` (n), where contacts have couples, and them as `six`.
template <class Real>
HD SixVec<Real> six_of(const RowProblem<Real>& p, int k, const Real* x) {
  const Real *l = x + 3 * k, *c = x + p.spin_row(k);
  return {{l[0], l[1], l[2]}, {c[0], c[1], c[2]}};
}
template <class Real>
HD void put_six(const RowProblem<Real>& p, int k, const SixVec<Real>& six, Real* x) {
  Real *l = x + 3 * k, *c = x + p.spin_row(k);
  l[0] = six.l.x, l[1] = six.l.y, l[2] = six.l.z, c[0] = six.c.x, c[1] = six.c.y, c[2] = six.c.z;
}

/// Of impulses l (n) at s_i = slip(i), each asked for once, contacts in order. Places that are not used do not count.
template <class Real, class Slip>
HD_ONCE RowScore<Real> score_rows(const RowProblem<Real>& p, Law law, const Real* l, Slip slip) {
  const Real zero(0), one(1);
  RowScore<Real> score{zero, zero, zero, p.least_velocity, {}};
  auto own_scale = [&](int k) {
    const int i = 3 * k;
    const Mask<Real> touching =
        (p.W[i] > zero) & ((max(max(abs(l[i]), abs(l[i + 1])), abs(l[i + 2])) > zero) | (p.e[i + 2] <= zero));
    const Real fast = max(max(abs(p.free[i]), abs(p.free[i + 1])), abs(p.free[i + 2]));
    const Real least = p.scales ? max(p.scales[k], p.least_velocity) : zero;
    return max(least, select(touching, fast, zero));
  };
  for (int k = 0; k < p.contacts; ++k) score.scale = max(score.scale, own_scale(k));
  Real sum(0);
  for (int k = 0; k < p.contacts; ++k) {
    const int i = 3 * k;
    const Real g = p.mobility(k);
    const Mask<Real> on = g > zero;
    const Vec3<Real> f{l[i], l[i + 1], l[i + 2]};
    Vec3<Real> s{slip(i), slip(i + 1), slip(i + 2)};
    if (law == Law::kDissipation) s = dissipative_slip(f, s, p.mu[k], p.coupling(k));
    const Real mobility = select(on, g, one);
    const int c = p.spin_row(k);
    const ContactResidual<Real> r =
        p.spins > 0
            ? contact_residual(six_of(p, k, l), SixVec<Real>{s, {slip(c), slip(c + 1), slip(c + 2)}}, p.mu[k], mobility)
            : contact_residual(f, s, p.mu[k], mobility);
    const bool convex = law == Law::kConvex;
    const Real weight = p.scales ? score.scale / own_scale(k) : one;
    score.own = max(score.own, select(on, (convex ? r.ccp : r.con) * weight, zero));
    if (!convex) score.split = max(score.split, select(on, r.split * weight, zero));
    sum = sum + select(on, r.con + r.split, zero);
  }
  for (int k = 0; k < p.scalars; ++k) {
    const int i = p.scalar_row(k);
    const Mask<Real> on = p.W[i] > zero;
    const Real s = slip(i), r = row_residual(l[i], s, p.lower[k], p.upper[k], select(on, p.W[i], one));
    score.row_ratio = max(score.row_ratio, select(on, r / max(abs(p.free[i]), p.least_velocity), zero));
    sum = sum + select(on, abs(s), zero);
  }
  score.finite = is_finite(sum);
  return score;
}

/// `to` = l as cones and bounds allow it, 0 in places that are not used; `to` may be l.
template <class Real>
HD void admit(const RowProblem<Real>& p, const Real* l, Real* to) {
  const Real zero(0);
  for (int k = 0; k < p.contacts; ++k) {
    const int i = 3 * k;
    const Mask<Real> on = p.W[i] > zero;
    Vec3<Real> f;
    if (p.spins > 0) {
      const SixVec<Real> six = project_strict(six_of(p, k, l), p.mu[k]);
      const SixVec<Real> used = six_of(p, k, p.W);
      auto put = [&](Real W, Real c) { return select(W > zero, c, zero); };
      put_six(p, k, {six.l, {put(used.c.x, six.c.x), put(used.c.y, six.c.y), put(used.c.z, six.c.z)}}, to);
      f = six.l;
    } else {
      f = project_strict(Vec3<Real>{l[i], l[i + 1], l[i + 2]}, p.mu[k]);
    }
    to[i] = select(on, f.x, zero), to[i + 1] = select(on, f.y, zero), to[i + 2] = select(on, f.z, zero);
  }
  for (int k = 0; k < p.scalars; ++k) {
    const int i = p.scalar_row(k);
    to[i] = select(p.W[i] > zero, clamp(l[i], p.lower[k], p.upper[k]), zero);
  }
}

template <class Real, class Group>
HD_ONCE void drop_harmful(const Group& g, const RowProblem<Real>& p, Law law, const Mask<Real>& worlds, Real* l,
                          Real* none, Real* u) {
  parallel_for(g, p.rows(), [&](int i) { none[i] = Real(0); });
  p.push(g, l, u);
  RowScore<Real> score = score_rows(p, law, l, [&](int i) { return p.slip(i, l, u); });
  const RowScore<Real> least = score_rows(p, law, none, [&](int i) { return p.free[i] + p.e[i]; });
  score.scale = least.scale;  // V counts what pushes: who pushes what is open is not better for that
  const Mask<Real> harmful = worlds & ((score.worst() > least.worst()) | (score.worst() >= Real(kLost<Real>)));
  g.sync();  // all have scored it
  parallel_for(g, p.rows(), [&](int i) { l[i] = select(harmful, Real(0), l[i]); });
}

/// The best of the impulses that an iteration tries: its answer.
template <class Real>
struct Best {
  Real* impulse;  // (n)
  Real score = Real(kUntried<Real>);

  HD void take(const Mask<Real>& which, Real of_l, const Real* l, int n) {
    const Mask<Real> better = which & (of_l < score);
    score = select(better, of_l, score);
    for (int i = 0; i < n; ++i) impulse[i] = select(better, l[i], impulse[i]);
  }
};

/// Tells when scores stop improving.
template <class Real>
struct Stall {
  Real mark, idle;  // a score, and how often it was looked at without one of 0.7 of it

  HD explicit Stall(Real score = Real(0)) : mark(score), idle(Real(0)) {}
  /// Looks at worlds `which`: those that were looked at more than `patience` times in vain; for them counting begins anew.
  HD Mask<Real> look(const Mask<Real>& which, Real score, Real patience) {
    const Mask<Real> progress = which & (score < mark * Scalar<Real>(0.7));
    const Real one_more = select(which, idle + Real(1), idle);
    mark = select(progress, score, mark), idle = select(progress, Real(0), one_more);
    const Mask<Real> stuck = which & (idle > patience);
    idle = select(stuck, Real(0), idle);
    return stuck;
  }
  HD Mask<Real> look(Real score, Real patience) { return look(mask_of<Real>(true), score, patience); }
};

/// pass(running), then every `check` passes, and after the last of `most`, running = going(running), until no world is left.
/// Returns the passes of each world.
template <class Real, class Pass, class Going>
HD Real iterate(int most, int check, Mask<Real> running, Pass pass, Going going) {
  Real passes(0);
  for (int k = 1; k <= most && any(running); ++k) {
    pass(running);
    passes = passes + select(running, Real(1), Real(0));
    if (k % check == 0 || k == most) running = going(running);
  }
  return passes;
}

}  // namespace stiction
