#include "kernels/device.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

namespace stiction {

__global__ void probe_kernel() {}

void require_success(int error, const char* call) {
  const auto code = static_cast<cudaError_t>(error);
  if (code == cudaSuccess) return;
  cudaGetLastError();  // told here, and not again by the next call
  const std::string text = std::string(call) + ": " + cudaGetErrorName(code) + ", " + cudaGetErrorString(code);
  if (code == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  throw std::runtime_error(text);
}

OnDevice::OnDevice(int device) : before_(current_device()), device_(device) {
  if (device_ != before_) require_success(cudaSetDevice(device_), "cudaSetDevice");
}
OnDevice::~OnDevice() {
  if (device_ != before_) cudaSetDevice(before_);
}

int current_device() {
  int device = 0;
  require_success(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

int architecture_of(int device) {
  cudaDeviceProp properties;
  const int ordinal = device == kCurrentDevice ? current_device() : device;
  require_success(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  return 10 * properties.major + properties.minor;
}

std::string cuda_unavailable(int ordinal) {
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
  if (ordinal >= count)
    return "no CUDA device " + std::to_string(ordinal) + " among " + std::to_string(count) +
           ": use device='cuda:" + std::to_string(count - 1) + "' or less";
  const OnDevice here(ordinal == kCurrentDevice ? current_device() : ordinal);
  cudaFuncAttributes attributes;
  cudaDeviceProp device;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&probe_kernel));
  if (error == cudaSuccess) return "";
  cudaGetLastError();
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction)
    return std::string("no device that answers: ") + cudaGetErrorName(error) + ", " + cudaGetErrorString(error);
  cudaGetDeviceProperties(&device, current_device());
  return std::string("no kernel of this build for the ") + device.name + " (sm_" + std::to_string(device.major) +
         std::to_string(device.minor) + "): rebuild with STICTION_CUDA_ARCHITECTURES=" + std::to_string(device.major) +
         std::to_string(device.minor) + ", or use device='cpu'";
}

std::shared_ptr<void> pinned_memory(size_t bytes, int device) {
  const OnDevice here(device);
  void* p = nullptr;
  require_success(cudaMallocHost(&p, bytes ? bytes : 1), "cudaMallocHost");
  std::memset(p, 0, bytes);
  return std::shared_ptr<void>(p, [](void* q) { cudaFreeHost(q); });
}

void copy_to_host(void* to, const void* from, size_t bytes, const CudaQueue& queue) {
  const OnDevice here(queue.device);
  const auto stream = static_cast<cudaStream_t>(queue.stream);
  require_success(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
}

void copy_to_device(void* to, const void* from, size_t bytes, const CudaQueue& queue) {
  const OnDevice here(queue.device);
  const auto stream = static_cast<cudaStream_t>(queue.stream);
  require_success(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
}

std::shared_ptr<void> device_memory(size_t bytes, int device) {
  const OnDevice here(device);
  void* p = nullptr;
  require_success(cudaMalloc(&p, bytes ? bytes : 1), "cudaMalloc");
  std::shared_ptr<void> memory(p, [](void* q) { cudaFree(q); });
  require_success(cudaMemset(p, 0, bytes), "cudaMemset");
  return memory;
}

size_t free_memory(int device) {
  const OnDevice here(device);
  size_t free = 0, total = 0;
  require_success(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

namespace {

int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  require_success(cudaDeviceGetAttribute(&value, name, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace

// Per device, of all its kernels that ran; nobody can be asked for it.
static std::mutex local_mutex;
static std::map<int, size_t> local_noted;

void note_local_memory(size_t more, int device) {
  const std::lock_guard lock(local_mutex);
  local_noted[device] += more;
}

size_t local_memory(const void* kernel, int device) {
  const OnDevice here(device);
  cudaFuncAttributes attributes;
  require_success(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  const size_t all = attributes.localSizeBytes * attribute(cudaDevAttrMaxThreadsPerMultiProcessor, device) *
                     attribute(cudaDevAttrMultiProcessorCount, device);
  const std::lock_guard lock(local_mutex);
  return all - std::min(all, local_noted[device]);
}

void prefer_cache(const void* kernel, int device) {
  const OnDevice here(device);
  require_success(
      cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxL1),
      "cudaFuncSetAttribute");
}

void wait_for(const CudaQueue& queue) {
  const OnDevice here(queue.device);
  require_success(cudaStreamSynchronize(static_cast<cudaStream_t>(queue.stream)), "cudaStreamSynchronize");
}

StreamClock::~StreamClock() {
  for (void* event : events_) cudaEventDestroy(static_cast<cudaEvent_t>(event));
}
void StreamClock::mark() {
  const OnDevice here(queue_.device);
  cudaEvent_t event;
  require_success(cudaEventCreate(&event), "cudaEventCreate");
  events_.push_back(event);
  require_success(cudaEventRecord(event, static_cast<cudaStream_t>(queue_.stream)), "cudaEventRecord");
}
std::vector<double> StreamClock::laps() const {
  wait_for(queue_);
  std::vector<double> laps;
  for (size_t i = 1; i < events_.size(); ++i) {
    float ms = 0;
    const auto from = static_cast<cudaEvent_t>(events_[i - 1]), to = static_cast<cudaEvent_t>(events_[i]);
    require_success(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
    laps.push_back(ms);
  }
  return laps;
}

void order_behind(const CudaQueue& queue, void* to) {
  const OnDevice here(queue.device);
  const auto next = static_cast<cudaStream_t>(to);
  cudaStreamCaptureStatus capturing;
  require_success(cudaStreamIsCapturing(next, &capturing), "cudaStreamIsCapturing");
  if (capturing != cudaStreamCaptureStatusNone) return;
  cudaEvent_t event;
  require_success(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  const std::shared_ptr<void> kept(event, [](void* e) { cudaEventDestroy(static_cast<cudaEvent_t>(e)); });
  require_success(cudaEventRecord(event, static_cast<cudaStream_t>(queue.stream)), "cudaEventRecord");
  require_success(cudaStreamWaitEvent(next, event, 0), "cudaStreamWaitEvent");
}

std::shared_ptr<void> load_library(const void* image) {
  cudaLibrary_t library;
  require_success(cudaLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0),
                  "cudaLibraryLoadData");
  return std::shared_ptr<void>(library, [](void* l) { cudaLibraryUnload(static_cast<cudaLibrary_t>(l)); });
}
void* kernel_of(void* library, const std::string& name) {
  cudaKernel_t kernel;
  require_success(cudaLibraryGetKernel(&kernel, static_cast<cudaLibrary_t>(library), name.c_str()),
                  "cudaLibraryGetKernel");
  return kernel;
}
void read_number(void* library, const std::string& name, int64_t& number) {
  void* address = nullptr;
  size_t bytes = 0;
  require_success(cudaLibraryGetGlobal(&address, &bytes, static_cast<cudaLibrary_t>(library), name.c_str()),
                  "cudaLibraryGetGlobal");
  if (bytes != sizeof(number)) throw std::runtime_error(name + " is no number of 8 bytes");
  require_success(cudaMemcpy(&number, address, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

int resident_blocks(const void* kernel, int threads_per_block, int device) {
  const OnDevice here(device);
  int blocks = 0;
  require_success(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads_per_block, 0),
                  "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return attribute(cudaDevAttrMultiProcessorCount, device) * (blocks > 0 ? blocks : 1);
}

}  // namespace stiction
