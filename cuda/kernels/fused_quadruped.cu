#include "kernels/fused.cuh"

namespace stiction {

template __global__ void fused_step_kernel<QuadrupedShape, 4>(const ModelView<QuadrupedShape, float>* __restrict__,
                                                              Options<float>, BatchArrays<float>, int);

}  // namespace stiction
