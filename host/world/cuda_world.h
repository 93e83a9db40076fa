// World on a CUDA device; without a CUDA build, what says so.
#pragma once
#include <memory>

#include "host/world/world.h"

namespace stiction {

/// Arrays lie in the device's memory, work is queued on one stream; see World for what the host sees. Throws std::invalid_argument where there is no CUDA build, driver or GPU, or for what only the CPU
/// does (float64, other solvers). Throws OutOfMemory (a std::bad_alloc), before it allocates anything, where the device has less free
/// memory than arrays, workspaces and the local memory of the kernels take.
std::unique_ptr<World> create_cuda_world(std::shared_ptr<const Model> model, const WorldOptions& options);
/// 90 for compute capability 9.0. Throws as create_cuda_world().
int cuda_architecture(int device);

}  // namespace stiction
