#include "host/reference/free_motion.h"

#include "host/reference/centres.h"

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
Servo operator+(const Servo& a, const Servo& b) {
  return {a.force + b.force, a.damping + b.damping, a.stiffness + b.stiffness};
}
/// Of an actuator on what it drives, its range aside.
Servo servo_of(const Model& model, const ActuatorForces& actuators, int i) {
  const double gear = model.actuator_gear[6 * i];
  return {gear * actuators.asked[i], gear * gear * std::max(0.0, -model.actuator_biasprm[3 * i + 2]),
          gear * gear * std::max(0.0, -model.actuator_biasprm[3 * i + 1])};
}
Range range_of(const Model& model, int i) {
  if (!model.actuator_forcelimited[i]) return {};
  return scaled(model.actuator_forcerange[2 * i], model.actuator_forcerange[2 * i + 1], model.actuator_gear[6 * i]);
}

/// The force with which a joint of this inertia would end the step; infinite: that has v then.
double ending(const Servo& s, double v, double mass, double h) {
  double slope = s.damping + h * s.stiffness;
  return (s.force + s.damping * v - slope * v) / (1 + h * slope / mass);
}
Servo held(const Servo& s, Range range, double v, double mass, double h) {
  double end = ending(s, v, mass, h);
  if (end > range.high) return {range.high, 0, 0};
  if (end < range.low) return {range.low, 0, 0};
  return s;
}

Range narrowed(const Range& a, double low, double high) {
  return {std::clamp(a.low, low, high), std::clamp(a.high, low, high)};
}

/// What pulls along a tendon: an actuator, or all that share the tendon's force range.
struct Pull {
  Vector row;  // (nv)
  Servo servo;
  Range range;
  int ranged = 0;  // joints of the tendon with a force range
};
std::vector<Pull> pulls_of(const Model& model, const ActuatorForces& actuators) {
  std::vector<Pull> pulls;
  std::vector<int> shared(model.ntendon, -1);
  auto on = [&](int i, int t) {
    return static_cast<Transmission>(model.actuator_trntype[i]) == Transmission::kTendon &&
           model.actuator_trnid[i] == t;
  };
  for (int i = 0; i < model.nu; ++i) {
    const int t = model.actuator_trnid[i];
    if (!on(i, t)) continue;
    const double gear = model.actuator_gear[6 * i];
    Servo s = servo_of(model, actuators, i);
    Range range = range_of(model, i);
    const bool together = model.tendon_actfrclimited[t];
    if (together) {
      const Range all = scaled(model.tendon_actfrcrange[2 * t], model.tendon_actfrcrange[2 * t + 1], gear);
      range = narrowed(all, range.low, range.high);
    }
    if (together && shared[t] >= 0) {
      pulls[shared[t]].servo = pulls[shared[t]].servo + s;
      continue;
    }
    shared[t] = static_cast<int>(pulls.size());
    Pull pull{tendon_row(model, t), s, range};
    for (int j = 0; j < model.njnt; ++j) {
      bool has = false;
      for (int w = model.tendon_adr[t]; w < model.tendon_adr[t] + model.tendon_num[t]; ++w)
        has |= model.wrap_jntid[w] == j;
      pull.ranged += has && model.jnt_actfrclimited[j];
    }
    pulls.push_back(pull);
  }
  return pulls;
}

/// A pull's part in what drives one joint, as if all others kept their velocities.
Servo part_of(const Pull& pull, int dof, const Vector& v, double h) {
  const double coef = pull.row[dof], square = pull.ranged * coef * coef, k = pull.servo.stiffness;
  return {coef * (pull.servo.force - h * k * pull.row.dot(v)) + h * square * k * v[dof], square * pull.servo.damping,
          square * k};
}

/// The servo of a dof that its range binds, as constant force or, where the end of the step decides, as row.
Servo hold(const Servo& asked, Range range, int dof, double v, double h, FreeMotion& m) {
  const double foretold = std::clamp(ending(asked, v, m.M(dof, dof), h), range.low, range.high);
  Vector unit = Vector::Unit(m.M.rows(), dof);
  add_soft_row(unit, v * unit, h, asked.force - foretold, asked.stiffness, asked.damping,
               {range.low - foretold, range.high - foretold}, m);
  return {foretold, 0, 0};
}

