#include "host/reference/free_motion.h"

#include <Eigen/Cholesky>
#include <Eigen/Geometry>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
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

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Range { double low = -kInfinity, high = kInfinity; };
Range scaled(double low, double high, double by) {
  return {std::min(low * by, high * by), std::max(low * by, high * by)};
}

/// Appends the soft row of a force F along `row` with stiffness k and damping d; false if there is nothing implicit in it.
bool add_soft_row(const Vector& row, const Vector& v, double h, double F, double k, double d, Range range,
                  FreeMotion& m) {
  double b_s = h * d + h * h * k;
  if (!(b_s > 0) || row.squaredNorm() == 0) return false;
  m.soft_rows.push_back({row, -h * (F + d * row.dot(v)) / b_s, 1 / b_s, h * range.low, h * range.high});
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
    if (add_soft_row(row, v, h, F, k, d, {}, m)) f -= row * F;
  }
}

/// Force at (q, v) of servos, and how it falls with velocity and position.
struct Servo { double force = 0, damping = 0, stiffness = 0; };
Servo held(const Servo& s, Range range, double v, double mass, double h) {
  double slope = s.damping + h * s.stiffness;
  double end = (s.force + s.damping * v - slope * v) / (1 + h * slope / mass);
  if (end > range.high) return {range.high, 0, 0};
  if (end < range.low) return {range.low, 0, 0};
  return s;
}

/// along_tendons: f of what has neither stiffness nor damping.
void add_actuators(const Model& model, const ActuatorForces& actuators, const Vector& v, double h, Vector& f,
                   Vector& along_tendons, FreeMotion& m) {
  if (disabled(model, kDisableActuation)) return;
  std::vector<Servo> joint(model.nv);
  std::vector<Range> joint_range(model.nv);
  std::vector<int> drivers(model.nv);
  for (int i = 0; i < model.nu; ++i)
    if (on_hinge_or_slide(model, i)) ++drivers[model.jnt_dofadr[model.actuator_trnid[i]]];
  for (int i = 0; i < model.nu; ++i) {
    double gear = model.actuator_gear[6 * i];
    double k = gear * gear * std::max(0.0, -model.actuator_biasprm[3 * i + 1]);
    double d = gear * gear * std::max(0.0, -model.actuator_biasprm[3 * i + 2]);
    Range range;
    if (model.actuator_forcelimited[i])
      range = scaled(model.actuator_forcerange[2 * i], model.actuator_forcerange[2 * i + 1], gear);
    if (on_hinge_or_slide(model, i)) {
      int dof = model.jnt_dofadr[model.actuator_trnid[i]];
      Servo s{gear * actuators.asked[i], d, k};
      if (drivers[dof] == 1) joint_range[dof] = range;
      else s = held(s, range, v[dof], m.M(dof, dof), h);
      joint[dof].force += s.force, joint[dof].damping += s.damping, joint[dof].stiffness += s.stiffness;
    } else if (static_cast<Transmission>(model.actuator_trntype[i]) == Transmission::kTendon) {
      // The row is the tendon's own, so that l is along the tendon: force and gains take one and two factors of the gear.
      Vector tendon = tendon_row(model, model.actuator_trnid[i]);
      if (!add_soft_row(tendon, v, h, gear * actuators.asked[i], k, d, range, m))
        along_tendons += tendon * (gear * actuators.force[i]);
    } else {
      f += actuators.moment.row(i).transpose() * actuators.force[i];
    }
  }
  for (int j = 0; j < model.njnt; ++j) {
    auto type = static_cast<JointType>(model.jnt_type[j]);
    if (type != JointType::kHinge && type != JointType::kSlide) continue;
    int dof = model.jnt_dofadr[j];
    Servo s = joint[dof];
    Range range = joint_range[dof];
    if (model.jnt_actfrclimited[j]) {
      const double low = model.jnt_actfrcrange[2 * j], high = model.jnt_actfrcrange[2 * j + 1];
      range = {std::clamp(range.low, low, high), std::clamp(range.high, low, high)};
    }
    const Servo asked = s;
    s = held(asked, range, v[dof], m.M(dof, dof), h);
    // Where it is unclear at which end of the step's velocities the range binds, the servo is a row beside the force foretold.
    const double slope = asked.damping + h * asked.stiffness, still = asked.force + asked.damping * v[dof],
                 now = still - slope * v[dof], end = now / (1 + h * slope / m.M(dof, dof));
    int within = 0, beyond = 0;
    for (double force : {still, now, end}) (force >= range.low && force <= range.high ? within : beyond) += 1;
    const bool both = std::min({still, now, end}) < range.low && std::max({still, now, end}) > range.high;
    if (slope > 0 && ((within > 0 && beyond > 0) || both)) {
      const double foretold = std::clamp(end, range.low, range.high);
      add_soft_row(Vector::Unit(model.nv, dof), v, h, asked.force - foretold, asked.stiffness, asked.damping,
                   {range.low - foretold, range.high - foretold}, m);
      s = {foretold, 0, 0};
    }
    f[dof] += s.force, m.damping[dof] += s.damping, m.stiffness[dof] += s.stiffness;
  }
}

