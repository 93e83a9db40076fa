// The free motion of a step of length h: A v* = b (docs/theory.md, section 2).
//
// With f(q, v) = passive + actuator + applied - bias, everything evaluated at the start of the step:
//
//   "euler", MuJoCo's:   A = M + h D,  D = joint damping (A = M when eulerdamp or damper is disabled)
//                        M (v+ - v) = h [f - D (v+ - v)]              =>  A v+ = M v + h (f + D v)
//   "implicit", linearly implicit Euler ([Castro2023] eq. 15, theta = 1):  A = M + h D + h^2 K
//                        M (v+ - v) = h [f - h K v+ - D (v+ - v)]     =>  A v+ = M v + h (f + D v)
//
// D and K are diagonal: joint damping and stiffness, and d = gear^2 max(0, -biasprm[2]), k = gear^2 max(0, -biasprm[1]) of
// actuators on hinges and slides (dynamics.h). Only what keeps A positive definite is implicit; the rest is explicit,
// actuators on free and ball joints too. An actuator beyond its forcerange at the end of the step, its joint alone with
// inertia m = M_ii,
//   F+ = (F + d v - (d + h k) v) / (1 + h (d + h k) / m),     F its force at (q, v) without the range,
// is a constant force; then so are all of a joint whose sum is beyond jnt_actfrcrange by the same rule.
//
// A joint whose jnt_actfrcrange bounds actuators on tendons, too, has of each, with force F along the row J and J_i of it, n joints of the
// tendon having such ranges, J_i (F - h k J v) - n J_i^2 (d + h k) (v_i+ - v_i). Where the sum with its own actuators is beyond at
// v_i+ = v_i or at F+, it is the joint's drive, as constant force or as row; rows of tendons then have 0 for J_i, and F - h k J_i v_i for F. With J_a
// the lost part of J, and s = J_a A^-1 J' beyond half of R + J A^-1 J', they see v_a as in the free motion and by their own impulse:
// e + J_a (v* - v) for e, max(R + s, 0) for R.
//
// Under "implicit", tendon springs, tendon dampers and tendon actuators leave f and become soft rows
//   J v+ + e + R l = 0,   R = 1 / b_s,   b_s = h d + h^2 k,   e = -h (F + d J v) / b_s
// with F the force along the tendon at (q, v): l = h (F - h k J v+ - d (J v+ - J v)); a spring has F + d J v = -k stretch,
// hence e = k_s stretch / b_s with k_s = h k. An actuator's l is held between h times its forcerange and that of its tendon,
// tendon_actfrcrange, within which several are a row together. One without stiffness and damping stays in f. A spring inside its dead band has k = 0.
//
// Under "implicit", free joints and ball joints that hang from the world have an implicit gyroscopic torque. With the other
// joints held, I is the inertia of what the joint carries about its centre of mass (ball: about the anchor), w its angular
// velocity and L its angular momentum, all in the axes of the joint's body. In place of -w x L the torque is I d / h with
//   J d' = -h w x L,   J = I + h/2 ([w]x I - [L]x),   d = s (w + d') - w,   s so that w . I w stays as it is,
// Coriolis forces, c, accelerate the centre of mass of what a free joint carries by a, and the origin is accelerated by -a and carries all
// along: docs/theory.md, (2.4).
// Of a ball joint, gravity's torque and the Coriolis forces of the joints beyond it add J^-1 h torque to d. Joints of trees with several
// have the force alone, unless the model has equalities.
//
// owed (nv, N s) is added to b: what Coriolis forces of the step before lacked. After a step from v to v', which contacts have changed,
// that is d = h (c(u) - c(u')), u' with v' for v* in u, of trees that had c(u) of the mean; all of it where r <= 0.15, r^2 being
// d A^-1 d / (v' - v*) A (v' - v*), nothing from r = 0.3 on, and 2 - r / 0.15 of it between; but no more than 0.005 / r of it, or
// 4 p A^-1 d / d A^-1 d, whichever is more, p being what this step was paid.
//
// Trees of several joints have the bias c(u) at u = (v + v*) / 2 in place of c(v), without what it does to centres of mass;
// without tendons, docs/theory.md, (2.3a). Where of two passes v <- A^-1 (b with c((v + v_before) / 2)) from the solution with c(v) the
// second changes v by t > 0.35 of what the first does, u has 1/2 + (t - 0.35) / 0.7 of v*, at most all; u = 0, and nothing is owed, where
// Newton finds no v*. Where the model has equalities: loops.h.
//
// Shapes as in dynamics.h; h in s. Errors: std::invalid_argument for wrong sizes or h <= 0.
#pragma once
#include "host/reference/dynamics.h"

namespace stiction::reference {

enum class Integrator { kEuler, kImplicit };

/// What a step begins with.
struct StepInput {
  Vector q, v, ctrl;
  Vector qfrc_applied = {};  // these three may be empty
  Matrix xfrc_applied = {};
  Vector owed = {};
};

struct SoftRow {
  Vector J;             // (nv)
  double e, R;          // m/s, 1/kg
  double lower, upper;  // N s
  Vector apart = {};    // (nv)  what the row of a tendon's actuator has lost of it
};

struct FreeMotion {
  Matrix M, A;                       // (nv, nv)
  Vector b, v_free;                  // (nv)  b = A v_free
  Vector damping, stiffness;         // (nv)  the diagonals of D and K
  Vector gyroscopic;                 // (nv)  what b / h has of implicit gyroscopic torques, less the explicit ones
  Vector along_tendons;              // (nv)  what b / h has of tendons
  bool at_mean = false;              // whether b has c(u)
  double end_part = 0.5;             // of v* in u
  Vector coriolis;                   // (nv)  what b has of c(u) more than of c(v), N s
  Vector rolls;                      // (njnt)  see Rolling; empty without contacts
  std::vector<Vector3d> half_turns;  // (njnt)  see mid_turn.h; empty without contacts
  std::vector<SoftRow> soft_rows;
};

/// Whether something closes loops: equalities of joints and tendons of the first degree are rows like others.
bool has_loops(const Model& model);

FreeMotion free_motion(const Model& model, const Kinematics& kinematics, const StepInput& input, Integrator integrator,
                       double h);
/// What a step to the velocity `end` owes the next one.
Vector owed_after(const Model& model, const StepInput& input, const Vector& end, double h, const FreeMotion& m);

/// The velocity after a step from v, of which the solve is `solved`: a body that rolls turns on for half of the step by what it was pushed.
Vector turned_late(const Model& model, const Vector& v, const Vector& solved, double h, const FreeMotion& m);

/// What b of m changes by (N s) if trees of several joints have c(u) in the place of c(v) and of gyroscopic torques.
Vector coriolis_change(const Model& model, const Vector& q, const Vector& v, const Vector& u, double h,
                       const FreeMotion& m);

}  // namespace stiction::reference
