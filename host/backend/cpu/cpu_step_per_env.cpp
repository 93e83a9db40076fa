// The step with parameters per environment: on packs the model's numbers are Reals. One world per Real has the other's types.
#include "host/backend/cpu/step_of.h"

#if !STICTION_ISA_SCALAR
namespace stiction {

template struct StepOf<PerEnvLane<CpuReal>>;

}  // namespace stiction
#endif