Matrix3d cross_matrix(const Vector3d& a) {
  Matrix3d X;
  X << 0, -a.z(), a.y(), a.z(), 0, -a.x(), -a.y(), a.x(), 0;
  return X;
}

/// d of free_motion.h.
Vector3d midpoint_turn(const Matrix3d& I, const Vector3d& w, const Vector3d& L, const Vector3d& torque, double h) {
  Eigen::FullPivLU<Matrix3d> J(I + h / 2 * (cross_matrix(w) * I - cross_matrix(L)));
  Vector3d next = w - J.solve(h * w.cross(L));
  double energy = w.dot(I * w), found = next.dot(I * next);
  if (found > 0) next *= std::sqrt(energy / found);
  return next - w + J.solve(h * torque);
}

/// M without armature; c: bias(), which is what f has of it.
void add_gyroscopic(const Model& model, const Kinematics& k, const Vector& v, double h, const Matrix& M,
                    const Vector& c, Vector& f) {
  for (int j = 0; j < model.njnt; ++j) {
    auto type = static_cast<JointType>(model.jnt_type[j]);
    int body = model.jnt_bodyid[j], dof = model.jnt_dofadr[j], turn = dof + 3;
    if (type == JointType::kBall && model.body_weldid[model.body_parentid[body]] == 0 && model.body_jntadr[body] == j) {
      Matrix3d I = M.block<3, 3>(dof, dof);
      Vector3d w = v.segment<3>(dof), L = M.middleRows<3>(dof) * v, all = -c.segment<3>(dof);
      f.segment<3>(dof) += I * midpoint_turn(I, w, L, all + w.cross(L), h) / h - all;
    } else if (type == JointType::kFree) {
      double mass = M(dof, dof);
      Matrix3d moment = M.block<3, 3>(dof, turn), R = k.body_rot[body];
      Matrix3d I = M.block<3, 3>(turn, turn) - moment.transpose() * moment / mass;
      Vector3d w = v.segment<3>(turn);
      Vector3d L = M.middleRows<3>(turn) * v - moment.transpose() * (M.middleRows<3>(dof) * v) / mass;
      Vector3d d = midpoint_turn(I, w, L, Vector3d::Zero(), h), F = (R * w).cross(moment * w);
      f += M.middleCols<3>(dof) * (F / mass);  // as if the origin moved by it and carried all along
      f.segment<3>(turn) += I * d / h + w.cross(L);
    }
  }
}

/// Which dofs are of trees of more than one joint.
std::vector<int> jointed_dofs(const Model& model) {
  auto root = [&](int body) {
    while (model.body_weldid[model.body_parentid[body]] != 0) body = model.body_parentid[body];
    return model.body_weldid[body];
  };
  std::vector<int> joints(model.nbody, 0), dofs;
  for (int j = 0; j < model.njnt; ++j) ++joints[root(model.jnt_bodyid[j])];
  for (int dof = 0; dof < model.nv; ++dof)
    if (joints[root(model.jnt_bodyid[model.dof_jntid[dof]])] > 1) dofs.push_back(dof);
  return dofs;
}

