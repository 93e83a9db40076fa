// The border between the host and the CUDA backend: plain data and functions, no CUDA headers.
//
// All pointers of a job lead to memory that the device reaches (see device.h); jobs run on the default stream, in order.
// Errors of the runtime throw std::runtime_error naming the call.
#pragma once
#include <cstddef>

#include "core/options.h"
#include "host/step/batch.h"
#include "host/step/outputs.h"

namespace stiction {

/// Sizes of the generic kernels' launches. Results do not depend on them: a tile walks over as many worlds as are left.
struct CudaPlan {
  int step_blocks = 0, kinematics_blocks = 0;
  size_t workspace_bytes = 0;
};

template <class T>
struct CudaJob {
  const ModelView<Capacity, T>* model;
  Options<T> options;
  BatchArrays<T> arrays;
  KinematicArrays<T> outputs;
  int steps;
  CudaPlan plan;
  void* workspace;  // plan.workspace_bytes of device memory
};

/// Lanes of the generic kernel that share one world.
inline constexpr int kGenericTile = 4;

/// For a batch of that size: as many blocks as it needs, bounded by what the device holds at once and by a quarter of its free
/// memory, for a lane of the generic kernel has a workspace of 0.2 MB.
template <class T> CudaPlan plan_launches(int num_envs);
/// `steps` steps of all worlds: one tile per world, the Capacity shape, every feature.
template <class T> void launch_step(const CudaJob<T>& job);
/// Poses and velocities of bodies and sites, one thread per world.
template <class T> void launch_kinematics(const CudaJob<T>& job);

}  // namespace stiction
