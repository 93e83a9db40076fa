// Covers tests/cuda_emulator: what a GPU does, and the mistakes that it lets pass and this must not.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

namespace {

class Emulator : public ::testing::Test {
 protected:
  void SetUp() override { setenv("STICTION_EMULATOR", "lazy", 1); }

  template <class... Parameters, class... Arguments>
  cudaError_t launch(int blocks, int threads, void (*kernel)(Parameters...), Arguments... arguments) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks), config.blockDim = dim3(threads);
    return cudaLaunchKernelEx(&config, kernel, arguments...);
  }
  template <class T>
  T* pinned(size_t count) {
    void* p = nullptr;
    EXPECT_EQ(cudaMallocHost(&p, count * sizeof(T)), cudaSuccess);
    return static_cast<T*>(p);
  }
};

void sum_of_warps(int* out) {
  int x = static_cast<int>(threadIdx.x);
  for (int bit = 1; bit < 32; bit *= 2) x += __shfl_xor_sync(0xffffffffu, x, bit);
  out[blockIdx.x * blockDim.x + threadIdx.x] = x + 1000 * static_cast<int>(blockIdx.x);
}

TEST_F(Emulator, LanesShuffleWithinTheirWarp) {
  int* out = pinned<int>(3 * 64);
  ASSERT_EQ(launch(3, 64, sum_of_warps, out), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (int b = 0; b < 3; ++b)
    for (int i = 0; i < 64; ++i) EXPECT_EQ(out[64 * b + i], (i < 32 ? 496 : 496 + 1024) + 1000 * b);
  cudaFreeHost(out);
}

void ballot_of_tile(unsigned* out) {
  const unsigned tile = threadIdx.x / 4, mask = 15u << 4 * tile;
  if (tile % 2 == 0) out[threadIdx.x] = 0;  // tiles go their own ways
  else out[threadIdx.x] = __ballot_sync(mask, threadIdx.x % 3 == 0);
}

TEST_F(Emulator, TilesOfAWarpMeetByThemselves) {
  unsigned* out = pinned<unsigned>(32);
  ASSERT_EQ(launch(1, 32, ballot_of_tile, out), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  for (unsigned i = 0; i < 32; ++i) {
    unsigned expected = 0;
    for (unsigned k = i / 4 * 4; k < i / 4 * 4 + 4; ++k) expected |= unsigned(k % 3 == 0) << k;
    EXPECT_EQ(out[i], i / 4 % 2 ? expected : 0);
  }
  cudaFreeHost(out);
}

void write_then_read(int* shared, int* out, bool sync) {
  shared[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (sync) __syncwarp(0xffffffffu);
  out[threadIdx.x] = shared[31 - threadIdx.x];
}

TEST_F(Emulator, AMissingSyncIsSeen) {
  int *shared = pinned<int>(32), *out = pinned<int>(32);
  for (const bool sync : {true, false}) {
    std::fill_n(shared, 32, -1);
    ASSERT_EQ(launch(1, 32, write_then_read, shared, out, sync), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(std::count(out, out + 32, -1) == 0, sync);
  }
  cudaFreeHost(shared), cudaFreeHost(out);
}

void note_order(int* next, int* order) { order[(*next)++] = static_cast<int>(blockIdx.x); }

TEST_F(Emulator, BlocksComeInAnyOrder) {
  int *next = pinned<int>(1), *order = pinned<int>(16);
  *next = 0;
  ASSERT_EQ(launch(16, 1, note_order, next, order), cudaSuccess);
  cudaDeviceSynchronize();
  EXPECT_EQ(std::set<int>(order, order + 16).size(), 16u);
  EXPECT_FALSE(std::is_sorted(order, order + 16));
  cudaFreeHost(next), cudaFreeHost(order);
}

void increment(int* x) { ++*x; }

TEST_F(Emulator, CopiesComeInTheirTurn) {
  int *from = pinned<int>(1), *to = pinned<int>(1);
  void* x = nullptr;
  ASSERT_EQ(cudaMalloc(&x, sizeof(int)), cudaSuccess);
  *from = 5, *to = 0;
  ASSERT_EQ(cudaMemcpyAsync(x, from, sizeof(int), cudaMemcpyHostToDevice, nullptr), cudaSuccess);
  ASSERT_EQ(launch(1, 1, increment, static_cast<int*>(x)), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(to, x, sizeof(int), cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
  cudaDeviceSynchronize();
  EXPECT_EQ(*to, 6);
  int on_stack = 0;
  EXPECT_EQ(cudaMemcpyAsync(x, &on_stack, sizeof(int), cudaMemcpyHostToDevice, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(x, from, 2 * sizeof(int) + 64, cudaMemcpyHostToDevice, nullptr), cudaErrorInvalidValue);
  cudaGetLastError(), cudaFree(x), cudaFreeHost(from), cudaFreeHost(to);
}

TEST_F(Emulator, KernelsRunWhenTheHostWaits) {
  int* x = pinned<int>(1);
  *x = 5;
  const auto before = cuda_emulator::counts();
  ASSERT_EQ(launch(1, 1, increment, x), cudaSuccess);
  ASSERT_EQ(launch(1, 1, increment, x), cudaSuccess);
  EXPECT_EQ(cuda_emulator::counts().pending, before.pending + 2);
  EXPECT_EQ(cuda_emulator::counts().waits, before.waits);
  cudaDeviceSynchronize();
  EXPECT_EQ(cuda_emulator::counts().pending, 0u);
  EXPECT_EQ(*x, 7);
  setenv("STICTION_EMULATOR", "eager", 1);
  ASSERT_EQ(launch(1, 1, increment, x), cudaSuccess);
  EXPECT_EQ(*x, 8);
  cudaFreeHost(x);
}

void copy(const int* from, int* to) { *to = *from; }

TEST_F(Emulator, StreamsWaitForEachOtherByEventsAlone) {
  int *x = pinned<int>(1), *y = pinned<int>(1);
  cudaStream_t first = nullptr, second = nullptr;
  cudaStreamCreate(&first), cudaStreamCreate(&second);
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  auto launch_on = [](cudaStream_t stream, auto kernel, auto... arguments) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(1), config.blockDim = dim3(1), config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
  };
  for (const bool ordered : {false, true}) {
    *x = 5, *y = 0;
    launch_on(first, increment, x);
    if (ordered) cudaEventRecord(event, first), cudaStreamWaitEvent(second, event, 0);
    launch_on(second, copy, x, y);
    ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);
    EXPECT_EQ(*y, ordered ? 6 : 5);
    EXPECT_EQ(cuda_emulator::counts().pending, ordered ? 0u : 1u);
    ASSERT_EQ(cudaStreamSynchronize(first), cudaSuccess);
    EXPECT_EQ(*x, 6);
  }
  cudaEventDestroy(event), cudaStreamDestroy(first), cudaStreamDestroy(second), cudaFreeHost(x), cudaFreeHost(y);
}

TEST_F(Emulator, AStreamIsOfTheDeviceItWasMadeOn) {
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  cudaSetDevice(1);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  cudaSetDevice(0);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  cudaGetLastError(), cudaStreamDestroy(stream);
}

// ---- mistakes: each in a process of its own, for a failure stays

void half_a_collective(int skipped) {
  if (static_cast<int>(threadIdx.x) != skipped) __syncwarp(0xffffffffu);
}
void two_kinds() {
  if (threadIdx.x % 2) __syncwarp(0xffffffffu);
  else __ballot_sync(0xffffffffu, true);
}
void outside_its_mask() { __syncwarp(1u << 5); }
void beyond_the_end(int* x) { x[16] = 1; }
void says_where_it_lies(int* x, bool of_memory) {
  int own = 0;
  if (of_memory) cuda_emulator::expect_in_memory(x), cuda_emulator::expect_in_memory(&own);
  else cuda_emulator::expect_on_stack(&own), cuda_emulator::expect_on_stack(x);
}

using EmulatorDeathTest = Emulator;

/// Exits with the code of what synchronizing said.
template <class... Arguments>
[[noreturn]] void run_and_exit(Arguments... kernel_and_arguments) {
  const cudaError_t error = [&] {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(1), config.blockDim = dim3(32);
    cudaLaunchKernelEx(&config, kernel_and_arguments...);
    return cudaDeviceSynchronize();
  }();
  std::exit(error == cudaErrorLaunchFailure ? 19 : 0);
}

TEST_F(EmulatorDeathTest, LanesThatMissEachOtherFailTheLaunch) {
  const auto failed = ::testing::ExitedWithCode(19);
  EXPECT_EXIT(run_and_exit(half_a_collective, 7), failed, "waits in __syncwarp for lane 7, which has returned");
  EXPECT_EXIT(run_and_exit(two_kinds), failed, "which is in __(ballot_sync|syncwarp)");
  EXPECT_EXIT(run_and_exit(outside_its_mask), failed, "is not in the mask of its own __syncwarp");
}

TEST_F(EmulatorDeathTest, MemoryIsNotTheHostsToTouch) {
  EXPECT_DEATH(
      {
        int* x = pinned<int>(1);
        void* y = nullptr;
        cudaMalloc(&y, sizeof(int));
        cudaMemcpyAsync(x, y, sizeof(int), cudaMemcpyDeviceToHost, nullptr);
        *static_cast<volatile int*>(x) = 3;
      },
      "the host touches pinned memory before a copy is done");
  EXPECT_DEATH(
      {
        void* p = nullptr;
        cudaMalloc(&p, 64);
        *static_cast<volatile int*>(p) = 3;
      },
      "a touch of device memory by the host");
  EXPECT_DEATH(
      {
        void* p = nullptr;
        cudaMalloc(&p, 64);
        cudaSetDevice(1);
        void* q = nullptr;
        cudaMalloc(&q, 64);
        launch(1, 1, increment, static_cast<int*>(p));
        cudaDeviceSynchronize();
      },
      "a touch of device memory by the host or by the other device");
  EXPECT_DEATH(
      {
        launch(1, 1, beyond_the_end, pinned<int>(16));
        cudaDeviceSynchronize();
      },
      "beyond the end of an allocation");
}

TEST_F(EmulatorDeathTest, WhatKernelsSayOfMemoryMustBeSo) {
  for (const bool of_memory : {true, false})
    EXPECT_DEATH(
        {
          void* p = nullptr;
          cudaMalloc(&p, 64);
          launch(1, 1, says_where_it_lies, static_cast<int*>(p), of_memory);
          cudaDeviceSynchronize();
        },
        of_memory ? "what lies in its memory, by a kernel's word, does not" : "what lies in a lane's stack");
}

TEST_F(Emulator, RefusesWhatARuntimeRefuses) {
  EXPECT_EQ(launch(0, 32, two_kinds), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 2048, two_kinds), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  int on_stack = 0;
  EXPECT_EQ(cudaFreeHost(&on_stack), cudaErrorInvalidValue);
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, size_t{1} << 50), cudaErrorMemoryAllocation);
  cudaGetLastError();
}

}  // namespace
