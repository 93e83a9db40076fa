// The step of robots on four legs of three links.
#include "host/backend/cpu/step_of.h"

namespace stiction {

#if STICTION_FLOAT32 && !STICTION_ISA_SCALAR
template struct StepOf<FourLimbsLane<CpuReal, 3>>;
#endif

}  // namespace stiction
