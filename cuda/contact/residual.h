// The certificate: how well (v, l) solves the contact problem, the same for all solvers, on the trees, not on the rows that
// solvers read: v is what the impulses really make. Residuals of one contact and one row: contact/law.h. docs/theory.md,
// section 8.
//
//   r_dyn  |D (A (v - v0) - b - J' l)| / max(|D (A v0 + b)|, |D J' l|, sqrt(mean mass) g h),   D = diag(A)^-1/2  1
//   r_con  max_i w_i |l_i - P(l_i - (w + e + R l + G)_i / w_i)|,   G = (0, 0, mu |s_t|), s = w + e + R l         m/s
//   r_split max_i of Signorini's and Coulomb's law apart (law.h), which sees what large friction hides of r_con  m/s
//   r_ccp  r_con without G: the convex model's score                                                             m/s
//   r_mdp  r_con of s as maximum dissipation has it (dissipative_slip), and then r_split too; 0 unless the law is that   m/s
//   r_row  the same form for the other rows, as a part of max(|J v*|, g h, 1e-4), and of rounded_scale()           1
//   r_cone max_i max(0, |l_t| - mu l_n, -l_n) / (m_i V_i)                                                          1
//   V      of the trees that a contact acts on (contact/tree_scale.h), and in worlds of several at least rounded_scale()  m/s
//
// Where a world has several trees a residual of contact i counts as r_i V / V_i; what is reported is that of the contact with the
// largest r_con / V, and its V; the others at that scale.
// P: nearest point of the cone; w_i = tr(W_ii) / 3. A NaN anywhere is NaN in the residual.
#pragma once
#include "contact/recovery_cost.h"
#include "contact/tree_scale.h"
#include "linalg/tree_product.h"

