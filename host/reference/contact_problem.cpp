#include "host/reference/contact_problem.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "host/reference/centres.h"
#include "host/reference/loops.h"
#include "host/reference/mid_turn.h"
#include "host/reference/rolling.h"

namespace stiction::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kStandardGravity = 9.81;  // m/s^2

/// Collects rows, then hands them over as one matrix.
struct RowList {
  struct Row {
    Vector J;
    double e, R, lower, upper;
    RowKind kind;
  };
  std::vector<Row> rows;

  void store(int nv, ContactProblem& problem) const {
    int n = static_cast<int>(rows.size());
    problem.J_row.resize(n, nv);
    for (Vector* x : {&problem.e_row, &problem.R_row, &problem.lower, &problem.upper}) x->resize(n);
    for (int i = 0; i < n; ++i) {
      problem.J_row.row(i) = rows[i].J.transpose();
      problem.e_row[i] = rows[i].e;
      problem.R_row[i] = rows[i].R;
      problem.lower[i] = rows[i].lower;
      problem.upper[i] = rows[i].upper;
      problem.kinds.push_back(rows[i].kind);
    }
  }
};

double bias_speed(double distance, const StepOptions& o) {
  return distance > 0 ? distance / o.timestep : std::max(o.erp * distance / o.timestep, -o.max_recovery);
}

double kept_recovery(const StepOptions& o) {
  const double sunk = 50 * std::max(o.penetration_allowance, 1e-6), rate = std::min(o.erp, 0.5) / o.timestep;
  return std::min({o.max_recovery, 0.044, std::max(kStandardGravity * o.timestep, rate * sunk)});
}

Vector unit_row(const Model& model, int dof, double value) {
  Vector J = Vector::Zero(model.nv);
  J[dof] = value;
  return J;
}

void add_equalities(const std::vector<EqualityRows>& all, const StepOptions& o, RowList& list) {
  for (const EqualityRows& x : all) {
    Vector e = o.erp / o.timestep * x.x;
    if (e.norm() > o.max_recovery) e *= o.max_recovery / e.norm();
    const double R = x.R + 0.02 * x.pulled * e.squaredNorm() / std::max(o.max_recovery * o.max_recovery, 1e-60);
    for (int k = 0; k < e.size(); ++k)
      list.rows.push_back({x.J.row(k), x.lever * e[k], R, -kInfinity, kInfinity, RowKind::kEquality});
  }
}

void add_friction(const Model& model, const StepOptions& o, RowList& list) {
  if (disabled(model, kDisableFrictionloss)) return;
  auto add = [&](const Vector& J, double loss) {
    if (loss > 0) list.rows.push_back({J, 0, 0, -o.timestep * loss, o.timestep * loss, RowKind::kFriction});
  };
  for (int dof = 0; dof < model.nv; ++dof) add(unit_row(model, dof, 1), model.dof_frictionloss[dof]);
  for (int t = 0; t < model.ntendon; ++t) add(tendon_row(model, t), model.tendon_frictionloss[t]);
}

void add_limits(const Model& model, const Vector& q, const StepOptions& o, RowList& list) {
  if (disabled(model, kDisableLimit)) return;
  auto add = [&](const Vector& J, double distance) {
    list.rows.push_back({J, bias_speed(distance, o), 0, 0, kInfinity, RowKind::kLimit});
  };
  for (int joint = 0; joint < model.njnt; ++joint) {
    if (!model.jnt_limited[joint]) continue;
    int at = model.jnt_qposadr[joint], dof = model.jnt_dofadr[joint];
    double low = model.jnt_range[2 * joint], high = model.jnt_range[2 * joint + 1];
    if (static_cast<JointType>(model.jnt_type[joint]) == JointType::kBall) {
      if (high >= M_PI) continue;  // no rotation is larger
      Vector3d turn = rotation_difference(quaternion_at(q, at), Quaterniond::Identity());
      Vector J = Vector::Zero(model.nv);
      J.segment<3>(dof) = turn.norm() > 0 ? Vector3d(-turn.normalized()) : Vector3d(-Vector3d::UnitX());
      add(J, high - turn.norm());
      continue;
    }
    add(unit_row(model, dof, 1), q[at] - low);
    add(unit_row(model, dof, -1), high - q[at]);
  }
  for (int t = 0; t < model.ntendon; ++t) {
    if (!model.tendon_limited[t]) continue;
    double length = tendon_length(model, t, q);
    add(tendon_row(model, t), length - model.tendon_range[2 * t]);
    add(-tendon_row(model, t), model.tendon_range[2 * t + 1] - length);
  }
}

