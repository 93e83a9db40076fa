// PGS, with one model for all environments and with parameters per environment.
#include "host/backend/cpu/executor.h"

namespace stiction {

template <class L>
void step_pgs(const CpuJob<Scalar<typename L::Real>>& job, int first, int last, void* memory, void* tables) {
  step_packs<L, Pgs>(job, first, last, memory, tables);
}
template <class L>
DenseProblem<double> problem_pgs(const CpuJob<Scalar<typename L::Real>>& job, int world, void* memory, void* tables,
                                 double* out) {
  return problem_of<L, Pgs>(job, world, memory, tables, out);
}

#define STICTION_INSTANTIATE(L, T)                                     \
  template void step_pgs<L>(const CpuJob<T>&, int, int, void*, void*); \
  template DenseProblem<double> problem_pgs<L>(const CpuJob<T>&, int, void*, void*, double*);

#if STICTION_FLOAT32
STICTION_INSTANTIATE(SharedLane<CpuReal>, float)
#endif
#if STICTION_ISA_SCALAR
STICTION_INSTANTIATE(SharedLane<double>, double)
#else
STICTION_INSTANTIATE(PerEnvLane<CpuReal>, float)
#endif

}  // namespace stiction
