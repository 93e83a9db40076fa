// Where centres of mass go in a step of "implicit": those of all that free joints carry go straight, docs/theory.md, (2.4).
//
// Shapes and errors as in dynamics.h; h in s.
#pragma once
#include "host/reference/dynamics.h"

namespace stiction::reference {

/// What a free joint carries: its bodies, the joint's own first, and their mass. dof: the joint's first.
struct FreeTree {
  int dof;
  std::vector<int> bodies;
  double mass;
};
std::vector<FreeTree> free_trees(const Model& model);
/// The free joint of what a body is welded to, where it carries no other joint; else -1.
int lone_joint(const Model& model, int body);

/// The centre of mass of a tree; its momentum; what accelerates the centre while qacc = 0.   m, N s, m/s^2
Vector3d centre_of(const Model& model, const FreeTree& tree, const Kinematics& k);
/// The centre of what the free joint carries whose first dof that is; the joint's body's origin where it has no mass.   m
Vector3d centre_on(const Model& model, int dof, const Kinematics& k);
Vector3d momentum_of(const Model& model, const FreeTree& tree, const Vector& q, const Vector& v);
Vector3d drift_of(const Model& model, const FreeTree& tree, const Vector& q, const Vector& v);

/// From solutions of a step: velocities that move positions, and those after.
void move_centres(const Model& model, const Vector& q, double h, Vector& along, Vector& end);

}  // namespace stiction::reference
