#include "host/reference/step.h"

namespace stiction::reference {

StepResult step(const Model& model, const Vector& q, const Vector& v, const Vector& ctrl,
                const std::vector<Contact>& contacts, const StepOptions& options, const SolverOptions& solver,
                const Vector& qfrc_applied, const Matrix& xfrc_applied) {
  StepResult result;
  result.problem = assemble(model, q, v, ctrl, contacts, options, qfrc_applied, xfrc_applied);
  result.solution = solve(result.problem, solver);
  result.v = result.solution.v;
  result.q = integrate(model, q, result.v, options.timestep);
  return result;
}

}  // namespace stiction::reference
