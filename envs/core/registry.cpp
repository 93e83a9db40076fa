// The tasks there are. A new one: its header in envs/<task>/, and a line here.
#include "envs/ant/ant_task.h"
#include "envs/core/task_batch.h"

namespace stiction {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<BatchEnv> (*make)(const char* name, World& world, const BatchEnvOptions& options);
};

template <class Task>
std::unique_ptr<BatchEnv> make(const char* name, World& world, const BatchEnvOptions& options) {
  if (world.options().float64) return std::make_unique<TaskBatch<Task, double>>(name, world, options);
  return std::make_unique<TaskBatch<Task, float>>(name, world, options);
}

constexpr Entry kTasks[] = {
    {"ant", &make<AntTask>},
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
