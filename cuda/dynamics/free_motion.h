// A and b of a step, A (v' - v) = b being the motion without contacts and rows: docs/theory.md, section 2; [Castro2023] eq. 15 with
// theta = 1. Solved for what changes: what does not stays to the bit, and rounding, which would have its bias, gives nothing momentum.
//
//   implicit     A = M + h D + h^2 K,   b = h (f - D v - c - h K v),   D, K of joints and actuators; f without damping
//   explicit     A = M + h D (joint damping only), b likewise with the actuators' damping in f      MuJoCo's Euler
//
// f: springs, actuators, applied forces, gravity compensation; all at the old state. What hangs on a free root falls before that, by h times
// gravity: all of it alike, which rounding in A^-1 would have turned.
//
// By Newton ([Castro2023] (14)) the same is evaluated at a state within the step, and with the force of damping:
//
//   newton       A = M + h t D + h^2 t u K,   b = h (f - D v - c) - M (v' - v0),   t, u = theta, theta_vq
//
// An actuator at its force limit counts as a constant force, as do all of a joint at the joint's; where the end of the step decides
// whether it is, the drive is a row, and b has the force that is foretold; see actuator.h. Actuators on tendons are rows
// (contact/assemble.h), but where the range of a joint binds them together with the joint's own: there that joint has them in its drive;
// see tendon_drive.h.
//
// The spring of a ball joint is -k r, r the rotation vector from where it rests, as in MuJoCo; in K it is k times the identity,
// which leaves out how r changes with a turn across r. A free base has the same, and -k x, in world axes.
#pragma once
#include "core/options.h"
#include "dynamics/actuator.h"
#include "dynamics/crba.h"
#include "dynamics/gyroscopic.h"
#include "dynamics/rnea.h"
#include "dynamics/tendon_drive.h"
#include "kinematics/jacobian.h"
#include "math/rotation.h"
#include "model/gather.h"

namespace stiction {

/// Forces from outside, by place: generalized ones per dof, wrenches per link at O. `wrench` null: none.
template <class L>
struct Loads {
  using Real = typename L::Real;
  Real ctrl[at_least_one(L::kActuators)];        // in the order of trunk links, then each_limb
  Real tie_ctrl[at_least_one(L::Shape::kTies)];  // of actuators on tendons
  TreeVector<L> force;                           // qfrc_applied; free base: as twist
  PerLink<L, Force<Real>> wrench;
  bool any_force, any_wrench;

