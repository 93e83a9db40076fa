// The lanes that share one world: `Group`.
//
//   Serial            one lane (CPU; with Real = Pack it still is one lane, of W worlds)
//   Tile<T>           T neighbouring lanes of a warp, T = 1, 2, 4 ... 32 (CUDA); tiles of a warp may go their own ways
//   LockstepTile<T>   the same for kernels without any branch on data: all lanes of the warp reach every sum together
//   TileEmulator<T>   Tile<T> on a CPU, see tests/support/tile_emulator.h
//
// A group offers rank(), kSize and sum(x), which returns the same bits in every lane. Every lane must reach the same sums in
// the same order; between two sums a lane owns its limbs. What lanes share lies in memory, behind a sync.
//
//   from(x, i)   that of lane i; of groups with several lanes
//   max(x)       the maximum() over the lanes, the same bits in every lane
//   either(m)    a mask: set where some lane has it set
//   any(m)       is a mask set in some lane (and world of a pack); for loops that end when no world needs them
//   sync()       what lanes have written to memory (records, arrays) is visible to each other
//
// All six are collective: never within each_limb, nor under a condition that lanes may see differently. So is parallel_for.
#pragma once
#include "core/scalar.h"

namespace stiction {

struct Serial {
  static constexpr int kSize = 1;
  HD int rank() const { return 0; }
  template <class Real>
  HD Real sum(Real x) const {
    return x;
  }
  template <class Real>
  HD Real max(Real x) const {
    return x;
  }
  template <class M>
  HD M either(M m) const {
    return m;
  }
  template <class M>
  HD bool any(M m) const {
    return stiction::any(m);
  }
  HD void sync() const {}
};

/// body(i) for i = 0 .. count - 1, each by one of the lanes, and a sync: then all see what was written. Where every number is made
/// by one body, in an order of its own, results do not depend on how many lanes there are.
template <class Group, class Body>
HD void parallel_for(const Group& g, int count, Body body) {
  for (int i = g.rank(); i < count; i += Group::kSize) body(i);
  g.sync();
}

#ifdef __CUDACC__
template <int T, bool kLockstep = false>
struct Tile {
  static constexpr int kSize = T;
  __device__ __forceinline__ int rank() const { return threadIdx.x & (T - 1); }
  /// Butterfly: lane i adds lane i^1, then i^2, ...; addition commutes, hence equal bits in all lanes.
  template <class Real>
  __device__ __forceinline__ Real sum(Real x) const {
    UNROLL for (int bit = 1; bit < T; bit *= 2) x += __shfl_xor_sync(lanes(), x, bit, T);
    return x;
  }
  template <class Real>
  __device__ __forceinline__ Real from(Real x, int lane) const {
    return __shfl_sync(lanes(), x, lane, T);
  }
  /// In the order of ranks: of zeros the first one's sign.
  template <class Real>
  __device__ __forceinline__ Real max(Real x) const {
    UNROLL for (int bit = 1; bit < T; bit *= 2) {
      Real y = __shfl_xor_sync(lanes(), x, bit, T);
      x = rank() & bit ? maximum(y, x) : maximum(x, y);
    }
    return x;
  }
  __device__ __forceinline__ bool either(bool m) const { return T == 1 ? m : (__ballot_sync(lanes(), m) & own()) != 0; }
  __device__ __forceinline__ bool any(bool m) const { return either(m); }
  __device__ __forceinline__ void sync() const { __syncwarp(lanes()); }

 private:
  /// This tile's lanes of the warp.
  __device__ __forceinline__ static unsigned own() {
    if constexpr (T == 32) return 0xffffffffu;
    else return ((1u << T) - 1) << (threadIdx.x & 31 & ~(T - 1));
  }
  /// The lanes that meet in a collective.
  __device__ __forceinline__ static unsigned lanes() { return kLockstep ? 0xffffffffu : own(); }
};
template <int T> using LockstepTile = Tile<T, true>;

/// What lane i of a group has, word by word. Collective.
template <class Group, class T>
__device__ T from_lane(const Group& g, const T& x, int lane) {
  constexpr int kWords = (sizeof(T) + 3) / 4;
  unsigned word[kWords] = {};
  memcpy(word, &x, sizeof(T));
  UNROLL for (int k = 0; k < kWords; ++k) word[k] = g.from(word[k], lane);
  T of;
  memcpy(&of, word, sizeof(T));
  return of;
}
#endif

}  // namespace stiction
