// Contact problems, by the chosen solver; whatever the model. And, for the host, how much memory solvers take.
#include "kernels/slots.cuh"
#include "step/solve_rows.h"

namespace stiction {

__global__ void __launch_bounds__(kThreads) solve_kernel(CudaJob job, StagePass pass) {
  const Tile<kSolveTile> tile;
  const int number = tile_of_grid<kSolveTile>(), slot = pass.slot + number;
  if (number >= pass.count) return;
  PosedSolve<float>& s = posed_in(job, slot);
  if (!s.solving) return;
  const RowProblem<float> rows = s.rows;
  const float passes = solve_posed(tile, job.options, rows, s.impulse, slot_memory(job, slot).solver);
  if (tile.rank() == 0 && !pass.recovers) s.iterations = passes;
}

template int64_t solver_memory<float>(const SolverOptions<float>&, const RowCounts&);
template int64_t fallback_bytes<float>(const FallbackPlan&, const RowCounts&);

}  // namespace stiction
