// From states to what may touch within the step, or to contacts alone: one kernel, for both are collision for the most part, which
// takes nvcc most of its time.
#include "kernels/stages.cuh"
#include "step/find_contacts.h"

namespace stiction {

__global__ void __launch_bounds__(kThreads, kBlocks) find_kernel(CudaJob job, StagePass pass) {
  const int parts = pass.finds || pass.step == 0 ? 0 : kKeepsState;
  each_world(job, pass, parts, [&](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    if (pass.finds) {
      if (pass.found.wants(worlds.rows.first))
        find_batch_contacts<TileLane>(tile, model, job.options, job.arrays, worlds.rows, pass.found, w);
      return 0;
    }
    if (pass.step == 0) begin_steps<TileLane>(tile, model, worlds, w, s);
    enter_step<TileLane>(tile, model, worlds, pass.step, job.steps, s);
    find_step<TileLane>(tile, model, worlds, w, s);
    return kKeepsState | kKeepsFound;
  });
}

#ifdef STICTION_MODEL_SHAPE
/// For who makes the slots and cannot know; and whether both mean the same by what they hand over.
extern "C" __device__ int64_t slot_lane_bytes = kLaneBytes;
extern "C" __device__ int64_t handed_over = kHandedOver;
#endif

}  // namespace stiction
