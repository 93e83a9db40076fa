// The table of one instruction set's library.
#include "host/backend/cpu/executor.h"

namespace stiction {
namespace {

template <class Real>
void step(const CpuJob<Scalar<Real>>& job, int first, int last, void* workspace, void* tables) {
  const bool pgs = job.solver == SolverKind::kPgs;
  if (tables != nullptr)
    return (pgs ? step_pgs<PerEnvLane<Real>> : step_subadmm<PerEnvLane<Real>>)(job, first, last, workspace, tables);
  (pgs ? step_pgs<SharedLane<Real>> : step_subadmm<SharedLane<Real>>)(job, first, last, workspace, nullptr);
}
template <class Real>
DenseProblem<double> problem(const CpuJob<Scalar<Real>>& job, int world, void* workspace, void* tables,
                             double* memory) {
  const bool pgs = job.solver == SolverKind::kPgs;
  if (tables != nullptr)
    return (pgs ? problem_pgs<PerEnvLane<Real>> : problem_subadmm<PerEnvLane<Real>>)(job, world, workspace, tables,
                                                                                     memory);
  return (pgs ? problem_pgs<SharedLane<Real>> : problem_subadmm<SharedLane<Real>>)(job, world, workspace, nullptr,
                                                                                   memory);
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

template <class Real, template <class> class Solver>
using SpaceOf = Workspace<SharedLane<Real>, Solver<SharedLane<Real>>>;
template <class Real, template <class> class Solver>
constexpr bool kOneWorkspace =
    sizeof(SpaceOf<Real, Solver>) == sizeof(Workspace<PerEnvLane<Real>, Solver<PerEnvLane<Real>>>);
static_assert(kOneWorkspace<CpuReal, SubAdmm> && kOneWorkspace<CpuReal, Pgs>,
              "one workspace serves both: nothing in it depends on the type of the model's numbers");

template <class Real>
int64_t fallback_numbers(const CpuJob<Scalar<Real>>& job) {
  return fallback_size(*job.model);
}
template <class Real>
int64_t solver_bytes(const CpuJob<Scalar<Real>>& job) {
  return sizeof(Real) * (job.solver == SolverKind::kPgs ? Pgs<SharedLane<Real>>::memory_size(*job.model)
                                                        : PackedAdmm<SharedLane<Real>>::memory_size(*job.model));
}
template <class Real>
void bind_memory(const CpuJob<Scalar<Real>>& job, void* workspace, double* fallback, void* solver) {
  if (job.solver == SolverKind::kPgs) {
    auto* w = static_cast<SpaceOf<Real, Pgs>*>(workspace);
    w->fallback.memory = fallback, w->solver.memory = static_cast<Real*>(solver);
  } else {
    auto* w = static_cast<SpaceOf<Real, SubAdmm>*>(workspace);
    w->fallback.memory = fallback;
    const bool packs = !job.options.body_split && PackedAdmm<SharedLane<Real>>::memory_size(*job.model) > 0;
    w->problem.packed.memory = packs ? static_cast<Real*>(solver) : nullptr;
  }
}

template <class Real>
constexpr CpuKernels<Scalar<Real>> kernels() {
  constexpr size_t kBytes = sizeof(SpaceOf<Real, SubAdmm>) > sizeof(SpaceOf<Real, Pgs>) ? sizeof(SpaceOf<Real, SubAdmm>)
                                                                                        : sizeof(SpaceOf<Real, Pgs>);
  return {kWidth<Real>,
          kBytes,
          step<Real>,
          create_tables<Real>,
          destroy_tables<Real>,
          kinematics<Real>,
          fallback_numbers<Real>,
          solver_bytes<Real>,
          bind_memory<Real>,
          problem<Real>};
}

#if STICTION_FLOAT32
constexpr CpuKernels<float> kFloat32 = kernels<CpuReal>();
#endif
#if STICTION_ISA_SCALAR
constexpr CpuKernels<double> kFloat64 = kernels<double>();
#if STICTION_FLOAT32
constexpr CpuLibrary kLibrary{"scalar", &kFloat32, &kFloat64};
#else
constexpr CpuLibrary kLibrary{"scalar", nullptr, &kFloat64};
#endif
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
