#include "kernels/fused.cuh"

namespace stiction {

template __global__ void fused_step_kernel<AntShape, 4>(const ModelView<AntShape, float>* __restrict__, Options<float>,
                                                        BatchArrays<float>, int);

}  // namespace stiction
