// From contacts, M and b to the contact problem, but for biases of contacts (bias.h): rows, the diagonal of W.
//
//   R_t = tangential_compliance tr(W) / 3        0 by default: what friction holds does not creep
//
// docs/theory.md, sections 3 and 6.
#pragma once
#include "contact/law.h"
#include "contact/whiten.h"
#include "dynamics/tendon_drive.h"
#include "math/rotation.h"

namespace stiction {

/// The free velocities of a contact, from those of its point in its frame.
template <class Model, class Real>
HD void free_row(const Model& m, const ContactPoint<Real>& x, const Motion<Real>& V, ContactRow<Real>& row) {
  row.free = V.v;
  if (m.has_spin) row.spin_free = times(V.w, spin_arms(x));
}

/// The mobilities of row from W's diagonal w (t1, t2, n). Bodies on slides or welds cannot follow every direction: there W is 0 or
/// rounding, and is held above a part of the others: a penalty is made of it, which in contacts between two links acts on each. Below a
/// 1e-10th of what the mean mass would give, W is rounding altogether, as of a contact on the axis of a hinge: those contacts get no
/// impulse and are told.
template <class L, class Real, class S, class Number>
HD void mobility_row(const Options<S>& opt, const ContactPoint<Real>& x, Number mean_mass, Vec3<Real> w,
                     ContactRow<Real>& row, ContactProblem<L>& problem) {
  const Real one(1), sum = w.x + w.y + w.z, least = sum * S(kLeastMobility);
  const Mask<Real> moves = sum * Real(mean_mass) > Real(1e-10f), movable = x.active & moves;
  row.W_t = select(movable, max((w.x + w.y) * S(0.5), least), one), row.W_n = select(movable, max(w.z, least), one);
  row.R_t = sum * (opt.tangential_compliance / 3);
  row.closes = movable & (w.z > sum * S(1e-5));
  problem.immovable = problem.immovable | (x.active & negate(moves) & (x.gap <= Real(0)));
}

/// W of a contact's couple from its diagonal by turning alone; 0, and nothing in Y, where bodies cannot turn so: there it is
/// rounding.
template <class L, class Real = typename L::Real>
HD void spin_row(const ContactPoint<Real>& x, Vec3<Real> w, const Places<Real>& places, const RowTable<L>& table,
                 ContactRow<Real>& row) {
  const Real zero(0), least = (w.x + w.y + w.z) * Scalar<Real>(1e-6);
  auto used = [&](Real wi, int d) {
    const Mask<Real> on = x.active & (wi > least), noise = x.active & negate(on) & (wi > zero);
    if (any(noise))
      places.each([&](int k, const Mask<Real>& is) {
        const RowArrays<Real>& rows = table.rows;
        Real* y = rows.Y + static_cast<int64_t>(rows.spin_row(k) + d) * rows.width;
        for (int a = 0; a < rows.width; ++a) blend(is & noise, zero, y[a]);
      });
    return select(on, wi, zero);
  };
  row.spin_W = {used(w.x, 0), used(w.y, 1), used(w.z, 2)};
}
/// Whether some world's contact in this slot has one: else its rows stay 0.
template <class Real>
HD bool has_couple(const ContactPoint<Real>& x) {
  return any(x.active & (x.torsion + x.rolling > Real(0)));
}
/// A frame whose axes are as long as a contact's arms.
template <class Real>
HD Mat3<Real> arm_frame(const Mat3<Real>& frame, Vec3<Real> arms) {
  return {{frame.row[0] * arms.x, frame.row[1] * arms.y, frame.row[2] * arms.z}};
}

/// Rows of contacts of one link with the world.
template <class L, class Real = typename L::Real>
HD_ONCE void world_rows(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                        const Kinematics<L>& kin, const Contacts<L>& contacts, ContactProblem<L>& problem) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(kin, contacts, problem);
  each_slot<L>(g, m, contacts, [&](const auto& limb, Place at, int s, int c) {
    const ContactPoint<Real>& x = contacts.point.slot[c];
    const Places<Real> places(problem.table.slot.slot[c]);
    const Vec3<Real> w = compliance<L>(limb, at, problem.factor, kin.S, s, axis_forces(x.p, x.frame),
                                       problem.table.visit(limb, at, places));
    ContactRow<Real>& row = problem.row.slot[c];
    row.bend = x.frame * x.bend;
    mobility_row(opt, x, m.mean_mass, w, row, problem);
    if (!m.has_spin) return;
    row.spin_W = Vec3<Real>{};
    if (!has_couple(x)) return;
    const Places<Real> spins = places.of_spins();
    const RowVisit<L> visit = problem.table.visit(limb, at, spins);
    const Vec3<Real> turning =
        compliance<L>(limb, at, problem.factor, kin.S, s, axis_couples(arm_frame(x.frame, spin_arms(x))), visit);
    spin_row(x, turning, places, problem.table, row);
  });
}

