// Memory of a World: where its backend computes, and what the host sees of it.
#pragma once
#include <cstddef>
#include <memory>

#include "core/queue.h"

namespace stiction {

/// Zeroed bytes, 64-byte aligned. On the CPU backend and host share them. On a CUDA device kernels have memory of the device, and the
/// host a mirror of it in pinned memory, made when it first asks; copies between the two are queued like kernels.
class Memory {
 public:
  explicit Memory(size_t bytes);     // on the CPU
  Memory(size_t bytes, int device);  // on a CUDA device; throws OutOfMemory
  Memory(const Memory&) = delete;

  size_t bytes() const { return bytes_; }
  bool on_device() const { return device_ >= 0; }
  /// The backend's address.
  void* data() const { return data_.get(); }
  /// The host's. Of a device: what the last download brought, or what the next upload takes.
  void* mirror();
  void download(const CudaQueue& queue);
  void upload(const CudaQueue& queue);

 private:
  size_t bytes_;
  int device_ = -1;
  std::shared_ptr<void> data_, mirror_;
};

}  // namespace stiction
