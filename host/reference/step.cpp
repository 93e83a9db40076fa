#include "host/reference/step.h"

#include "host/reference/centres.h"
#include "host/reference/mid_turn.h"

namespace stiction::reference {

StepResult step(const Model& model, const StepInput& input, const std::vector<Contact>& contacts,
                const StepOptions& options, const SolverOptions& solver) {
  const Vector& q = input.q;
  StepResult result;
  FreeMotion motion;
  result.problem = assemble(model, input, contacts, options, &motion);
  result.solution = solve(result.problem, solver);
  result.owed = owed_after(model, input, result.solution.v, options.timestep, motion);
  Vector along = result.v = result.solution.v;
  if (options.integrator == Integrator::kImplicit) {
    result.v = turned_late(model, input.v, along, options.timestep, motion);
    along = turned_along(model, forward_kinematics(model, q), motion.half_turns, along);
    move_centres(model, q, options.timestep, along, result.v);
  }
  result.q = integrate(model, q, along, options.timestep);
  return result;
}

Vector solved_velocity(const Model& model, const Vector& q, const Vector& end_q, const Vector& end_v) {
  Vector solved = end_v;
  for (const FreeTree& tree : free_trees(model))
    solved.segment<3>(tree.dof) +=
        (momentum_of(model, tree, end_q, end_v) - momentum_of(model, tree, q, end_v)) / tree.mass;
  return solved;
}

}  // namespace stiction::reference
