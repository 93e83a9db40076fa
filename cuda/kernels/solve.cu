// Contact problems by the chosen solver. And, for the host, how much memory solvers take.
#include "kernels/worlds.cuh"
#include "step/solve_rows.h"

namespace stiction {

__device__ __noinline__ float solve_by_team(const StepOptions<float>& options, const RowProblem<float>& rows,
                                            float* impulse, void* memory) {
  return solve_posed(Tile<kSolveTile>(), options, rows, impulse, memory);
}
__device__ __noinline__ float solve_by_tile(const StepOptions<float>& options, const RowProblem<float>& rows,
                                            float* impulse, void* memory) {
  float* none = static_cast<float*>(memory);
  return solve_in_registers(Tile<kTreeTile>(), rows, options.limits(), options.solver.options.first, impulse, none,
                            none + rows.rows())
      .iterations;
}
__device__ __noinline__ float solve_by_warp(const StepOptions<float>& options, const RowProblem<float>& rows,
                                            float* impulse, void* memory) {
  return solve_with<SubAdmm, float>(Tile<kWarp>(), rows, options.limits(), options.solver.options.first,
                                    static_cast<float*>(memory), impulse)
      .iterations;
}

template int64_t solver_memory<float>(const SolverOptions<float>&, const RowCounts&);
template int64_t fallback_bytes<float>(const FallbackPlan&, const RowCounts&);

}  // namespace stiction