  HD bool has_force() const { return any_force; }
  HD bool has_wrench() const { return any_wrench; }
};

/// How far a ball is turned from where its spring rests, in the body's axes.
template <class Real, class Number>
HD Vec3<Real> turned(const LinkModel<Number>& ball, const Quat<Real>& orientation) {
  return rotation_vector(normalized(conjugate(quat_cast<Real>(ball.spring_quat)) * orientation));
}

/// The spring of a free base. Its turning part is the same about all axes.
template <class L, class Real = typename L::Real>
HD void base_spring(const Options<Scalar<Real>>& opt, const typename L::Link& base, const Mat3<Real>& R,
                    const State<L>& x, const TreeVector<L>& from, TreeMatrix<L>& A, TreeVector<L>& b) {
  const Real h(opt.h), stiffness(base.stiffness);
  Real stretch[6];
  put(Force<Real>{R * turned(base, x.orientation), x.position - vec<Real>(base.offset)}, stretch);
  for (int t = 0; t < 6; ++t) {
    b.trunk[t] = b.trunk[t] - h * (stiffness * stretch[t]);
    if (!opt.implicit) continue;
    const Real more = h * opt.theta * (h * opt.theta_vq * stiffness);
    A.trunk[t][t] = A.trunk[t][t] + more;
    if (!opt.newton) b.trunk[t] = b.trunk[t] - more * from.trunk[t];
  }
}

/// Where a joint is and how it moves. q: of a ball's links, how far it is turned.
template <class Real>
struct JointState {
  Real q, v;
};

/// Actuators are linear about `start`, where the step begins, and that tells which are held; `x`: the state to be evaluated. from:
/// what b changes; lacking: what it has M of; ctrl: of the joint's actuators; applied: its part of qfrc_applied; flat: its link; pulls: of
/// every tie, see pulls_of.
template <class Real>
struct JointInputs {
  JointState<Real> start, x;
  Real from, lacking;
  const Real* ctrl;
  Real applied;
  int flat;
  const TendonDrive<Real>* pulls;
};

/// What free_motion leaves of drives to the rows: those whose range the end of the step decides upon; and by which part, 1 or 0, rows of
/// actuators on tendons move a dof (where ModelView::has_pulls).
template <class L, class Row>
struct DriveRows {
  PerDof<L, Row>& row;
  TreeVector<L>& by_rows;
};

/// What pulls tendons over joints with a force range, by tie, where the step begins.
template <class L, class Real = typename L::Real>
HD void pulls_of(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                 const State<L>& start, const Real* ctrl, TendonDrive<Real>* pulls) {
  for (int i = 0; i < m.ties; ++i) {
    const auto& tie = m.tie[i];
    if (tie.kind != kTieActuator || tie.actuators == 0 || tie.ranged == 0) continue;
    Real length(0), rate(0);
    for (int j = 0; j < tie.terms; ++j) {
      length = length + Real(tie.coef[j]) * dof_of<L>(g, m, start.q, tie.link[j]);
      rate = rate + Real(tie.coef[j]) * dof_of<L>(g, m, start.v, tie.link[j]);
    }
    pulls[i] = tendon_drive<Real>(m.tie + i, ctrl + i, length, rate, opt.implicit != 0);
  }
}

/// The drive of a joint whose range bounds actuators on tendons, too. own: of its own actuators, each within its range. Where the range
/// of all binds, drive is the bound or, of a row, the force foretold, and the joint has its tendons in it: by_rows = 0.
template <class L, class Row, class Real = typename L::Real>
HD void bound_together(const typename L::Model& m, const Options<Scalar<Real>>& opt, const typename L::Link& link,
                       const JointInputs<Real>& in, const InertDrive<Real>& own, Drive<Real>& drive, Row& row,
                       Real& by_rows) {
  const Real zero(0), one(1), v = in.start.v;
  const bool alone = link.actuators == 0 && link.pulls == 1;
  ForceRange<Real> range{Real(link.force_lower), Real(link.force_upper)};
  Drive<Real> all = own.drive;
  for (int i = 0; i < m.ties; ++i) {
    const auto& tie = m.tie[i];
    if (tie.kind != kTieActuator || tie.actuators == 0) continue;
    for (int j = 0; j < tie.terms; ++j) {
      if (tie.link[j] != in.flat) continue;
      const Real coef(tie.coef[j]);
      Drive<Real> part = on_joint(in.pulls[i], coef, tie.ranged, v, opt.h * opt.theta);
      const ForceRange<Real> of = scaled(in.pulls[i].range, coef);
      if (alone) range = {clamp(of.low, range.low, range.high), clamp(of.high, range.low, range.high)};
      else part = held(part, of, v, own.inertia, opt.h);
      all = all + part;
    }
  }
  const Foretold<Real> end = foretell<false>(all, range, v, own.inertia, opt.h);
  Row together;
  together.active = end.open & soft_row(softened(opt, all, v), range, end.force * opt.h, Real(opt.h), together);
  row.e = select(end.binds, together.e, row.e), row.R = select(end.binds, together.R, row.R);
  row.lower = select(end.binds, together.lower, row.lower), row.upper = select(end.binds, together.upper, row.upper);
  row.active = together.active | (row.active & negate(end.binds));
  drive = {select(end.binds, end.force, drive.force), select(end.binds, zero, drive.damping),
           select(end.binds, zero, drive.stiffness)};
  by_rows = select(end.binds, zero, one);
}

/// One joint's part. mass: its diagonal entry; bias: tau of inverse dynamics at a = -lacking / h on entry, b on exit; row, by_rows: of
/// its drive, see DriveRows.
template <class L, class Row, class Real = typename L::Real>
HD void joint_motion(const typename L::Model& m, const Options<Scalar<Real>>& opt, const typename L::Link& link,
                     const JointInputs<Real>& in, Real& mass, Real& bias, Row& row, Real& by_rows) {
  const auto& [start, x, from, lacking, ctrl, applied, flat, pulls] = in;
  const Real h(opt.h), zero(0), inertia = mass + link.armature;
  Drive<Real> drive{zero, zero, zero};
  ForceRange<Real> range{Real(link.force_lower), Real(link.force_upper)};
  const bool alone = !L::Shape::kAnyJoint || link.actuators == 1, pulled = L::Shape::kPulls && link.pulls > 0;
  if (pulled) range = {Real(-1e30f), Real(1e30f)};  // the joint's bounds the sum with tendons, see bound_together
  auto add = [&](const auto& a, Real u) {
    Drive<Real> own = stepped(drive_of(a, u, start.q), start.v, opt.implicit != 0);
    if (a.clamp_force) {
      const ForceRange<Real> of = force_range<Real>(a);
      if (alone) range = {clamp(of.low, range.low, range.high), clamp(of.high, range.low, range.high)};
      else own = held(own, of, start.v, inertia, opt.h);  // of several on one joint
    }
    drive = drive + own;
  };
  if constexpr (L::Shape::kAnyJoint) {
    for (int a = 0; a < link.actuators; ++a) add(m.actuator[link.actuator_begin + a], ctrl[a]);
  } else {
    if (link.actuators) add(m.actuator[link.actuator_begin], ctrl[0]);
  }
  const Drive<Real> asked = drive;
  drive = held(asked, range, start.v, inertia, opt.h);
  if (L::Shape::kRanges && m.has_ranges) {
    const Foretold<Real> end = foretell(asked, range, start.v, inertia, opt.h);
    row.active = end.open & soft_row(softened(opt, asked, start.v), range, end.force * h, h, row);
    drive = {select(row.active, end.force, drive.force), select(row.active, zero, drive.damping),
             select(row.active, zero, drive.stiffness)};
  }
  if (L::Shape::kPulls && m.has_pulls) by_rows = Real(1);
  if (pulled) {
    const InertDrive<Real> own{held(asked, range, start.v, inertia, opt.h), inertia};
    bound_together<L>(m, opt, link, in, own, drive, row, by_rows);
  }
  if (opt.newton) drive.force = drive.force - drive.stiffness * (x.q - start.q);
  if (m.has_springs) {
    drive.force = drive.force - Real(link.stiffness) * (x.q - link.spring_ref);
    if (opt.implicit) drive.stiffness = drive.stiffness + link.stiffness;
  }
  const Real more = h * opt.theta * (drive.damping + link.damping + h * opt.theta_vq * drive.stiffness);
  mass = inertia + more;
  bias = lacking * link.armature - bias * h + h * (drive.force + applied);
  if (opt.newton) bias = bias - h * (drive.damping + link.damping) * x.v;
  else bias = bias - more * from - link.armature * (from - x.v);
  if (opt.explicit_damping) mass = mass - h * link.damping, bias = bias + h * link.damping * (from - x.v);
}

/// Where A and b are wanted. `start`: the state that the step begins with, x itself but for Newton; lacking: what b has M of, what the
/// velocity of Newton lacks of that of `start`.
template <class L>
struct StepPoint {
  const State<L>&start, &x;
  const TreeVector<L>* lacking;  // null: nothing
};
/// What b changes: for Newton nothing, else the velocities of x, of free roots after h of gravity.
template <class L, class Real = typename L::Real>
HD void fall(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
             const State<L>& x, TreeVector<L>& from) {
  each_dof<L>(g, m, [&](Real v, Real& to) { to = opt.newton ? Real(0) : v; }, x.v, from);
  if (opt.newton) return;
  const Vec3<Real> gain = vec<Real>(m.gravity) * Real(opt.h);
  auto add = [&gain](Real* v) { v[0] = v[0] + gain.x, v[1] = v[1] + gain.y, v[2] = v[2] + gain.z; };
  if (m.free_base()) add(from.trunk + 3);
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (is_free_body(limb)) add(from.limb + at.link);
    });
}