/// How far x is from the root of the tree that carries a geom; 0 where it stands still.   m
double from_root(const Model& model, const Kinematics& k, int geom, const Vector3d& x) {
  int body = model.geom_bodyid[geom];
  if (model.body_weldid[body] == 0) return 0;
  while (model.body_weldid[model.body_parentid[body]] != 0) body = model.body_parentid[body];
  return (x - k.body_pos[body]).norm();
}

/// Where geom 1 or 2 of a contact is touched.
Vector3d touched_point(const Model& model, const Kinematics& k, const Contact& c, int end) {
  const int geom = end == 1 ? c.geom1 : c.geom2;
  const Vector3d out = c.frame.row(2).transpose() * (end == 1 ? 1 : -1);  // of it
  auto is_ball = [&](int g) { return model.geom_type[g] == static_cast<int>(GeomType::kSphere); };
  if (c.dist > 0 && is_ball(c.geom1) && is_ball(c.geom2)) return k.geom_pos[geom] + out * model.geom_size[3 * geom];
  return c.pos - out * (std::max(c.dist, 0.0) / 2) + (end == 1 ? Vector3d(Vector3d::Zero()) : c.ahead);
}

/// How the paths of two bodies that turn together part in a step where a contact touches them, but for their velocities: docs/theory.md,
/// section 3.3.   m/s
Vector3d parting(const Model& model, const Kinematics& k, const StepInput& input, const StepOptions& o,
                 const Contact& c, double far) {
  const int body1 = model.geom_bodyid[c.geom1], body2 = model.geom_bodyid[c.geom2];
  const Vector3d x1 = touched_point(model, k, c, 1), x2 = touched_point(model, k, c, 2);
  if (model.body_weldid[body1] == 0 || model.body_weldid[body2] == 0) return Vector3d::Zero();
  const std::vector<BodyMotion> motions = body_motions(model, k, input.q, input.v);
  const std::vector<FreeTree> trees =
      o.integrator == Integrator::kImplicit ? free_trees(model) : std::vector<FreeTree>{};
  auto velocity = [&](int body, const Vector3d& x) -> Vector3d {
    return motions[body].linear + motions[body].angular.cross(x - k.body_pos[body]);
  };
  auto acceleration = [&](int body, const Vector3d& x) {
    const BodyMotion& motion = motions[body];
    const Vector3d w = motion.angular, r = x - k.body_pos[body];
    Vector3d a = motion.linear_acceleration + motion.angular_acceleration.cross(r) + w.cross(w.cross(r));
    for (const FreeTree& tree : trees)
      if (std::find(tree.bodies.begin(), tree.bodies.end(), body) != tree.bodies.end())
        a -= drift_of(model, tree, input.q, input.v);
    return a;
  };
  const Vector3d w1 = motions[body1].angular, w2 = motions[body2].angular;
  const Vector3d apart = acceleration(body2, x2) - acceleration(body1, x1), d = o.timestep / 2 * apart;
  const double spin = c.frame.row(2).dot(w2 - w1), pivots = spin * spin;
  const double fastest =
      std::max(std::max(w1.squaredNorm(), w2.squaredNorm()) - pivots, apart.norm() / std::max(2 * far, 1e-30));
  if (!(fastest > 0)) return Vector3d::Zero();
  const double fall = kStandardGravity * o.timestep, rolls = 12 * ((w2 - w1).squaredNorm() - pivots) / fastest - 1,
               near = std::min(d.squaredNorm() + fall * fall, 0.01 * apart.squaredNorm() / fastest),
               slides = (velocity(body2, x2) - velocity(body1, x1)).squaredNorm() / (16 * std::max(near, 1e-30));
  return std::clamp(2 - std::max(rolls, slides), 0.0, 1.0) * d;
}

