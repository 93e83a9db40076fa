// From contacts to the contact problem.
#include "kernels/stages.cuh"

namespace stiction {

__global__ void __launch_bounds__(kThreads, kBlocks) assemble_kernel(CudaJob job, StagePass pass) {
  constexpr int kReads = kKeepsState | kKeepsFound;
  each_world(job, pass, kReads, [](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    pose_step<TileLane>(tile, model, worlds, w, s);
    const int loops = KernelShape::kLoops ? kKeepsFound : 0;  // which change the free motion
    return kKeepsPosed | kKeepsAnswer | loops;
  });
}

}  // namespace stiction
