#include "host/world/memory.h"

#include <cstring>
#include <new>
#include <stdexcept>

#if STICTION_WITH_CUDA
#include "kernels/device.h"
#endif

namespace stiction {

Memory::Memory(size_t bytes) : bytes_(bytes) {
  constexpr std::align_val_t kLine{64};
  data_ = std::shared_ptr<void>(::operator new(bytes ? bytes : 1, kLine),
                                [](void* p) { ::operator delete(p, std::align_val_t{64}); });
  std::memset(data_.get(), 0, bytes);
}

#if STICTION_WITH_CUDA

Memory::Memory(size_t bytes, int device) : bytes_(bytes), device_(device), data_(device_memory(bytes, device)) {}

void* Memory::mirror() {
  if (!on_device()) return data_.get();
  if (mirror_ == nullptr) mirror_ = pinned_memory(bytes_, device_);
  return mirror_.get();
}
void Memory::download(const CudaQueue& queue) {
  if (on_device()) copy_to_host(mirror(), data_.get(), bytes_, queue);
}
void Memory::upload(const CudaQueue& queue) {
  if (on_device()) copy_to_device(data_.get(), mirror(), bytes_, queue);
}

#else

Memory::Memory(size_t, int) : bytes_(0) { throw std::logic_error("device memory in a build without CUDA"); }
void* Memory::mirror() { return data_.get(); }
void Memory::download(const CudaQueue&) {}
void Memory::upload(const CudaQueue&) {}

#endif

}  // namespace stiction