void check_geoms(const Model& model, const std::vector<Contact>& contacts) {
  auto valid = [&](int g) { return g >= 0 && g < model.ngeom; };
  for (size_t i = 0; i < contacts.size(); ++i)
    if (const Contact& c = contacts[i]; !valid(c.geom1) || !valid(c.geom2))
      throw std::invalid_argument("contact " + std::to_string(i) + ": got geoms " + std::to_string(c.geom1) + ", " +
                                  std::to_string(c.geom2) + ", expected numbers below " + std::to_string(model.ngeom));
}

/// W_nn of a contact with that W, held above a part of the trace.   1/kg
double normal_mobility(const Matrix3d& W) { return std::max(W(2, 2), 1e-3 * W.trace()); }

/// The mean W_nn of contacts that bear with contact i: those of the same two bodies that touch, by how far their normals agree.   1/kg
double shared_mobility(const Model& model, const std::vector<Contact>& contacts, const std::vector<Matrix3d>& W,
                       size_t i) {
  auto bodies = [&](const Contact& c) {
    return std::array{model.body_weldid[model.geom_bodyid[c.geom1]], model.body_weldid[model.geom_bodyid[c.geom2]]};
  };
  const auto [a, b] = bodies(contacts[i]);
  double sum = normal_mobility(W[i]), weight = 1;
  for (size_t j = 0; j < contacts.size(); ++j) {
    const auto [c, d] = bodies(contacts[j]);
    const bool same = a == c && b == d, turned = a == d && b == c;
    const bool moves = W[j](2, 2) > 1e-5 * W[j].trace();  // along its normal
    if (j == i || contacts[j].dist > 0 || !moves || (!same && !turned)) continue;
    const double along = contacts[i].frame.row(2).dot(contacts[j].frame.row(2)) * (same ? 1 : -1);
    const double part = along > 0 ? along * along : 0;
    sum += part * normal_mobility(W[j]), weight += part;
  }
  return sum / weight;
}

/// Rows of J of all contacts, and the W of each.
std::vector<Matrix3d> contact_rows(const Model& model, const Kinematics& k, const Eigen::LLT<Matrix>& factor,
                                   const std::vector<Contact>& contacts, const std::vector<Vector3d>& half,
                                   ContactProblem& problem) {
  std::vector<Matrix3d> W;
  for (const Contact& c : contacts) {
    auto jacobian = [&](int end) -> Matrix {
      const int body = model.geom_bodyid[end == 1 ? c.geom1 : c.geom2];
      const Vector3d at = touched_point(model, k, c, end);
      return point_jacobian(model, k, body, at) + turned_less(model, k, half, body, at);
    };
    const Matrix J = c.frame * (jacobian(2) - jacobian(1));
    problem.J.middleRows<3>(3 * W.size()) = J;
    W.push_back(J * factor.solve(J.transpose()));
  }
  return W;
}

