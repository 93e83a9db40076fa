// The certificate: how well (v, l) solves the contact problem, the same for all solvers. Theory section 10.
//
//   r_dyn  |D (A v - b - J' l)| / max(|D b|, |D J' l|, sqrt(mean mass) g h),   D = diag(A)^-1/2                  1
//   r_con  max_i w_i |l_i - P(l_i - (w + e + R l + G)_i / w_i)|,   G = (0, 0, mu |s_t|), s = w + e + R l         m/s
//   r_ccp  the same without G: the convex model's score                                                          m/s
//   r_row  the same form for the other rows, as a part of max(|J v*|, g h, 1e-4)                                 1
//   r_cone max_i max(0, |l_t| - mu l_n, -l_n) / (m_i V)                                                          1
//   V      max over contacts with l != 0 or phi <= 0 of |J v*|_inf, at least g h and 1e-4                        m/s
//
// P: nearest point of the cone; w_i = tr(W_ii) / 3.
#pragma once
#include "contact/impulses.h"
#include "core/options.h"
#include "linalg/tree_product.h"
#include "math/cone.h"

namespace stiction {

template <class Real>
struct Certificate {
  Real r_dyn, r_con, r_ccp, r_row, r_cone, penetration, scale, num_contacts;
};

template <class Real>
HD Real least_scale(Real gravity, Real h) {
  return max(gravity * h, Real(1e-4f));
}

/// V, before anything is solved: over contacts that are closed or warm.
template <class L, class Real = typename L::Real>
HD Real velocity_scale(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                       const Contacts<L>& contacts, const ContactProblem<L>& problem, const Impulses<L>& l) {
  Real own(0), shared(0), zero(0);
  auto size = [&](const ContactPoint<Real>& x, const ContactRow<Real>& row, Vec3<Real> li) {
    Real a = max(max(abs(row.free.x), abs(row.free.y)), abs(row.free.z));
    return select(x.active & ((x.gap <= zero) | (li.z > zero)), a, zero);
  };
  each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) {
    own = max(own, size(contacts.point.slot[c], problem.row.slot[c], l.slot.slot[c]));
  });
  for (int i = 0; i < contacts.pairs; ++i)
    shared = max(shared, size(contacts.pair[i].point, problem.pair_row[i], l.pair[i]));
  return max(max(g.max(own), shared), least_scale(norm(vec<Real>(m.gravity)), Real(opt.h)));
}

template <class Real>
HD void contact_residual(const ContactPoint<Real>& x, const ContactRow<Real>& row, Vec3<Real> w, Vec3<Real> l,
                         Certificate<Real>& worst) {
  Real zero(0), one(1), mean = (row.W_t * Real(2) + row.W_n) * Real(1.0f / 3), inverse = one / mean;
  Vec3<Real> s = {w.x + row.R_t * l.x, w.y + row.R_t * l.y, w.z + row.e + row.R_n * l.z};
  auto distance = [&](Real lift) {
    Vec3<Real> trial = l - Vec3<Real>{s.x, s.y, s.z + lift} * inverse;
    return select(x.active, norm(l - project_proximal(trial, x.mu)) * mean, zero);
  };
  worst.r_con = max(worst.r_con, distance(sqrt(s.x * s.x + s.y * s.y) * x.mu));
  worst.r_ccp = max(worst.r_ccp, distance(zero));
  Real cone = max(sqrt(l.x * l.x + l.y * l.y) - x.mu * l.z, -l.z) * mean;
  worst.r_cone = max(worst.r_cone, select(x.active, cone, zero));
  worst.penetration = max(worst.penetration, select(x.active, -x.gap, zero));
  worst.num_contacts = worst.num_contacts + select(x.active & (l.z > zero), one, zero);
}

template <class Real>
HD Real row_residual(const ScalarRow<Real>& row, Real w, Real l, Real least) {
  Real trial = clamp(l - (w + row.e + row.R * l) / row.W, row.lower, row.upper);
  Real scale = max(abs(row.free), least);
  return select(row.active, abs(l - trial) * row.W / scale, Real(0));
}

