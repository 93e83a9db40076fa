// World on a CUDA device; without a CUDA build, what says so.
#pragma once
#include <memory>

#include "host/world/world.h"

namespace stiction {

/// Arrays lie in managed memory: one address for host and device, so that NumPy views stay valid. Work is queued on one stream; the
/// host reads after wait(). Throws std::invalid_argument where there is no CUDA build, driver or GPU, or for what only the CPU
/// does (float64, other solvers). Throws OutOfMemory (a std::bad_alloc), before it allocates anything, where the device has less free
/// memory than arrays, workspaces and the local memory of the kernels take.
std::unique_ptr<World> create_cuda_world(std::shared_ptr<const Model> model, const WorldOptions& options);
/// Memory for such a world, zeroed, that host and device reach by the same address; null without a CUDA build.
std::shared_ptr<void> device_reachable_memory(size_t bytes, int device);

}  // namespace stiction
