#pragma once
#include "host/backend/cpu/executor.h"

namespace stiction {

template <class L>
void step_subadmm(const CpuJob<Scalar<typename L::Real>>& job, int first, int last, void* memory, void* tables) {
  step_packs<L, SubAdmm>(job, first, last, memory, tables);
}
template <class L>
DenseProblem<double> problem_subadmm(const CpuJob<Scalar<typename L::Real>>& job, int world, void* memory, void* tables,
                                     double* out) {
  return problem_of<L, SubAdmm>(job, world, memory, tables, out);
}

}  // namespace stiction