/// x' A^-1 x of x (a row of J), of which lanes hold their limbs' part and the trunk's, and half its solve on the way:
/// put(limb, at, i, y) for the limbs of this lane, put_trunk(t, y) on one lane. share: what limbs still add to the trunk.
template <class L, class Put, class PutTrunk, class Real = typename L::Real>
HD Real half_solve(const typename L::Group& g, const typename L::Model& m, const TreeMatrix<L>& factor,
                   TreeVector<L>& x, Real (&share)[L::kTrunkDofs], Put put, PutTrunk put_trunk) {
  Real limbs(0), trunk(0);
  solve_inward<L>(g, m, factor, x, share);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) {
      const Real a = x.limb[at.link + k];
      put(limb, at, at.link + k, a);
      limbs = limbs + a * a * factor.limb[at.entry + entry_of(k, k)];
    }
  });
  for (int t = 0; t < m.trunk_dofs(); ++t) {
    if (g.rank() == 0) put_trunk(t, x.trunk[t]);
    trunk = trunk + x.trunk[t] * x.trunk[t] * factor.trunk[t][t];
  }
  return g.sum(limbs) + trunk;
}

/// pair_rows where all of a world is in one lane: link pair by link pair, on the ways of both links only. Worlds have the same
/// link pair in different slots: each brings the first that it has left.
template <class L, class Real = typename L::Real>
void serial_pair_rows(const typename L::Model& m, const Options<Scalar<Real>>& opt, const Kinematics<L>& kin,
                      const Contacts<L>& contacts, ContactProblem<L>& problem) {
  constexpr int kPairs = ContactProblem<L>::kPairs;
  Mask<Real> todo[kPairs], is[kPairs];
  Vec3<Real> w[kPairs], turning[kPairs];
  for (int s = 0; s < contacts.pairs; ++s) todo[s] = contacts.pair[s].point.active, w[s] = turning[s] = Vec3<Real>{};
  for (int first = 0; first < contacts.pairs; ++first)
    for (int lead = 0; lead < kWidth<Real>; ++lead) {
      if (!lane(todo[first], lead)) continue;
      const int link[2] = {lane(contacts.pair[first].link1, lead), lane(contacts.pair[first].link2, lead)};
      Vec3<Real> p1 = contacts.pair[first].p1, p2 = contacts.pair[first].point.p, arms{};
      Mat3<Real> frame = contacts.pair[first].point.frame;
      Real place(-1);
      auto taken = mask_of<Real>(false);
      for (int s = first; s < contacts.pairs; ++s) {
        const PairContact<L>& c = contacts.pair[s];
        is[s] = todo[s] & negate(taken) & (c.link1 == index_of<Real>(link[0])) & (c.link2 == index_of<Real>(link[1]));
        if (!any(is[s])) continue;
        todo[s] = todo[s] & negate(is[s]), taken = taken | is[s];
        p1 = select(is[s], c.p1, p1), p2 = select(is[s], c.point.p, p2);
        if (m.has_spin) arms = select(is[s], spin_arms(c.point), arms);
        for (int k = 0; k < 3; ++k) frame.row[k] = select(is[s], c.point.frame.row[k], frame.row[k]);
        place = select(is[s], problem.table.pair[s], place);
      }
      const AxisForces<Real> F[2] = {axis_forces(p1, -frame), axis_forces(p2, frame)};
      const Places<Real> places(place);
      const Vec3<Real> found = pair_compliance<L>({}, m, problem.factor, kin.S, link, F, problem.table, places);
      for (int s = first; s < contacts.pairs; ++s) w[s] = select(is[s], found, w[s]);
      if (!m.has_spin || !any(arms.x + arms.z > Real(0))) continue;
      const Mat3<Real> turn = arm_frame(frame, arms);
      const AxisForces<Real> couple[2] = {axis_couples(-turn), axis_couples(turn)};
      const Vec3<Real> turns =
          pair_compliance<L>({}, m, problem.factor, kin.S, link, couple, problem.table, places.of_spins());
      for (int s = first; s < contacts.pairs; ++s) turning[s] = select(is[s], turns, turning[s]);
    }
  for (int s = 0; s < contacts.pairs; ++s) {
    const ContactPoint<Real>& x = contacts.pair[s].point;
    mobility_row(opt, x, m.mean_mass, w[s], problem.pair_row[s], problem);
    if (m.has_spin) spin_row(x, turning[s], Places<Real>(problem.table.pair[s]), problem.table, problem.pair_row[s]);
  }
}

