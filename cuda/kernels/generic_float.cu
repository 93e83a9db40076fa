#include "kernels/generic_launches.cuh"

namespace stiction {

template CudaPlan plan_launches<float>(int, int64_t, int);
template void prepare_launches<float>(const CudaJob<float>&);
template void launch_step<float>(const CudaJob<float>&);
template void launch_find_contacts<float>(const CudaJob<float>&, const FoundContacts<float>&);
template void launch_kinematics<float>(const CudaJob<float>&, const uint8_t*);
template void launch_contacts<float>(const CudaJob<float>&, const ContactArrays<float>&, int, const uint8_t*);
template void launch_reset<float>(const CudaJob<float>&, const ResetRows<float>&, const uint8_t*, int);

}  // namespace stiction
