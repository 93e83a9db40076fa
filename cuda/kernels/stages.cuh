// What the kernels of the stages around the solvers have in common: the same source as the CPU's, for any robot (TileCapacity), or,
// where the macro STICTION_MODEL_SHAPE names a header, for the ModelShape in it. Compiled by nvcc and NVRTC.
#pragma once
#include "kernels/slots.cuh"
#ifdef STICTION_MODEL_SHAPE
#include STICTION_MODEL_SHAPE
#endif

namespace stiction {

#ifdef STICTION_MODEL_SHAPE
using KernelShape = ModelShape;
#else
using KernelShape = TileCapacity;
#endif
inline constexpr int kBlocks = 6;  // on a multiprocessor: 168 registers a lane

using TileLane = Lane<float, KernelShape, Tile<kTreeTile>>;
using TileModel = TileLane::Model;
using TileTables = ParameterTables<KernelShape, float>;
// The host fills tables of TileCapacity, whatever shape reads them.
static_assert(sizeof(TileModel) == sizeof(ModelView<TileCapacity, float>) &&
              sizeof(TileTables) == sizeof(ParameterTables<TileCapacity, float>));

/// Of one lane of a slot.
struct SlotLane {
  StepState<TileLane> s;
  Workspace<TileLane> w;
};

/// visit(tile, model, worlds, w, s) by the lanes of every world of a pass; `enters`: for the first time in a call.
template <class Visit>
__device__ void each_world(const CudaJob& job, const StagePass& pass, bool enters, Visit visit) {
  const Tile<kTreeTile> tile;
  const int slot = tile_of_grid<kTreeTile>();
  if (slot >= pass.count) return;
  const Rows<float> rows{pass.first + slot, job.arrays.num_envs};
  const auto* model = reinterpret_cast<const TileModel*>(job.model);
  SlotLane& own = *static_cast<SlotLane*>(lane_of_slot(job, slot, tile.rank()));
  if (enters) own.w.bind(slot_memory(job, slot));
  if (job.own_models != nullptr) {
    TileTables& tables = reinterpret_cast<TileTables*>(job.own_models)[slot];
    if (enters && tile.rank() == 0) update_environment<KernelShape, float>(*model, job.parameters, rows, tables);
    tile.sync();
    model = &tables.view;
  }
  const int64_t record = RecordLayout<TileModel>(*model).reals();
  const SteppedWorlds<TileLane> worlds{job.options, job.arrays, rows, {job.arrays.records + rows.first * record}};
  visit(tile, *model, worlds, own.w, own.s);
}

}  // namespace stiction