/// c(u) of free_motion.h, where m has the explicit solution.
void settle_coriolis(const Model& model, const Vector& q, const Vector& v, double h, FreeMotion& m) {
  const std::vector<int> jointed = jointed_dofs(model);
  auto sum = [&](const Vector& x) { return x(jointed).cwiseAbs().sum(); };
  const double moved = sum(m.v_free - v), size = sum(v) + moved;
  if (size * h <= 1e-3) return;
  if (!disabled(model, kDisableEquality))
    for (int active : model.eq_active)
      if (active) return;
  const Vector first = m.b;
  const Eigen::LLT<Matrix> A(m.A);
  Vector now = m.v_free;
  double part = 1, last = moved, change = kInfinity;
  for (int pass = 0; pass < 30; ++pass) {
    m.coriolis = coriolis_change(model, q, v, (v + now) / 2, h, m);
    m.b = first + m.coriolis;
    m.v_free = A.solve(m.b);
    change = sum(m.v_free - now);
    double most = 0;
    for (int dof : jointed)
      most = std::max(most, std::abs(m.v_free[dof] - now[dof]) / (std::abs(v[dof]) + std::abs(now[dof]) + 0.1 * size));
    if (most * std::min(change / std::max(last, 2.2e-16 * size), 1.0) <= 1e-10) break;
    if (change > 0.7 * last) part /= 2;
    last = change;
    now += part * (m.v_free - now);
  }
  m.at_mean = change <= 1e-2 * size;
  if (m.at_mean) return;
  m.b = first;
  m.v_free = A.solve(m.b);
}

}  // namespace

Vector owed_after(const Model& model, const Vector& q, const Vector& v, const Vector& end, double h,
                  const FreeMotion& m) {
  if (!m.at_mean) return Vector::Zero(model.nv);
  return coriolis_change(model, q, v, (v + end) / 2, h, m) - m.coriolis;
}

Vector coriolis_change(const Model& model, const Vector& q, const Vector& v, const Vector& u, double h,
                       const FreeMotion& m) {
  const Kinematics k = forward_kinematics(model, q);
  const Matrix bare = m.M - Matrix(Eigen::Map<const Vector>(model.dof_armature.data(), model.nv).asDiagonal());
  Vector more = bias(model, k, q, v) - bias(model, k, q, u), change = Vector::Zero(model.nv);
  for (int j = 0; j < model.njnt; ++j) {
    if (static_cast<JointType>(model.jnt_type[j]) != JointType::kFree) continue;
    const int dof = model.jnt_dofadr[j];
    const Vector3d w = u.segment<3>(dof + 3), turning = k.body_rot[model.jnt_bodyid[j]] * w;
    more += bare.middleCols<3>(dof) * turning.cross(bare.block<3, 3>(dof, dof + 3) * w) / bare(dof, dof);
  }
  for (int dof : jointed_dofs(model)) change[dof] = h * (more - m.gyroscopic)[dof];
  return change;
}

FreeMotion free_motion(const Model& model, const Kinematics& kinematics, const StepInput& input, Integrator integrator,
                       double h) {
  const auto& [q, v, ctrl, qfrc_applied, xfrc_applied, owed] = input;
  if (!(h > 0)) throw std::invalid_argument("h: got " + std::to_string(h) + ", expected a positive step in seconds");
  PassiveForces passive = passive_forces(model, kinematics, q, v);
  ActuatorForces actuators = actuator_forces(model, q, v, ctrl);
  FreeMotion m;
  m.M = mass_matrix(model, kinematics);
  m.damping = m.stiffness = Vector::Zero(model.nv);
  Vector c = bias(model, kinematics, q, v);
  Vector f = passive.total + applied_forces(model, kinematics, qfrc_applied, xfrc_applied) - c;
  m.gyroscopic = m.along_tendons = m.coriolis = 0 * f;
  Vector armature = Eigen::Map<const Vector>(model.dof_armature.data(), model.nv);
  Matrix bare = m.M - Matrix(armature.asDiagonal());
  if (integrator == Integrator::kImplicit) {
    add_joint_terms(model, m);
    add_actuators(model, actuators, v, h, f, m.along_tendons, m);
    add_tendon_rows(model, passive, v, h, f, m);
    add_gyroscopic(model, kinematics, v, h, bare, c, m.gyroscopic);
  } else {
    f += actuators.total;
    if (!disabled(model, kDisableDamper) && !disabled(model, kDisableEulerdamp))
      m.damping = Eigen::Map<const Vector>(model.dof_damping.data(), model.nv);
  }
  m.A = m.M;
  m.A.diagonal() += h * m.damping + h * h * m.stiffness;
  m.b = m.M * v + h * (f + m.gyroscopic + m.damping.cwiseProduct(v));
  if (integrator == Integrator::kImplicit && owed.size() > 0) m.b += owed;
  m.v_free = m.A.llt().solve(m.b);
  if (integrator == Integrator::kImplicit) settle_coriolis(model, q, v, h, m);
  m.b += h * m.along_tendons;
  m.v_free = m.A.llt().solve(m.b);
  return m;
}

}  // namespace stiction::reference
