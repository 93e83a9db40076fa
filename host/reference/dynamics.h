// The equations of motion of a Model, dense and in double:
//
//   M(q) qacc + c(q, v) = passive + actuator + applied
//
//   M = sum over bodies of m Jc' Jc + Jw' I Jw, plus the armature on the diagonal
//   c = sum over bodies of Jc' m (Jc-dot v - gravity) + Jw' (I Jw-dot v + w x I w)
//
// with Jc the Jacobian of the centre of mass and Jw of the angular velocity (Newton-Euler projected on the joints; textbook).
// Forces are MuJoCo's: springs of hinges and slides about qpos_spring, dampers, fixed tendons with a spring outside the
// dead band lengthspring, gravity compensation; actuators force = gain ctrl + bias . (1, length, velocity) with ctrl
// clamped to its range, those on a tendon scaled so that their sum is within tendon_actfrcrange, then each clamped to its range, and
// what all do on a joint to jnt_actfrcrange. disableflags are honoured. As in MuJoCo, gravity compensation is off when springs and dampers are both disabled.
//
// Shapes: q (nq), v (nv), ctrl (nu), qfrc_applied (nv) N | N m, xfrc_applied (nbody, 6) force and torque at the centre of
// mass in world axes. Empty applied forces mean zero. Errors: std::invalid_argument for wrong sizes.
#pragma once
#include "host/reference/kinematics.h"

namespace stiction::reference {

Matrix mass_matrix(const Model& model, const Kinematics& kinematics);
Vector bias(const Model& model, const Kinematics& kinematics, const Vector& q, const Vector& v);

/// Kinetic and gravitational energy, J.
double kinetic_energy(const Model& model, const Kinematics& kinematics, const Vector& v);
double potential_energy(const Model& model, const Kinematics& kinematics);

bool disabled(const Model& model, int flag);
Vector3d gravity(const Model& model);

/// The terms of passive force apart, so that an integrator may take some of them implicitly.
struct PassiveForces {
  Vector spring, damper;                // (nv)       of the joints
  Vector gravity_compensation;          // (nv)
  Vector tendon_spring, tendon_damper;  // (ntendon)  along the tendon, N
  Vector total;                         // (nv)       all of them
};
PassiveForces passive_forces(const Model& model, const Kinematics& kinematics, const Vector& q, const Vector& v);

/// Forces of the actuators; row i of moment maps force[i] to the joints.
struct ActuatorForces {
  Vector length, velocity;  // (nu)
  Vector asked, force;      // (nu)      before and after its tendon's range and its forcerange
  Matrix moment;            // (nu, nv)
  Vector total;             // (nv)      after jnt_actfrcrange
};
ActuatorForces actuator_forces(const Model& model, const Vector& q, const Vector& v, const Vector& ctrl);

/// qfrc_applied + sum of J' xfrc_applied.
Vector applied_forces(const Model& model, const Kinematics& kinematics, const Vector& qfrc_applied,
                      const Matrix& xfrc_applied);

/// qacc of the unconstrained system.
Vector smooth_acceleration(const Model& model, const Vector& q, const Vector& v, const Vector& ctrl,
                           const Vector& qfrc_applied = {}, const Matrix& xfrc_applied = {});

}  // namespace stiction::reference
