// What the kernels of the stages around the solvers have in common: the same source as the CPU's, for any robot (TileCapacity), or,
// where the macro STICTION_MODEL_SHAPE names a header, for the ModelShape in it. Compiled by nvcc and NVRTC.
#pragma once
#include "kernels/kept.cuh"
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
using TileLane = Lane<float, KernelShape, Tile<kTreeTile>>;
using TileModel = TileLane::Model;
using TileTables = ParameterTables<KernelShape, float>;
// The host fills tables of TileCapacity, whatever shape reads them.
static_assert(sizeof(TileModel) == sizeof(ModelView<TileCapacity, float>) &&
              sizeof(TileTables) == sizeof(ParameterTables<TileCapacity, float>));

/// What a lane steps a world with.
struct LaneMemory {
  StepState<TileLane> s;
  Workspace<TileLane> w;
};
using Kept = KeptParts<TileLane>;

// Where it lies. A model's own kernels have it on their stack and keep what the next stage needs. That of any robot is 130 KB,
// more than a stack has for all lanes of a device: it stays in its slot.
#ifdef STICTION_MODEL_SHAPE
inline constexpr bool kOnStack = true;
#else
inline constexpr bool kOnStack = false;
#endif
inline constexpr int kBlocks = kOnStack ? 8 : 6;  // on a multiprocessor: 128 or 168 registers a lane
inline constexpr int64_t kLaneBytes = kOnStack ? 4 * int64_t{Kept::kWords} : int64_t{sizeof(LaneMemory)};

/// visit(tile, model, worlds, w, s) by the lanes of every world of a pass. It returns which parts it leaves.
template <class Visit>
__device__ void each_world(const CudaJob& job, const StagePass& pass, int parts, Visit visit) {
  const Tile<kTreeTile> tile;
  const int number = tile_of_grid<kTreeTile>(), slot = pass.slot + number;
  if (number >= pass.count) return;
  const bool enters = parts == 0;  // for the first time in a call
  const Rows<float> rows{pass.first + number, job.arrays.num_envs};
  const auto* model = reinterpret_cast<const TileModel*>(job.model);
  if (job.own_models != nullptr) {
    TileTables& tables = reinterpret_cast<TileTables*>(job.own_models)[slot];
    if (enters && tile.rank() == 0) update_environment<KernelShape, float>(*model, job.parameters, rows, tables);
    tile.sync();
    model = &tables.view;
  }
  const int64_t lane = int64_t{slot} * kTreeTile + tile.rank(), record = RecordLayout<TileModel>(*model).reals();
  const SteppedWorlds<TileLane> worlds{job.options, job.arrays, rows, {job.arrays.records + rows.first * record}};
  PosedSolve<float>& posed = posed_in(job, slot);
  auto step = [&](LaneMemory& own) {
    own.w.bind(slot_memory(job, slot));
    if (!enters) static_cast<PosedSolve<float>&>(own.s) = posed;
    const int left = visit(tile, *model, worlds, own.w, own.s);
    tile.sync();  // all have read what is now written
    if (left != 0 && tile.rank() == 0) posed = own.s;
    return left;
  };
  if constexpr (kOnStack) {
    LaneMemory own;
#ifndef __CUDA_ARCH__
    __builtin_memset(static_cast<void*>(&own), 0xff, sizeof own);  // emulated: what is not kept is not there
#endif
    for (bool& live : own.w.contacts.live) live = false;  // of places that no limb has, too
    for (auto& of : own.w.problem.dof) of.live = {};
    Kept::visit(*model, parts, own.w, own.s, KeptWords<false>(job.slots, lane, Kept::kWords));
    const int left = step(own);
    Kept::visit(*model, left, own.w, own.s, KeptWords<true>(job.slots, lane, Kept::kWords));
  } else {
    step(*reinterpret_cast<LaneMemory*>(static_cast<unsigned char*>(job.slots) + lane * kLaneBytes));
  }
}

}  // namespace stiction
