#include <algorithm>

#include "host/backend/cuda/generic_step.cuh"

namespace stiction {

template size_t cuda_workspace_bytes<float>(int);
template void launch_step<float>(const CudaJob<float>&);
template void launch_kinematics<float>(const CudaJob<float>&);

}  // namespace stiction