/// Rows of contacts between two links.
template <class L, class Real = typename L::Real>
HD_ONCE void pair_rows(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                       const Kinematics<L>& kin, const Contacts<L>& contacts, ContactProblem<L>& problem) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(kin, contacts, problem);
  if constexpr (L::Group::kSize == 1) {
    serial_pair_rows<L>(m, opt, kin, contacts, problem);
  } else {
    const RowTable<L>& table = problem.table;
    for (int s = 0; s < contacts.pairs; ++s) {
      const PairContact<L>& c = contacts.pair[s];
      const int link[2] = {c.link1, c.link2};
      const AxisForces<Real> F[2] = {axis_forces(c.p1, -c.point.frame), axis_forces(c.point.p, c.point.frame)};
      const Places<Real> places(table.pair[s]);
      const Vec3<Real> w = pair_compliance<L>(g, m, problem.factor, kin.S, link, F, table, places);
      mobility_row(opt, c.point, m.mean_mass, w, problem.pair_row[s], problem);
      if (!m.has_spin) continue;
      problem.pair_row[s].spin_W = Vec3<Real>{};
      if (!has_couple(c.point)) continue;
      const Mat3<Real> turn = arm_frame(c.point.frame, spin_arms(c.point));
      const AxisForces<Real> couple[2] = {axis_couples(-turn), axis_couples(turn)};
      const Vec3<Real> turning =
          pair_compliance<L>(g, m, problem.factor, kin.S, link, couple, table, places.of_spins());
      g.sync();
      spin_row(c.point, turning, places, table, problem.pair_row[s]);
    }
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

/// The limit at one end of [lower, upper], the nearer after the free motion of q + low, whose velocity is free.
template <class Real, class S>
HD void range_row(const Options<S>& opt, Real q, Real low, Real lower, Real upper, Real free, ScalarRow<Real>& row) {
  const Real below = q - lower + low, above = upper - q - low, ahead = free * opt.h;
  const auto at_lower = below + ahead < above - ahead;
  row.sign = select(at_lower, Real(1), Real(-1));
  limit_row(opt, select(at_lower, below, above), row.sign * free, row);
}

/// The limit of a ball joint, as in MuJoCo: the larger end of its range less the angle by which it is turned from the
/// reference. coef: minus the axis. From pi on nothing is limited.
template <class L, class Real = typename L::Real>
HD Real ball_gap(const typename L::Group& g, const typename L::Model& m, const State<L>& x, const int* link, Real* coef,
                 Mask<Real>& limited) {
  const auto& ball = m.link[link[0] - L::kLimbsFrom];
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

/// y1 - poly(y2) of an equality at q, and its row.
template <class L, class Tie, class Real = typename L::Real>
HD Real equality_of(const typename L::Group& g, const typename L::Model& m, const Tie& tie, const TreeVector<L>& q,
                    Real* coef) {
  Real violation(0), d(0), slope(0), value(0);
  for (int j = 0; j < tie.terms; ++j) {
    const Real moved = dof_of<L>(g, m, q, tie.link[j]) - tie.q0[j];
    violation = violation + Real(tie.coef[j]) * moved, d = d + moved * tie.second[j];
  }
  for (int p = 4; p >= 0; --p) slope = slope * d + value, value = value * d + tie.poly[p];
  for (int j = 0; j < tie.terms; ++j) coef[j] = Real(tie.coef[j]) - slope * tie.second[j];
  return violation - value;
}

/// Takes joints that have the tendon's force in their own drive (bound_together) out of row i of an actuator, which keeps how they move.
template <class L, class Real = typename L::Real>
HD void leave_joints(const typename L::Group& g, const typename L::Model& m, const TreeVector<L>& v, int i,
                     SoftDrive<Real>& soft, ContactProblem<L>& problem) {
  Real *coef = problem.tie_coef[i], apart(0), ahead(0), kept(0);
  for (int j = 0; j < m.tie[i].terms; ++j) {
    const int flat = m.tie[i].link[j];
    const Real by_row = coef[j] * dof_of<L>(g, m, problem.by_rows, flat), left = coef[j] - by_row;
    apart = apart + left * dof_of<L>(g, m, v, flat), ahead = ahead + left * dof_of<L>(g, m, problem.free, flat);
    coef[j] = by_row, kept = kept + abs(by_row);
  }
  soft.impulse = soft.impulse - soft.slope * apart;
  problem.tie_ahead[i] = ahead - apart;
  problem.tie[i].active = problem.tie[i].active & (kept > Real(0));
}

/// Rows over several dofs. Equality: y1 - poly(y2) = 0 of two sums of (q - q0). A tendon has the length sum coef (q - 0).
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
    row.sign = one, row.e = row.R = zero, row.lower = -unbounded, row.upper = unbounded,
    row.active = mask_of<Real>(tie.actuators > 0);
    for (int j = 0; j < tie.terms; ++j) {
      coef[j] = Real(tie.coef[j]);
      length = length + coef[j] * dof_of<L>(g, m, q, tie.link[j]);
      rate = rate + coef[j] * dof_of<L>(g, m, x.v, tie.link[j]);
    }
    if (tie.kind == kTieEquality) {
      const Real off = equality_of<L>(g, m, tie, q, coef), violation = off + along(x.low), limit(opt.max_recovery);
      row.e = clamp(violation * (opt.erp / opt.h), -limit, limit) + problem.tie_bend[i];
    } else if (tie.kind == kTieLimit) {
      range_row(opt, length, along(x.low), Real(tie.lower), Real(tie.upper), along(problem.free), row);
      for (int j = 0; j < tie.terms; ++j) coef[j] = coef[j] * row.sign;
    } else if (tie.kind == kTieBallLimit) {
      Mask<Real> limited;
      const Real gap = ball_gap<L>(g, m, x, tie.link, coef, limited);
      limit_row(opt, gap + along(x.low), along(problem.free), row);
      row.active = row.active & limited;
    } else if (tie.kind == kTieFriction) {
      row.upper = Real(tie.friction) * opt.h, row.lower = -row.upper;
    } else {  // spring or servo: l = h f - b_s J v, b_s = h t d + h^2 t u k (t, u = theta, theta_vq), as a row with R = 1 / b_s
      Drive<Real> drive;
      ForceRange<Real> range{-unbounded, unbounded};
      if (tie.kind == kTieSpring) {
        const Real k(tie.stiffness), force = k * (max(Real(tie.lower) - length, zero) - max(length - tie.upper, zero));
        drive = {force, Real(tie.damping), select((length > Real(tie.lower)) & (length < Real(tie.upper)), zero, k)};
        drive = stepped(drive, rate, opt.implicit != 0);  // MuJoCo's Euler: everything about tendons is explicit
      } else {
        const TendonDrive<Real> pull = tendon_drive<Real>(m.tie + i, ctrl + i, length, rate, opt.implicit != 0);
        drive = pull.drive, range = pull.range;
      }
      SoftDrive<Real> soft = softened(opt, drive, rate);
      if (L::Shape::kPulls && tie.ranged > 0) leave_joints<L>(g, m, x.v, i, soft, problem);
      const Mask<Real> is_soft = soft_row(soft, range, zero, Real(opt.h), row);
      // Without stiffness and damping the force is constant: bounds that allow nothing else.
      const Real constant = clamp(soft.impulse, row.lower, row.upper);
      row.lower = select(is_soft, row.lower, constant), row.upper = select(is_soft, row.upper, constant);
    }
    row.free = along(problem.free);
    problem.tie_live[i] = g.any(row.active);
  }
}

