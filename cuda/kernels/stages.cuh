// The stages of a step (step/step_world.h) as kernels: any robot (TileCapacity), every feature, the same source as the CPU's.
//
// A pass takes as many worlds as there are slots: memory of a world, in which a stage leaves what the next needs. Counts are the
// model's, so nothing can live in registers: every lane of a slot has its workspace there.
#pragma once
#include <algorithm>

#include "kernels/launch.cuh"
#include "kernels/launches.h"
#include "step/step_world.h"

namespace stiction {

inline constexpr int kThreads = 64;  // of a block
inline constexpr int kBlocks = 6;    // on a multiprocessor: 168 registers a lane
/// Lanes that share a world: where each takes some limbs, and where they share a solver's work.
inline constexpr int kTreeTile = 4, kSolveTile = 8;

using TileLane = Lane<float, TileCapacity, Tile<kTreeTile>>;
using TileModel = TileLane::Model;

/// Of one lane of a slot.
struct SlotLane {
  Workspace<TileLane> w;
  StepState<TileLane> s;
};

/// Worlds first .. first + count - 1 of a batch, in slots 0, 1, ..., in a step of the call.
struct StagePass {
  int first = 0, count = 0, step = 0;
  bool recovers = false;       // of the solve stage: for the second time in a step
  bool finds = false;          // of the find stage: contacts alone, of present states,
  FoundContacts<float> found;  // into these
};

__device__ inline SlotLane& slot_lane(const CudaJob& job, int slot, int lane) {
  return static_cast<SlotLane*>(job.slots)[int64_t{slot} * kTreeTile + lane];
}
__device__ inline WorldMemory slot_memory(const CudaJob& job, int slot) {
  const MemorySizes sizes = memory_sizes<float>(*job.model, job.options);
  return world_memory(static_cast<unsigned char*>(job.solver_memory) + slot * sizes.total(), sizes);
}
/// The place of a tile of so many lanes in the grid.
template <int kTile>
__device__ int tile_of_grid() {
  return static_cast<int>(blockIdx.x * kThreads + threadIdx.x) / kTile;
}

/// visit(tile, model, worlds, w, s) by the lanes of every world of a pass; `enters`: for the first time in a call.
template <class Visit>
__device__ void each_world(const CudaJob& job, const StagePass& pass, bool enters, Visit visit) {
  const Tile<kTreeTile> tile;
  const int slot = tile_of_grid<kTreeTile>();
  if (slot >= pass.count) return;
  const Rows<float> rows{pass.first + slot, job.arrays.num_envs};
  SlotLane& own = slot_lane(job, slot, tile.rank());
  if (enters) own.w.bind(slot_memory(job, slot));
  const TileModel* model = job.model;
  if (job.own_models != nullptr) {
    ParameterTables<TileCapacity, float>& tables = job.own_models[slot];
    if (enters && tile.rank() == 0) update_environment<TileCapacity, float>(*job.model, job.parameters, rows, tables);
    tile.sync();
    model = &tables.view;
  }
  const int64_t record = RecordLayout<TileModel>(*job.model).reals();
  const SteppedWorlds<TileLane> worlds{job.options, job.arrays, rows, {job.arrays.records + rows.first * record}};
  visit(tile, *model, worlds, own.w, own.s);
}

/// At least so many lanes; with none to run a kernel is loaded.
template <class... Parameters, class... Arguments>
void launch_lanes(void (*kernel)(Parameters...), int64_t lanes, const CudaQueue& queue, const Arguments&... arguments) {
  launch(kernel, static_cast<int>(std::max<int64_t>(1, (lanes + kThreads - 1) / kThreads)), kThreads, queue,
         arguments...);
}

/// A stage's kernel, for who asks the runtime about it, and its launch.
struct Stage {
  const void* kernel;
  void (*run)(const CudaJob&, const StagePass&);
};
using StageKernel = void (*)(CudaJob, StagePass);
/// By so many lanes a world.
template <StageKernel kernel, int kLanes>
Stage stage_of() {
  return {reinterpret_cast<const void*>(kernel), [](const CudaJob& job, const StagePass& pass) {
            launch_lanes(kernel, int64_t{pass.count} * kLanes, job.queue, job, pass);
          }};
}
// In files of their own, which compile side by side.
Stage find_stage();      // state, controls and loads at first; to what may touch within the step
Stage assemble_stage();  // to the rows of the contact problem
Stage solve_stage();     // where there is something to solve
Stage judge_stage();     // takes the answer and certifies it
Stage improve_stage();   // where the certificate is not met
Stage settle_stage();    // records; moves on, or poses the way out of overlaps
Stage end_stage();       // takes that way; at last what users see

/// visit(pass) for all worlds, as many at a time as there are slots.
template <class Visit>
void each_pass(const CudaJob& job, Visit visit) {
  StagePass pass;
  for (; pass.first < job.arrays.num_envs; pass.first += pass.count) {
    pass.count = std::min(job.plan.slots, job.arrays.num_envs - pass.first);
    visit(pass);
  }
}

}  // namespace stiction
