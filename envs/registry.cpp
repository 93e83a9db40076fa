// The tasks there are. A new one: its header in envs/<task>/, and a line here.
#include "envs/ant/ant_task.h"
#include "envs/arm/arm_lift_task.h"
#include "envs/arm/arm_stack_task.h"
#include "envs/cartpole/cartpole_task.h"
#include "envs/core/task_batch.h"
#include "envs/half_cheetah/half_cheetah_task.h"
#include "envs/hand/hand_reorient_task.h"
#include "envs/hopper/hopper_task.h"
#include "envs/humanoid/humanoid_task.h"
#include "envs/velocity/humanoid_velocity_task.h"
#include "envs/walker2d/walker2d_task.h"

namespace stiction {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<BatchEnv> (*make)(const char* name, World& world, const BatchEnvOptions& options);
};

/// The task, and where its robot is in the model for one that is told by names.
template <class Task>
Task bound(const char* name, const Model& model, const TaskNames& names) {
  if constexpr (requires(Task task) { task.bind(model, names); }) {
    Task task;
    task.bind(model, names);
    return task;
  }
  if (!names.empty())
    throw std::invalid_argument("task '" + std::string(name) +
                                "' is about one model and takes no names of others, got '" + names[0].first + "'");
  return Task{};
}

template <class Task>
std::unique_ptr<BatchEnv> make(const char* name, World& world, const BatchEnvOptions& options) {
  const Task task = bound<Task>(name, world.model(), options.names);
  if (world.options().float64) return std::make_unique<TaskBatch<Task, double>>(name, world, options, task);
  return std::make_unique<TaskBatch<Task, float>>(name, world, options, task);
}

constexpr Entry kTasks[] = {
    {"ant", &make<AntTask>},
    {"arm_lift", &make<ArmLiftTask>},
    {"arm_stack", &make<ArmStackTask>},
    {"cartpole_balance", &make<CartPoleTask<false>>},
    {"cartpole_swing_up", &make<CartPoleTask<true>>},
    {"half_cheetah", &make<HalfCheetahTask>},
    {"hand_reorient", &make<HandReorientTask>},
    {"hopper", &make<HopperTask>},
    {"humanoid", &make<HumanoidTask>},
    {"quadruped_velocity", &make<VelocityTask>},
    {"humanoid_velocity", &make<HumanoidVelocityTask>},
    {"walker2d", &make<Walker2dTask>},
};

}  // namespace

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const Entry& t : kTasks) names.push_back(t.name);
  return names;
}

std::unique_ptr<BatchEnv> make_batch_env(const std::string& task, World& world, const BatchEnvOptions& options) {
  std::string there;
  for (const Entry& t : kTasks) {
    if (task == t.name) return t.make(t.name, world, options);
    there += (there.empty() ? "'" : ", '") + std::string(t.name) + "'";
  }
  throw std::invalid_argument("there is no task '" + task + "'; there are: " + there);
}

}  // namespace stiction
