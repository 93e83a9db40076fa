#include "host/backend/cpu/executor.h"

namespace stiction {

template <class Real>
void step_subadmm(const CpuJob<Scalar<Real>>& job, int first, int last, void* memory) {
  step_packs<Real, SubAdmm>(job, first, last, memory);
}

template <class Real>
DenseProblem<double> problem_subadmm(const CpuJob<Scalar<Real>>& job, int world, void* workspace, double* memory) {
  using L = Lane<Real, Capacity, Serial>;
  constexpr int W = kWidth<Real>;
  const int p = world / W;
  const int64_t record = RecordLayout<typename L::Model>(*job.model).reals();
  return last_problem<L, SubAdmm<L>>(*job.model, job.options, job.arrays, Rows<Real>{p * W, job.arrays.num_envs},
                                     reinterpret_cast<Real*>(job.arrays.records + p * record * W), world % W,
                                     *static_cast<Workspace<L, SubAdmm<L>>*>(workspace), memory);
}

template void step_subadmm<CpuReal>(const CpuJob<float>&, int, int, void*);
template DenseProblem<double> problem_subadmm<CpuReal>(const CpuJob<float>&, int, void*, double*);
#if STICTION_ISA_SCALAR
template DenseProblem<double> problem_subadmm<double>(const CpuJob<double>&, int, void*, double*);
template void step_subadmm<double>(const CpuJob<double>&, int, int, void*);
#endif

}  // namespace stiction
