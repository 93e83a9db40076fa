// The accuracy certificate of docs/theory.md, section 8, in double: how far (v, l) is from solving a dense contact problem.
//
//   r_dyn    |D (A v - b - J' l)| / max(|D b|, |D J' l|, sqrt(mean_mass) g h),  D = diag(A)^(-1/2), all rows         1
//   r_con    max_i w_i |l_i - P_K(l_i - (sigma_i + Gamma_i) / w_i)|, sigma = J v + e + R l, Gamma = (0, 0, mu |sigma_t|),
//            P_K the proximal projection on |l_t| <= mu l_n, w_i = tr(W_ii) / 3                                      m/s
//   r_ccp    the same without Gamma: the score of convex solvers                                                     m/s
//   r_row    max_i w_i |l_i - clamp(l_i - s_i / w_i, lower, upper)|, s = J_row v + e + R l, w_i = W_ii                 m/s
//   r_row_relative  the same, each row over max(|J_i v*|, g h, 1e-4)                                                 1
//   r_cone   max_i max(0, |l_t| - mu l_n, -l_n) w_i / V                                                              1
//   penetration     max_i max(0, -phi_i)                                                                             m
//   scale    V = max of |J_i v*|_inf over contacts with l_i != 0 or phi_i <= 0, at least g h and 1e-4;
//            |q|_inf for a bare (W, q)                                                                               m/s
//
// V_i of a contact is that of the contacts that share a tree with it, where A says what trees there are. r_con and scale are of the
// contact with the largest r_con / V_i, r_ccp is max r_ccp / V_i times that scale, r_cone has V_i for V.
//
// A contact or row with w_i = 0 must have l_i = 0: it is left out of the residuals and sets `degenerate`; an impulse there
// makes its residual infinite.
#pragma once
#include <vector>

#include "host/reference/contact_problem.h"

namespace stiction::reference {

/// The problem in contact space, w = W l + q, over the rows of all contacts and then the other rows (n in all).
struct Delassus {
  Matrix W;                             // (n, n)   J A^-1 J'                                1/kg
  Vector q, e, R;                       // (n)      J v*, bias, compliance
  Vector mu, phi;                       // (nc)
  Vector lower, upper;                  // (nr)
  std::vector<std::vector<int>> trees;  // (nc) numbers of the trees that a contact acts on; empty: one for all
  double speed_floor = 1e-4;            // max(g h, 1e-4)                          m/s
  bool bare = false;                    // nothing is known but (W, q, mu): V = |q|_inf

  int contacts() const { return static_cast<int>(mu.size()); }
  int rows() const { return static_cast<int>(lower.size()); }
  /// tr(W_ii) / 3 of a contact; W_ii of the other rows, numbered after the contacts.
  double mean_inverse_mass(int i) const;
};

Delassus delassus(const ContactProblem& problem);
/// A problem known by (W, q, mu) only, rows t1, t2, n; W is symmetrised.
Delassus bare_delassus(const Matrix& W, const Vector& q, const Vector& mu);

struct Certificate {
  double r_dyn = 0, r_con = 0, r_ccp = 0, r_row = 0, r_row_relative = 0, r_cone = 0, penetration = 0, scale = 0;
  bool degenerate = false;
};

/// The nearest impulse of the cone |l_t| <= mu l_n.
Vector3d project_cone(const Vector3d& impulse, double mu);

/// At the velocity v as given. impulse (3 nc), row_impulse (nr).
Certificate certify(const ContactProblem& problem, const Vector& v, const Vector& impulse, const Vector& row_impulse);
/// In contact space, at w = W l + q; r_dyn is 0 by construction. impulse (n).
Certificate certify(const Delassus& problem, const Vector& impulse);

}  // namespace stiction::reference
