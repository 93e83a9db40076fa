// The generic tile-per-world kernel: any robot (Capacity shape), every feature, the same step as on the CPU. Fallback and
// cross-check of every faster kernel.
//
// Its counts are the model's, so nothing can live in registers: every lane has a workspace in global memory. The grid is as
// large as the device holds at once and walks over the worlds. Worlds of a warp may diverge; a tile's lanes do not.
#pragma once
#include "host/backend/cuda/kernels.h"
#include "host/step/step_world.h"

namespace stiction {

inline constexpr int kGenericThreads = 64;

template <class T, int kTile>
using GenericLane = Lane<T, Capacity, Tile<kTile>>;
template <class T, int kTile>
using GenericWorkspace = Workspace<GenericLane<T, kTile>, SubAdmm<GenericLane<T, kTile>>>;

template <class T, int kTile>
__global__ void __launch_bounds__(kGenericThreads) generic_step_kernel(const CudaJob<T> job) {
  using L = GenericLane<T, kTile>;
  const int thread = blockIdx.x * kGenericThreads + threadIdx.x, tiles = gridDim.x * kGenericThreads / kTile;
  auto& w = static_cast<GenericWorkspace<T, kTile>*>(job.workspace)[thread];
  const int record = RecordLayout<typename L::Model>(*job.model).reals();
  for (int world = thread / kTile; world < job.arrays.num_envs; world += tiles)
    step_batch<L, SubAdmm<L>>(Tile<kTile>{}, *job.model, job.options, job.arrays, Rows<T>{world, job.arrays.num_envs},
                              job.arrays.records + static_cast<int64_t>(world) * record, job.steps, w);
}

template <class T>
__global__ void __launch_bounds__(kGenericThreads) kinematics_kernel(const CudaJob<T> job) {
  using L = Lane<T, Capacity, Serial>;
  const int thread = blockIdx.x * kGenericThreads + threadIdx.x;
  auto& w = static_cast<OutputWorkspace<L>*>(job.workspace)[thread];
  for (int world = thread; world < job.arrays.num_envs; world += gridDim.x * kGenericThreads)
    write_kinematics<L>(*job.model, job.arrays, job.outputs, Rows<T>{world, job.arrays.num_envs}, w);
}

}  // namespace stiction
