// From impulses to the certificate, the records and the next state.
#include "kernels/stages.cuh"

namespace stiction {

inline constexpr int kAllParts = kKeepsState | kKeepsFound | kKeepsPosed | kKeepsAnswer;

/// What a settled step leaves.
__device__ inline int left_by_settling(const PosedSolve<float>& s) {
  return s.solving ? kKeepsState | kKeepsPosed | kKeepsAnswer : int{kKeepsState};
}

/// Settles at once what need not be improved: all that is here would have to be fetched again.
__global__ void __launch_bounds__(kThreads, kBlocks) judge_kernel(CudaJob job, StagePass pass) {
  each_world(job, pass, kAllParts, [&](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    judge_step<TileLane>(tile, model, worlds, w, s);
    if (s.flagged) return kKeepsState | kKeepsAnswer;
    settle_step<TileLane>(tile, model, worlds, w, s);
    return left_by_settling(s);
  });
}

/// What was flagged.
__global__ void __launch_bounds__(kThreads, kBlocks) settle_kernel(CudaJob job, StagePass pass) {
  const int number = tile_of_grid<kTreeTile>();
  if (number >= pass.count || !posed_in(job, pass.slot + number).flagged) return;
  each_world(job, pass, kAllParts, [&](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    settle_step<TileLane>(tile, model, worlds, w, s);
    return left_by_settling(s);
  });
}

__global__ void __launch_bounds__(kThreads, kBlocks) end_kernel(CudaJob job, StagePass pass) {
  const bool last = pass.step + 1 == job.steps;
  const int number = tile_of_grid<kTreeTile>();
  const bool deep = number < pass.count && posed_in(job, pass.slot + number).solving;
  if (!last && !deep) return;
  const int parts = deep ? kAllParts : kKeepsState;
  each_world(job, pass, parts, [&](const auto& tile, const auto& model, const auto& worlds, auto& w, auto& s) {
    if (deep) recover<TileLane>(tile, model, job.options, w, s);
    if (last) end_steps<TileLane>(tile, model, worlds, job.steps, s);
    return last ? 0 : int{kKeepsState};
  });
}

}  // namespace stiction
