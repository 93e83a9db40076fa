// What is done where a solver's answer is not good enough.
#include "kernels/worlds.cuh"
#include "step/solve_rows.h"

namespace stiction {

__device__ __noinline__ void improve_by_team(const StepOptions<float>& options, PosedSolve<float>& posed,
                                             void* memory) {
  improve_posed<float, false>(Tile<kSolveTile>(), options, 1, [&](int) -> auto& { return posed; }, memory);
}

}  // namespace stiction
