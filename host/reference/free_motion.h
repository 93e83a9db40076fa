// The free motion of a step of length h: A v* = b (docs/theory.md, section 2).
//
// With f(q, v) = passive + actuator + applied - bias, everything evaluated at the start of the step:
//
//   "euler", MuJoCo's:   A = M + h D,  D = joint damping (A = M when eulerdamp or damper is disabled)
//                        M (v+ - v) = h [f - D (v+ - v)]              =>  A v+ = M v + h (f + D v)
//   "implicit", linearly implicit Euler ([Castro2023] eq. 15, theta = 1):  A = M + h D + h^2 K
//                        M (v+ - v) = h [f - h K v+ - D (v+ - v)]     =>  A v+ = M v + h (f + D v)
//
// D and K are diagonal: joint damping and stiffness, and gear^2 max(0, -biasprm[2]) and gear^2 max(0, -biasprm[1]) of
// actuators on hinges and slides that are not clamped (dynamics.h). Only what keeps A positive definite is implicit; the
// rest is explicit, actuators on free and ball joints too.
//
// Under "implicit", tendon springs, tendon dampers and tendon actuators that are not clamped leave f and become soft rows
//   J v+ + e + R l = 0,   R = 1 / b_s,   b_s = h d + h^2 k,   e = -h (F + d J v) / b_s
// with F the force along the tendon at (q, v): l = h (F - h k J v+ - d (J v+ - J v)); a spring has F + d J v = -k stretch,
// hence e = k_s stretch / b_s with k_s = h k. One without stiffness and damping stays in f. A spring inside its
// dead band has k = 0.
//
// Shapes as in dynamics.h; h in s. Errors: std::invalid_argument for wrong sizes or h <= 0.
#pragma once
#include "host/reference/dynamics.h"

namespace stiction::reference {

enum class Integrator { kEuler, kImplicit };

struct SoftRow {
  Vector J;     // (nv)
  double e, R;  // m/s, 1/kg
};

struct FreeMotion {
  Matrix M, A;                // (nv, nv)
  Vector b, v_free;           // (nv)  b = A v_free
  Vector damping, stiffness;  // (nv)  the diagonals of D and K
  std::vector<SoftRow> soft_rows;
};

FreeMotion free_motion(const Model& model, const Kinematics& kinematics, const Vector& q, const Vector& v,
                       const Vector& ctrl, Integrator integrator, double h, const Vector& qfrc_applied = {},
                       const Matrix& xfrc_applied = {});

}  // namespace stiction::reference
