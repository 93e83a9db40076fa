// A CUDA device in software: the part of the CUDA runtime that this project calls, and of the language that its kernels use.
//
// For tests on machines without a GPU (STICTION_CUDA=EMULATED): the .cu files are compiled as C++ with this header included
// first, and every thread of a block runs as a fiber of the calling thread, from collective to collective.
//
// What it is stricter in than a GPU:
//   - Lanes of a block, and blocks of a grid, take turns in a random order (seed: STICTION_EMULATOR_SEED), so what reads
//     another lane's memory without a sync is seen in the results. A collective that a lane of its mask never reaches, or
//     reaches as another one, fails the launch (cudaErrorLaunchFailure; the report goes to stderr) instead of hanging.
//   - Launches and copies run late: when the host synchronizes, allocates, sets or frees memory. A touch by the host of pinned memory
//     that a copy is still to read or write is a fault, and one of device memory at any time (SIGSEGV, named on stderr).
//     STICTION_EMULATOR=eager runs it at once and leaves memory open, for host code that stands in for work on the stream.
//   - Memory comes filled with 0xff bytes (NaN), and ends (rounded up to 64 bytes) at a page that nobody may touch.
//   - Streams, the default one too, wait for each other by events alone, as torch's do: what is not ordered runs late.
//   - What kernels tell the compiler of where something lies is looked at; only parameters of kernels pass for a lane's own.
//   - There are two devices. Work and streams are of the one that is current (cudaSetDevice), and a kernel that reaches for the
//     memory of the other is a fault.
// One thread of the host at a time. Arithmetic is the host's: no fused multiply-add, and __CUDA_ARCH__ is not defined. Shared
// memory, __syncthreads and atomics but one do not exist.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// After the standard library's headers, which name attributes by some of these words.
#define __CUDACC__ 13
#define CUDA_EMULATOR
#define __global__
#define __host__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__

#define CUDART_VERSION 13000

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidKernelImage = 200,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorSymbolNotFound = 500,
  cudaErrorLaunchFailure = 719,
};
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxThreadsPerMultiProcessor = 39 };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
inline constexpr unsigned cudaEventDisableTiming = 2;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
using cudaStream_t = struct EmulatedStream*;
using cudaEvent_t = struct EmulatedEvent*;
using cudaLibrary_t = struct EmulatedLibrary*;
using cudaKernel_t = struct EmulatedKernel*;
struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};
struct cudaFuncAttributes {
  int maxThreadsPerBlock;
  size_t localSizeBytes;
};
struct cudaDeviceProp {
  char name[256];
  int major, minor;
};

#pragma GCC visibility push(default)  // what kernels of a library take from here
/// Of the lane that runs; only kernels read them.
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuda_emulator {

enum class Collective { kShuffle, kBallot, kSync };

/// All lanes of `mask` meet; the bits that lane `from` of the warp brought (kShuffle), or who of them brought a 1 (kBallot).
uint64_t meet(Collective kind, unsigned mask, uint64_t bits, int from);
/// Launches that have not run yet, and how often the host has waited (cudaDeviceSynchronize, cudaStreamSynchronize).
struct Counts {
  size_t pending;
  long waits;
};
Counts counts();
cudaError_t launch(const cudaLaunchConfig_t& config, std::function<void()> lane);
/// Ends the process where a lane says of something that it lies in memory of the device, or on its own stack, and it does not: a GPU would
/// read elsewhere (core/platform.h).
void expect_in_memory(const void* address);
void expect_on_stack(const void* address);
int lane_of_warp();
#pragma GCC visibility pop

}  // namespace cuda_emulator

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int = 32) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  uint64_t brought = 0;
  std::memcpy(&brought, &value, sizeof(T));
  brought =
      cuda_emulator::meet(cuda_emulator::Collective::kShuffle, mask, brought, cuda_emulator::lane_of_warp() ^ bits);
  std::memcpy(&value, &brought, sizeof(T));
  return value;
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  const int own = cuda_emulator::lane_of_warp();
  return __shfl_xor_sync(mask, value, own ^ ((own & ~(width - 1)) | (lane & (width - 1))), width);
}
inline unsigned __ballot_sync(unsigned mask, bool value) {
  return static_cast<unsigned>(cuda_emulator::meet(cuda_emulator::Collective::kBallot, mask, value, 0));
}
/// Lanes take turns, and none in the middle of this.
inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long more) {
  const unsigned long long before = *to;
  *to += more;
  return before;
}
inline long long clock64() {
  static long long now = 0;
  return ++now;
}
inline void __syncwarp(unsigned mask) { cuda_emulator::meet(cuda_emulator::Collective::kSync, mask, 0, 0); }

/// Arguments are copied now, as the runtime does.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return cuda_emulator::launch(
      *config, [kernel, copies = std::tuple<std::decay_t<Parameters>...>(std::forward<Arguments>(arguments)...)] {
        std::apply(kernel, copies);
      });
}

cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);
enum cudaFuncAttribute { cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
inline constexpr int cudaSharedmemCarveoutMaxL1 = 0;
inline cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads, size_t shared);
/// Of an image that is a shared object, compiled as these files are, without what it takes from them.
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* image, void*, void*, unsigned, void*, void*,
                                unsigned);
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name);
cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library, const char* name);
cudaError_t cudaLibraryUnload(cudaLibrary_t library);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaMallocHost(void** memory, size_t bytes);
cudaError_t cudaFreeHost(void* memory);
/// Between memory of the device and pinned memory alone.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
/// Of what lies in a library's image.
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMemset(void* memory, int value, size_t bytes);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaStreamCreate(cudaStream_t* stream);
inline constexpr unsigned cudaStreamNonBlocking = 1;
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t* event);
/// On the host's clock.
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaGetLastError();
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
