#include "kernels/device.h"

#include <cuda_runtime.h>

#include <cstring>
#include <stdexcept>

namespace stiction {

__global__ void probe_kernel() {}

void require_success(int error, const char* call) {
  const auto code = static_cast<cudaError_t>(error);
  if (code != cudaSuccess)
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorName(code) + ", " + cudaGetErrorString(code));
}

std::string cuda_unavailable() {
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return "no NVIDIA driver found (libcuda.so.1): install the driver, or use device='cpu'";
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found == cudaErrorInsufficientDriver)
    return "the NVIDIA driver (CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10) +
           ") is older than this build (CUDA " + std::to_string(CUDART_VERSION / 1000) + "." +
           std::to_string(CUDART_VERSION % 1000 / 10) + "): update the driver, or use device='cpu'";
  if (found != cudaSuccess || count == 0) {
    cudaGetLastError();
    return "no NVIDIA GPU found: use device='cpu'";
  }
  cudaFuncAttributes attributes;
  cudaDeviceProp device;
  if (cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&probe_kernel)) == cudaSuccess) return "";
  cudaGetLastError();
  cudaGetDeviceProperties(&device, 0);
  return std::string("this build has no kernels for the ") + device.name + " (sm_" + std::to_string(device.major) +
         std::to_string(device.minor) + "): rebuild with STICTION_CUDA_ARCHITECTURES=" + std::to_string(device.major) +
         std::to_string(device.minor) + ", or use device='cpu'";
}

std::shared_ptr<void> managed_memory(size_t bytes) {
  void* p = nullptr;
  require_success(cudaMallocManaged(&p, bytes ? bytes : 1), "cudaMallocManaged");
  std::memset(p, 0, bytes);
  return std::shared_ptr<void>(p, [](void* q) { cudaFree(q); });
}

std::shared_ptr<void> device_memory(size_t bytes) {
  void* p = nullptr;
  require_success(cudaMalloc(&p, bytes ? bytes : 1), "cudaMalloc");
  std::shared_ptr<void> memory(p, [](void* q) { cudaFree(q); });
  require_success(cudaMemset(p, 0, bytes), "cudaMemset");
  return memory;
}

size_t free_memory() {
  size_t free = 0, total = 0;
  require_success(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

void synchronize() { require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

int resident_blocks(const void* kernel, int threads_per_block) {
  int device = 0, processors = 0, blocks = 0;
  require_success(cudaGetDevice(&device), "cudaGetDevice");
  require_success(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                  "cudaDeviceGetAttribute");
  require_success(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads_per_block, 0),
                  "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return processors * (blocks > 0 ? blocks : 1);
}

}  // namespace stiction
