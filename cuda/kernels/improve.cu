// What is done where a solver's answer is not good enough, in double; whatever the model. Few worlds need it, so that a lane goes
// through several slots with one memory.
#include "kernels/slots.cuh"
#include "step/solve_rows.h"

namespace stiction {

__global__ void __launch_bounds__(kThreads) improve_kernel(CudaJob job, StagePass pass) {
  const int improver = tile_of_grid<1>();
  if (improver >= job.plan.improvers) return;
  for (int slot = improver; slot < pass.count; slot += job.plan.improvers) {
    PosedSolve<float>& s = posed_in(job, slot);
    if (!s.flagged) continue;
    improve_posed<float, false>(job.options, 1, [&](int) -> auto& { return s; }, improver_memory(job, improver));
  }
}

}  // namespace stiction