/// scale: V as velocity_scale gives it with the warm start; grows with what has got an impulse since.
template <class L, class Real = typename L::Real>
HD Certificate<Real> certify(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                             const Kinematics<L>& kin, const Contacts<L>& contacts, const ContactProblem<L>& problem,
                             const Impulses<L>& l, const TreeVector<L>& v, PerLink<L, Motion<Real>>& V,
                             PerLink<L, Force<Real>>& extra) {
  const Real zero(0), one(1);
  Certificate<Real> own{zero, zero, zero, zero, zero, zero, zero, zero}, shared = own;
  row_velocities<L>(
      g, m, kin, contacts, v, V,
      [&](int c, Vec3<Real> w) {
        contact_residual(contacts.point.slot[c], problem.row.slot[c], w, l.slot.slot[c], own);
      },
      [&](int i, Vec3<Real> w1, Vec3<Real> w2) {
        contact_residual(contacts.pair[i].point, problem.pair_row[i], w2 - w1, l.pair[i], shared);
      });
  Real gravity = norm(vec<Real>(m.gravity)), least = least_scale(gravity, Real(opt.h));
  auto row = [&](bool is_own, const ScalarRow<Real>& r, Real li, Real vi) {
    Real& worst = is_own ? own.r_row : shared.r_row;
    worst = max(worst, row_residual(r, r.sign * vi, li, least));
  };
  each_dof_row<L>(g, m, problem.limit_live, row, problem.limit, l.limit, v);
  each_dof_row<L>(g, m, problem.friction_live, row, problem.friction, l.friction, v);
  for (int i = 0; i < m.ties; ++i) {
    if (!problem.tie_live[i]) continue;
    Real w(0);
    for (int j = 0; j < m.tie[i].terms; ++j) w = w + problem.tie_coef[i][j] * dof_of<L>(g, m, v, m.tie[i].link[j]);
    shared.r_row = max(shared.r_row, row_residual(problem.tie[i], w, l.tie[i], least));
  }

  // r_dyn: A v against b + J' l.
  TreeVector<L> Av, f;
  Real share[L::kTrunkDofs];
  multiply<L>(g, m, problem.A, v, Av);
  each_dof<L>(g, m, [&](Real& x) { x = zero; }, f);
  add_row_forces<L>(
      g, m, kin, contacts, problem, [&](int c) { return l.slot.slot[c]; }, [&](int s, int) { return l.pair[s]; },
      [&](TreeVector<L>& x) {
        each_dof_row<L>(
            g, m, problem.limit_live, [](bool, const auto& r, Real li, Real& xi) { xi = xi + r.sign * li; },
            problem.limit, l.limit, x);
        each_dof_row<L>(g, m, problem.friction_live, [](bool, Real li, Real& xi) { xi = xi + li; }, l.friction, x);
      },
      [&](int i, int) { return l.tie[i]; }, extra, f, share);
  Real error(0), momentum(0), push(0);
  auto add = [&](Real diagonal, Real Avi, Real bi, Real fi, Real& e, Real& p, Real& q) {
    Real d = one / diagonal, r = Avi - bi - fi;
    e = e + r * r * d, p = p + bi * bi * d, q = q + fi * fi * d;
  };
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
  UNROLL for (int k = 0; k < limb.links(); ++k) {
      int i = at.link + k;
      add(problem.A.limb[at.entry + entry_of(k, k)], Av.limb[i], problem.b.limb[i], f.limb[i], error, momentum, push);
    }
  });
  error = g.sum(error), momentum = g.sum(momentum), push = g.sum(push);
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t)
    add(problem.A.trunk[t][t], Av.trunk[t], problem.b.trunk[t], f.trunk[t] + g.sum(share[t]), error, momentum, push);
  Real floor = sqrt(Real(m.mean_mass)) * gravity * opt.h;

  Certificate<Real> c;
  c.r_con = max(g.max(own.r_con), shared.r_con), c.r_ccp = max(g.max(own.r_ccp), shared.r_ccp);
  c.r_row = max(g.max(own.r_row), shared.r_row), c.r_cone = max(g.max(own.r_cone), shared.r_cone);
  c.penetration = max(g.max(own.penetration), shared.penetration);
  c.num_contacts = g.sum(own.num_contacts) + shared.num_contacts;
  c.scale = velocity_scale<L>(g, m, opt, contacts, problem, l);
  c.r_cone = c.r_cone / c.scale;
  c.r_dyn = sqrt(error) / max(max(sqrt(momentum), sqrt(push)), max(floor, Real(1e-12f)));
  return c;
}

}  // namespace stiction
