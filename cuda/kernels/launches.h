// The border between the host and the CUDA backend: plain data and functions, no CUDA headers.
//
// All pointers of a job, and masks, lead to memory that the device reaches (see device.h). Launches queue their work on the job's
// device and stream, and return. Errors of the runtime throw std::runtime_error naming the call.
#pragma once
#include <cstddef>

#include "core/queue.h"
#include "step/export.h"
#include "step/reset.h"
#include "step/step_job.h"

namespace stiction {

/// Sizes of the generic kernels' launches. Results do not depend on them: a tile walks over as many worlds as are left.
struct CudaPlan {
  int step_blocks = 0, find_blocks = 0, kinematics_blocks = 0;
  int step_tiles = 0;  // that step at once
  size_t workspace_bytes = 0;
  int64_t tile_bytes = 0;  // WorldMemory of one of them
  size_t local_bytes = 0;  // that the driver sets aside at the first launch, see local_memory()
};

template <class T>
struct CudaJob : StepJob<T> {
  CudaPlan plan;
  void* workspace;      // plan.workspace_bytes of device memory
  void* solver_memory;  // WorldMemory of plan.step_tiles tiles, likewise
  ParameterTables<Capacity, T>*
      own_models;  // (plan.step_tiles), where parameters differ between environments; else null
  CudaQueue queue;
};

/// Lanes of the generic kernel that share one world.
inline constexpr int kGenericTile = 4;

/// For a batch of that size: as many blocks as it needs, bounded by what the device holds at once and by a quarter of the memory
/// that is free besides the kernels' own, for a lane of the generic kernel has a workspace of 0.2 MB. tile_bytes: WorldMemory of
/// one tile.
template <class T> CudaPlan plan_launches(int num_envs, int64_t tile_bytes, int device);
/// All that a lane has a workspace for, of no world: after it the device has loaded the kernels and set their local memory aside.
template <class T> void prepare_launches(const CudaJob<T>& job);
/// `steps` steps of all worlds: one tile per world, the Capacity shape, every feature.
template <class T> void launch_step(const CudaJob<T>& job);
/// The contacts of the present states of worlds with found.mask[i] != 0 (null: all), one tile per world.
template <class T> void launch_find_contacts(const CudaJob<T>& job, const FoundContacts<T>& found);
/// Poses and velocities of bodies and sites of worlds with mask[i] != 0 (null: all), one thread per world.
template <class T> void launch_kinematics(const CudaJob<T>& job, const uint8_t* mask);
/// Contacts of worlds with mask[i] != 0 (null: all) from the records, one thread per world.
template <class T>
void launch_contacts(const CudaJob<T>& job, const ContactArrays<T>& out, int max_contacts, const uint8_t* mask);
/// What a reset writes of worlds with mask[i] != 0 (null: all), one thread per world.
template <class T>
void launch_reset(const CudaJob<T>& job, const ResetRows<T>& rows, const uint8_t* mask, int keyframe);

}  // namespace stiction
