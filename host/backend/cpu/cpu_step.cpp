// The step with one model for all environments.
#include "host/backend/cpu/step_of.h"

namespace stiction {

#if STICTION_FLOAT32
template struct StepOf<SharedLane<CpuReal>>;
#endif
#if STICTION_ISA_SCALAR
template struct StepOf<SharedLane<double>>;
#endif

}  // namespace stiction
