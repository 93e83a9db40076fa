// SubADMM with one model for all environments; on one world per Real also with parameters per environment.
#include "host/backend/cpu/cpu_subadmm.h"

namespace stiction {

#if STICTION_FLOAT32
template void step_subadmm<SharedLane<CpuReal>>(const CpuJob<float>&, int, int, void*, void*);
template DenseProblem<double> problem_subadmm<SharedLane<CpuReal>>(const CpuJob<float>&, int, void*, void*, double*);
#endif
#if STICTION_ISA_SCALAR
template void step_subadmm<SharedLane<double>>(const CpuJob<double>&, int, int, void*, void*);
template DenseProblem<double> problem_subadmm<SharedLane<double>>(const CpuJob<double>&, int, void*, void*, double*);
#endif

}  // namespace stiction
