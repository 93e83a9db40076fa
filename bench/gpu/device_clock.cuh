// What the benches of this folder time kernels with.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

constexpr int kRounds = 7;

inline void require(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
  std::exit(1);
}
#define REQUIRE(call) require(call, #call)

/// Milliseconds of `work`, which is queued on the default stream, on the device's clock: the median of kRounds, after one that does not count.
inline double milliseconds(const std::function<void()>& work) {
  cudaEvent_t from, to;
  REQUIRE(cudaEventCreate(&from)), REQUIRE(cudaEventCreate(&to));
  std::vector<float> times(kRounds);
  work();
  for (float& ms : times) {
    REQUIRE(cudaEventRecord(from));
    work();
    REQUIRE(cudaEventRecord(to)), REQUIRE(cudaEventSynchronize(to)), REQUIRE(cudaEventElapsedTime(&ms, from, to));
  }
  REQUIRE(cudaGetLastError());
  REQUIRE(cudaEventDestroy(from)), REQUIRE(cudaEventDestroy(to));
  std::sort(times.begin(), times.end());
  return times[kRounds / 2];
}
