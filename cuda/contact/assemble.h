// From contacts, M and b to the contact problem: biases, compliances, the diagonal of W.
//
//   e = phi / h                                  phi > 0: what the gap allows (speculative)        theory section 1
//   e = max(erp phi / h, -max_recovery)          phi < 0: part of the overlap is removed
//   R_n = W_nn min(1/150, r a / (g h^2)) / stiffer  near-rigid contact; e = r phi / h for phi < 0     near_rigid() below
//   R_n = 1 / (h k (h + tau_d))                  compliant contact; e = phi / (h + tau_d)           SAP, theory section 3
//   R_t = tangential_compliance tr(W) / 3        0 by default: what friction holds does not creep
#pragma once
#include "contact/pack_rows.h"
#include "core/options.h"
#include "math/rotation.h"

namespace stiction {

template <class Real, class S>
HD Real normal_bias(const Options<S>& opt, Real gap) {
  return select(gap > Real(0), gap, max(gap * opt.erp, Real(-opt.max_recovery * opt.h))) * (S(1) / opt.h);
}

template <class Real>
struct NearRigid {
  Real R_n, e;
};

/// What shares the forces of a contact on a line or a face out, which the bare law leaves to the rounding of gaps: a spring
/// that sinks by the allowance a under the weight of the mass the contact sees, 1 / W_nn, damped so that a part
/// r = min(erp, 1/2) of an overlap goes in a step. Neither loads of a thousand times that mass nor impacts are to notice:
/// beyond a the force grows as the depth cubed, what closes by c g h, faster than by gravity, meets a spring stiffer by
/// c^(1/2), and softer than 1/150 W_nn nothing is. Beyond 100 a contact is rigid. An error of the depth changes by
/// 1 - 3 r in a step, or it would swing: hence the bound on r. free: the normal velocity J v*.
template <class Real, class S>
HD NearRigid<Real> near_rigid(const Options<S>& opt, Real gap, Real free, Real W_n) {
  const Real zero(0), one(1), bias = normal_bias(opt, gap);
  if (!(opt.penetration_allowance > S(0))) return {zero, bias};
  const S a = opt.penetration_allowance, fall = S(9.81) * opt.h, r = min(opt.erp, S(0.5));
  const Real depth = max(-gap, zero) * (S(1) / a), closing = max(-free - max(gap, zero) * (S(1) / opt.h), zero);
  const Real stiffer = max(max(one, depth * depth), sqrt(closing * (S(1) / fall)));
  const auto shallow = depth < Real(S(100));
  const Real e = select(gap > zero, bias, max(gap * (r / opt.h), Real(-opt.max_recovery)));
  return {select(shallow, W_n * min(S(1) / 150, r * a / (fall * opt.h)) / stiffer, zero), select(shallow, e, bias)};
}

/// Fills row, whose free velocity is known, from W's diagonal (w1, w2, wn) and the contact. Bodies on slides or welds cannot
/// follow every direction: there W is 0 or rounding, and is held above a part of the others: a penalty is made of it, which
/// in contacts between two links acts on each. Where nothing moves along the normal, no overlap is closed. Below a 1e-10th of
/// what the mean mass would give, W is rounding altogether, as of a contact on the axis of a hinge: those contacts get no
/// impulse and are told.
template <class Real, class S, class Number>
HD void contact_row(const Options<S>& opt, const ContactPoint<Real>& x, Number mean_mass, Real w1, Real w2, Real wn,
                    ContactRow<Real>& row, Mask<Real>& immovable) {
  Real one(1), zero(0), wt = (w1 + w2) * S(0.5), h(opt.h), sum = w1 + w2 + wn, least = sum * S(1e-3);
  const Mask<Real> moves = sum * Real(mean_mass) > Real(1e-10f), movable = x.active & moves;
  row.W_t = select(movable, max(wt, least), one), row.W_n = select(movable, max(wn, least), one);
  auto soft = x.stiffness > zero;
  Real slow = h + x.dissipation;
  const NearRigid<Real> near = near_rigid(opt, x.gap, row.free.z, row.W_n);
  row.e = select(soft, x.gap / slow, near.e);
  row.e = select(movable & (wn > sum * S(1e-7)), row.e, max(row.e, zero));
  row.R_n = select(soft, one / (h * max(x.stiffness, Real(1e-6f)) * slow), near.R_n);
  row.R_t = (w1 + w2 + wn) * (opt.tangential_compliance / 3);
  immovable = immovable | (x.active & negate(moves));
}

/// W_kk for direction k of a contact of one link with the world.
template <class L, class Real = typename L::Real>
HD void world_rows(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                   const Kinematics<L>& kin, const Contacts<L>& contacts, ContactProblem<L>& problem) {
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
  UNROLL for (int s = 0; s <= limb.links(); ++s)
      UNROLL for (int c = at.slot + limb.slot_begin(s); c < at.slot + limb.slot_end(s); ++c) {
        if (contacts.skip(c)) continue;
        const ContactPoint<Real>& x = contacts.point.slot[c];
        Vec3<Real> w;
        if constexpr (kPacks<L>) {
          const AxisForces<Real> F = axis_forces(x.p, x.frame);
          if (problem.packed.there()) {
            const PackedPlaces<Real> places(problem.packed.slot.slot[c]);
            w = compliance<L>(limb, at, problem.factor, kin.S, s, F,
                              PackedVisit<L>{problem.packed, places, m.trunk_dofs(), Real(1)});
          } else {
            w = compliance<L>(limb, at, problem.factor, kin.S, s, F);
          }
        } else {  // one by one, as a GPU's registers would not hold three
          auto along = [&](int k) {
            return compliance<L>(limb, at, problem.factor, kin.S, s, force_at(x.p, x.frame.row[k]));
          };
          w = {along(0), along(1), along(2)};
        }
        contact_row(opt, x, m.mean_mass, w.x, w.y, w.z, problem.row.slot[c], problem.immovable);
      }
  });
}

