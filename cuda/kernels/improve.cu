// What is done where a solver's answer is not good enough, in double; whatever the model. Few worlds need it, so that
// the lanes of a warp go through several slots with one memory.
#include "kernels/slots.cuh"
#include "step/solve_rows.h"

namespace stiction {

__global__ void __launch_bounds__(kThreads) improve_kernel(CudaJob job, StagePass pass) {
  const int improver = tile_of_grid<kImproverTile>(),
            improvers = (pass.count + kSlotsOfImprover - 1) / kSlotsOfImprover;
  const int lane = Tile<kImproverTile>().rank();
  if (improver >= improvers || lane >= kSolveTile) return;
  const Tile<kSolveTile> tile;
  for (int number = improver; number < pass.count; number += improvers) {
    PosedSolve<float>& s = posed_in(job, pass.slot + number);
    if (!s.flagged) continue;
    void* memory = improver_memory(job, pass.slot / kSlotsOfImprover + improver);
    improve_posed<float, false>(tile, job.options, 1, [&](int) -> auto& { return s; }, memory);
  }
}

}  // namespace stiction
