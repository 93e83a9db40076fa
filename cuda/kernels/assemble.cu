// From contacts to the contact problem.
#include "kernels/stages.cuh"

namespace stiction {
namespace {

__global__ void __launch_bounds__(kThreads, kBlocks) assemble_kernel(const CudaJob job, const StagePass pass) {
  each_world(job, pass, false, [](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    pose_step<TileLane>(tile, model, worlds, w, s);
  });
}

}  // namespace

Stage assemble_stage() { return stage_of<assemble_kernel, kTreeTile>(); }

}  // namespace stiction
