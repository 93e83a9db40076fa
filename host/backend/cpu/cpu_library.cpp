// The table of one instruction set's library.
#include "host/backend/cpu/executor.h"

namespace stiction {
namespace {

template <class Real>
void step(const CpuJob<Scalar<Real>>& job, int first, int last, void* workspace) {
  step_subadmm<Real>(job, first, last, workspace);
}

template <class Real>
void kinematics(const CpuJob<Scalar<Real>>& job, int first, int last, void* workspace) {
  using L = Lane<Real, Capacity, Serial>;
  auto& w = *static_cast<OutputWorkspace<L>*>(workspace);
  for (int p = first; p < last; ++p)
    write_kinematics<L>(*job.model, job.arrays, job.outputs, Rows<Real>{p * kWidth<Real>, job.arrays.num_envs}, w);
}

template <class Real>
using SpaceOf = Workspace<Lane<Real, Capacity, Serial>, SubAdmm<Lane<Real, Capacity, Serial>>>;

template <class Real>
int64_t fallback_numbers(const CpuJob<Scalar<Real>>& job) {
  return fallback_size(*job.model);
}
template <class Real>
void set_fallback(void* workspace, double* memory) {
  static_cast<SpaceOf<Real>*>(workspace)->fallback.memory = memory;
}

template <class Real>
constexpr CpuKernels<Scalar<Real>> kernels() {
  return {kWidth<Real>,           sizeof(SpaceOf<Real>), step<Real>,         kinematics<Real>,
          fallback_numbers<Real>, set_fallback<Real>,    problem_subadmm<Real>};
}

constexpr CpuKernels<float> kFloat32 = kernels<CpuReal>();
#if STICTION_ISA_SCALAR
constexpr CpuKernels<double> kFloat64 = kernels<double>();
constexpr CpuLibrary kLibrary{"scalar", &kFloat32, &kFloat64};
#elif STICTION_ISA_AVX2
constexpr CpuLibrary kLibrary{"avx2", &kFloat32, nullptr};
#else
constexpr CpuLibrary kLibrary{"avx512", &kFloat32, nullptr};
#endif

}  // namespace
}  // namespace stiction

#if STICTION_ISA_SCALAR
extern "C" const stiction::CpuLibrary* stiction_cpu_scalar() { return &stiction::kLibrary; }
#elif STICTION_ISA_AVX2
extern "C" const stiction::CpuLibrary* stiction_cpu_avx2() { return &stiction::kLibrary; }
#else
extern "C" const stiction::CpuLibrary* stiction_cpu_avx512() { return &stiction::kLibrary; }
#endif
