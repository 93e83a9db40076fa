// What every header of cuda/ may assume of its compiler: g++, clang, nvcc or NVRTC, C++20.
//
//   HD       a function for host and device; always inlined by nvcc, because a kernel keeps its state in registers only if
//            nothing is called. On the CPU the compiler decides: forced, files took eight times as long and ran no faster
//   HD_ONCE  as HD on the CPU; by nvcc compiled as a function of its own, not into each of its callers: for large functions
//            that are called from several places or are parts of a larger one, for which it would take minutes
//   HD_CALL  a function of its own everywhere
//   IN_PLACE a lambda of an innermost loop that g++ is not to make a function of: where there are registers enough, with AVX-512
//   UNROLL   before a loop whose trip count a ModelShape may know; nothing where it is known at run time only
//
// Only freestanding headers are included here, because NVRTC has no others. cuda/ includes nothing of the standard library
// but through this file.
#pragma once

#ifdef __CUDACC_RTC__
using int8_t = signed char;
using uint8_t = unsigned char;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#else
#include <cmath>
#include <cstdint>
#endif

#ifdef __CUDACC__
#define HD __host__ __device__ __forceinline__
#define HD_ONCE __host__ __device__ __noinline__
#define HD_CALL __host__ __device__ __noinline__
#define UNROLL _Pragma("unroll")
#else
#define HD inline
#define HD_ONCE inline
#define HD_CALL __attribute__((noinline))
#define UNROLL
#endif

#if defined(__AVX512F__) && !defined(__CUDACC__)
#define IN_PLACE __attribute__((always_inline))
#else
#define IN_PLACE
#endif

namespace stiction {

/// Tell nvcc where the things lie that a function of its own is given. That is lost at its border, and what may lie anywhere costs 64-bit
/// addresses and is fetched in the order of all that is stored. The emulated device looks whether it is so.
///   in memory: of the device, as models, records and rows
///   in a lane: on its stack, as what it steps a world with, if the Shape says so
template <class... T>
HD void lies_in_memory([[maybe_unused]] const T&... x) {
#if defined(__CUDA_ARCH__)
  const void* places[] = {&x...};
  UNROLL for (const void* place : places) __builtin_assume(__isGlobal(place));
#elif defined(CUDA_EMULATOR)
  (cuda_emulator::expect_in_memory(&x), ...);
#endif
}
template <class Shape, class... T>
HD void lies_in_lane([[maybe_unused]] const T&... x) {
#if defined(__CUDA_ARCH__)
  if constexpr (Shape::kOnStack) {
    const void* places[] = {&x...};
    UNROLL for (const void* place : places) __builtin_assume(__isLocal(place));
  }
#elif defined(CUDA_EMULATOR)
  if constexpr (Shape::kOnStack) (cuda_emulator::expect_on_stack(&x), ...);
#endif
}

/// The number of the lowest bit that is set.   pre: bits != 0
HD int lowest_bit(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __ffs(static_cast<int>(bits)) - 1;
#else
  return __builtin_ctz(bits);
#endif
}
/// How many bits are set.
HD int number_of_bits(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __popc(bits);
#else
  return __builtin_popcount(bits);
#endif
}

}  // namespace stiction
