// The stages of every task's rows on a CUDA device, one thread per environment.
#include "envs/ant/ant_task.h"
#include "envs/arm/arm_lift_task.h"
#include "envs/arm/arm_stack_task.h"
#include "envs/cartpole/cartpole_task.h"
#include "envs/core/task_rows.h"
#include "envs/half_cheetah/half_cheetah_task.h"
#include "envs/hand/hand_reorient_task.h"
#include "envs/hopper/hopper_task.h"
#include "envs/humanoid/humanoid_task.h"
#include "envs/template/template_task.h"
#include "envs/velocity/humanoid_velocity_task.h"
#include "envs/walker2d/walker2d_task.h"
#include "kernels/launch.cuh"

namespace stiction {

inline constexpr int kRowThreads = 64;

template <class Task>
__global__ void __launch_bounds__(kRowThreads)
    rows_kernel(const TaskRows<Task, float>* rows, RowStage stage, const RowCall<float> call, int count) {
  const int e = blockIdx.x * kRowThreads + threadIdx.x;
  if (e < count) rows->perform(stage, call, e, e);
}

template <class Task>
void launch_rows(const TaskRows<Task, float>* rows, RowStage stage, const RowCall<float>& call, int count,
                 const CudaQueue& queue) {
  const int blocks = (count + kRowThreads - 1) / kRowThreads;
  launch(rows_kernel<Task>, blocks, kRowThreads, queue, rows, stage, call, count);
}

#define STICTION_ROWS_OF(Task) \
  template void launch_rows<Task>(const TaskRows<Task, float>*, RowStage, const RowCall<float>&, int, const CudaQueue&)
STICTION_ROWS_OF(AntTask);
STICTION_ROWS_OF(ArmLiftTask);
STICTION_ROWS_OF(ArmStackTask);
STICTION_ROWS_OF(CartPoleTask<false>);
STICTION_ROWS_OF(CartPoleTask<true>);
STICTION_ROWS_OF(HalfCheetahTask);
STICTION_ROWS_OF(HandReorientTask);
STICTION_ROWS_OF(HopperTask);
STICTION_ROWS_OF(HumanoidTask);
STICTION_ROWS_OF(HumanoidVelocityTask);
STICTION_ROWS_OF(TemplateTask);
STICTION_ROWS_OF(VelocityTask);
STICTION_ROWS_OF(Walker2dTask);
#undef STICTION_ROWS_OF

}  // namespace stiction
