// Where centres of mass of bodies on free joints go in a step of "implicit": straight, docs/theory.md, (2.4).
//
// Shapes and errors as in dynamics.h; h in s.
#pragma once
#include "host/reference/dynamics.h"

namespace stiction::reference {

/// Of a free joint: its first dof, its body's axes, and the centre of mass of the body and what is welded to it, from its origin.
struct Root {
  int dof;
  Matrix3d R;
  Vector3d c;
};
std::vector<Root> free_roots(const Model& model, const Kinematics& k);

/// From the solution of a step, in both: velocities that move positions, and those after.
void move_centres(const Model& model, const Vector& q, double h, Vector& along, Vector& end);

}  // namespace stiction::reference
