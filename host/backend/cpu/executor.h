// Packs of worlds, one after the other, on one thread.
#pragma once
#include "host/backend/cpu/kernels.h"
#include "host/step/step_world.h"

namespace stiction {

#if STICTION_ISA_AVX512
using CpuReal = Pack<float, 16>;
#elif STICTION_ISA_AVX2
using CpuReal = Pack<float, 8>;
#else
using CpuReal = float;
#endif

template <class Real, template <class> class Solver>
void step_packs(const CpuJob<Scalar<Real>>& job, int first, int last, void* memory) {
  using L = Lane<Real, Capacity, Serial>;
  auto& w = *static_cast<Workspace<L, Solver<L>>*>(memory);
  constexpr int W = kWidth<Real>;
  const int64_t record = RecordLayout<typename L::Model>(*job.model).reals();
  for (int p = first; p < last; ++p)
    step_batch<L, Solver<L>>(Serial{}, *job.model, job.options, job.arrays, Rows<Real>{p * W, job.arrays.num_envs},
                             reinterpret_cast<Real*>(job.arrays.records + p * record * W), job.steps, w);
}

/// Each solver is compiled in a file of its own.
template <class Real>
void step_subadmm(const CpuJob<Scalar<Real>>& job, int first, int last, void* memory);
template <class Real>
DenseProblem<double> problem_subadmm(const CpuJob<Scalar<Real>>& job, int world, void* workspace, double* memory);

}  // namespace stiction