namespace stiction {

template <class Real>
struct Certificate {
  Real r_dyn, r_con, r_split, r_ccp, r_mdp, r_row, r_cone, penetration, scale, num_contacts;
  Real given;  // what contacts give, as a part of what closing overlaps may cost: for the step, not for users
};

/// x += J' l; what limbs still add to the trunk is left in `share`.
template <class L, class Real = typename L::Real>
HD void add_row_forces(const typename L::Group& g, const typename L::Model& m, Workspace<L>& w, TreeVector<L>& x,
                       Real (&share)[L::kTrunkDofs]) {
  const Contacts<L>& contacts = w.contacts;
  const ContactProblem<L>& problem = w.problem;
  const Impulses<L>& l = w.impulses;
  const bool moving = contacts.pairs > 0 || m.bonds > 0;
  if (moving) {
    clear_forces<L>(g, m, w.forces);
    for (int s = 0; s < contacts.pairs; ++s) {
      const PairContact<L>& c = contacts.pair[s];
      const Vec3<Real> f = transposed_times(c.point.frame, l.pair[s]);
      Force<Real> F1 = force_at(c.p1, -f), F2 = force_at(c.point.p, f);
      if (m.has_spin) {
        const Vec3<Real> couple = transposed_times(c.point.frame, times(l.pair_spin[s], spin_arms(c.point)));
        F1.n = F1.n - couple, F2.n = F2.n + couple;
      }
      scatter_add<L>(g, m, w.forces, c.link2, F2);
      scatter_add<L>(g, m, w.forces, c.link1, F1);
    }
    for (int i = 0; i < m.bonds; ++i)
      for (int end = 0; end < 2; ++end)
        add_at<L>(g, m, w.forces, m.bond[i].link[end], combined(problem.bond[i].F[end], l.bond[i]));
  }
  add_forces<L>(
      g, m, w.kin,
      [&](const auto& limb, Place at, int s) {
        Force<Real> F = zero_force<Real>();
        each_station_slot<L>(limb, at, s, contacts, [&](int c) {
          const ContactPoint<Real>& p = contacts.point.slot[c];
          F = F + force_at(p.p, from_slot(m, p, l.slot.slot[c]));
          if (m.has_spin) F.n = F.n + from_slot(m, p, times(l.spin.slot[c], spin_arms(p)));
        });
        return F;
      },
      moving ? &w.forces : nullptr, x, share);
  each_dof_row<L>(g, m, problem, [](bool, const auto& row, Real f, Real& xi) { xi = xi + row.sign * f; }, l.dof, x);
  for (int i = 0; i < m.ties; ++i)
    if (problem.tie_live[i])
      for (int j = 0; j < m.tie[i].terms; ++j)
        add_to_dof<L>(g, m, x, m.tie[i].link[j], problem.tie_coef[i][j] * l.tie[i]);
}

/// w.v = from + A^-1 (b + J' l): the velocity that the impulses really make. Every solve ends with it.
template <class L, class Real = typename L::Real>
HD_ONCE void velocity_of(const typename L::Group& g, const typename L::Model& m, Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(w);
  Real share[L::kTrunkDofs];
  each_dof<L>(g, m, [](Real b, Real& x) { x = b; }, w.problem.b, w.v);
  add_row_forces<L>(g, m, w, w.v, share);
  solve<L>(g, m, w.problem.factor, w.v, share);
  each_dof<L>(g, m, [](Real from, Real& to) { to = from + to; }, w.problem.from, w.v);
}

template <class Real>
HD Real mean_mobility(const ContactRow<Real>& row) {
  return (row.W_t * Real(2) + row.W_n) * Real(1.0f / 3);
}
/// s of a contact.
template <class Real>
HD Vec3<Real> slip_of(const ContactRow<Real>& row, Vec3<Real> w, Vec3<Real> l) {
  return {w.x + row.bend.x + row.R_t * l.x, w.y + row.bend.y + row.R_t * l.y, w.z + row.e + row.R_n * l.z};
}

/// r_mdp and r_split of the contact at that place among the half-solved rows, which have W_nt.
template <class Real>
HD void judge_dissipation(const RowProblem<Real>& rows, Real place, const ContactPoint<Real>& x,
                          const ContactRow<Real>& row, Vec3<Real> w, Vec3<Real> l, Real weight,
                          Certificate<Real>& worst) {
  Vec2<Real> coupling{Real(0), Real(0)};
  Places<Real>(place).each([&](int k, const Mask<Real>& is) {
    const Vec2<Real> c = rows.coupling(k);
    blend(is, c.x, coupling.x), blend(is, c.y, coupling.y);
  });
  const Vec3<Real> s = dissipative_slip(l, slip_of(row, w, l), x.mu, coupling);
  const ContactResidual<Real> r = contact_residual(l, s, x.mu, mean_mobility(row));
  worst.r_mdp = maximum(worst.r_mdp, select(x.active, r.con * weight, Real(0)));
  worst.r_split = maximum(worst.r_split, select(x.active, r.split * weight, Real(0)));
}

/// The part of V = J v, whose spin is `V.w`, that rows of its couple have.
template <class Real>
HD Vec3<Real> spin_slip(const ContactPoint<Real>& x, const ContactRow<Real>& row, const Motion<Real>& V) {
  const Vec3<Real> spin = times(V.w, spin_arms(x));
  const Real zero(0);
  return {select(row.spin_W.x > zero, spin.x, zero), select(row.spin_W.y > zero, spin.y, zero),
          select(row.spin_W.z > zero, spin.z, zero)};
}
/// V of the world over that of the contact, `scale`, is the contact's weight.
template <class Real>
HD void judge_contact(Law law, const ContactPoint<Real>& x, const ContactResidual<Real>& r, Real pushes, Real scale,
                      Real weight, Certificate<Real>& worst) {
  const Real zero(0), one(1);
  auto take = [&](Real& to, Real from) { to = maximum(to, select(x.active, from, zero)); };
  worst.scale = select(x.active & (r.con * weight > worst.r_con), scale, worst.scale);
  take(worst.r_con, r.con * weight), take(worst.r_ccp, r.ccp * weight), take(worst.r_cone, r.cone * weight);
  if (law != Law::kDissipation) take(worst.r_split, r.split * weight);
  take(worst.penetration, -x.gap);
  worst.num_contacts = worst.num_contacts + select(x.active & (pushes > zero), one, zero);
}

/// V of a contact or row is at least so many times what is rounded in the velocities that its own is made of, `speeds`, and in R l; not
/// in W l, which under heavy bodies on light ones would excuse all.
template <class Real>
HD Real rounded_scale(Real speeds, Real R, Real l) {
  return (speeds + R * abs(l)) * (1e4f * kEpsilon<Scalar<Real>>);
}
template <class Real>
HD Real judge_row(const ScalarRow<Real>& row, Real w, Real l, Real least, Real speeds) {
  const Real r = row_residual(l, w + row.e + row.R * l, row.lower, row.upper, row.W);
  const Real V = max(abs(row.free), max(least, rounded_scale(speeds, row.R, l)));
  return select(row.active, r / V, Real(0));
}

/// Of every dof, those of the dofs that carry it, and its own, before and after impulses: what its velocity is found from.
template <class L, class Real = typename L::Real>
HD void sum_speeds(const typename L::Group& g, const typename L::Model& m, const TreeVector<L>& free,
                   const TreeVector<L>& v, TreeVector<L>& sum) {
  Real trunk(0);
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) trunk = trunk + abs(free.trunk[t]) + abs(v.trunk[t]);
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) sum.trunk[t] = trunk;
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      const int i = at.link + k, up = limb.parent(k);
      const Real carried = up >= 0 ? sum.limb[at.link + up] : limb.on_trunk() ? trunk : Real(0);
      sum.limb[i] = carried + abs(free.limb[i]) + abs(v.limb[i]);
    }
  });
}

