// World on a CUDA device; without a CUDA build, what says so.
#pragma once
#include <memory>

#include "host/world/world.h"

namespace stiction {

/// Arrays lie in managed memory: one address for host and device, so that NumPy views stay valid; step() waits for the device
/// before it returns. Throws std::invalid_argument where there is no CUDA build, driver or GPU, or for what only the CPU does
/// (float64, per-environment parameters, other solvers).
std::unique_ptr<World> create_cuda_world(std::shared_ptr<const Model> model, const WorldOptions& options);
/// Memory for an array of that world, zeroed; null: the heap will do.
std::shared_ptr<void> batch_memory(const WorldOptions& options, size_t bytes);

}  // namespace stiction
