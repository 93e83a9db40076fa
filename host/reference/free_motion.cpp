#include "host/reference/free_motion.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <stdexcept>
#include <string>

namespace stiction::reference {
namespace {

bool on_hinge_or_slide(const Model& model, int actuator) {
  if (static_cast<Transmission>(model.actuator_trntype[actuator]) != Transmission::kJoint) return false;
  auto type = static_cast<JointType>(model.jnt_type[model.actuator_trnid[actuator]]);
  return type == JointType::kHinge || type == JointType::kSlide;
}

void add_joint_terms(const Model& model, FreeMotion& m) {
  for (int dof = 0; dof < model.nv; ++dof) {
    if (!disabled(model, kDisableDamper)) m.damping[dof] += model.dof_damping[dof];
    if (!disabled(model, kDisableSpring)) m.stiffness[dof] += model.jnt_stiffness[model.dof_jntid[dof]];
  }
}

/// Appends the soft row of a force F along `row` with stiffness k and damping d; false if there is nothing implicit in it.
bool add_soft_row(const Vector& row, const Vector& v, double h, double F, double k, double d, FreeMotion& m) {
  double b_s = h * d + h * h * k;
  if (!(b_s > 0) || row.squaredNorm() == 0) return false;
  m.soft_rows.push_back({row, -h * (F + d * row.dot(v)) / b_s, 1 / b_s});
  return true;
}

/// Moves what tendons do from the explicit force f to soft rows.
void add_tendon_rows(const Model& model, const PassiveForces& passive, const Vector& v, double h, Vector& f,
                     FreeMotion& m) {
  for (int t = 0; t < model.ntendon; ++t) {
    double k = passive.tendon_spring[t] != 0 ? model.tendon_stiffness[t] : 0;
    double d = disabled(model, kDisableDamper) ? 0 : model.tendon_damping[t];
    double F = passive.tendon_spring[t] + passive.tendon_damper[t];
    Vector row = tendon_row(model, t);
    if (add_soft_row(row, v, h, F, k, d, m)) f -= row * F;
  }
}

void add_actuator_terms(const Model& model, const ActuatorForces& actuators, const Vector& v, double h, Vector& f,
                        FreeMotion& m) {
  if (disabled(model, kDisableActuation)) return;
  for (int i = 0; i < model.nu; ++i) {
    if (actuators.clamped[i]) continue;
    double k = std::max(0.0, -model.actuator_biasprm[3 * i + 1]), d = std::max(0.0, -model.actuator_biasprm[3 * i + 2]);
    Vector row = actuators.moment.row(i).transpose();
    if (on_hinge_or_slide(model, i)) {
      m.stiffness += k * row.cwiseAbs2();
      m.damping += d * row.cwiseAbs2();
    } else if (static_cast<Transmission>(model.actuator_trntype[i]) == Transmission::kTendon) {
      // The row is the tendon's own, so that l is along the tendon: force and gains take one and two factors of the gear.
      double gear = model.actuator_gear[6 * i];
      Vector tendon = tendon_row(model, model.actuator_trnid[i]);
      if (add_soft_row(tendon, v, h, gear * actuators.force[i], gear * gear * k, gear * gear * d, m))
        f -= row * actuators.force[i];
    }
  }
}

}  // namespace

FreeMotion free_motion(const Model& model, const Kinematics& kinematics, const Vector& q, const Vector& v,
                       const Vector& ctrl, Integrator integrator, double h, const Vector& qfrc_applied,
                       const Matrix& xfrc_applied) {
  if (!(h > 0)) throw std::invalid_argument("h: got " + std::to_string(h) + ", expected a positive step in seconds");
  PassiveForces passive = passive_forces(model, kinematics, q, v);
  ActuatorForces actuators = actuator_forces(model, q, v, ctrl);
  FreeMotion m;
  m.M = mass_matrix(model, kinematics);
  m.damping = m.stiffness = Vector::Zero(model.nv);
  Vector f = passive.total + actuators.total + applied_forces(model, kinematics, qfrc_applied, xfrc_applied) -
             bias(model, kinematics, q, v);
  if (integrator == Integrator::kImplicit) {
    add_joint_terms(model, m);
    add_actuator_terms(model, actuators, v, h, f, m);
    add_tendon_rows(model, passive, v, h, f, m);
  } else if (!disabled(model, kDisableDamper) && !disabled(model, kDisableEulerdamp)) {
    m.damping = Eigen::Map<const Vector>(model.dof_damping.data(), model.nv);
  }
  m.A = m.M;
  m.A.diagonal() += h * m.damping + h * h * m.stiffness;
  m.b = m.M * v + h * (f + m.damping.cwiseProduct(v));
  m.v_free = m.A.llt().solve(m.b);
  return m;
}

}  // namespace stiction::reference
