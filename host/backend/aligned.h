// Zeroed memory for packs.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace stiction {

struct AlignedDelete {
  void operator()(void* p) const { ::operator delete(p, std::align_val_t(64)); }
};
using Aligned = std::unique_ptr<void, AlignedDelete>;

/// 64-byte aligned. Throws std::bad_alloc.
inline Aligned aligned(size_t bytes) {
  void* p = ::operator new(bytes, std::align_val_t(64));
  std::memset(p, 0, bytes);
  return Aligned(p);
}

}  // namespace stiction
