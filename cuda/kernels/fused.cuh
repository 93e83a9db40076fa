// The fused kernel of a FixedShape: one tile per world, all steps in one launch, the whole world in registers. Loops unroll,
// indices are constants; what ptxas must report is a stack frame of 0 (see fused_*.cu and scripts/cuda_resources.py).
//
// All lanes of a warp go through every sum together (LockstepTile), so surplus tiles of the last warp repeat the last world
// and store nothing of it. A shape without kCertificate leaves the certificate's arrays alone: the generic kernel computes
// it where it is wanted.
#pragma once
#include "step/step_world.h"

namespace stiction {

inline constexpr int kFusedThreads = 128;

/// Numbers of threads are multiples of a warp's 32 lanes.
template <class Shape, int kTile>
__global__ void __launch_bounds__(kFusedThreads, 1)
    fused_step_kernel(const ModelView<Shape, float>* __restrict__ model, Options<float> options,
                      BatchArrays<float> arrays, int steps) {
  using L = Lane<float, Shape, LockstepTile<kTile>>;
  const int tile = (blockIdx.x * kFusedThreads + threadIdx.x) / kTile;
  if (tile / (32 / kTile) * (32 / kTile) >= arrays.num_envs) return;  // the whole warp is surplus
  const int world = min(tile, arrays.num_envs - 1);
  Workspace<L, SubAdmm<L>> w;
  step_batch<L, SubAdmm<L>>(
      LockstepTile<kTile>{}, *model, options, arrays, Rows<float>{world, arrays.num_envs, tile < arrays.num_envs},
      arrays.records + static_cast<int64_t>(world) * RecordLayout<ModelView<Shape, float>>(*model).reals(), steps, w);
}

}  // namespace stiction
