// The kernels of a step, by kTreeTile lanes a world, for any robot or for a ModelShape: worlds.cu.
#pragma once
#include "kernels/job.h"
#include "solvers/subadmm/registers.h"
#include "step/step_world.h"

namespace stiction {

/// What a lane of a slot of the build's kernels takes of memory.
extern const int64_t kBuildLaneBytes;

extern "C" {
__global__ void step_kernel(const __grid_constant__ CudaJob job);  // job.steps steps of the launch's worlds
__global__ void find_kernel(
    const __grid_constant__ CudaJob job,
    const __grid_constant__ FoundContacts<float> found);  // contacts of the worlds that `found` wants
}

// What they are linked with, whatever the model: by the lanes of a team.
/// The chosen solver, from the impulses there to its answer (solve.cu). Returns its iterations.
__device__ float solve_by_team(const StepOptions<float>& options, const RowProblem<float>& rows, float* impulse,
                               void* memory);
/// SubADMM of few rows, by the lanes of a world (solvers/subadmm/registers.h), and by the lanes of a warp.
__device__ float solve_by_tile(const StepOptions<float>& options, const RowProblem<float>& rows, float* impulse,
                               void* memory);
__device__ float solve_by_warp(const StepOptions<float>& options, const RowProblem<float>& rows, float* impulse,
                               void* memory);
/// How many lanes solve these rows.
__device__ inline int lanes_of(const StepOptions<float>& options, const RowProblem<float>& rows) {
  if (options.solver.solver != PlaceOf<SubAdmm, Solvers>::value) return kSolveTile;
  const SolveLimits<float> limits = options.limits();
  const auto& own = options.solver.options.first;
  if (RegisterPasses<float, Tile<kTreeTile>>::takes(rows, limits, own)) return kTreeTile;
  return rows.rows() > kSolveTile ? kWarp : kSolveTile;
}
/// The fallback of a flagged world, in double (improve.cu); what it says of the world is known to the first lane.
__device__ void improve_by_team(const StepOptions<float>& options, PosedSolve<float>& posed, void* memory);

}  // namespace stiction
