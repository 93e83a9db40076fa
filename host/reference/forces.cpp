// Passive and actuator forces of dynamics.h.
#include <algorithm>

#include "host/reference/dynamics.h"

namespace stiction::reference {
namespace {

/// Length of one actuator and its row of moments.
void transmission(const Model& model, const Vector& q, int actuator, double& length, Vector& moment) {
  const double* gear = &model.actuator_gear[6 * actuator];
  int target = model.actuator_trnid[actuator];
  moment = Vector::Zero(model.nv);
  if (static_cast<Transmission>(model.actuator_trntype[actuator]) == Transmission::kTendon) {
    length = gear[0] * tendon_length(model, target, q);
    moment = gear[0] * tendon_row(model, target);
    return;
  }
  auto type = static_cast<JointType>(model.jnt_type[target]);
  int dofs = type == JointType::kFree ? 6 : type == JointType::kBall ? 3 : 1;
  length = dofs == 1 ? gear[0] * q[model.jnt_qposadr[target]] : 0;  // forces on ball and free joints ignore it
  for (int c = 0; c < dofs; ++c) moment[model.jnt_dofadr[target] + c] = gear[c];
}

}  // namespace

PassiveForces passive_forces(const Model& model, const Kinematics& k, const Vector& q, const Vector& v) {
  PassiveForces f;
  f.spring = f.damper = f.gravity_compensation = Vector::Zero(model.nv);
  f.tendon_spring = f.tendon_damper = Vector::Zero(model.ntendon);
  Vector rest = Eigen::Map<const Vector>(model.qpos_spring.data(), model.nq);
  bool springs = !disabled(model, kDisableSpring), dampers = !disabled(model, kDisableDamper);
  if (springs)
    for (int joint = 0; joint < model.njnt; ++joint) {
      int at = model.jnt_qposadr[joint], dof = model.jnt_dofadr[joint];
      auto type = static_cast<JointType>(model.jnt_type[joint]);
      double k = model.jnt_stiffness[joint];
      if (type == JointType::kHinge || type == JointType::kSlide) {
        f.spring[dof] -= k * (q[at] - rest[at]);
        continue;
      }
      if (type == JointType::kFree) {
        f.spring.segment<3>(dof) -= k * (q.segment<3>(at) - rest.segment<3>(at));
        at += 3, dof += 3;
      }
      f.spring.segment<3>(dof) -= k * rotation_difference(quaternion_at(q, at), quaternion_at(rest, at));
    }
  if (dampers) f.damper = -Eigen::Map<const Vector>(model.dof_damping.data(), model.nv).cwiseProduct(v);
  f.total = f.spring + f.damper;
  for (int t = 0; t < model.ntendon; ++t) {
    double length = tendon_length(model, t, q);
    double low = model.tendon_lengthspring[2 * t], high = model.tendon_lengthspring[2 * t + 1];
    double stretch = length > high ? length - high : length < low ? length - low : 0;
    if (springs) f.tendon_spring[t] = -model.tendon_stiffness[t] * stretch;
    if (dampers) f.tendon_damper[t] = -model.tendon_damping[t] * tendon_row(model, t).dot(v);
    f.total += tendon_row(model, t) * (f.tendon_spring[t] + f.tendon_damper[t]);
  }
  if (springs || dampers)
    for (int b = 1; b < model.nbody; ++b)
      if (model.body_gravcomp[b] != 0)
        f.gravity_compensation -= point_jacobian(model, k, b, k.com[b]).transpose() *
                                  (model.body_mass[b] * model.body_gravcomp[b] * gravity(model));
  f.total += f.gravity_compensation;
  return f;
}

ActuatorForces actuator_forces(const Model& model, const Vector& q, const Vector& v, const Vector& ctrl) {
  require_size("ctrl", ctrl, model.nu);
  ActuatorForces f;
  f.length = f.velocity = f.asked = f.force = Vector::Zero(model.nu);
  f.moment = Matrix::Zero(model.nu, model.nv);
  f.total = Vector::Zero(model.nv);
  if (disabled(model, kDisableActuation)) return f;
  for (int i = 0; i < model.nu; ++i) {
    Vector moment;
    transmission(model, q, i, f.length[i], moment);
    f.moment.row(i) = moment.transpose();
    f.velocity[i] = moment.dot(v);
    double control = ctrl[i];
    if (model.actuator_ctrllimited[i] && !disabled(model, kDisableClampctrl))
      control = std::clamp(control, model.actuator_ctrlrange[2 * i], model.actuator_ctrlrange[2 * i + 1]);
    const double* b = &model.actuator_biasprm[3 * i];
    f.asked[i] = model.actuator_gainprm[i] * control + b[0] + b[1] * f.length[i] + b[2] * f.velocity[i];
    f.force[i] = f.asked[i];
  }
  for (int t = 0; t < model.ntendon; ++t) {
    double sum = 0;
    auto drives = [&](int i) {
      return static_cast<Transmission>(model.actuator_trntype[i]) == Transmission::kTendon &&
             model.actuator_trnid[i] == t;
    };
    for (int i = 0; i < model.nu; ++i) sum += drives(i) ? f.force[i] : 0;
    if (!model.tendon_actfrclimited[t] || sum == 0) continue;
    const double part = std::clamp(sum, model.tendon_actfrcrange[2 * t], model.tendon_actfrcrange[2 * t + 1]) / sum;
    for (int i = 0; i < model.nu; ++i) f.force[i] *= drives(i) ? part : 1;
  }
  for (int i = 0; i < model.nu; ++i)
    if (model.actuator_forcelimited[i])
      f.force[i] = std::clamp(f.force[i], model.actuator_forcerange[2 * i], model.actuator_forcerange[2 * i + 1]);
  f.total = f.moment.transpose() * f.force;
  for (int joint = 0; joint < model.njnt; ++joint) {
    auto type = static_cast<JointType>(model.jnt_type[joint]);
    if (!model.jnt_actfrclimited[joint] || (type != JointType::kHinge && type != JointType::kSlide)) continue;
    int dof = model.jnt_dofadr[joint];
    f.total[dof] = std::clamp(f.total[dof], model.jnt_actfrcrange[2 * joint], model.jnt_actfrcrange[2 * joint + 1]);
  }
  return f;
}

}  // namespace stiction::reference
