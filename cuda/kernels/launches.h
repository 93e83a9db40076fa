// The border between the host and the CUDA backend: plain data and functions, no CUDA headers.
//
// All pointers of a job, and masks, lead to memory that the device reaches (see device.h). Launches queue their work on the job's
// device and stream, and return. Errors of the runtime throw std::runtime_error naming the call.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "kernels/job.h"
#include "step/export.h"
#include "step/reset.h"
#include "step/world_memory.h"

namespace stiction {

/// The kernels of a step (kernels/worlds.cuh), and how much a lane of a slot takes of memory.
struct StepKernels {
  void (*step)(CudaJob);
  void (*find)(CudaJob, FoundContacts<float>);
  int64_t lane_bytes = 0;        // of a slot; a model's lanes have theirs on their stacks
  std::shared_ptr<void> loaded;  // what keeps them on the device; null: they are the build's
};
/// For any robot, every feature.
StepKernels shipped_kernels();
/// Those of an image (cubin), compiled for a ModelShape (kernels/worlds.cu) and linked. Throws std::runtime_error naming what the
/// runtime refuses, std::invalid_argument where the image is of other sources than the build.
StepKernels load_kernels(const std::string& image, int device);

/// For a batch of that size: as many slots as it has worlds, bounded by what the device works on at once and by a quarter of the
/// memory that is free besides the kernels' own, for a slot of the shipped kernels takes 0.5 MB; with some more to fill blocks. sizes:
/// of one world.
CudaPlan plan_launches(const StepKernels& kernels, int num_envs, const MemorySizes& sizes, int device);
/// Every kernel of a step, of no world: after it the device has loaded them and set their local memory aside.
void prepare_launches(const StepKernels& kernels, const CudaJob& job);
/// job.steps steps of all worlds: a launch for as many as there are slots.
void launch_step(const StepKernels& kernels, const CudaJob& job);
/// The same, and the milliseconds that it took on the device, by stage in the parts of the cycles that its warps spent there. Waits.
std::vector<std::pair<std::string, double>> time_step(const StepKernels& kernels, const CudaJob& job);
/// The contacts of the present states of worlds with found.mask[i] != 0 (null: all).
void launch_find_contacts(const StepKernels& kernels, const CudaJob& job, const FoundContacts<float>& found);
/// Poses and velocities of bodies and sites of worlds with mask[i] != 0 (null: all), one thread per world.
void launch_kinematics(const CudaJob& job, const uint8_t* mask);
/// Contacts of worlds with mask[i] != 0 (null: all) from the records, one thread per world.
void launch_contacts(const CudaJob& job, const ContactArrays<float>& out, int max_contacts, const uint8_t* mask);
/// What a reset writes of worlds with mask[i] != 0 (null: all), one thread per world.
void launch_reset(const CudaJob& job, const ResetRows<float>& rows, const uint8_t* mask, int keyframe);

}  // namespace stiction
