#include "host/reference/centres.h"

#include <Eigen/Geometry>

namespace stiction::reference {

std::vector<Root> free_roots(const Model& model, const Kinematics& k) {
  std::vector<Root> roots;
  for (int j = 0; j < model.njnt; ++j) {
    if (static_cast<JointType>(model.jnt_type[j]) != JointType::kFree) continue;
    const int root = model.jnt_bodyid[j];
    double mass = 0;
    Vector3d moment = Vector3d::Zero();
    for (int b = root; b < model.nbody; ++b)
      if (model.body_weldid[b] == root)
        mass += model.body_mass[b], moment += model.body_mass[b] * (k.com[b] - k.body_pos[root]);
    if (mass > 0) roots.push_back({model.jnt_dofadr[j], k.body_rot[root], moment / mass});
  }
  return roots;
}

void move_centres(const Model& model, const Vector& q, double h, Vector& along, Vector& end) {
  for (const auto& [dof, R, c] : free_roots(model, forward_kinematics(model, q))) {
    Vector3d w = R * end.segment<3>(dof + 3), v = end.segment<3>(dof) + w.cross(c);
    Vector3d later = Eigen::AngleAxisd(h * w.norm(), w.normalized()) * c;
    along.segment<3>(dof) = v - (later - c) / h;
    end.segment<3>(dof) = v - w.cross(later);
  }
}

}  // namespace stiction::reference
