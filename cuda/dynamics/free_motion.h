// A and b of a step, A v = b being the motion without contacts and rows: docs/theory.md, section 2; [Castro2023] eq. 15 with
// theta = 1.
//
//   implicit     A = M + h D + h^2 K,   b = M v - h c + h f,   D, K of joints and actuators; f without damping
//   explicit     A = M + h D (joint damping only), b likewise with the actuators' damping in f      MuJoCo's Euler
//
// f: springs, actuators, applied forces, gravity compensation. From A (v' - v) = h (f - D v - c - h K v) at the old state.
//
// By Newton ([Castro2023] (14)) the same is evaluated at a state within the step, and with the force of damping:
//
//   newton       A = M + h t D + h^2 t u K,   b = h (f - D v - c) - M (v' - v0),   t, u = theta, theta_vq
//
// An actuator at its force limit counts as a constant force, as do all of a joint at the joint's; where the end of the step decides
// whether it is, the drive is a row, and b has the force that is foretold; see actuator.h.
//
// The spring of a ball joint is -k r, r the rotation vector from where it rests, as in MuJoCo; in K it is k times the identity,
// which leaves out how r changes with a turn across r. A free base has the same, and -k x, in world axes.
#pragma once
#include "core/options.h"
#include "dynamics/actuator.h"
#include "dynamics/crba.h"
#include "dynamics/gyroscopic.h"
#include "dynamics/rnea.h"
#include "kinematics/jacobian.h"
#include "math/rotation.h"

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
                    const State<L>& x, TreeMatrix<L>& A, TreeVector<L>& b) {
  const Real h(opt.h), stiffness(base.stiffness);
  Real stretch[6];
  put(Force<Real>{R * turned(base, x.orientation), x.position - vec<Real>(base.offset)}, stretch);
  for (int t = 0; t < 6; ++t) {
    b.trunk[t] = b.trunk[t] - h * (stiffness * stretch[t]);
    if (opt.implicit) A.trunk[t][t] = A.trunk[t][t] + h * opt.theta * (h * opt.theta_vq * stiffness);
  }
}

/// Where a joint is and how it moves. q: of a ball's links, how far it is turned.
template <class Real>
struct JointState {
  Real q, v;
};

/// Actuators are linear about `start`, where the step begins, and that tells which are held; `x`: the state to be evaluated. from: what
/// b has M of; ctrl: of the joint's actuators; applied: its part of qfrc_applied.
template <class Real>
struct JointInputs {
  JointState<Real> start, x;
  Real from;
  const Real* ctrl;
  Real applied;
};

/// One joint's part. mass: its diagonal entry; bias: tau of inverse dynamics at a = -from / h on entry, b on exit; row: of its drive.
template <class L, class Row, class Real = typename L::Real>
HD void joint_motion(const typename L::Model& m, const Options<Scalar<Real>>& opt, const typename L::Link& link,
                     const JointInputs<Real>& in, Real& mass, Real& bias, Row& row) {
  const auto& [start, x, from, ctrl, applied] = in;
  const Real h(opt.h), zero(0), inertia = mass + link.armature;
  Drive<Real> drive{zero, zero, zero};
  ForceRange<Real> range{Real(link.force_lower), Real(link.force_upper)};
  const bool alone = !L::Shape::kAnyJoint || link.actuators == 1;
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
  if (opt.newton) drive.force = drive.force - drive.stiffness * (x.q - start.q);
  if (m.has_springs) {
    drive.force = drive.force - Real(link.stiffness) * (x.q - link.spring_ref);
    if (opt.implicit) drive.stiffness = drive.stiffness + link.stiffness;
  }
  mass = inertia + h * opt.theta * (drive.damping + link.damping + h * opt.theta_vq * drive.stiffness);
  bias = from * link.armature - bias * h + h * (drive.force + applied);
  if (opt.newton) bias = bias - h * (drive.damping + link.damping) * x.v;
  if (opt.explicit_damping) mass = mass - h * link.damping, bias = bias - h * Real(link.damping) * x.v;
}

/// Where A and b are wanted. `start`: the state that the step begins with, x itself but for Newton; from: what b has M of, x.v or, for
/// Newton, what the velocity lacks of that.
template <class L>
struct StepPoint {
  const State<L>&start, &x;
  const TreeVector<L>& from;
};

/// kin, I: at at.x.
template <class L>
struct MotionInputs {
  StepPoint<L> at;
  const Kinematics<L>& kin;
  const PerLink<L, RigidInertia<typename L::Real>>& I;
  const Loads<L>& loads;
};

/// A and b; M needs no copy: it is A on the way. bias: what b has of inverse dynamics, b = h (... - bias), where
/// centres move (see Options); scratch elsewhere. drives: rows of those drives whose range the end of the step decides upon.
template <class L, class Row>
HD void free_motion(const typename L::Group& g, const typename L::Model& m,
                    const Options<Scalar<typename L::Real>>& opt, const MotionInputs<L>& in, TreeVector<L>& bias,
                    TreeMatrix<L>& A, TreeVector<L>& b, PerDof<L, Row>& drives) {
  const auto& [at, kin, I, loads] = in;
  const auto& [start, x, from] = at;
  using Real = typename L::Real;
  using S = Scalar<Real>;
  S h = opt.h;
  // M v - h c is -h times the inverse dynamics of the acceleration -v / h: one pass gives momentum and bias together.
  each_dof<L>(g, m, [h](Real v, Real& a) { a = v * (S(-1) / h); }, from, bias);
  inverse_dynamics<L>(g, m, kin, I, x.v, bias, b);
  mass_matrix<L>(g, m, kin, I, A);
  if (opt.moves_centres()) {
    add_gyroscopic<L>(g, m, h, kin, x, A, b);
    each_dof<L>(g, m, [](Real bi, Real& copy) { copy = bi; }, b, bias);
  }

  const Real zero(0);
  if (m.free_base()) {
    const auto& base = m.trunk[0];
  UNROLL for (int t = 0; t < 6; ++t) {
      const Real v = x.v.trunk[t], force = loads.has_force() ? loads.force.trunk[t] * h : zero;
      b.trunk[t] = b.trunk[t] * -h + from.trunk[t] * base.armature + force;
      A.trunk[t][t] =
          A.trunk[t][t] + base.armature + (opt.explicit_damping ? zero : Real(base.damping) * (h * opt.theta));
      if (opt.explicit_damping || opt.newton) b.trunk[t] = b.trunk[t] - v * (base.damping * h);
    }
    if constexpr (L::Shape::kAnyJoint)
      if (m.has_base_spring) base_spring<L>(opt, base, kin.pose.trunk[0].R, x, A, b);
  }
  int act = 0;
  UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) {
    const auto& link = m.trunk[m.link_of_dof(t)];
    const JointInputs<Real> joint{{start.q.trunk[t], start.v.trunk[t]},
                                  {x.q.trunk[t], x.v.trunk[t]},
                                  from.trunk[t],
                                  loads.ctrl + act,
                                  loads.has_force() ? loads.force.trunk[t] : zero};
    joint_motion<L>(m, opt, link, joint, A.trunk[t][t], b.trunk[t], drives.trunk[t]);
    act += link.actuators;  // a shape tells those of limbs
  }
  each_limb<L>(g, m, [&](const auto& limb, Place place) {
    int own = act + place.actuator;
    Vec3<Real> turn{zero, zero, zero};
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
                                    loads.ctrl + own,
                                    loads.has_force() ? loads.force.limb[i] : zero};
      joint_motion<L>(m, opt, link, joint, A.limb[place.entry + entry_of(k, k)], b.limb[i], drives.limb[i]);
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
