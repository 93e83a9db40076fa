// Queues a kernel on a stream (cudaStream_t; null: the default one). Throws std::runtime_error if the launch is refused.
#pragma once
#include <cuda_runtime.h>

#include "kernels/device.h"

namespace stiction {

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int blocks, int threads, void* stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks), config.blockDim = dim3(threads), config.stream = static_cast<cudaStream_t>(stream);
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, arguments...);
  if (error != cudaSuccess) cudaGetLastError();  // told here, and not again by the next call
  require_success(error, "cudaLaunchKernelEx");
}

}  // namespace stiction