/// The next contact of the problem, which has its rows of J already. Its spring is made for that mobility.
void add_contact(const Model& model, const Kinematics& k, const StepInput& input, const FreeMotion& free,
                 const Contact& c, const Matrix3d& W, double mobility, const StepOptions& o, ContactProblem& problem) {
  const int i = static_cast<int>(problem.geoms.size());
  const Matrix J = problem.J.middleRows<3>(3 * i);
  problem.mu[i] = pair_friction(model, c.geom1, c.geom2);
  problem.phi[i] = c.dist;
  problem.geoms.push_back({c.geom1, c.geom2});
  problem.e[3 * i + 2] = std::max(bias_speed(c.dist, o), -kept_recovery(o));
  Compliance soft = pair_compliance(model, c.geom1, c.geom2);
  double h = o.timestep, reach = h + soft.relaxation;
  problem.R.segment<2>(3 * i).setConstant(o.tangential_compliance * W.trace() / 3);
  double &R = problem.R[3 * i + 2], &e = problem.e[3 * i + 2];
  double far = std::max(from_root(model, k, c.geom1, c.pos), from_root(model, k, c.geom2, c.pos));
  double allowance = o.penetration_allowance > 0 ? std::max(o.penetration_allowance, o.rounding * far) : 0;
  if (soft.stiffness > 0) {
    R = 1 / (h * soft.stiffness * reach);
    if (c.dist <= 0) e = c.dist / reach;
  } else if (c.dist > -100 * allowance) {
    // The mass on a spring sinks by the allowance under its weight; the spring is damped such that
    // an overlap without a load falls by `rate` a step. Deeper than the allowance, force grows as the depth cubed; what
    // comes faster than it would fall in a step meets a stiffer spring, too.
    double rate = std::min(o.erp, 0.5), mass = 1 / mobility;
    double stiffness = mass * kStandardGravity / allowance;
    double depth = std::max(0.0, -c.dist) / allowance;
    double impact = -J.row(2).dot(free.v_free) - std::max(0.0, c.dist) / h;
    double open = impact > 0 ? 0 : std::max(0.0, c.dist) / o.penetration_allowance, apart = std::max(depth, open);
    double stiffer = std::max({1.0, apart * apart, std::sqrt(std::max(0.0, impact) / (kStandardGravity * h))});
    double shorter = std::max(0.002 / h, 1.0), rounded = o.rounding > 0 ? allowance / o.penetration_allowance : 1;
    double softer = std::max(std::min(shorter * shorter, rounded), 1.0);
    R = std::min(rate / (h * h * stiffness), softer / (150 * mass)) / stiffer;
    if (c.dist <= 0) e = std::max(rate * c.dist / h, -kept_recovery(o));
  }
  const Vector3d bend = c.frame * parting(model, k, input, o, c, far);
  auto bent = [&] { problem.e.segment<3>(3 * i) += bend; };
  if (soft.stiffness > 0) return bent();
  const double restitution = std::max(model.geom_restitution[c.geom1], model.geom_restitution[c.geom2]);
  auto velocity_of = [&](int geom, int end) -> Vector3d {
    return point_jacobian(model, k, model.geom_bodyid[geom], touched_point(model, k, c, end)) * input.v;
  };
  const double speed = c.frame.row(2).dot(velocity_of(c.geom2, 2) - velocity_of(c.geom1, 1));
  // As high as from the surface: a fall by f a step keeps v^2 + v f + 2 f gap / h.
  const double fall = std::max(speed - J.row(2).dot(free.v_free), 0.0);
  if (restitution > 0 && c.dist + h * (speed - fall) <= 0 && speed < -2 * kStandardGravity * h) {
    const double above = 2 * fall * std::max(c.dist, 0.0) / h;
    const double left = fall * fall / 4 + restitution * restitution * (speed * speed - fall * speed + above) - above;
    e = std::min(e, -std::max(std::sqrt(std::max(left, 0.0)) - fall / 2, 0.0)), R = 0;
  }
  bent();
}

double mean_moving_mass(const Model& model) {
  double mass = 0;
  int count = 0;
  for (int b = 1; b < model.nbody; ++b)
    if (model.body_weldid[b] != 0) mass += model.body_mass[b], ++count;
  return count > 0 ? mass / count : 0;
}

}  // namespace

double pair_friction(const Model& model, int geom1, int geom2) {
  for (int p = 0; p < model.npair; ++p) {
    int a = model.pair_geom1[p], b = model.pair_geom2[p];
    if ((a == geom1 && b == geom2) || (a == geom2 && b == geom1))
      return model.pair_condim[p] == 1 ? 0 : model.pair_friction[3 * p];
  }
  int p1 = model.geom_priority[geom1], p2 = model.geom_priority[geom2];
  double f1 = model.geom_friction[3 * geom1], f2 = model.geom_friction[3 * geom2];
  int c1 = model.geom_condim[geom1], c2 = model.geom_condim[geom2];
  int condim = p1 > p2 ? c1 : p2 > p1 ? c2 : std::max(c1, c2);
  double friction = p1 > p2 ? f1 : p2 > p1 ? f2 : std::max(f1, f2);
  return condim == 1 ? 0 : friction;
}

