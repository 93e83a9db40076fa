// What is done where a solver's answer is not good enough, in double.
#include "kernels/stages.cuh"
#include "step/solve_rows.h"

namespace stiction {
namespace {

__global__ void __launch_bounds__(kThreads) improve_kernel(const CudaJob job, const StagePass pass) {
  const int slot = tile_of_grid<1>();
  if (slot >= pass.count) return;
  SlotLane& first = slot_lane(job, slot, 0);
  if (!first.s.flagged) return;
  improve_posed<TileLane::Real, false>(
      job.options, 1, [&](int) -> auto& { return first.w; }, [&](int) -> auto& { return first.s; },
      first.w.memory.fallback);
}

}  // namespace

Stage improve_stage() { return stage_of<improve_kernel, 1>(); }

}  // namespace stiction
