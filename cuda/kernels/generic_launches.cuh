// Launches of the generic kernels; instantiated once per number type, each in a file of its own.
#pragma once
#include <algorithm>

#include "kernels/generic.cuh"
#include "kernels/launch.cuh"

namespace stiction {
namespace {

/// Blocks for that many threads, at most as many as fit on the device and into `memory`.
template <class Kernel>
int blocks_for(Kernel kernel, int64_t threads, size_t bytes_per_thread, size_t memory, int device) {
  const int64_t needed = (threads + kGenericThreads - 1) / kGenericThreads;
  const int64_t resident = resident_blocks(reinterpret_cast<const void*>(kernel), kGenericThreads, device);
  const int64_t fitting = static_cast<int64_t>(memory / (bytes_per_thread * kGenericThreads));
  return static_cast<int>(std::max<int64_t>(1, std::min({needed, resident, fitting})));
}

template <class T>
int blocks_of_all(const CudaJob<T>& job) {
  return (job.arrays.num_envs + kGenericThreads - 1) / kGenericThreads;
}

}  // namespace

template <class T>
CudaPlan plan_launches(int num_envs, int64_t tile_bytes, int device) {
  constexpr size_t kStepBytes = sizeof(GenericWorkspace<T, kGenericTile>);
  constexpr size_t kKinematicsBytes = sizeof(OutputWorkspace<Lane<T, Capacity, Serial>>);
  CudaPlan plan;
  auto local = [device](auto* kernel) { return local_memory(reinterpret_cast<const void*>(kernel), device); };
  plan.local_bytes = std::max({local(generic_step_kernel<T, kGenericTile>),
                               local(find_contacts_kernel<T, kGenericTile>), local(kinematics_kernel<T>)});
  const size_t free = free_memory(device), memory = (free - std::min(free, plan.local_bytes)) / 4;
  plan.tile_bytes = tile_bytes;
  plan.step_blocks = blocks_for(generic_step_kernel<T, kGenericTile>, int64_t{num_envs} * kGenericTile,
                                kStepBytes + (tile_bytes + kGenericTile - 1) / kGenericTile, memory, device);
  plan.find_blocks = std::min(plan.step_blocks, blocks_for(find_contacts_kernel<T, kGenericTile>,
                                                           int64_t{num_envs} * kGenericTile, 1, memory, device));
  plan.step_tiles = plan.step_blocks * kGenericThreads / kGenericTile;
  plan.kinematics_blocks = blocks_for(kinematics_kernel<T>, num_envs, kKinematicsBytes, memory, device);
  plan.workspace_bytes =
      std::max(kStepBytes * plan.step_blocks, kKinematicsBytes * plan.kinematics_blocks) * kGenericThreads;
  return plan;
}
template <class T>
void prepare_launches(const CudaJob<T>& job) {
  CudaJob<T> idle = job;
  idle.arrays.num_envs = 0, idle.plan.step_blocks = idle.plan.find_blocks = idle.plan.kinematics_blocks = 1;
  launch_step(idle), launch_find_contacts(idle, FoundContacts<T>{}), launch_kinematics(idle, nullptr);
  note_local_memory(job.plan.local_bytes, job.queue.device);
}
template <class T>
void launch_step(const CudaJob<T>& job) {
  launch(generic_step_kernel<T, kGenericTile>, job.plan.step_blocks, kGenericThreads, job.queue, job);
}
template <class T>
void launch_find_contacts(const CudaJob<T>& job, const FoundContacts<T>& found) {
  launch(find_contacts_kernel<T, kGenericTile>, job.plan.find_blocks, kGenericThreads, job.queue, job, found);
}
template <class T>
void launch_kinematics(const CudaJob<T>& job, const uint8_t* mask) {
  launch(kinematics_kernel<T>, job.plan.kinematics_blocks, kGenericThreads, job.queue, job, mask);
}
template <class T>
void launch_contacts(const CudaJob<T>& job, const ContactArrays<T>& out, int max_contacts, const uint8_t* mask) {
  launch(contacts_kernel<T>, blocks_of_all(job), kGenericThreads, job.queue, job, out, max_contacts, mask);
}
template <class T>
void launch_reset(const CudaJob<T>& job, const ResetRows<T>& rows, const uint8_t* mask, int keyframe) {
  launch(reset_kernel<T>, blocks_of_all(job), kGenericThreads, job.queue, job, rows, mask, keyframe);
}

}  // namespace stiction
