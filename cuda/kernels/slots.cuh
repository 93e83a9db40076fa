// Slots: memory of worlds that are stepped, in which a stage leaves what the next needs: of each of kTreeTile lanes as much as the
// shape decides that kernels are compiled for (kernels/stages.cuh), and what solvers see, whatever the shape.
#pragma once
#include "kernels/job.h"
#include "step/step_world.h"

namespace stiction {

/// Changes where the layout of what the host and kernels, or kernels of the build and of a model, hand each other does.
inline constexpr int64_t kHandedOver =
    ((int64_t{sizeof(CudaJob)} * 1000 + sizeof(StagePass)) * 1000 + sizeof(PosedSolve<float>)) * 100000 +
    sizeof(ParameterTables<TileCapacity, float>);

__device__ inline PosedSolve<float>& posed_in(const CudaJob& job, int slot) {
  return *reinterpret_cast<PosedSolve<float>*>(static_cast<unsigned char*>(job.slots) + job.plan.posed_begin +
                                               slot * job.plan.posed_bytes);
}
__device__ inline void* improver_memory(const CudaJob& job, int improver) {
  return static_cast<unsigned char*>(job.solver_memory) + job.plan.slots * job.plan.world_bytes +
         improver * job.plan.improver_bytes;
}
/// That of the fallback is not the slot's: it tells whether there is one.
__device__ inline WorldMemory slot_memory(const CudaJob& job, int slot) {
  unsigned char* own = static_cast<unsigned char*>(job.solver_memory) + slot * job.plan.world_bytes;
  return {own, own + job.plan.row_bytes, job.plan.improvers > 0 ? improver_memory(job, 0) : nullptr};
}
/// The place of a tile of so many lanes in the grid.
template <int kTile>
__device__ int tile_of_grid() {
  return static_cast<int>(blockIdx.x * kThreads + threadIdx.x) / kTile;
}

// The stages of a step as kernels (step/step_world.h), in files of their own, which compile side by side.
extern "C" {
// By kTreeTile lanes a world, for any robot or for a ModelShape: stages.cuh.
__global__ void find_kernel(CudaJob job,
                            StagePass pass);  // state, controls and loads at first; to what may touch within the step
__global__ void assemble_kernel(CudaJob job, StagePass pass);  // to the rows of the contact problem
__global__ void judge_kernel(CudaJob job, StagePass pass);  // takes the answer and certifies it; settles unless flagged
__global__ void settle_kernel(CudaJob job, StagePass pass);  // records; moves on, or poses the way out of overlaps
__global__ void end_kernel(CudaJob job, StagePass pass);     // takes that way; at last what users see
// By kSolveTile lanes a world, and by job.plan.improvers.
__global__ void solve_kernel(CudaJob job, StagePass pass);    // where there is something to solve
__global__ void improve_kernel(CudaJob job, StagePass pass);  // where the certificate is not met
}

}  // namespace stiction
