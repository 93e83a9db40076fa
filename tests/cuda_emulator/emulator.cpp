#include <cuda_runtime.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>

#include "block.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

struct EmulatedStream { int device; };
using Moment = std::chrono::steady_clock::time_point;
/// Default-made, a moment that has not come.
struct EmulatedEvent { std::shared_ptr<Moment> come; };

namespace cuda_emulator {
namespace {

constexpr int kProcessors = 2, kBlocksPerProcessor = 1;  // few, so that a batch takes several launches
constexpr size_t kAlignment = 64;
constexpr size_t kDeviceBytes = size_t{4} << 30;
constexpr size_t kLocalBytes = 256;  // of a lane, as the runtime would tell
constexpr int kDevices = 2;

// ---- the device ---------------------------------------------------------------------------------------------------------

/// Pages, of which the last `size` bytes are in use, and behind them one that nobody may touch.
struct Allocation {
  char* pages;
  size_t bytes, size;
  bool pinned;
  int device;

  void set_access(int access) const { mprotect(pages, bytes, access); }
};
/// What a stream was given: a kernel (`lane`), a copy, the record of an event or the wait for one.
struct Work {
  int device;
  EmulatedStream* stream;
  dim3 grid = {}, block = {};
  std::function<void()> lane = nullptr;
  std::shared_ptr<Moment> records = nullptr, awaits = nullptr;  // when the event comes
  std::function<void()> copy = nullptr;
  char* pinned = nullptr;  // the allocation on the host's side of a copy
};

bool eager() {
  const char* mode = std::getenv("STICTION_EMULATOR");
  return mode != nullptr && std::strcmp(mode, "eager") == 0;
}

struct Device {
  Block block;
  std::map<char*, Allocation> memory;
  std::deque<Work> pending;
  int current = 0;
  cudaError_t last = cudaSuccess, failed = cudaSuccess;  // the last call's; a kernel's, which stays
  std::mt19937 random;
  size_t used[kDevices] = {};
  long waits = 0, copied = 0;  // copied: bytes
  struct sigaction previous;

  Device() {
    const char* seed = std::getenv("STICTION_EMULATOR_SEED");
    random.seed(seed ? std::strtoul(seed, nullptr, 10) : 1);
    struct sigaction action = {};
    action.sa_sigaction = &Device::fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &previous);
  }

  /// Names a touch of closed memory, then leaves it to whoever handled faults before.
  static void fault(int, siginfo_t* info, void*);

  /// Memory of the device, and pinned memory that a copy is about to touch; not while the host stands in for the device.
  void close() {
    if (eager()) return open();
    for (auto& [address, a] : memory)
      if (!a.pinned) a.set_access(PROT_NONE);
    for (const Work& work : pending)
      if (work.pinned != nullptr) memory.at(work.pinned).set_access(PROT_NONE);
  }
  void open() {
    for (auto& [address, a] : memory) a.set_access(PROT_READ | PROT_WRITE);
  }

