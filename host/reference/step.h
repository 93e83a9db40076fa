// One whole step of the oracle: assemble, solve, v+ = A^-1 (b + J' l), q+ = q (+) h v+.
#pragma once
#include "host/reference/solvers.h"

namespace stiction::reference {

struct StepResult {
  Vector q, v;
  ContactProblem problem;
  Solution solution;
};

StepResult step(const Model& model, const Vector& q, const Vector& v, const Vector& ctrl,
                const std::vector<Contact>& contacts, const StepOptions& options, const SolverOptions& solver = {},
                const Vector& qfrc_applied = {}, const Matrix& xfrc_applied = {});

}  // namespace stiction::reference
