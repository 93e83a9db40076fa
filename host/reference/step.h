// One whole step of the oracle: assemble, solve v = A^-1 (b + J' l), and move: docs/theory.md, (2.1) and (2.4).
#pragma once
#include "host/reference/solvers.h"

namespace stiction::reference {

struct StepResult {
  Vector q, v, owed;  // to the next step
  ContactProblem problem;
  Solution solution;
};

StepResult step(const Model& model, const StepInput& input, const std::vector<Contact>& contacts,
                const StepOptions& options, const SolverOptions& solver = {});

/// The velocity that a step by Integrator::kImplicit from q to (end_q, end_v) found in its solve: docs/theory.md, (2.5).
Vector solved_velocity(const Model& model, const Vector& q, const Vector& end_q, const Vector& end_v);

}  // namespace stiction::reference
