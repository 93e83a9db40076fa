// The table of one instruction set's library.
#include "host/backend/cpu/executor.h"

namespace stiction {
namespace {

template <class Real>
void step(const CpuJob<Scalar<Real>>& job, int first, int last, void* workspace, void* tables) {
  if (tables != nullptr) return step_subadmm<PerEnvLane<Real>>(job, first, last, workspace, tables);
  step_subadmm<SharedLane<Real>>(job, first, last, workspace, nullptr);
}
template <class Real>
DenseProblem<double> problem(const CpuJob<Scalar<Real>>& job, int world, void* workspace, void* tables, double* memory) {
  if (tables != nullptr) return problem_subadmm<PerEnvLane<Real>>(job, world, workspace, tables, memory);
  return problem_subadmm<SharedLane<Real>>(job, world, workspace, nullptr, memory);
}
template <class Real>
void* create_tables(const CpuJob<Scalar<Real>>& job) {
  return job.per_env ? new EnvironmentTables<Real>(*job.model) : nullptr;
}
template <class Real>
void destroy_tables(void* tables) {
  delete static_cast<EnvironmentTables<Real>*>(tables);
}

template <class Real>
void kinematics(const CpuJob<Scalar<Real>>& job, int first, int last, void* workspace) {
  using L = Lane<Real, Capacity, Serial>;
  auto& w = *static_cast<OutputWorkspace<L>*>(workspace);
  for (int p = first; p < last; ++p)
    write_kinematics<L>(*job.model, job.arrays, job.outputs, Rows<Real>{p * kWidth<Real>, job.arrays.num_envs}, w);
}

template <class Real>
using SpaceOf = Workspace<SharedLane<Real>, SubAdmm<SharedLane<Real>>>;
static_assert(sizeof(SpaceOf<CpuReal>) == sizeof(Workspace<PerEnvLane<CpuReal>, SubAdmm<PerEnvLane<CpuReal>>>),
              "one workspace serves both: nothing in it depends on the type of the model's numbers");

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
  return {kWidth<Real>,     sizeof(SpaceOf<Real>),  step<Real>,         create_tables<Real>, destroy_tables<Real>,
          kinematics<Real>, fallback_numbers<Real>, set_fallback<Real>, problem<Real>};
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