/// The row of a tie in Y, and its W. Where the joints that an actuator's row has left are moved by more than half of what it sees
/// itself, as by a strong servo on light links, it sees them as they go in the free motion and by its own impulse: else servo and
/// links would drive each other on from step to step.
template <class L, class Real = typename L::Real>
HD void half_solve_tie(const typename L::Group& g, const typename L::Model& m, int i, ContactProblem<L>& problem) {
  const RowTable<L>& table = problem.table;
  const Places<Real> places(problem.tie_live[i] ? table.tie[i] : Real(-1));
  const auto& tie = m.tie[i];
  ScalarRow<Real>& row = problem.tie[i];
  auto solve = [&](auto coef, auto put, auto put_trunk) {
    TreeVector<L> x;
    Real share[L::kTrunkDofs];
    each_dof<L>(g, m, [](Real& a) { a = Real(0); }, x);
    for (int t = 0; t < m.trunk_dofs(); ++t) share[t] = Real(0);
    for (int j = 0; j < tie.terms; ++j) add_to_dof<L>(g, m, x, tie.link[j], coef(j));
    return half_solve<L>(g, m, problem.factor, x, share, put, put_trunk);
  };
  auto kept = [&](int j) { return problem.tie_coef[i][j]; };
  row.W = solve(
      kept, [&](const auto& limb, Place at, int k, Real y) { table.visit(limb, at, places)(false, k, y); },
      [&](int t, Real y) { table.visit(places)(true, t, y); });
  if (!L::Shape::kPulls || tie.ranged == 0) return;
  auto left_out = mask_of<Real>(false);
  for (int j = 0; j < tie.terms; ++j) left_out = left_out | negate(kept(j) == Real(tie.coef[j]));
  if (!g.any(left_out)) return;
  auto nowhere = [](const auto&, Place, int, Real) {};
  auto not_there = [](int, Real) {};
  const Real all = solve([&](int j) { return Real(tie.coef[j]); }, nowhere, not_there),
             left = solve([&](int j) { return Real(tie.coef[j]) - kept(j); }, nowhere, not_there);
  const Real zero(0), half(0.5f), moved = (all - left - row.W) * half;
  const Mask<Real> strong = (row.R > zero) & (abs(moved) > (row.R + row.W) * half);
  row.e = select(strong, row.e + problem.tie_ahead[i], row.e);
  row.R = select(strong, max(row.R + moved, zero), row.R);
}

