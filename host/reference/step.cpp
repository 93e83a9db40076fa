#include "host/reference/step.h"

#include <Eigen/Geometry>

namespace stiction::reference {

namespace {

/// Of a free joint: its first dof, its body's axes, and the centre of mass of all it carries, from the joint's origin.
struct Root {
  int dof;
  Matrix3d R;
  Vector3d c;
};

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

Vector3d turned(const Vector3d& c, const Vector3d& w, double h) {
  return Eigen::AngleAxisd(h * w.norm(), w.normalized()) * c;
}

/// Centres of mass of free roots go straight: velocities that move positions, and those after.
void move_centres(const Model& model, const Vector& q, double h, Vector& along, Vector& end) {
  for (const auto& [dof, R, c] : free_roots(model, q)) {
    Vector3d w = R * end.segment<3>(dof + 3), v = end.segment<3>(dof) + w.cross(c), later = turned(c, w, h);
    along.segment<3>(dof) = v - (later - c) / h;
    end.segment<3>(dof) = v - w.cross(later);
  }
}

}  // namespace

StepResult step(const Model& model, const Vector& q, const Vector& v, const Vector& ctrl,
                const std::vector<Contact>& contacts, const StepOptions& options, const SolverOptions& solver,
                const Vector& qfrc_applied, const Matrix& xfrc_applied) {
  StepResult result;
  result.problem = assemble(model, q, v, ctrl, contacts, options, qfrc_applied, xfrc_applied);
  result.solution = solve(result.problem, solver);
  Vector along = result.v = result.solution.v;
  if (options.integrator == Integrator::kImplicit) move_centres(model, q, options.timestep, along, result.v);
  result.q = integrate(model, q, along, options.timestep);
  return result;
}

Vector solved_velocity(const Model& model, const Vector& q, const Vector& end_q, const Vector& end_v) {
  Vector solved = end_v;
  Kinematics after = forward_kinematics(model, end_q);
  for (const auto& [dof, R, c] : free_roots(model, q)) {
    Vector3d u = (R * end_v.segment<3>(dof + 3)).cross(c);
    solved.segment<3>(dof) += after.body_rot[model.jnt_bodyid[model.dof_jntid[dof]]] * R.transpose() * u - u;
  }
  return solved;
}

}  // namespace stiction::reference
