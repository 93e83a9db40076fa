// One world's contact problem as dense arrays:
//
//   A v = b + J' impulse + J_row' row_impulse,   (J v, impulse) exact Coulomb,   (J_row v, row_impulse) interval rows
//
// What Simulation.contact_problem and dumps read. Views: the caller owns the memory. T is float or double. All matrices row-major.
#pragma once
#include "math/vec3.h"

namespace stiction {

/// Rows of a contact: t1, t2, n. A row i other than a contact is: find v, l = row_impulse with
///   s = J_row v + e + R l,   l in [lower, upper],   s >= 0 where l = lower,  s <= 0 where l = upper,  s = 0 between.
/// Limit [0, inf), dry friction [-h f, h f], bilateral (-inf, inf), soft: bilateral with R = 1 / b_s, e = k_s e / b_s.
/// Infinite bounds are +-kUnbounded.
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
};
inline constexpr float kUnbounded = 1e30f;

}  // namespace stiction