Compliance pair_compliance(const Model& model, int geom1, int geom2) {
  double k1 = model.geom_stiffness[geom1], k2 = model.geom_stiffness[geom2];
  double t1 = model.geom_dissipation[geom1], t2 = model.geom_dissipation[geom2];
  if (k1 > 0 && k2 > 0) return {k1 * k2 / (k1 + k2), (k2 * t1 + k1 * t2) / (k1 + k2)};
  if (k1 > 0) return {k1, t1};
  if (k2 > 0) return {k2, t2};
  return {};
}

ContactProblem assemble(const Model& model, const StepInput& input, const std::vector<Contact>& contacts,
                        const StepOptions& o, FreeMotion* motion) {
  const Vector &q = input.q, &v = input.v;
  Kinematics k = forward_kinematics(model, q);
  FreeMotion free = free_motion(model, k, input, o.integrator, o.timestep);
  ContactProblem problem;
  problem.timestep = o.timestep;
  const std::vector<EqualityRows> loops = equalities(model, q, free.A);
  RowList list;
  add_equalities(loops, o, list);
  add_friction(model, o, list);
  add_limits(model, q, o, list);
  for (const SoftRow& s : free.soft_rows) list.rows.push_back({s.J, s.e, s.R, s.lower, s.upper, RowKind::kSoft});
  list.store(model.nv, problem);
  if (o.integrator == Integrator::kImplicit && has_loops(model)) close_loops(model, q, v, loops, free, problem);
  problem.A = free.A;
  problem.b = free.b;
  problem.gravity = gravity(model).norm();
  problem.mean_mass = mean_moving_mass(model);
  int nc = disabled(model, kDisableContact) ? 0 : static_cast<int>(contacts.size());
  problem.J = Matrix::Zero(3 * nc, model.nv);
  problem.e = problem.R = Vector::Zero(3 * nc);
  problem.mu = problem.phi = Vector::Zero(nc);
  if (nc > 0) {
    check_geoms(model, contacts);
    Rolling rolling{std::vector<Vector3d>(nc, Vector3d::Zero()), Vector::Zero(model.njnt)};
    free.half_turns.assign(model.njnt, Vector3d::Zero());
    if (o.integrator == Integrator::kImplicit) {
      rolling = rolling_of(model, k, v, free.v_free, contacts, o.timestep), free.rolls = rolling.part;
      free.half_turns = half_turns(model, k, free, contacts, rolling.part, o.timestep);
    }
    const std::vector<Matrix3d> W =
        contact_rows(model, k, Eigen::LLT<Matrix>(free.A), contacts, free.half_turns, problem);
    for (int i = 0; i < nc; ++i) {
      add_contact(model, k, input, free, contacts[i], W[i], shared_mobility(model, contacts, W, i), o, problem);
      problem.e.segment<3>(3 * i) += contacts[i].frame * rolling.bend[i];
    }
  }
  if (motion) *motion = free;
  return problem;
}

void check_sizes(const ContactProblem& p) {
  auto expect = [](const char* name, Eigen::Index got, Eigen::Index wanted) {
    if (got != wanted)
      throw std::invalid_argument("contact problem, " + std::string(name) + ": got " + std::to_string(got) +
                                  ", expected " + std::to_string(wanted));
  };
  Eigen::Index nv = p.b.size(), nc = p.mu.size(), nr = p.e_row.size();
  expect("rows of A", p.A.rows(), nv);
  expect("columns of A", p.A.cols(), nv);
  expect("rows of J", p.J.rows(), 3 * nc);
  expect("columns of J", p.J.cols(), nv);
  expect("size of e", p.e.size(), 3 * nc);
  expect("size of R", p.R.size(), 3 * nc);
  expect("size of phi", p.phi.size(), nc);
  expect("rows of J_row", p.J_row.rows(), nr);
  expect("columns of J_row", p.J_row.cols(), nv);
  expect("size of R_row", p.R_row.size(), nr);
  expect("size of lower", p.lower.size(), nr);
  expect("size of upper", p.upper.size(), nr);
}

}  // namespace stiction::reference
