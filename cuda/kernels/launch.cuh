// Queues a kernel on its device and stream. Throws std::runtime_error, or OutOfMemory, if the launch is refused.
#pragma once
#include <cuda_runtime.h>

#include "kernels/device.h"

namespace stiction {

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), int blocks, int threads, const CudaQueue& queue,
            const Arguments&... arguments) {
  const OnDevice here(queue.device);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks), config.blockDim = dim3(threads);
  config.stream = static_cast<cudaStream_t>(queue.stream);
  require_success(cudaLaunchKernelEx(&config, kernel, arguments...), "cudaLaunchKernelEx");
}

}  // namespace stiction
