// Solves contact problems without a world around them, by the solvers of the list as a step has them.
#pragma once
#include <string>

#include "host/backend/cpu/row_batch.h"

namespace stiction {

struct SolverRun {
  SolverOptions<double> solver;
  SolveLimits<double> limits;
  bool float64 = true;
  int num_threads = 1;  // answers do not depend on it
};

/// float64: one problem after the other; float32: packs of them. Throws std::bad_alloc where a thread finds no memory.
void solve_row_batch(const SolverRun& how, const RowBatch& batch);

}  // namespace stiction