/// x' A^-1 x for x = J' f, a wrench on some links and nothing else.
template <class L>
HD typename L::Real compliance_of(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                                  const TreeMatrix<L>& factor, const PerLink<L, Force<typename L::Real>>& F) {
  using Real = typename L::Real;
  TreeVector<L> x;
  Real share[L::kTrunkDofs], limbs(0), trunk(0);
  each_dof<L>(g, m, [](Real& a) { a = Real(0); }, x);
  add_forces<L>(g, m, kin, [](const auto&, Place, int) { return zero_force<Real>(); }, &F, x, share);
  solve_inward<L>(g, m, factor, x, share);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) {
      Real a = x.limb[at.link + k];
      limbs = limbs + a * a * factor.limb[at.entry + entry_of(k, k)];
    }
  });
  for (int t = 0; t < m.trunk_dofs(); ++t) trunk = trunk + x.trunk[t] * x.trunk[t] * factor.trunk[t][t];
  return g.sum(limbs) + trunk;
}

/// pair_rows where all of a world is in one lane: link pair by link pair, on the ways of both links only. Worlds have the same
/// link pair in different slots: each brings the first that it has left.
template <class L, class Real = typename L::Real>
void serial_pair_rows(const typename L::Model& m, const Options<Scalar<Real>>& opt, const Kinematics<L>& kin,
                      const Contacts<L>& contacts, ContactProblem<L>& problem) {
  constexpr int kPairs = ContactProblem<L>::kPairs;
  Mask<Real> todo[kPairs], is[kPairs];
  Vec3<Real> w[kPairs];
  for (int s = 0; s < contacts.pairs; ++s) todo[s] = contacts.pair[s].point.active, w[s] = Vec3<Real>{};
  for (int first = 0; first < contacts.pairs; ++first)
    for (int lead = 0; lead < kWidth<Real>; ++lead) {
      if (!lane(todo[first], lead)) continue;
      const int link1 = lane(contacts.pair[first].link1, lead), link2 = lane(contacts.pair[first].link2, lead);
      Vec3<Real> p1 = contacts.pair[first].p1, p2 = contacts.pair[first].point.p;
      Mat3<Real> frame = contacts.pair[first].point.frame;
      Real place(-1);
      auto taken = mask_of<Real>(false);
      for (int s = first; s < contacts.pairs; ++s) {
        const PairContact<L>& c = contacts.pair[s];
        is[s] = todo[s] & negate(taken) & (c.link1 == index_of<Real>(link1)) & (c.link2 == index_of<Real>(link2));
        if (!any(is[s])) continue;
        todo[s] = todo[s] & negate(is[s]), taken = taken | is[s];
        p1 = select(is[s], c.p1, p1), p2 = select(is[s], c.point.p, p2);
        for (int k = 0; k < 3; ++k) frame.row[k] = select(is[s], c.point.frame.row[k], frame.row[k]);
        if (problem.packed.there()) place = select(is[s], problem.packed.pair[s], place);
      }
      const AxisForces<Real> F1 = axis_forces(p1, -frame), F2 = axis_forces(p2, frame);
      const PackedPlaces<Real> places(place);
      const Vec3<Real> found =
          problem.packed.there()
              ? pair_compliance<L>(m, problem.factor, kin.S, link1, F1, link2, F2,
                                   PackedVisit<L>{problem.packed, places, m.trunk_dofs(), Real(1)})
              : pair_compliance<L>(m, problem.factor, kin.S, link1, F1, link2, F2, NoVisit{});
      for (int s = first; s < contacts.pairs; ++s) w[s] = select(is[s], found, w[s]);
    }
  for (int s = 0; s < contacts.pairs; ++s)
    contact_row(opt, contacts.pair[s].point, m.mean_mass, w[s].x, w[s].y, w[s].z, problem.pair_row[s],
                problem.immovable);
}

