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

template <class T>
struct CudaJob {
  const ModelView<Capacity, T>* model;
  Options<T> options;
  BatchArrays<T> arrays;
  KinematicArrays<T> outputs;
  int steps;
  void* workspace;  // cuda_workspace_bytes<T>(num_envs)
};

/// Lanes of the generic kernel that share one world.
inline constexpr int kGenericTile = 4;

/// Scratch memory of the generic kernels for a batch of that size; bounded by what the device can have resident.
template <class T> size_t cuda_workspace_bytes(int num_envs);
/// `steps` steps of all worlds: one tile per world, the Capacity shape, every feature.
template <class T> void launch_step(const CudaJob<T>& job);
/// Poses and velocities of bodies and sites, one thread per world.
template <class T> void launch_kinematics(const CudaJob<T>& job);

}  // namespace stiction
