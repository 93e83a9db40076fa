// The border between the host and the CUDA backend: plain data and functions, no CUDA headers.
//
// All pointers of a job, and masks, lead to memory that the device reaches (see device.h). Launches queue their work on the job's
// device and stream, and return. Errors of the runtime throw std::runtime_error naming the call.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/queue.h"
#include "step/export.h"
#include "step/reset.h"
#include "step/step_job.h"

namespace stiction {

/// Sizes of the launches. Results do not depend on them: worlds pass through the slots, as many at a time as there are.
struct CudaPlan {
  int slots = 0;  // worlds that step at once
  int kinematics_blocks = 0;
  size_t slot_bytes = 0;    // of all slots
  int64_t world_bytes = 0;  // WorldMemory of one of them
  size_t local_bytes = 0;   // that the driver sets aside at the first launch, see local_memory()
};

struct CudaJob : StepJob<float, TileCapacity> {
  CudaPlan plan;
  void* slots;          // plan.slot_bytes of device memory
  void* solver_memory;  // WorldMemory of plan.slots worlds, likewise
  ParameterTables<TileCapacity, float>*
      own_models;  // (plan.slots), where parameters differ between environments; else null
  CudaQueue queue;
};

/// For a batch of that size: as many slots as it has worlds, bounded by what the device works on at once and by a quarter of the
/// memory that is free besides the kernels' own, for a slot takes 0.5 MB. world_bytes: WorldMemory of one world.
CudaPlan plan_launches(int num_envs, int64_t world_bytes, int device);
/// Every kernel of a step, of no world: after it the device has loaded them and set their local memory aside.
void prepare_launches(const CudaJob& job);
/// `steps` steps of all worlds: any robot, every feature. Eight launches a step.
void launch_step(const CudaJob& job);
/// The same, and the milliseconds that each of its launches took on the device, by name, over all steps. Waits.
std::vector<std::pair<std::string, double>> time_step(const CudaJob& job);
/// The contacts of the present states of worlds with found.mask[i] != 0 (null: all).
void launch_find_contacts(const CudaJob& job, const FoundContacts<float>& found);
/// Poses and velocities of bodies and sites of worlds with mask[i] != 0 (null: all), one thread per world.
void launch_kinematics(const CudaJob& job, const uint8_t* mask);
/// Contacts of worlds with mask[i] != 0 (null: all) from the records, one thread per world.
void launch_contacts(const CudaJob& job, const ContactArrays<float>& out, int max_contacts, const uint8_t* mask);
/// What a reset writes of worlds with mask[i] != 0 (null: all), one thread per world.
void launch_reset(const CudaJob& job, const ResetRows<float>& rows, const uint8_t* mask, int keyframe);

}  // namespace stiction