template <class L, class Real = typename L::Real>
HD void pair_rows(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                  const Kinematics<L>& kin, const Contacts<L>& contacts, PerLink<L, Force<Real>>& F,
                  ContactProblem<L>& problem) {
  if constexpr (kPacks<L>) return serial_pair_rows<L>(m, opt, kin, contacts, problem);
  for (int s = 0; s < contacts.pairs; ++s) {
    const PairContact<L>& c = contacts.pair[s];
    Real w[3];
    for (int k = 0; k < 3; ++k) {
      Vec3<Real> f = c.point.frame.row[k];
      clear_forces<L>(g, m, F);
      scatter_add<L>(g, m, F, c.link2, force_at(c.point.p, f));
      scatter_add<L>(g, m, F, c.link1, force_at(c.p1, -f));
      w[k] = compliance_of<L>(g, m, kin, problem.factor, F);
    }
    contact_row(opt, c.point, m.mean_mass, w[0], w[1], w[2], problem.pair_row[s], problem.immovable);
  }
}

/// A limit at distance gap: l >= 0. It takes part where the free motion ends near it or beyond. free: J v*.
template <class Real, class S>
HD void limit_row(const Options<S>& opt, Real gap, Real free, ScalarRow<Real>& row) {
  const Real zero(0);
  row.free = free, row.e = normal_bias(opt, gap);
  row.R = zero, row.lower = zero, row.upper = Real(1e30f);
  row.active = gap < max(-free, zero) * opt.h + opt.margin;
}

/// The limit at one end of [lower, upper], the nearer after the free motion of q, whose velocity is free.
template <class Real, class S>
HD void range_row(const Options<S>& opt, Real q, Real lower, Real upper, Real free, ScalarRow<Real>& row) {
  const Real below = q - lower, above = upper - q, ahead = free * opt.h;
  const auto low = below + ahead < above - ahead;
  row.sign = select(low, Real(1), Real(-1));
  limit_row(opt, select(low, below, above), row.sign * free, row);
}

