// The step of robots on four legs of two links.
// g++ 12 does not see that each_jointed of dynamics/coriolis.h writes what it reads.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "host/backend/cpu/step_of.h"

namespace stiction {

#if STICTION_FLOAT32 && !STICTION_ISA_SCALAR
template struct StepOf<FourLimbsLane<CpuReal, 2>>;
#endif

}  // namespace stiction
