// Contacts push a body on its own at the middle of its turn: docs/theory.md, (3.1f). Of `implicit`; contacts with planes alone move with turns
// here, those with other things that stand still do where these are flat (the step knows).
#pragma once
#include "host/reference/contact_problem.h"

namespace stiction::reference {

/// Of each joint what a body on its own that hangs on it has turned by when contacts push it; 0 of others (njnt).   rad, world axes
/// rolls: of each joint, Rolling::part.
std::vector<Vector3d> half_turns(const Model& model, const Kinematics& k, const FreeMotion& free,
                                 const std::vector<Contact>& contacts, const Vector& rolls, double h);
/// What that changes of the Jacobian (3, nv) of a body's point.
Matrix turned_less(const Model& model, const Kinematics& k, const std::vector<Vector3d>& half, int body,
                   const Vector3d& point);
/// The velocities that positions move with, of those of the solve.
Vector turned_along(const Model& model, const Kinematics& k, const std::vector<Vector3d>& half, const Vector& solved);

}  // namespace stiction::reference