/// Of w.impulses and w.v. law: the solver's.
template <class L, class Real = typename L::Real>
HD_ONCE Certificate<Real> certify(const typename L::Group& g, const typename L::Model& m,
                                  const Options<Scalar<Real>>& opt, Law law, Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(w);
  const Contacts<L>& contacts = w.contacts;
  const ContactProblem<L>& problem = w.problem;
  const Impulses<L>& l = w.impulses;
  const Real zero(0), one(1);
  Certificate<Real> own{zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero}, shared = own;
  Real own_bends(0), shared_bends(0);  // what impulses do where contacts go on by their bends                    J
  const RowTable<L>& table = problem.table;
  const RowProblem<Real> rows = table.rows.view(zero, zero);
  const Vec3<Real> none{zero, zero, zero};
  const TreeScales<L> V = velocity_scales<L>(g, m, opt, w);
  const Real gravity = norm(vec<Real>(m.gravity)), least = least_scale(gravity, Real(opt.h));
  // speeds: of both points, added.
  auto judge = [&](Real place, const ContactPoint<Real>& x, const ContactRow<Real>& row, const Motion<Real>& v,
                   const SixVec<Real>& li, Real of_trees, Real speeds, Certificate<Real>& worst, Real& bends) {
    const Vec3<Real> s = slip_of(row, v.v, li.l);
    const Real scale = maximum(of_trees, rounded_scale(speeds, row.R_n, li.l.z));
    const Real mobility = mean_mobility(row), weight = V.several ? V.largest / scale : one;
    const ContactResidual<Real> r = m.has_spin
                                        ? contact_residual(li, SixVec<Real>{s, spin_slip(x, row, v)}, x.mu, mobility)
                                        : contact_residual(li.l, s, x.mu, mobility);
    judge_contact(law, x, r, li.l.z, scale, weight, worst);
    worst.given = worst.given + given_by(x, row, v.v, li.l);
    bends = bends + select(x.active, dot(li.l, row.bend), zero);
    if (law == Law::kDissipation) judge_dissipation(rows, place, x, row, v.v, li.l, weight, worst);
  };
  row_velocities<L>(
      g, m, w.kin, contacts, w.v, w.motions,
      [&](const auto& limb, int c, const Motion<Real>& v) {
        judge(table.slot.slot[c], contacts.point.slot[c], problem.row.slot[c], v,
              {l.slot.slot[c], m.has_spin ? l.spin.slot[c] : none}, V.of(tree_of_limb(m, limb.number)),
              largest_part(v.v), own, own_bends);
      },
      [&](int i, const Motion<Real>& v1, const Motion<Real>& v2) {
        judge(table.pair[i], contacts.pair[i].point, problem.pair_row[i], v2 - v1,
              {l.pair[i], m.has_spin ? l.pair_spin[i] : none}, V.of_pair(m, contacts.pair[i]),
              largest_part(v1.v) + largest_part(v2.v), shared, shared_bends);
      });
  TreeVector<L> sum;  // of the speeds from the root on
  sum_speeds<L>(g, m, problem.free, w.v, sum);
  auto row = [&](bool is_own, const ScalarRow<Real>& r, Real li, Real vi, Real size) {
    Real& worst = is_own ? own.r_row : shared.r_row;
    worst = maximum(worst, judge_row(r, r.sign * vi, li, least, size));
  };
  each_dof_row<L>(g, m, problem, row, l.dof, w.v, sum);
  for (int i = 0; i < m.ties; ++i) {
    if (!problem.tie_live[i]) continue;
    Real rate(0), size(0);
    for (int j = 0; j < m.tie[i].terms; ++j) {
      const Real& coef = problem.tie_coef[i][j];
      rate = rate + coef * dof_of<L>(g, m, w.v, m.tie[i].link[j]);
      size = size + abs(coef) * dof_of<L>(g, m, sum, m.tie[i].link[j]);
    }
    shared.r_row = maximum(shared.r_row, judge_row(problem.tie[i], rate, l.tie[i], least, size));
  }
  for (int i = 0; i < m.bonds; ++i) {
    const Vec3<Real> li = l.bond[i], v1 = bond_end_velocity<L>(g, m, problem, w.motions, i, 0),
                     v2 = bond_end_velocity<L>(g, m, problem, w.motions, i, 1);
    const ScalarRow<Real>(&r)[3] = problem.bond[i].row;
    auto judge_axis = [&](const ScalarRow<Real>& r, Real v1, Real v2, Real li) {
      return judge_row(r, v1 + v2, li, least, abs(v1) + abs(v2));
    };
    const Real x = judge_axis(r[0], v1.x, v2.x, li.x), y = judge_axis(r[1], v1.y, v2.y, li.y),
               z = judge_axis(r[2], v1.z, v2.z, li.z);
    shared.r_row = maximum(maximum(shared.r_row, x), maximum(y, z));
  }

  // r_dyn: A (v - v0) against b + J' l.
  TreeVector<L> change, gained, before, f;
  Real share[L::kTrunkDofs];
  each_dof<L>(g, m, [](Real from, Real to, Real& by) { by = to - from; }, problem.from, w.v, change);
  multiply<L>(g, m, problem.A, change, gained), multiply<L>(g, m, problem.A, problem.from, before);
  each_dof<L>(g, m, [&](Real& x) { x = zero; }, f);
  add_row_forces<L>(g, m, w, f, share);
  Real error(0), momentum(0), push(0), twice(0);  // what all rows give
  auto add = [&](Real diagonal, Real gain, Real from, Real bi, Real fi, Real& e, Real& p, Real& q) {
    const Real d = one / diagonal, r = gain - bi - fi, whole = from + bi;
    e = e + r * r * d, p = p + whole * whole * d, q = q + fi * fi * d;
  };
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
  UNROLL for (int k = 0; k < limb.links(); ++k) {
      int i = at.link + k;
      add(problem.A.limb[at.entry + entry_of(k, k)], gained.limb[i], before.limb[i], problem.b.limb[i], f.limb[i], error,
          momentum, push);
      twice = twice + f.limb[i] * (w.v.limb[i] + problem.free.limb[i]);
    }
  });
  error = g.sum(error), momentum = g.sum(momentum), push = g.sum(push), twice = g.sum(twice);
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) {
    const Real fi = f.trunk[t] + g.sum(share[t]);
    add(problem.A.trunk[t][t], gained.trunk[t], before.trunk[t], problem.b.trunk[t], fi, error, momentum, push);
    twice = twice + fi * (w.v.trunk[t] + problem.free.trunk[t]);
  }
  Real floor = sqrt(Real(m.mean_mass)) * gravity * opt.h;

  Certificate<Real> c;
  using C = Certificate<Real>;
  auto gather = [&](Real C::* field) { c.*field = maximum(g.max(own.*field), shared.*field); };
  gather(&C::r_con), gather(&C::r_split), gather(&C::r_ccp), gather(&C::r_mdp), gather(&C::r_row);
  gather(&C::r_cone), gather(&C::penetration);
  c.num_contacts = g.sum(own.num_contacts) + shared.num_contacts;
  c.given = min(g.sum(own.given) + shared.given, twice * Scalar<Real>(0.5) + g.sum(own_bends) + shared_bends) /
            recovery_cost<L>(g, m, opt, max(kept_recovery(opt), Scalar<Real>(1e-4)), w);
  c.r_cone = c.r_cone / V.largest;
  c.scale = V.largest;
  if (V.several) {  // of the contact with the largest weighted r_con, and residuals at that scale
    own.scale = g.max(select(own.r_con >= c.r_con, own.scale, zero));
    const Real scale = maximum(own.scale, select(shared.r_con >= c.r_con, shared.scale, zero));
    c.scale = select(scale > zero, scale, V.largest);
    const Real back = c.scale / V.largest;
    c.r_con = c.r_con * back, c.r_split = c.r_split * back, c.r_ccp = c.r_ccp * back, c.r_mdp = c.r_mdp * back;
  }
  c.r_dyn = sqrt(error) / max(max(sqrt(momentum), sqrt(push)), max(floor, Real(1e-12f)));
  return c;
}

}  // namespace stiction
