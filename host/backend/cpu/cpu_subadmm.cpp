#include "host/backend/cpu/executor.h"

namespace stiction {

template <class Real>
void step_subadmm(const CpuJob<Scalar<Real>>& job, int first, int last, void* memory) {
  step_packs<Real, SubAdmm>(job, first, last, memory);
}

template void step_subadmm<CpuReal>(const CpuJob<float>&, int, int, void*);
#if STICTION_ISA_SCALAR
template void step_subadmm<double>(const CpuJob<double>&, int, int, void*);
#endif

}  // namespace stiction
