// What a step follows: its own options, and which solver with what of it.
#pragma once
#include "core/options.h"
#include "step/solvers.h"

namespace stiction {

template <class S>
struct StepOptions {
  Options<S> step;
  SolverOptions<S> solver;

  HD SolveLimits<S> limits() const { return {step.iterations, step.tolerance}; }
};

}  // namespace stiction
