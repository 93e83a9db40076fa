#include "host/reference/centres.h"

#include <Eigen/Geometry>

namespace stiction::reference {

std::vector<FreeTree> free_trees(const Model& model) {
  std::vector<FreeTree> trees;
  for (int j = 0; j < model.njnt; ++j) {
    if (static_cast<JointType>(model.jnt_type[j]) != JointType::kFree) continue;
    FreeTree tree{model.jnt_dofadr[j], {}, 0};
    for (int b = 1; b < model.nbody; ++b) {
      int up = b;
      while (up > 0 && up != model.jnt_bodyid[j]) up = model.body_parentid[up];
      if (up > 0) tree.bodies.push_back(b), tree.mass += model.body_mass[b];
    }
    if (tree.mass > 0) trees.push_back(tree);
  }
  return trees;
}

int lone_joint(const Model& model, int body) {
  const int root = model.body_weldid[body];
  int joint = -1;
  for (int j = 0; j < model.njnt; ++j) {
    int up = model.body_weldid[model.jnt_bodyid[j]];
    while (up > 0 && up != root) up = model.body_weldid[model.body_parentid[up]];
    if (up != root) continue;
    if (joint >= 0 || model.jnt_bodyid[j] != root || static_cast<JointType>(model.jnt_type[j]) != JointType::kFree)
      return -1;
    joint = j;
  }
  return joint;
}

Vector3d centre_of(const Model& model, const FreeTree& tree, const Kinematics& k) {
  Vector3d moment = Vector3d::Zero();
  for (int b : tree.bodies) moment += model.body_mass[b] * k.com[b];
  return moment / tree.mass;
}

Vector3d centre_on(const Model& model, int dof, const Kinematics& k) {
  for (const FreeTree& tree : free_trees(model))
    if (tree.dof == dof) return centre_of(model, tree, k);
  return k.body_pos[model.dof_bodyid[dof]];
}

Vector3d momentum_of(const Model& model, const FreeTree& tree, const Vector& q, const Vector& v) {
  const Kinematics k = forward_kinematics(model, q);
  const std::vector<BodyMotion> motions = body_motions(model, k, q, v);
  Vector3d p = Vector3d::Zero();
  for (int b : tree.bodies)
    p += model.body_mass[b] * (motions[b].linear + motions[b].angular.cross(k.com[b] - k.body_pos[b]));
  return p;
}

Vector3d drift_of(const Model& model, const FreeTree& tree, const Vector& q, const Vector& v) {
  const Kinematics k = forward_kinematics(model, q);
  const std::vector<BodyMotion> motions = body_motions(model, k, q, v);
  Vector3d force = Vector3d::Zero();
  for (int b : tree.bodies) {
    const BodyMotion& of = motions[b];
    const Vector3d r = k.com[b] - k.body_pos[b];
    force += model.body_mass[b] *
             (of.linear_acceleration + of.angular_acceleration.cross(r) + of.angular.cross(of.angular.cross(r)));
  }
  return force / tree.mass;
}

void move_centres(const Model& model, const Vector& q, double h, Vector& along, Vector& end) {
  const Vector solved = along, kept = end;
  for (const FreeTree& tree : free_trees(model)) {
    const Vector3d speed = momentum_of(model, tree, q, solved) / tree.mass;
    const Vector3d centre = centre_of(model, tree, forward_kinematics(model, q)) + h * speed;
    const Vector later = integrate(model, q, solved, h);
    along.segment<3>(tree.dof) += (centre - centre_of(model, tree, forward_kinematics(model, later))) / h;
    end.segment<3>(tree.dof) += speed - momentum_of(model, tree, later, kept) / tree.mass;
  }
}

}  // namespace stiction::reference