/// The limit of a ball joint, as in MuJoCo: the larger end of its range less the angle by which it is turned from the
/// reference. coef: minus the axis. From pi on nothing is limited.
template <class L, class Real = typename L::Real>
HD Real ball_gap(const typename L::Group& g, const typename L::Model& m, const State<L>& x, const int* link, Real* coef,
                 Mask<Real>& limited) {
  const auto& ball = m.link[link[0] - L::kTrunkLinks];
  const Quat<Real> q{dof_of<L>(g, m, x.qw, link[0]), dof_of<L>(g, m, x.q, link[0]), dof_of<L>(g, m, x.q, link[1]),
                     dof_of<L>(g, m, x.q, link[2])};
  const Vec3<Real> r = rotation_vector(normalized(q));
  const Real angle = norm(r), end = max(Real(ball.lower), Real(ball.upper)), zero(0), one(1);
  const Mask<Real> still = angle < Real(1e-12f);
  const Vec3<Real> axis = select(still, Vec3<Real>{one, zero, zero}, r * (one / select(still, one, angle)));
  coef[0] = -axis.x, coef[1] = -axis.y, coef[2] = -axis.z;
  limited = end < Real(Scalar<Real>(3.14159265358979));
  return end - angle;
}

/// Rows over several dofs. Equality: q1 - q1_0 - poly(q2 - q2_0) = 0. A tendon has the length sum coef (q - 0).
template <class L, class Real = typename L::Real>
HD void tie_rows(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                 const State<L>& x, const typename L::Real* ctrl, ContactProblem<L>& problem) {
  const TreeVector<L>& q = x.q;
  Real zero(0), one(1), unbounded(1e30f);
  for (int i = 0; i < m.ties; ++i) {
    const auto& tie = m.tie[i];
    ScalarRow<Real>& row = problem.tie[i];
    Real* coef = problem.tie_coef[i];
    Real length(0), rate(0);
    auto along = [&](const TreeVector<L>& y) {
      Real sum(0);
      for (int j = 0; j < tie.terms; ++j) sum = sum + coef[j] * dof_of<L>(g, m, y, tie.link[j]);
      return sum;
    };
    row.sign = one, row.e = row.R = zero, row.lower = -unbounded, row.upper = unbounded, row.active = mask_of<Real>(true);
    for (int j = 0; j < tie.terms; ++j) {
      coef[j] = Real(tie.coef[j]);
      length = length + coef[j] * dof_of<L>(g, m, q, tie.link[j]);
      rate = rate + coef[j] * dof_of<L>(g, m, x.v, tie.link[j]);
    }
    if (tie.kind == kTieEquality) {
      Real violation = dof_of<L>(g, m, q, tie.link[0]) - tie.q0[0], d(0), slope(0), value(0);
      if (tie.terms == 2) d = dof_of<L>(g, m, q, tie.link[1]) - tie.q0[1];
      for (int p = 4; p >= 0; --p) slope = slope * d + value, value = value * d + tie.poly[p];
      coef[0] = one;
      if (tie.terms == 2) coef[1] = -slope;
      Real limit(opt.max_recovery);
      row.e = clamp((violation - value) * (opt.erp / opt.h), -limit, limit);
    } else if (tie.kind == kTieLimit) {
      range_row(opt, length, Real(tie.lower), Real(tie.upper), along(problem.free), row);
      for (int j = 0; j < tie.terms; ++j) coef[j] = coef[j] * row.sign;
    } else if (tie.kind == kTieBallLimit) {
      Mask<Real> limited;
      const Real gap = ball_gap<L>(g, m, x, tie.link, coef, limited);
      limit_row(opt, gap, along(problem.free), row);
      row.active = row.active & limited;
    } else if (tie.kind == kTieFriction) {
      row.upper = Real(tie.friction) * opt.h, row.lower = -row.upper;
    } else {  // spring or servo: l = -(k_s e + b_s J v), k_s = h k, b_s = h d + h^2 k, as a bilateral row with R = 1 / b_s
      Real k(tie.stiffness), d(tie.damping), force(0);
      if (tie.kind == kTieSpring) {
        force = k * (max(Real(tie.lower) - length, zero) - max(length - tie.upper, zero));
        k = select((length > Real(tie.lower)) & (length < Real(tie.upper)), zero, k);
      } else {
        const auto& a = tie.actuator;
        Real u = ctrl[i], g1 = Real(a.gear);
        if (a.clamp_ctrl) u = clamp(u, Real(a.ctrl_lower), Real(a.ctrl_upper));
        force = Real(a.gain) * u + a.bias0 + Real(a.bias1) * g1 * length;
        if (!opt.implicit) force = force + Real(a.bias2) * g1 * rate;
        k = -Real(a.bias1) * g1 * g1, d = -Real(a.bias2) * g1 * g1;
        if (a.clamp_force) {
          auto clamped = (force > Real(a.force_upper)) | (force < Real(a.force_lower));
          force = clamp(force, Real(a.force_lower), Real(a.force_upper));
          k = select(clamped, zero, k), d = select(clamped, zero, d);
        }
        force = force * g1;
      }
      if (!opt.implicit) {  // MuJoCo's Euler: everything about tendons is explicit
        if (tie.kind == kTieSpring) force = force - Real(tie.damping) * rate;
        k = d = zero;
      }
      Real h(opt.h), bs = h * d + h * h * k;
      auto soft = bs > Real(1e-12f);
      row.R = select(soft, one / select(soft, bs, one), zero);
      row.e = select(soft, -(h * force) * row.R, zero);
      // Without stiffness and damping the force is constant: bounds that allow nothing else.
      row.lower = select(soft, -unbounded, h * force), row.upper = select(soft, unbounded, h * force);
    }
    row.free = along(problem.free);
    problem.tie_live[i] = g.any(row.active);
  }
}

