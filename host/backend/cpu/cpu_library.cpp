// The table of one instruction set's library.
#include "contact/rows.h"
#include "host/backend/cpu/executor.h"

namespace stiction {
namespace {

/// call(StepOf<L>{}) of the lane that serves a job. SharedLane and PerEnvLane are one type where a Real is one world.
template <class Real, class Call>
auto by_lane(const CpuJob<Scalar<Real>>& job, Call call) {
  if (job.per_env) return call(StepOf<PerEnvLane<Real>>{});
  if constexpr (kWidth<Real> > 1) {
    if (job.four_limbs == 2) return call(StepOf<FourLimbsLane<Real, 2>>{});
    if (job.four_limbs == 3) return call(StepOf<FourLimbsLane<Real, 3>>{});
  }
  return call(StepOf<SharedLane<Real>>{});
}
template <class Real>
void step(const CpuJob<Scalar<Real>>& job, int first, int last, void* workspace, void* tables) {
  by_lane<Real>(job, [&](auto of) { of.step(job, first, last, workspace, tables); });
}
template <class Real>
void find(const CpuJob<Scalar<Real>>& job, const FoundContacts<Scalar<Real>>& found, int first, int last,
          void* workspace, void* tables) {
  by_lane<Real>(job, [&](auto of) { of.find(job, found, first, last, workspace, tables); });
}
template <class Real>
DenseProblem<double> problem(const CpuJob<Scalar<Real>>& job, int world, bool next, void* workspace, void* tables,
                             double* out) {
  return by_lane<Real>(job, [&](auto of) { return of.problem(job, world, next, workspace, tables, out); });
}
template <class Real>
void solved_velocity(const CpuJob<Scalar<Real>>& job, int world, const Scalar<Real>* after, void* workspace,
                     void* tables) {
  by_lane<Real>(job, [&](auto of) { of.solved_velocity(job, world, after, workspace, tables); });
}
template <class Real>
void* create_tables(const CpuJob<Scalar<Real>>& job) {
  if (!job.per_env) return nullptr;
  auto* tables = new std::vector<EnvironmentTables<Real>>;
  tables->reserve(job.places);
  for (int i = 0; i < job.places; ++i) tables->emplace_back(*job.model);
  return tables;
}
template <class Real>
void destroy_tables(void* tables) {
  delete static_cast<std::vector<EnvironmentTables<Real>>*>(tables);
}

template <class Real>
void kinematics(const CpuJob<Scalar<Real>>& job, int first, int last, void* workspace) {
  by_lane<Real>(job, [&](auto of) {
    using L = Lane<Real, typename decltype(of)::Lane::Shape, Serial>;
    auto& w = *static_cast<OutputWorkspace<L>*>(workspace);
    const auto& model = reinterpret_cast<const typename L::Model&>(*job.model);
    for (int p = first; p < last; ++p)
      write_kinematics<L>(model, job.arrays, job.outputs, Rows<Real>{p * kWidth<Real>, job.arrays.num_envs}, w);
  });
}

template <class Real>
inline constexpr size_t kPlaceBytes = sizeof(PackSpace<SharedLane<Real>>);

template <class Real>
int64_t memory_bytes(const CpuJob<Scalar<Real>>& job) {
  return memory_sizes<Real>(*job.model, job.options).total(job.places);
}
template <class Real>
void bind_memory(const CpuJob<Scalar<Real>>& job, void* workspace, void* memory) {
  const MemorySizes sizes = memory_sizes<Real>(*job.model, job.options);
  by_lane<Real>(job, [&](auto of) {
    using Space = PackSpace<typename decltype(of)::Lane>;
    static_assert(sizeof(Space) <= kPlaceBytes<Real>);
    for (int i = 0; i < job.places; ++i)
      static_cast<Space*>(workspace)[i].workspace.bind(world_memory(memory, sizes, i, job.places));
  });
}
template <class Real>
int64_t problem_size(const CpuJob<Scalar<Real>>& job) {
  const RowCounts most = most_rows<Real>(*job.model);
  return dense_problem_size(job.model->nv, most.contacts, most.scalars, most.spins);
}

template <class Real>
constexpr CpuKernels<Scalar<Real>> kernels() {
  return {kWidth<Real>,
          kImprovedTogether<Real>,
          kPlaceBytes<Real>,
          step<Real>,
          find<Real>,
          create_tables<Real>,
          destroy_tables<Real>,
          kinematics<Real>,
          memory_bytes<Real>,
          bind_memory<Real>,
          problem_size<Real>,
          problem<Real>,
          solved_velocity<Real>,
          RowBatchKernel<Real>::bytes,
          RowBatchKernel<Real>::solve};
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
