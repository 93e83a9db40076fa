// From states to contact problems; and contacts alone.
#include "kernels/stages.cuh"
#include "step/find_contacts.h"

namespace stiction {
namespace {

__global__ void __launch_bounds__(kThreads, kBlocks) prepare_kernel(const CudaJob job, const StagePass pass) {
  each_world(job, pass, pass.step == 0, [&](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    if (pass.step == 0) begin_steps<TileLane>(tile, model, worlds, w, s);
    if (pass.step + 1 == job.steps) keep_state<TileLane>(tile, model, worlds, s);
    prepare_step<TileLane>(tile, model, worlds, w, s);
  });
}

__global__ void __launch_bounds__(kThreads, kBlocks)
    find_contacts_kernel(const CudaJob job, const StagePass pass, const FoundContacts<float> found) {
  each_world(job, pass, true, [&](const auto& tile, const auto& model, const auto& worlds, auto& w, auto&) {
    if (found.wants(worlds.rows.first))
      find_batch_contacts<TileLane>(tile, model, job.options, job.arrays, worlds.rows, found, w);
  });
}

}  // namespace

Stage prepare_stage() { return stage_of<prepare_kernel, kTreeTile>(); }
const void* find_contacts_address() { return reinterpret_cast<const void*>(find_contacts_kernel); }
void launch_find_contacts(const CudaJob& job, const FoundContacts<float>& found) {
  each_pass(job, [&](const StagePass& pass) {
    launch_lanes(find_contacts_kernel, int64_t{pass.count} * kTreeTile, job.queue, job, pass, found);
  });
}

}  // namespace stiction
