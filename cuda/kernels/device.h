// The CUDA devices as the host sees them. Functions throw std::runtime_error naming the call and what the runtime said, and
// OutOfMemory where that is the reason; the device and what others have on it stay usable after that.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/queue.h"

namespace stiction {

class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(const std::string& text) : text_(std::make_shared<std::string>(text)) {}
  const char* what() const noexcept override { return text_->c_str(); }

 private:
  std::shared_ptr<const std::string> text_;  // copied without throwing
};

/// The calling thread's device for this object's lifetime; then what it was before.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;

 private:
  int before_ = 0, device_;
};

/// "" if `device` (an ordinal, or kCurrentDevice) is one that this build has kernels for; else what is missing and what to do.
std::string cuda_unavailable(int device);
/// The calling thread's device.
int current_device();
/// 90 for compute capability 9.0. kCurrentDevice: of that one.
int architecture_of(int device);
/// Memory of the host that copies to and from a device run beside it from and to, zeroed.
std::shared_ptr<void> pinned_memory(size_t bytes, int device);
/// Queued copies between a device's memory and pinned memory, which must not be touched until they are done (wait_for).
void copy_to_host(void* to, const void* from, size_t bytes, const CudaQueue& queue);
void copy_to_device(void* to, const void* from, size_t bytes, const CudaQueue& queue);
/// Memory of a device that only kernels and copies reach, zeroed.
std::shared_ptr<void> device_memory(size_t bytes, int device);
size_t free_memory(int device);
/// What a kernel makes the driver set aside for its lanes' stacks and spills when it first runs, for as many as the device holds:
/// beyond what note_local_memory() has told of, for kernels share it.
size_t local_memory(const void* kernel, int device);
void note_local_memory(size_t more, int device);
/// What a multiprocessor has of memory next to it is a cache of what a kernel's lanes have on their stacks.
void prefer_cache(const void* kernel, int device);
/// Waits for what is queued, throws if some of it failed. Other streams go on.
void wait_for(const CudaQueue& queue);
/// What is put into the stream `to` from now on runs after what is in `queue`; not if `to` is being captured, for a graph has no past.
void order_behind(const CudaQueue& queue, void* to);
/// Moments of a stream.
class StreamClock {
 public:
  explicit StreamClock(const CudaQueue& queue) : queue_(queue) {}
  ~StreamClock();
  StreamClock(const StreamClock&) = delete;
  /// A moment: when what is queued is done.
  void mark();
  /// Between each and the next, ms. Waits for the last.
  std::vector<double> laps() const;

 private:
  CudaQueue queue_;
  std::vector<void*> events_;
};
/// An image of kernels (cubin) on the calling thread's device, for as long as it is held; a kernel of it; a number of it.
std::shared_ptr<void> load_library(const void* image);
void* kernel_of(void* library, const std::string& name);
void read_number(void* library, const std::string& name, int64_t& number);
/// Blocks of a kernel that the device can hold at once.
int resident_blocks(const void* kernel, int threads_per_block, int device);
void require_success(int cuda_error, const char* call);

}  // namespace stiction
