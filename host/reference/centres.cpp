#include "host/reference/centres.h"

#include <Eigen/Geometry>

namespace stiction::reference {

std::vector<Root> free_roots(const Model& model, const Vector& q) {
  std::vector<Root> roots;
  Kinematics k = forward_kinematics(model, q);
  Matrix M = mass_matrix(model, k);
  for (int j = 0; j < model.njnt; ++j) {
    if (static_cast<JointType>(model.jnt_type[j]) != JointType::kFree) continue;
    int dof = model.jnt_dofadr[j];
    double mass = M(dof, dof) - model.dof_armature[dof];
    if (!(mass > 0)) continue;
    Matrix3d R = k.body_rot[model.jnt_bodyid[j]], X = -M.block<3, 3>(dof, dof + 3) * R.transpose() / mass;
    roots.push_back({dof, R, {X(2, 1), X(0, 2), X(1, 0)}});
  }
  return roots;
}

void move_centres(const Model& model, const Vector& q, double h, Vector& along, Vector& end) {
  for (const auto& [dof, R, c] : free_roots(model, q)) {
    Vector3d w = R * end.segment<3>(dof + 3), v = end.segment<3>(dof) + w.cross(c);
    Vector3d later = Eigen::AngleAxisd(h * w.norm(), w.normalized()) * c;
    along.segment<3>(dof) = v - (later - c) / h;
    end.segment<3>(dof) = v - w.cross(later);
  }
}

}  // namespace stiction::reference