/// Limits, dry friction and drives (free_motion) of joints, but for W, which comes with the half-solved row.
template <class L, class Real = typename L::Real>
HD void dof_rows(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                 const State<L>& x, ContactProblem<L>& problem) {
  if (m.has_limits)
    each_joint<L>(
        g, m,
        [&](const auto& link, const Real& q, const Real& low, const Real& free, ScalarRow<Real>& row, int& live) {
          live = link.limited;
          if (!live) return;
          range_row(opt, q, low, Real(link.lower), Real(link.upper), free, row);
          live = any(row.active);
        },
        x.q, x.low, problem.free, problem.dof[kLimitRow].row, problem.dof[kLimitRow].live);
  if (m.has_friction)
    each_joint<L>(
        g, m,
        [&](const auto& link, const Real& free, ScalarRow<Real>& row, int& live) {
          row.upper = Real(link.friction) * opt.h, row.lower = -row.upper;
          row.active = row.upper > Real(0), live = any(row.active);
          row.sign = Real(1), row.e = row.R = Real(0), row.free = free;
        },
        problem.free, problem.dof[kFrictionRow].row, problem.dof[kFrictionRow].live);
  if (L::Shape::kRanges && m.has_ranges)
    each_joint<L>(
        g, m,
        [&](const auto&, const Real& free, ScalarRow<Real>& row, int& live) {
          row.sign = Real(1), row.free = free, live = any(row.active);
        },
        problem.free, problem.dof[kDriveRow].row, problem.dof[kDriveRow].live);
}

}  // namespace stiction
