// The CUDA device as the host sees it. Functions throw std::runtime_error naming the call and what the runtime said.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

namespace stiction {

/// "" if there is a device that this build has kernels for; else what is missing and what to do.
std::string cuda_unavailable();
/// Zeroed memory that both sides reach by the same address; the host must not touch it while kernels run (synchronize).
std::shared_ptr<void> managed_memory(size_t bytes);
/// Memory that only kernels reach, zeroed.
std::shared_ptr<void> device_memory(size_t bytes);
size_t free_memory();
/// Waits for all kernels, throws if one of them failed.
void synchronize();
/// Blocks of a kernel that the device can hold at once.
int resident_blocks(const void* kernel, int threads_per_block);
void require_success(int cuda_error, const char* call);

}  // namespace stiction