/// along_tendons: f of what has neither stiffness nor damping.
void add_actuators(const Model& model, const ActuatorForces& actuators, const Vector& v, double h, Vector& f,
                   Vector& along_tendons, FreeMotion& m) {
  if (disabled(model, kDisableActuation)) return;
  std::vector<Servo> joint(model.nv);
  std::vector<Range> own_range(model.nv);
  std::vector<int> drivers(model.nv);
  for (int i = 0; i < model.nu; ++i)
    if (on_hinge_or_slide(model, i)) ++drivers[model.jnt_dofadr[model.actuator_trnid[i]]];
  for (int i = 0; i < model.nu; ++i) {
    if (static_cast<Transmission>(model.actuator_trntype[i]) == Transmission::kTendon) continue;
    if (!on_hinge_or_slide(model, i)) {
      f += actuators.moment.row(i).transpose() * actuators.force[i];
      continue;
    }
    int dof = model.jnt_dofadr[model.actuator_trnid[i]];
    Servo s = servo_of(model, actuators, i);
    if (drivers[dof] == 1) own_range[dof] = range_of(model, i);
    else s = held(s, range_of(model, i), v[dof], m.M(dof, dof), h);
    joint[dof] = joint[dof] + s;
  }
  std::vector<Pull> pulls = pulls_of(model, actuators);
  std::vector<bool> apart(model.nv);
  for (int j = 0; j < model.njnt; ++j) {
    auto type = static_cast<JointType>(model.jnt_type[j]);
    if (type != JointType::kHinge && type != JointType::kSlide) continue;
    const int dof = model.jnt_dofadr[j];
    const double mass = m.M(dof, dof);
    const Servo asked = joint[dof];
    Range range = own_range[dof];
    int touching = 0;
    for (const Pull& pull : pulls) touching += pull.row[dof] != 0;
    if (model.jnt_actfrclimited[j]) {
      const double low = model.jnt_actfrcrange[2 * j], high = model.jnt_actfrcrange[2 * j + 1];
      if (touching == 0) {
        range = narrowed(range, low, high);
      } else {  // all actuators of the joint together, where that binds
        Servo all = held(asked, range, v[dof], mass, h);
        Range total{low, high};
        for (const Pull& pull : pulls) {
          if (pull.row[dof] == 0) continue;
          const Servo part = part_of(pull, dof, v, h);
          const Range of = scaled(pull.range.low, pull.range.high, pull.row[dof]);
          if (drivers[dof] == 0 && touching == 1) total = narrowed(of, low, high), all = part;
          else all = all + held(part, of, v[dof], mass, h);
        }
        const double now = ending(all, v[dof], kInfinity, h), end = ending(all, v[dof], mass, h);
        apart[dof] = std::min(now, end) < total.low || std::max(now, end) > total.high;
        if (apart[dof]) {
          const bool constant = (now > total.high && end > total.high) || (now < total.low && end < total.low);
          f[dof] += constant ? std::clamp(end, total.low, total.high) : hold(all, total, dof, v[dof], h, m).force;
          continue;
        }
      }
    }
    Servo s = held(asked, range, v[dof], mass, h);
    // Where it is unclear at which end of the step's velocities the range binds, the servo is a row beside the force foretold.
    const double slope = asked.damping + h * asked.stiffness, still = asked.force + asked.damping * v[dof],
                 now = ending(asked, v[dof], kInfinity, h), end = ending(asked, v[dof], mass, h);
    int within = 0, beyond = 0;
    for (double force : {still, now, end}) (force >= range.low && force <= range.high ? within : beyond) += 1;
    const bool both = std::min({still, now, end}) < range.low && std::max({still, now, end}) > range.high;
    if (slope > 0 && ((within > 0 && beyond > 0) || both)) s = hold(asked, range, dof, v[dof], h, m);
    f[dof] += s.force, m.damping[dof] += s.damping, m.stiffness[dof] += s.stiffness;
  }
  for (Pull& pull : pulls) {
    // The row is the tendon's own, so that l is along the tendon. It knows how joints with this force in theirs moved.
    Vector lost = Vector::Zero(model.nv);
    for (int dof = 0; dof < model.nv; ++dof)
      if (apart[dof]) std::swap(lost[dof], pull.row[dof]);
    const Servo& s = pull.servo;
    const double F = s.force - h * s.stiffness * lost.dot(v);
    if (add_soft_row(pull.row, v, h, F, s.stiffness, s.damping, pull.range, m)) m.soft_rows.back().apart = lost;
    else along_tendons += pull.row * std::clamp(F, pull.range.low, pull.range.high);
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

/// Force as if the origins of free joints were accelerated against what Coriolis forces do to the centres of mass of all they carry, and
/// carried all along. M without armature.
Vector to_hold_centres(const Model& model, const Vector& q, const Vector& v, const Matrix& M) {
  Vector f = Vector::Zero(model.nv);
  for (const FreeTree& tree : free_trees(model)) f += M.middleCols<3>(tree.dof) * drift_of(model, tree, q, v);
  return f;
}

/// M without armature; c: bias(), which is what f has of it.
void add_gyroscopic(const Model& model, const Vector& q, const Vector& v, double h, const Matrix& M, const Vector& c,
                    Vector& f) {
  const std::vector<int> jointed = has_loops(model) ? std::vector<int>{} : jointed_dofs(model);
  auto turns = [&](int dof) { return std::find(jointed.begin(), jointed.end(), dof) == jointed.end(); };
  for (int j = 0; j < model.njnt; ++j) {
    auto type = static_cast<JointType>(model.jnt_type[j]);
    int body = model.jnt_bodyid[j], dof = model.jnt_dofadr[j], turn = dof + 3;
    if (type == JointType::kBall && model.body_weldid[model.body_parentid[body]] == 0 && model.body_jntadr[body] == j) {
      Matrix3d I = M.block<3, 3>(dof, dof);
      Vector3d w = v.segment<3>(dof), L = M.middleRows<3>(dof) * v, all = -c.segment<3>(dof);
      if (turns(dof)) f.segment<3>(dof) += I * midpoint_turn(I, w, L, all + w.cross(L), h) / h - all;
    } else if (type == JointType::kFree) {
      double mass = M(dof, dof);
      Matrix3d moment = M.block<3, 3>(dof, turn);
      Matrix3d I = M.block<3, 3>(turn, turn) - moment.transpose() * moment / mass;
      Vector3d w = v.segment<3>(turn);
      Vector3d L = M.middleRows<3>(turn) * v - moment.transpose() * (M.middleRows<3>(dof) * v) / mass;
      if (turns(dof)) f.segment<3>(turn) += I * midpoint_turn(I, w, L, Vector3d::Zero(), h) / h + w.cross(L);
    }
  }
  f += to_hold_centres(model, q, v, M);
}

/// c(u) of free_motion.h, where m has the explicit solution.
void settle_coriolis(const Model& model, const Vector& q, const Vector& v, double h, FreeMotion& m) {
  const std::vector<int> jointed = jointed_dofs(model);
  auto sum = [&](const Vector& x) { return x(jointed).cwiseAbs().sum(); };
  auto length = [&](const Vector& x) { return x.cwiseAbs2().dot(m.A.diagonal()); };
  if ((sum(v) + sum(m.v_free - v)) * h <= 1e-3) return;
  if (has_loops(model)) return;
  const Vector first = m.b;
  const Eigen::LLT<Matrix> A(m.A);
  auto change_at = [&](const Vector& end) { return coriolis_change(model, q, v, v + m.end_part * (end - v), h, m); };
  auto missing = [&](const Vector& end) -> Vector { return A.solve(first + change_at(end)) - end; };
  // change_at is quadratic: its central differences are its derivative.
  auto newton = [&](Vector now) {
    for (int i = 0; i < 50; ++i) {
      const Vector f = missing(now);
      if (sum(f) <= 1e-13 * (sum(v) + sum(now))) break;
      Matrix slope = m.A;
      for (int dof : jointed) {
        const Vector unit = Vector::Unit(model.nv, dof);
        slope.col(dof) -= (change_at(now + unit) - change_at(now - unit)) / 2;
      }
      const Vector step = slope.partialPivLu().solve(m.A * f);
      double part = 1;
      while (part > 1e-3 && length(missing(now + part * step)) > (1 - part / 2) * length(f)) part /= 2;
      now += part * step;
    }
    return now;
  };
  const Vector explicit_v = m.v_free, f0 = missing(explicit_v), f1 = missing(explicit_v + f0);
  if (sum(f0) > 1e-10 * sum(explicit_v))
    m.end_part = 0.5 + std::clamp(std::sqrt(length(f1) / length(f0)) / 0.7 - 0.5, 0.0, 0.5);
  const Vector now = newton(explicit_v);
  m.at_mean = sum(missing(now)) <= 1e-9 * (sum(v) + sum(now));
  m.coriolis = m.at_mean ? change_at(now) : coriolis_change(model, q, v, 0 * v, h, m);
  m.b = first + m.coriolis;
  m.v_free = A.solve(m.b);
}

}  // namespace

bool has_loops(const Model& model) {
  if (disabled(model, kDisableEquality)) return false;
  for (int i = 0; i < model.neq; ++i) {
    const double* c = &model.eq_data[11 * i];
    const auto type = static_cast<Equality>(model.eq_type[i]);
    const bool frames = type == Equality::kConnect || type == Equality::kWeld;
    if (model.eq_active[i] && (frames || c[2] != 0 || c[3] != 0 || c[4] != 0)) return true;
  }
  return false;
}

Vector owed_after(const Model& model, const StepInput& input, const Vector& end, double h, const FreeMotion& m) {
  const Vector &q = input.q, &v = input.v;
  if (!m.at_mean || m.end_part > 0.5) return Vector::Zero(model.nv);
  const Vector debt = coriolis_change(model, q, v, v + m.end_part * (end - v), h, m) - m.coriolis;
  const Eigen::LLT<Matrix> A(m.A);
  const Vector moved = end - A.solve(m.b - h * m.along_tendons);
  Vector change = Vector::Zero(model.nv);
  for (int dof : jointed_dofs(model)) change[dof] = moved[dof];
  const Vector turned = A.solve(debt);
  const double size = debt.dot(turned), part = std::sqrt(size / std::max(change.dot(m.A * change), 1e-30)),
               paid = input.owed.size() > 0 ? turned.dot(input.owed) : 0,
               lasts = std::max(0.005 / std::max(part, 1e-30), 4 * paid / std::max(size, 1e-30));
  return debt * std::min(lasts, std::clamp(2 - part / 0.15, 0.0, 1.0));
}

Vector turned_late(const Model& model, const Vector& v, const Vector& solved, double h, const FreeMotion& m) {
  Vector end = solved;
  const Matrix bare = m.M - Matrix(Eigen::Map<const Vector>(model.dof_armature.data(), model.nv).asDiagonal());
  for (int j = 0; j < model.njnt; ++j) {
    const int dof = model.jnt_dofadr[j], turn = dof + 3;
    if (m.rolls.size() == 0 || m.rolls[j] == 0) continue;
    const double mass = bare(dof, dof);
    const Matrix3d moment = bare.block<3, 3>(dof, turn),
                   I = bare.block<3, 3>(turn, turn) - moment.transpose() * moment / mass;
    auto turned = [&](const Vector3d& w, double time) -> Vector3d {
      return w + midpoint_turn(I, w, I * w, Vector3d::Zero(), time);
    };
    const Vector3d before = v.segment<3>(turn), after = solved.segment<3>(turn), push = after - turned(before, h);
    const double spin = std::max(before.norm(), 1e-30),
                 part = std::clamp(2 - std::max(4 * push.norm() / spin, 2 * h * spin), 0.0, 1.0);
    if (spin * h <= 1e-4 || push.norm() <= 1e-4 * spin) continue;
    const Vector3d late = m.rolls[j] * part * (turned(turned(before, h / 2) + push, h / 2) - after);
    end.segment<3>(turn) += late, end.segment<3>(dof) -= moment * late / mass;
  }
  return end;
}

Vector coriolis_change(const Model& model, const Vector& q, const Vector& v, const Vector& u, double h,
                       const FreeMotion& m) {
  const Kinematics k = forward_kinematics(model, q);
  const Matrix bare = m.M - Matrix(Eigen::Map<const Vector>(model.dof_armature.data(), model.nv).asDiagonal());
  Vector change = Vector::Zero(model.nv);
  const Vector more = bias(model, k, q, v) - bias(model, k, q, u) + to_hold_centres(model, q, u, bare);
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
    add_gyroscopic(model, q, v, h, bare, c, m.gyroscopic);
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
  for (SoftRow& s : m.soft_rows) {
    if (s.apart.size() == 0) continue;
    const Vector mobility = m.A.llt().solve(s.J);
    const double moved = s.apart.dot(mobility);
    if (std::abs(moved) > (s.R + s.J.dot(mobility)) / 2)
      s.e += s.apart.dot(m.v_free - v), s.R = std::max(s.R + moved, 0.0);
  }
  m.b += h * m.along_tendons;
  m.v_free = m.A.llt().solve(m.b);
  return m;
}

}  // namespace stiction::reference