  /// The allocation of that kind that those bytes are of; null: none.
  char* holder(const void* address, size_t bytes, bool pinned) {
    const auto next = memory.upper_bound(static_cast<char*>(const_cast<void*>(address)));
    if (next == memory.begin()) return nullptr;
    const auto& [start, a] = *std::prev(next);
    return a.pinned == pinned && static_cast<const char*>(address) + bytes <= start + a.size ? start : nullptr;
  }
  cudaError_t set(cudaError_t error) {
    if (error != cudaSuccess) last = error;
    return error;
  }
  /// Of one stream, and of others what it waits for; null: of all.
  void run_pending(const Work* of = nullptr) {
    auto wanted = [&](const Work& w) { return of == nullptr || (w.device == of->device && w.stream == of->stream); };
    if (pending.empty()) return;
    open();
    while (std::any_of(pending.begin(), pending.end(), wanted)) {
      auto next = std::find_if(pending.begin(), pending.end(), [&](Work& w) { return wanted(w) && ready(w); });
      if (next == pending.end()) next = std::find_if(pending.begin(), pending.end(), [&](Work& w) { return ready(w); });
      const Work work = std::move(*next);
      pending.erase(next);
      if (work.records != nullptr) *work.records = std::chrono::steady_clock::now();
      if (work.copy != nullptr) open(), work.copy();
      if (work.lane != nullptr && failed == cudaSuccess) run(work);
    }
    close();
  }
  /// The first of its stream, and no event is missing.
  bool ready(const Work& work) const {
    for (const Work& other : pending) {
      if (&other == &work) break;
      if (other.device == work.device && other.stream == work.stream) return false;
    }
    return work.awaits == nullptr || *work.awaits != Moment();
  }
  bool is_of_current(const EmulatedStream* stream) const { return stream == nullptr || stream->device == current; }
  void run(const Work& launch) {
    for (auto& [address, a] : memory)
      if (used[1] != 0 && !a.pinned) a.set_access(a.device == launch.device ? PROT_READ | PROT_WRITE : PROT_NONE);
    std::vector<unsigned> order(launch.grid.x);
    for (unsigned i = 0; i < launch.grid.x; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    gridDim = launch.grid, blockDim = launch.block;
    for (unsigned b : order) {
      blockIdx = dim3(b);
      if (block.run(launch.lane, static_cast<int>(launch.block.x), random)) continue;
      std::fprintf(stderr, "emulated CUDA device: block %u: %s\n", b, block.error().c_str());
      failed = cudaErrorLaunchFailure;
      break;
    }
  }
  cudaError_t allocate(void** to, size_t bytes, bool pinned) {
    if (to == nullptr) return set(cudaErrorInvalidValue);
    run_pending();
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    auto rounded = [](size_t n, size_t to) { return (n + to - 1) / to * to; };
    const size_t size = rounded(std::max<size_t>(bytes, 1), kAlignment), all = rounded(size, page);
    if (!pinned && used[current] + all > kDeviceBytes) return set(cudaErrorMemoryAllocation);
    void* p = mmap(nullptr, all + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return set(cudaErrorMemoryAllocation);
    std::memset(p, 0xff, all);
    const Allocation made{static_cast<char*>(p), all, size, pinned, current};
    mprotect(made.pages + all, page, PROT_NONE);
    if (!pinned && !eager()) made.set_access(PROT_NONE);
    p = made.pages + all - size;
    memory[static_cast<char*>(p)] = made;
    if (!pinned) used[current] += all;
    *to = p;
    return cudaSuccess;
  }
};

Device& device() {
  static Device* the = new Device;  // never destroyed: arrays of Python may outlive everything
  return *the;
}

void Device::fault(int, siginfo_t* info, void*) {
  Device& d = device();
  const char* address = static_cast<const char*>(info->si_addr);
  for (const auto& [start, a] : d.memory) {
    const char* text = nullptr;
    if (address >= a.pages + a.bytes && address < a.pages + a.bytes + sysconf(_SC_PAGESIZE))
      text = "emulated CUDA device: a touch beyond the end of an allocation\n";
    else if (address >= a.pages && address < a.pages + a.bytes)
      text = a.pinned ? "emulated CUDA device: the host touches pinned memory before a copy is done\n"
                      : "emulated CUDA device: a touch of device memory by the host or by the other device\n";
    if (text != nullptr) [[maybe_unused]]
      const auto written = write(2, text, std::strlen(text));
  }
  sigaction(SIGSEGV, &d.previous, nullptr);  // the instruction is tried again, and faults there
}

}  // namespace

uint64_t meet(Collective kind, unsigned mask, uint64_t bits, int from) {
  return device().block.meet(kind, mask, bits, from);
}
namespace {
void expect(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "emulated CUDA device: what lies in %s, by a kernel's word, does not\n", what);
  std::abort();
}
}  // namespace
void expect_in_memory(const void* address) { expect(device().holder(address, 1, false) != nullptr, "its memory"); }
void expect_on_stack(const void* address) { expect(device().block.on_stack(address), "a lane's stack"); }
int lane_of_warp() { return device().block.current() % kWarp; }

Counts counts() {
  const auto& pending = device().pending;
  const auto launches = std::count_if(pending.begin(), pending.end(), [](const Work& w) { return w.lane != nullptr; });
  return {static_cast<size_t>(launches), device().waits};
}

cudaError_t launch(const cudaLaunchConfig_t& config, std::function<void()> lane) {
  Device& d = device();
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  if (grid.x == 0 || block.x == 0 || block.x > kMaxThreads || grid.y * grid.z * block.y * block.z != 1 ||
      config.dynamicSmemBytes != 0 || config.numAttrs != 0)
    return d.set(cudaErrorInvalidConfiguration);
  if (!d.is_of_current(config.stream)) return d.set(cudaErrorInvalidResourceHandle);
  d.pending.push_back({d.current, config.stream, grid, block, std::move(lane)});
  if (eager()) d.run_pending();
  else d.close();
  return d.set(d.failed);
}

}  // namespace cuda_emulator

using cuda_emulator::device;

cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = cuda_emulator::kDevices, cudaSuccess; }
cudaError_t cudaGetDevice(int* number) { return *number = device().current, cudaSuccess; }
cudaError_t cudaSetDevice(int number) {
  if (number < 0 || number >= cuda_emulator::kDevices) return device().set(cudaErrorInvalidDevice);
  return device().current = number, cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulated", 9, 0};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrMultiProcessorCount ? cuda_emulator::kProcessors : cuda_emulator::kMaxThreads;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {cuda_emulator::kMaxThreads, cuda_emulator::kLocalBytes};
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  return *blocks = cuda_emulator::kBlocksPerProcessor, cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = cuda_emulator::kDeviceBytes, *free = *total - device().used[device().current];
  return cudaSuccess;
}
// An image is the path of a shared object, and a library what dlopen makes of it.
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* image, void*, void*, unsigned, void*, void*,
                                unsigned) {
  Dl_info own;  // what it takes from here must be found
  if (dladdr(&threadIdx, &own) != 0) dlopen(own.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  void* found = dlopen(static_cast<const char*>(image), RTLD_NOW | RTLD_LOCAL);
  if (found == nullptr) {
    std::fprintf(stderr, "emulated CUDA device: %s\n", dlerror());
    return device().set(cudaErrorInvalidKernelImage);
  }
  return *library = static_cast<cudaLibrary_t>(found), cudaSuccess;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  *kernel = reinterpret_cast<cudaKernel_t>(dlsym(library, name));
  return *kernel == nullptr ? device().set(cudaErrorSymbolNotFound) : cudaSuccess;
}
cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  *address = dlsym(library, name), *bytes = sizeof(int64_t);
  return *address == nullptr ? device().set(cudaErrorSymbolNotFound) : cudaSuccess;
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  device().run_pending();
  dlclose(library);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  device().run_pending();
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) { return device().allocate(memory, bytes, false); }
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return device().allocate(memory, bytes, true); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  auto& d = device();
  if (!d.is_of_current(stream)) return d.set(cudaErrorInvalidResourceHandle);
  const void* on_device = kind == cudaMemcpyHostToDevice ? to : from;
  const void* on_host = kind == cudaMemcpyHostToDevice ? from : to;
  cuda_emulator::Work work{d.current, stream};
  work.pinned = d.holder(on_host, bytes, true);
  if (work.pinned == nullptr || d.holder(on_device, bytes, false) == nullptr) return d.set(cudaErrorInvalidValue);
  work.copy = [=] { std::memcpy(to, from, bytes); };
  d.copied += static_cast<long>(bytes);
  d.pending.push_back(std::move(work));
  if (cuda_emulator::eager()) d.run_pending();
  else d.close();
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  auto& d = device();
  d.run_pending();
  const auto found = d.memory.find(static_cast<char*>(memory));
  if (found == d.memory.end()) return d.set(cudaErrorInvalidValue);
  munmap(found->second.pages, found->second.bytes + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  if (!found->second.pinned) d.used[found->second.device] -= found->second.bytes;
  d.memory.erase(found);
  return d.set(d.failed);
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  auto& d = device();
  d.run_pending();
  const auto found = d.memory.find(static_cast<char*>(memory));
  if (found == d.memory.end() || bytes > found->second.size) return d.set(cudaErrorInvalidValue);
  found->second.set_access(PROT_READ | PROT_WRITE);
  std::memset(memory, value, bytes);
  if (!found->second.pinned && !cuda_emulator::eager()) found->second.set_access(PROT_NONE);
  return d.set(d.failed);
}
cudaError_t cudaDeviceSynchronize() {
  ++device().waits;
  device().run_pending();
  return device().set(device().failed);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return *stream = new EmulatedStream{device().current}, cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  device().run_pending();
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  auto& d = device();
  if (!d.is_of_current(stream)) return d.set(cudaErrorInvalidResourceHandle);
  ++d.waits;
  const cuda_emulator::Work of{d.current, stream};
  d.run_pending(&of);
  return d.set(d.failed);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return *event = new EmulatedEvent{std::make_shared<Moment>(std::chrono::steady_clock::now())}, cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  auto& d = device();
  if (*from->come == Moment() || *to->come == Moment()) return d.set(cudaErrorInvalidResourceHandle);
  *ms = std::chrono::duration<float, std::milli>(*to->come - *from->come).count();
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto& d = device();
  if (!d.is_of_current(stream)) return d.set(cudaErrorInvalidResourceHandle);
  event->come = std::make_shared<Moment>();
  cuda_emulator::Work work{d.current, stream};
  work.records = event->come;
  d.pending.push_back(std::move(work));
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  auto& d = device();
  cuda_emulator::Work work{stream == nullptr ? d.current : stream->device, stream};
  work.awaits = event->come;
  d.pending.push_back(std::move(work));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  auto& d = device();
  const cudaError_t error = d.failed != cudaSuccess ? d.failed : d.last;
  d.last = cudaSuccess;
  return error;
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorInvalidKernelImage: return "cudaErrorInvalidKernelImage";
    case cudaErrorSymbolNotFound: return "cudaErrorSymbolNotFound";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
  }
  return "unknown";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorLaunchFailure ? "a kernel of the emulated device failed; its report is on stderr"
                                         : "refused by the emulated device";
}

extern "C" __attribute__((visibility("default"))) long cuda_emulator_pending() {
  return static_cast<long>(cuda_emulator::counts().pending);
}
extern "C" __attribute__((visibility("default"))) long cuda_emulator_waits() { return cuda_emulator::counts().waits; }
extern "C" __attribute__((visibility("default"))) long cuda_emulator_used() {
  return static_cast<long>(device().used[device().current]);
}
/// From now on the host stands in for work on the device, see STICTION_EMULATOR.
extern "C" __attribute__((visibility("default"))) void cuda_emulator_be_eager() {
  setenv("STICTION_EMULATOR", "eager", 1);
  device().run_pending();
  device().open();
}
extern "C" __attribute__((visibility("default"))) long cuda_emulator_copied() { return device().copied; }
extern "C" __attribute__((visibility("default"))) void* cuda_emulator_stream(int number) {
  const int before = device().current;
  cudaStream_t stream = nullptr;
  cudaSetDevice(number), cudaStreamCreate(&stream), cudaSetDevice(before);
  return stream;
}
