#include "host/reference/step.h"

#include "host/reference/centres.h"

namespace stiction::reference {

StepResult step(const Model& model, const Vector& q, const Vector& v, const Vector& ctrl,
                const std::vector<Contact>& contacts, const StepOptions& options, const SolverOptions& solver,
                const Vector& qfrc_applied, const Matrix& xfrc_applied, const Vector& owed) {
  StepResult result;
  FreeMotion motion;
  result.problem = assemble(model, q, v, ctrl, contacts, options, qfrc_applied, xfrc_applied, owed, &motion);
  result.solution = solve(result.problem, solver);
  result.owed = owed_after(model, q, v, result.solution.v, options.timestep, motion);
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
