// One contact alone, exactly: w = W l + c with W symmetric positive definite (3, 3), rows t1, t2, n.
//
// Coulomb (Signorini-Coulomb, own derivation in the spirit of Bonnefon & Daviet's enumeration):
//   open   c_n >= 0: l = 0
//   slip   l_t = r, l_n = p, w_n = 0, w_t = -a r with a >= 0 and |r| = mu p. Eliminating p = -(c_n + W_nt r) / W_nn leaves
//          (S + a I) r = -s,  S = W_tt - W_tn W_nt / W_nn,  s = c_t - W_tn c_n / W_nn;
//          |r(a)| - mu p(r(a)) is positive at a = 0 unless the contact sticks and tends to mu c_n / W_nn < 0 for large a,
//          so a bisection on a always finds a root. (There may be several: any is a solution.)
//   stick  that at a = 0.
// Convex (minimise 1/2 l' W l + c' l over the cone): a bisection on p of the derivative of min over |r| <= mu p, whose inner
// problem (W_tt + a I) r = -(c_t + W_tn p) is a bisection on a.
#pragma once
#include "host/reference/kinematics.h"

namespace stiction::reference {

Vector3d solve_one_coulomb(const Matrix3d& W, const Vector3d& c, double mu);
Vector3d solve_one_convex(const Matrix3d& W, const Vector3d& c, double mu);

}  // namespace stiction::reference
