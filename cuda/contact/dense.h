// One world's contact problem as dense arrays:
//
//   A v = b + J' impulse + J_row' row_impulse + J_spin' spin_impulse
//   (J v, impulse) exact Coulomb, with couples (J_spin v, spin_impulse) in the same cone;   (J_row v, row_impulse) interval rows
//
// What Simulation.contact_problem and dumps read. Views: the caller owns the memory. T is float or double. All matrices row-major.
#pragma once
#include "math/vec3.h"

namespace stiction {

/// Rows of a contact: t1, t2, n. A row i other than a contact is: find v, l = row_impulse with
///   s = J_row v + e + R l,   l in [lower, upper],   s >= 0 where l = lower,  s <= 0 where l = upper,  s = 0 between.
/// Limit [0, inf), dry friction [-h f, h f], bilateral (-inf, inf), soft: bilateral with R = 1 / b_s, e = k_s e / b_s.
/// Infinite bounds are +-kUnbounded. Where contacts have torsional or rolling friction there are three rows more for each: turning
/// about t1, t2, n times the contact's arms (spin_arms of contact/problem.h), rigid, without bias; |(l_t, spin_impulse)| <= mu l_n.
template <class T>
struct DenseProblem {
  int nv, contacts, rows;
  T* A;                              // (nv, nv)           symmetric positive definite                kg, kg m^2
  T* b;                              // (nv)               A times the free velocity                  N s, N m s
  T* J;                              // (3 contacts, nv)
  T *e, *R;                          // (3 contacts)       bias m/s; compliance 1/kg, 0 = rigid
  T* mu;                             // (contacts)
  T* impulse;                        // (3 contacts)       warm start on entry, solution on exit      N s
  T* J_row;                          // (rows, nv)
  T *e_row, *R_row, *lower, *upper;  // (rows)
  T* row_impulse;                    // (rows)             likewise
  int spins = 0;                     // contacts, or 0: none has such friction
  T* J_spin = nullptr;               // (3 spins, nv)      0: not of this contact                     m
  T* spin_impulse = nullptr;         // (3 spins)          couple over arm; likewise                  N s
};
inline constexpr float kUnbounded = 1e30f;

}  // namespace stiction
