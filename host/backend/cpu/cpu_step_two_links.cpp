// The step of robots on four legs of two links.
#include "host/backend/cpu/step_of.h"

namespace stiction {

#if STICTION_FLOAT32 && !STICTION_ISA_SCALAR
template struct StepOf<FourLimbsLane<CpuReal, 2>>;
#endif

}  // namespace stiction
