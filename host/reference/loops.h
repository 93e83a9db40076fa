// What closes loops: the rows of welds, connects and equalities of joints and tendons, and the free motion with them.
//
//   joint, tendon   x = y1 - y1_0 - poly(y2 - y2_0),  J = dx/dq
//   connect         x = p1 - p2, world axes
//   weld            besides x = s u, (c, u) = conj(q_2) q_1 relpose, c >= 0,  J = s/2 (c 1 - [u]x) R_2' (w_1 - w_2)
//
// Under "implicit" the free motion is found with its end v, which no contact has changed yet:
//   A v* = b((v0 + v) / 2),   v = v* + A^-1 J' l,   (J v, l) in the law of all rows but contacts,   R >= 1e-5 W_ii
//   e = e0 + bend,   bend = (x(q+) - x(q)) / h - J v of equalities
// with c of b at that mean, as that of trees in free_motion.h, and q+ where a step with v ends; e0, R and the laws as in
// contact_problem.h. Worlds slower than 1e-3 / h in sum keep the explicit b and have no bend. Those that do not come together, or
// end farther from v of the explicit b without bend than half of what all dofs turn in the step, at most a quarter, of the
// speeds, are found again without bend; where they do not come together then either, with c(0).
// docs/theory.md, (2.3b).
//
// Shapes and errors as in dynamics.h.
#pragma once
#include "host/reference/contact_problem.h"

namespace stiction::reference {

struct EqualityRows {
  Matrix J;           // (1 or 3, nv)
  Vector x;           // (1 or 3)  m, rad
  double lever = 1;   // c of a turn
  double R = 0;       // 1/kg
  double pulled = 0;  // the mean of J A^-1 J' where a mocap body pulls, else 0   1/kg
};
/// Of all that are active, at q. A: of the step.
std::vector<EqualityRows> equalities(const Model& model, const Vector& q, const Matrix& A);

/// Of models with has_loops: changes b and v_free of m, found explicitly at (q, v), and of a problem with all rows but no contacts e of the equalities, `loops`,
/// which are its first.
void close_loops(const Model& model, const Vector& q, const Vector& v, const std::vector<EqualityRows>& loops,
                 FreeMotion& m, ContactProblem& problem);

}  // namespace stiction::reference
