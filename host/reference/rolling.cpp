#include "host/reference/rolling.h"

#include <algorithm>

#include "host/reference/centres.h"

namespace stiction::reference {
namespace {

/// The free joint of what a body is welded to, where it carries no other joint; else -1.
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

/// A disc or an ellipsoid of half sizes `size` about `middle`.
struct Round {
  Vector3d size, middle;
  Matrix3d axes;

  Vector3d lowest(const Vector3d& up) const {
    const Vector3d scaled = size.cwiseProduct(axes.transpose() * up);
    return middle - axes * size.cwiseProduct(scaled) / std::max(scaled.norm(), 1e-12);
  }
};

}  // namespace

Vector3d rolling_bend(const Model& model, const Kinematics& k, const Vector& v, const Vector& v_free, const Contact& c,
                      double h) {
  const bool first = model.body_weldid[model.geom_bodyid[c.geom2]] == 0;
  const int geom = first ? c.geom1 : c.geom2, other = first ? c.geom2 : c.geom1;
  const auto type = static_cast<GeomType>(model.geom_type[geom]);
  const bool rim = type == GeomType::kCylinder;
  if (model.body_weldid[model.geom_bodyid[other]] != 0 || (!rim && type != GeomType::kEllipsoid))
    return Vector3d::Zero();
  const int joint = lone_joint(model, model.geom_bodyid[geom]);
  if (joint < 0) return Vector3d::Zero();
  const int dof = model.jnt_dofadr[joint], body = model.jnt_bodyid[joint];
  const Matrix3d R = k.body_rot[body];
  const Vector3d origin = k.body_pos[body], n = c.frame.row(2).transpose() * (first ? -1 : 1);
  Vector3d centre = origin;
  for (const FreeTree& tree : free_trees(model))
    if (tree.dof == dof) centre = centre_of(model, tree, k);
  auto velocity = [&](const Vector& u, const Vector3d& x) -> Vector3d {
    return u.segment<3>(dof) + (R * u.segment<3>(dof + 3)).cross(x - origin);
  };
  const Vector3d w = R * v_free.segment<3>(dof + 3);
  if (!(w.norm() * h > 1e-4)) return Vector3d::Zero();
  const Matrix3d turn = Eigen::AngleAxisd(w.norm() * h, w.normalized()).toRotationMatrix(), axes = k.geom_rot[geom];
  const Vector3d gains = velocity(v_free, centre) - velocity(v, centre),
                 size{model.geom_size[3 * geom], rim ? model.geom_size[3 * geom] : model.geom_size[3 * geom + 1],
                      rim ? 0 : model.geom_size[3 * geom + 2]};
  Vector3d found = Vector3d::Zero();
  for (int side = rim ? -1 : 0; side < 2; side += 2) {
    const double half = rim ? model.geom_size[3 * geom + 1] : 0;
    const Round round{size, k.geom_pos[geom] + axes.col(2) * (side * half), axes};
    const Vector3d at = round.lowest(n), arm = at - centre,
                   moves = turn * (round.lowest(turn.transpose() * n) - centre) - arm;
    if ((c.pos + n * (c.dist / 2) - at).norm() >= 1e-3 * std::max(size.x(), size.y()) + moves.norm()) continue;
    Vector3d bend = w.cross(moves) / 2;
    bend += n * (n.dot(moves) / h - n.dot(w.cross(arm)) - n.dot(bend));
    const double slip = velocity(v, at).squaredNorm() / std::max(4 * bend.squaredNorm() + gains.squaredNorm(), 1e-30);
    const double lies = half / (size.x() * (10 * std::abs(n.dot(axes.col(2))) + 0.05));
    const double most = std::max({slip, 4 * moves.norm() / size.maxCoeff(), w.norm() * h / 0.15, lies});
    if (moves.norm() > 1e-12 * size.maxCoeff()) found = bend * std::clamp(2 - most, 0.0, 1.0);
  }
  return found;
}

}  // namespace stiction::reference
