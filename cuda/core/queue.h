// Where work of the CUDA backend is queued. Plain data, for hosts with and without CUDA.
#pragma once

namespace stiction {

/// In place of an ordinal: the device that is the calling thread's.
inline constexpr int kCurrentDevice = -1;

struct CudaQueue {
  int device = 0;          // ordinal
  void* stream = nullptr;  // cudaStream_t; null: the device's default stream
};

}  // namespace stiction
