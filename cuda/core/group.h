// The lanes that share one world: `Group`.
//
//   Serial            one lane (CPU; with Real = Pack it still is one lane, of W worlds)
//   Tile<T>           T neighbouring lanes of a warp, T = 1, 2, 4 ... 32 (CUDA)
//   TileEmulator<T>   the same on a CPU, see core/tile_emulator.h
//
// A group offers rank(), kSize and sum(x), which returns the same bits in every lane. Every lane must reach the same sums in
// the same order; between two sums a lane owns its limbs and shares nothing, so there is no barrier and no shared memory.
// any(mask) is for loops that end when no world needs them.
#pragma once
#include "core/scalar.h"

namespace stiction {

struct Serial {
  static constexpr int kSize = 1;
  HD int rank() const { return 0; }
  template <class Real>
  HD Real sum(Real x) const { return x; }
  template <class M>
  HD bool any(M m) const { return stiction::any(m); }
};

#ifdef __CUDACC__
template <int T>
struct Tile {
  static constexpr int kSize = T;
  __device__ __forceinline__ int rank() const { return threadIdx.x & (T - 1); }
  /// Butterfly: lane i adds lane i^1, then i^2, ...; addition commutes, hence equal bits in all lanes.
  template <class Real>
  __device__ __forceinline__ Real sum(Real x) const {
#pragma unroll
    for (int bit = 1; bit < T; bit *= 2) x += __shfl_xor_sync(0xffffffffu, x, bit, T);
    return x;
  }
  /// Of all worlds of the warp, because its lanes must reach every sum together.
  __device__ __forceinline__ bool any(bool m) const { return __any_sync(0xffffffffu, m); }
};
#endif

}  // namespace stiction
