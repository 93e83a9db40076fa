// From impulses to the certificate, the records and the next state.
#include "kernels/stages.cuh"

namespace stiction {

__global__ void __launch_bounds__(kThreads, kBlocks) judge_kernel(CudaJob job, StagePass pass) {
  each_world(job, pass, false, [&](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    judge_step<TileLane>(tile, model, worlds, w, s);
  });
}

__global__ void __launch_bounds__(kThreads, kBlocks) settle_kernel(CudaJob job, StagePass pass) {
  each_world(job, pass, false, [&](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    settle_step<TileLane>(tile, model, worlds, w, s);
  });
}

__global__ void __launch_bounds__(kThreads, kBlocks) end_kernel(CudaJob job, StagePass pass) {
  each_world(job, pass, false, [&](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    if (s.solving) recover<TileLane>(tile, model, job.options, w, s);
    if (pass.step + 1 == job.steps) end_steps<TileLane>(tile, model, worlds, job.steps, s);
  });
}

}  // namespace stiction
