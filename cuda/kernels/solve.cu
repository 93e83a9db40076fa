// Contact problems, by the chosen solver.
#include "kernels/stages.cuh"
#include "step/solve_rows.h"

namespace stiction {
namespace {

__global__ void __launch_bounds__(kThreads) solve_kernel(const CudaJob job, const StagePass pass) {
  const Tile<kSolveTile> tile;
  const int slot = tile_of_grid<kSolveTile>();
  if (slot >= pass.count) return;
  SlotLane& first = slot_lane(job, slot, 0);
  if (!first.s.solving) return;
  const RowProblem<float> rows = first.s.rows;
  const float passes = solve_posed(tile, job.options, rows, first.w.problem.table.rows.impulse, first.w.memory.solver);
  if (tile.rank() == 0 && !pass.recovers) first.s.iterations = passes;
}

}  // namespace

Stage solve_stage() { return stage_of<solve_kernel, kSolveTile>(); }

}  // namespace stiction
