#include "host/reference/dynamics.h"

#include <Eigen/Cholesky>
#include <stdexcept>
#include <string>

namespace stiction::reference {

bool disabled(const Model& model, int flag) { return (model.disableflags & flag) != 0; }

Vector3d gravity(const Model& model) {
  if (disabled(model, kDisableGravity)) return Vector3d::Zero();
  return {model.gravity[0], model.gravity[1], model.gravity[2]};
}

Matrix mass_matrix(const Model& model, const Kinematics& k) {
  Matrix M = Matrix::Zero(model.nv, model.nv);
  for (int b = 1; b < model.nbody; ++b) {
    Matrix Jc = point_jacobian(model, k, b, k.com[b]), Jw = angular_jacobian(model, k, b);
    M += model.body_mass[b] * Jc.transpose() * Jc + Jw.transpose() * k.inertia[b] * Jw;
  }
  for (int i = 0; i < model.nv; ++i) M(i, i) += model.dof_armature[i];
  return M;
}

Vector bias(const Model& model, const Kinematics& k, const Vector& q, const Vector& v) {
  std::vector<BodyMotion> motions = body_motions(model, k, q, v);
  Vector c = Vector::Zero(model.nv);
  for (int b = 1; b < model.nbody; ++b) {
    const BodyMotion& m = motions[b];
    Vector3d arm = k.com[b] - k.body_pos[b];
    Vector3d acceleration =
        m.linear_acceleration + m.angular_acceleration.cross(arm) + m.angular.cross(m.angular.cross(arm));
    Vector3d force = model.body_mass[b] * (acceleration - gravity(model));
    Vector3d torque = k.inertia[b] * m.angular_acceleration + m.angular.cross(k.inertia[b] * m.angular);
    c += point_jacobian(model, k, b, k.com[b]).transpose() * force + angular_jacobian(model, k, b).transpose() * torque;
  }
  return c;
}

double kinetic_energy(const Model& model, const Kinematics& k, const Vector& v) {
  return 0.5 * v.dot(mass_matrix(model, k) * v);
}

double potential_energy(const Model& model, const Kinematics& k) {
  double energy = 0;
  for (int b = 1; b < model.nbody; ++b) energy -= model.body_mass[b] * gravity(model).dot(k.com[b]);
  return energy;
}

Vector applied_forces(const Model& model, const Kinematics& k, const Vector& qfrc_applied, const Matrix& xfrc_applied) {
  Vector total = Vector::Zero(model.nv);
  if (qfrc_applied.size() != 0) {
    require_size("qfrc_applied", qfrc_applied, model.nv);
    total += qfrc_applied;
  }
  if (xfrc_applied.size() == 0) return total;
  if (xfrc_applied.rows() != model.nbody || xfrc_applied.cols() != 6)
    throw std::invalid_argument("xfrc_applied: got (" + std::to_string(xfrc_applied.rows()) + ", " +
                                std::to_string(xfrc_applied.cols()) + "), expected (" + std::to_string(model.nbody) +
                                ", 6)");
  for (int b = 1; b < model.nbody; ++b)
    total += point_jacobian(model, k, b, k.com[b]).transpose() * xfrc_applied.row(b).head<3>().transpose() +
             angular_jacobian(model, k, b).transpose() * xfrc_applied.row(b).tail<3>().transpose();
  return total;
}

Vector smooth_acceleration(const Model& model, const Vector& q, const Vector& v, const Vector& ctrl,
                           const Vector& qfrc_applied, const Matrix& xfrc_applied) {
  Kinematics k = forward_kinematics(model, q);
  Vector force = passive_forces(model, k, q, v).total + actuator_forces(model, q, v, ctrl).total +
                 applied_forces(model, k, qfrc_applied, xfrc_applied) - bias(model, k, q, v);
  return mass_matrix(model, k).llt().solve(force);
}

}  // namespace stiction::reference
