// The generic tile-per-world kernel: any robot (Capacity shape), every feature, the same step as on the CPU. Fallback and
// cross-check of every faster kernel.
//
// Its counts are the model's, so nothing can live in registers: every lane has a workspace in global memory. The grid is as
// large as the device holds at once and walks over the worlds. Worlds of a warp may diverge; a tile's lanes do not.
#pragma once
#include "kernels/launches.h"
#include "step/find_contacts.h"
#include "step/solve_rows.h"
#include "step/step_world.h"

namespace stiction {

inline constexpr int kGenericThreads = 64;
inline constexpr int kGenericBlocks = 6;  // on a multiprocessor: 168 registers a lane

template <class T, int kTile>
using GenericLane = Lane<T, Capacity, Tile<kTile>>;
template <class T, int kTile>
using GenericWorkspace = Workspace<GenericLane<T, kTile>>;

/// A tile's worlds, one after the other: visit(tile, its model, rows, workspace).
template <class T, int kTile, class Visit>
__device__ void each_world_of_tile(const CudaJob<T>& job, Visit visit) {
  using L = GenericLane<T, kTile>;
  const int thread = blockIdx.x * kGenericThreads + threadIdx.x, tiles = gridDim.x * kGenericThreads / kTile;
  auto& w = static_cast<GenericWorkspace<T, kTile>*>(job.workspace)[thread];
  const MemorySizes sizes = memory_sizes<T>(*job.model, job.options);
  w.bind(world_memory(static_cast<unsigned char*>(job.solver_memory) + thread / kTile * sizes.total(), sizes));
  const Tile<kTile> tile;
  for (int world = thread / kTile; world < job.arrays.num_envs; world += tiles) {
    const Rows<T> rows{world, job.arrays.num_envs};
    const typename L::Model* model = job.model;
    if (job.own_models != nullptr) {
      ParameterTables<Capacity, T>& own = job.own_models[thread / kTile];
      tile.sync();  // all are through with the world before
      if (tile.rank() == 0) update_environment<Capacity, T>(*job.model, job.parameters, rows, own);
      tile.sync();
      model = &own.view;
    }
    visit(tile, *model, rows, w);
  }
}

template <class T, int kTile>
__global__ void __launch_bounds__(kGenericThreads, kGenericBlocks) generic_step_kernel(const CudaJob<T> job) {
  using L = GenericLane<T, kTile>;
  const int64_t record = RecordLayout<typename L::Model>(*job.model).reals();
  each_world_of_tile<T, kTile>(job, [&](const Tile<kTile>& tile, const auto& model, const Rows<T>& rows, auto& w) {
    step_batch<L>(tile, model, job.options, job.arrays, rows, job.arrays.records + rows.first * record, job.steps, w);
  });
}

template <class T, int kTile>
__global__ void __launch_bounds__(kGenericThreads, kGenericBlocks)
    find_contacts_kernel(const CudaJob<T> job, const FoundContacts<T> found) {
  using L = GenericLane<T, kTile>;
  each_world_of_tile<T, kTile>(job, [&](const Tile<kTile>& tile, const auto& model, const Rows<T>& rows, auto& w) {
    if (found.wants(rows.first)) find_batch_contacts<L>(tile, model, job.options, job.arrays, rows, found, w);
  });
}

template <class T>
__global__ void __launch_bounds__(kGenericThreads) kinematics_kernel(const CudaJob<T> job, const uint8_t* mask) {
  using L = Lane<T, Capacity, Serial>;
  const int thread = blockIdx.x * kGenericThreads + threadIdx.x;
  auto& w = static_cast<OutputWorkspace<L>*>(job.workspace)[thread];
  for (int world = thread; world < job.arrays.num_envs; world += gridDim.x * kGenericThreads)
    if (mask == nullptr || mask[world])
      write_kinematics<L>(*job.model, job.arrays, job.outputs, Rows<T>{world, job.arrays.num_envs}, w);
}

template <class T>
__global__ void __launch_bounds__(kGenericThreads)
    contacts_kernel(const CudaJob<T> job, const ContactArrays<T> out, int max_contacts, const uint8_t* mask) {
  const int world = blockIdx.x * kGenericThreads + threadIdx.x;
  if (world >= job.arrays.num_envs || (mask != nullptr && !mask[world])) return;
  const int64_t reals = RecordLayout<ModelView<Capacity, T>>(*job.model).reals();
  const T* record = job.arrays.records + world * reals;
  export_contacts(*job.model, world, [=](int i) { return record[i]; }, max_contacts, out);
}

template <class T>
__global__ void __launch_bounds__(kGenericThreads)
    reset_kernel(const CudaJob<T> job, const ResetRows<T> rows, const uint8_t* mask, int keyframe) {
  const int world = blockIdx.x * kGenericThreads + threadIdx.x;
  if (world >= job.arrays.num_envs || (mask != nullptr && !mask[world])) return;
  const RecordLayout<ModelView<Capacity, T>> layout(*job.model);
  T* record = job.arrays.records + static_cast<int64_t>(world) * layout.reals();
  rows.state(world, keyframe);
  rows.record(layout, [=](int i, T x) { record[i] = x; });
}

}  // namespace stiction
