#include "host/backend/cuda/generic_step.cuh"

namespace stiction {

template CudaPlan plan_launches<float>(int);
template void launch_step<float>(const CudaJob<float>&);
template void launch_kinematics<float>(const CudaJob<float>&);

}  // namespace stiction
