// SubADMM on packs with parameters per environment: the model's numbers are Reals.
#include "host/backend/cpu/cpu_subadmm.h"

#if !STICTION_ISA_SCALAR
namespace stiction {

template void step_subadmm<PerEnvLane<CpuReal>>(const CpuJob<float>&, int, int, void*, void*);
template DenseProblem<double> problem_subadmm<PerEnvLane<CpuReal>>(const CpuJob<float>&, int, void*, void*, double*);

}  // namespace stiction
#endif