/// from: of fall(); kin, I: at at.x.
template <class L>
struct MotionInputs {
  StepPoint<L> at;
  const TreeVector<L>& from;
  const Kinematics<L>& kin;
  const PerLink<L, RigidInertia<typename L::Real>>& I;
  const Loads<L>& loads;
};

/// A and b; M needs no copy: it is A on the way. bias: what b has of inverse dynamics, b = h (... - bias), where
/// centres move (see Options); scratch elsewhere.
template <class L, class Row>
HD void free_motion(const typename L::Group& g, const typename L::Model& m,
                    const Options<Scalar<typename L::Real>>& opt, const MotionInputs<L>& in, TreeVector<L>& bias,
                    TreeMatrix<L>& A, TreeVector<L>& b, const DriveRows<L, Row>& drives) {
  const auto& [at, from, kin, I, loads] = in;
  const auto& [start, x, lacking] = at;
  using Real = typename L::Real;
  using S = Scalar<Real>;
  S h = opt.h;
  // M v - h c is -h times the inverse dynamics of the acceleration -v / h: one pass gives momentum, if there is some, and bias together.
  if (lacking) each_dof<L>(g, m, [h](Real v, Real& a) { a = v * (S(-1) / h); }, *lacking, bias);
  inverse_dynamics<L>(g, m, kin, I, x.v, lacking ? &bias : nullptr, opt.newton == 0, b);
  mass_matrix<L>(g, m, kin, I, A);
  if (opt.moves_centres()) {
    add_gyroscopic<L>(g, m, h, I, x, A, b);
    each_dof<L>(g, m, [](Real bi, Real& copy) { copy = bi; }, b, bias);
  }

  const Real zero(0);
  if (m.free_base()) {
    const auto& base = m.trunk[0];
  UNROLL for (int t = 0; t < 6; ++t) {
      const Real v = x.v.trunk[t], force = loads.has_force() ? loads.force.trunk[t] * h : zero;
      const Real more = Real(base.damping) * (h * opt.theta);
      b.trunk[t] = b.trunk[t] * -h + force;
      if (lacking) b.trunk[t] = b.trunk[t] + lacking->trunk[t] * base.armature;
      A.trunk[t][t] = A.trunk[t][t] + base.armature + (opt.explicit_damping ? zero : more);
      if (!opt.newton) b.trunk[t] = b.trunk[t] - (from.trunk[t] - v) * base.armature;
      if (opt.explicit_damping || opt.newton) b.trunk[t] = b.trunk[t] - v * (base.damping * h);
      else b.trunk[t] = b.trunk[t] - more * from.trunk[t];
    }
    if constexpr (L::Shape::kAnyJoint)
      if (m.has_base_spring) base_spring<L>(opt, base, kin.pose.trunk[0].R, x, from, A, b);
  }
  TendonDrive<Real> pulls[L::Shape::kPulls ? at_least_one(L::Shape::kTies) : 1];
  if (L::Shape::kPulls && m.has_pulls) pulls_of<L>(g, m, opt, start, loads.tie_ctrl, pulls);
  int act = 0;
  UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) {
    const auto& link = m.trunk[m.link_of_dof(t)];
    const JointInputs<Real> joint{{start.q.trunk[t], start.v.trunk[t]},
                                  {x.q.trunk[t], x.v.trunk[t]},
                                  from.trunk[t],
                                  lacking ? lacking->trunk[t] : zero,
                                  loads.ctrl + act,
                                  loads.has_force() ? loads.force.trunk[t] : zero,
                                  m.link_of_dof(t),
                                  pulls};
    joint_motion<L>(m, opt, link, joint, A.trunk[t][t], b.trunk[t], drives.row.trunk[t], drives.by_rows.trunk[t]);
    act += link.actuators;  // a shape tells those of limbs
  }
  each_limb<L>(g, m, [&](const auto& limb, Place place) {
    int own = act + place.actuator;
    [[maybe_unused]] Vec3<Real> turn{zero, zero, zero};
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      int i = place.link + k;
      const auto& link = limb.link(k);
      Real q = x.q.limb[i];
      if constexpr (L::Shape::kAnyJoint) {
        if (m.has_springs && link.kind == kBallLink)
          turn = turned(link, Quat<Real>{x.qw.limb[i], q, x.q.limb[i + 1], x.q.limb[i + 2]});
        if (link.kind == kBallLink || link.kind == kBallNextLink) {
          q = turn.x;
          turn = {turn.y, turn.z, zero};  // the next link's comes first
        }
      }
      const JointInputs<Real> joint{{start.q.limb[i], start.v.limb[i]},
                                    {q, x.v.limb[i]},
                                    from.limb[i],
                                    lacking ? lacking->limb[i] : zero,
                                    loads.ctrl + own,
                                    loads.has_force() ? loads.force.limb[i] : zero,
                                    L::kLimbsFrom + limb.t.first_link + k,
                                    pulls};
      Real& mass = A.limb[place.entry + entry_of(k, k)];
      joint_motion<L>(m, opt, link, joint, mass, b.limb[i], drives.row.limb[i], drives.by_rows.limb[i]);
      own += L::Shape::actuators(link);
    }
  });

  if (!loads.has_wrench()) return;
  Real share[L::kTrunkDofs];
  TreeVector<L> scratch;
  each_dof<L>(g, m, [&](Real& a) { a = zero; }, scratch);
  add_forces<L>(g, m, kin, [](const auto&, Place, int) { return zero_force<Real>(); }, &loads.wrench, scratch, share);
  each_dof<L>(g, m, [h](Real f, Real& bi) { bi = bi + f * h; }, scratch, b);
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) b.trunk[t] = b.trunk[t] + g.sum(share[t]) * h;
}

}  // namespace stiction
