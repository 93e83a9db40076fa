#include "kernels/fused.cuh"

namespace stiction {

template __global__ void fused_step_kernel<QuadrupedFullShape, 4>(
    const ModelView<QuadrupedFullShape, float>* __restrict__, Options<float>, BatchArrays<float>, int);

}  // namespace stiction