/// W of the ties: J A^-1 J' by half a solve each.
template <class L, class Real = typename L::Real>
HD void tie_weights(const typename L::Group& g, const typename L::Model& m, ContactProblem<L>& problem) {
  for (int i = 0; i < m.ties; ++i) {
    TreeVector<L> x;
    Real share[L::kTrunkDofs], limbs(0), trunk(0);
    each_dof<L>(g, m, [](Real& a) { a = Real(0); }, x);
    for (int t = 0; t < m.trunk_dofs(); ++t) share[t] = Real(0);
    for (int j = 0; j < m.tie[i].terms; ++j) add_to_dof<L>(g, m, x, m.tie[i].link[j], problem.tie_coef[i][j]);
    solve_inward<L>(g, m, problem.factor, x, share);
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int k = 0; k < limb.links(); ++k) {
        Real a = x.limb[at.link + k];
        limbs = limbs + a * a * problem.factor.limb[at.entry + entry_of(k, k)];
      }
    });
    for (int t = 0; t < m.trunk_dofs(); ++t) trunk = trunk + x.trunk[t] * x.trunk[t] * problem.factor.trunk[t][t];
    problem.tie[i].W = g.sum(limbs) + trunk;
  }
}

template <class L, class Real = typename L::Real>
HD void dof_rows(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                 const TreeVector<L>& q, ContactProblem<L>& problem) {
  Real zero(0), one(1);
  auto fill = [&](const auto& link, Real x, Real free, ScalarRow<Real>& limit, int& limit_live, ScalarRow<Real>& friction,
                  int& friction_live, auto weight) {
    if (m.has_limits) {
      range_row(opt, x, Real(link.lower), Real(link.upper), free, limit);
      limit.active = limit.active & mask_of<Real>(link.limited != 0);
      limit_live = L::Shape::kFixed || (link.limited && any(limit.active));
    } else {
      limit_live = 0;
    }
    friction_live = 0;
    if (m.has_friction) {
      friction.upper = Real(link.friction) * opt.h, friction.lower = -friction.upper;
      friction.active = friction.upper > zero;
      friction.sign = one, friction.e = friction.R = zero, friction.free = free;
      friction_live = L::Shape::kFixed || any(friction.active);
    }
    if (!limit_live && !friction_live) return;
    Real w = weight();
    limit.W = friction.W = w;
  };
  UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t)
    fill(m.trunk[m.link_of_dof(t)], q.trunk[t], problem.free.trunk[t], problem.limit.trunk[t], problem.limit_live.trunk[t],
         problem.friction.trunk[t], problem.friction_live.trunk[t],
         [&] { return trunk_dof_compliance<L>(problem.factor, t); });
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      int i = at.link + k;
      fill(limb.link(k), q.limb[i], problem.free.limb[i], problem.limit.limb[i], problem.limit_live.limb[i],
           problem.friction.limb[i], problem.friction_live.limb[i],
           [&] { return dof_compliance<L>(limb, at, problem.factor, k); });
    }
  });
}

}  // namespace stiction
