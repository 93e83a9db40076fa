#include "host/reference/mid_turn.h"

#include <Eigen/Geometry>
#include <algorithm>

#include "host/model/fields.h"
#include "host/reference/centres.h"

namespace stiction::reference {
namespace {

/// From 1 of what is slender to 0 of what is thick, of what hangs on a free joint.
double slenderness(const Model& model, const Matrix& M, int dof) {
  const Vector armature = Eigen::Map<const Vector>(model.dof_armature.data(), model.nv);
  const Matrix3d moment = M.block<3, 3>(dof, dof + 3);
  Matrix3d I = M.block<3, 3>(dof + 3, dof + 3) - moment.transpose() * moment / (M(dof, dof) - armature[dof]);
  I.diagonal() -= armature.segment<3>(dof + 3);
  return std::clamp(2 - (I / (I.trace() / 3)).determinant() / 0.2, 0.0, 1.0);
}

Vector3d turn_less(const Vector3d& by, const Vector3d& x) {
  if (by.norm() == 0) return Vector3d::Zero();
  return Eigen::AngleAxisd(by.norm(), by.normalized()) * x - x;
}

}  // namespace

std::vector<Vector3d> half_turns(const Model& model, const Kinematics& k, const FreeMotion& free,
                                 const std::vector<Contact>& contacts, const Vector& rolls, double h) {
  const Vector& v_free = free.v_free;
  std::vector<Vector3d> half(model.njnt, Vector3d::Zero());
  if (has_loops(model)) return half;
  for (int j = 0; j < model.njnt; ++j) {
    const int root = model.jnt_bodyid[j], dof = model.jnt_dofadr[j];
    if (lone_joint(model, root) != j) continue;
    bool ellipsoid = false, mesh = false;
    for (int g = 0; g < model.ngeom; ++g) {
      const auto type = static_cast<GeomType>(model.geom_type[g]);
      if (model.body_weldid[model.geom_bodyid[g]] != root || !may_collide(model, g)) continue;
      ellipsoid = ellipsoid || type == GeomType::kEllipsoid, mesh = mesh || type == GeomType::kMesh;
    }
    const Vector3d w = k.body_rot[root] * v_free.segment<3>(dof + 3), turn = w * h;
    const double far = std::clamp(2 - turn.norm() / 0.4, 0.0, 1.0);
    double part = mesh ? 0 : std::min(1 - rolls[j], slenderness(model, free.M, dof) * far);
    bool touches = false;
    for (const Contact& c : contacts) {
      const int body1 = model.body_weldid[model.geom_bodyid[c.geom1]],
                body2 = model.body_weldid[model.geom_bodyid[c.geom2]];
      if (body1 != root && body2 != root) continue;
      const int other = body1 == root ? c.geom2 : c.geom1;
      if (static_cast<GeomType>(model.geom_type[other]) != GeomType::kPlane) part = 0;
      const Vector3d n = c.frame.row(2);
      const double least = ellipsoid ? 0.05 : 0.025, roll = (turn - n * n.dot(turn)).norm();
      part = std::min(part, std::clamp(turn.norm() / least - 1, 0.0, 1.0) * std::clamp(3 - roll, 0.0, 1.0));
      touches = true;
    }
    if (touches) half[j] = part / 2 * turn;
  }
  return half;
}

Matrix turned_less(const Model& model, const Kinematics& k, const std::vector<Vector3d>& half, int body,
                   const Vector3d& point) {
  Matrix change = Matrix::Zero(3, model.nv);
  const int joint = lone_joint(model, body);
  if (joint < 0 || half[joint].norm() == 0) return change;
  const int dof = model.jnt_dofadr[joint];
  const Vector3d arm = point - centre_on(model, dof, k);
  for (int i = 0; i < 3; ++i)
    change.col(dof + 3 + i) = turn_less(half[joint], k.body_rot[model.jnt_bodyid[joint]].col(i)).cross(arm);
  return change;
}

Vector turned_along(const Model& model, const Kinematics& k, const std::vector<Vector3d>& half, const Vector& solved) {
  Vector along = solved;
  for (size_t j = 0; j < half.size(); ++j) {
    if (half[j].norm() == 0) continue;
    const int dof = model.jnt_dofadr[j], body = model.jnt_bodyid[j];
    const Matrix3d& R = k.body_rot[body];
    const Vector3d less = turn_less(half[j], R * solved.segment<3>(dof + 3));
    along.segment<3>(dof + 3) += R.transpose() * less;
    along.segment<3>(dof) -= less.cross(centre_on(model, dof, k) - k.body_pos[body]);
  }
  return along;
}

}  // namespace stiction::reference
