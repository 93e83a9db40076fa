// Launches of the generic kernels; instantiated once per number type, each in a file of its own.
#pragma once
#include "host/backend/cuda/device.h"
#include "host/backend/cuda/generic_kernel.cuh"

namespace stiction {
namespace {

/// Blocks for that many threads, at most as many as fit on the device.
template <class Kernel>
int blocks_for(Kernel kernel, int64_t threads) {
  const int64_t blocks = (threads + kGenericThreads - 1) / kGenericThreads;
  return static_cast<int>(std::min<int64_t>(blocks, resident_blocks(reinterpret_cast<const void*>(kernel), kGenericThreads)));
}
template <class T>
int step_blocks(int num_envs) {
  return blocks_for(generic_step_kernel<T, kGenericTile>, int64_t{num_envs} * kGenericTile);
}
template <class T>
int kinematics_blocks(int num_envs) {
  return blocks_for(kinematics_kernel<T>, num_envs);
}

}  // namespace

template <class T>
size_t cuda_workspace_bytes(int num_envs) {
  return std::max(sizeof(GenericWorkspace<T, kGenericTile>) * step_blocks<T>(num_envs),
                  sizeof(OutputWorkspace<Lane<T, Capacity, Serial>>) * kinematics_blocks<T>(num_envs)) * kGenericThreads;
}
template <class T>
void launch_step(const CudaJob<T>& job) {
  generic_step_kernel<T, kGenericTile><<<step_blocks<T>(job.arrays.num_envs), kGenericThreads>>>(job);
}
template <class T>
void launch_kinematics(const CudaJob<T>& job) {
  kinematics_kernel<T><<<kinematics_blocks<T>(job.arrays.num_envs), kGenericThreads>>>(job);
}

}  // namespace stiction
