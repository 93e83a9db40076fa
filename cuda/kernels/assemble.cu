// From contacts to the contact problem.
#include "kernels/stages.cuh"

namespace stiction {

__global__ void __launch_bounds__(kThreads, kBlocks) assemble_kernel(CudaJob job, StagePass pass) {
  each_world(job, pass, false, [](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    pose_step<TileLane>(tile, model, worlds, w, s);
  });
}

}  // namespace stiction
