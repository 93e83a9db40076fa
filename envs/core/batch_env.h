// BatchEnv: a task on every environment of a World. One call per control step: actions in, observations, rewards and ends out.
//
// Owns what an episode is: counts of steps, seeds, the time limit, automatic resets, the last observation of an episode. The
// World is the caller's and must outlive it; between two calls its state may be read and written. An environment's random
// numbers depend on its own seed and its number of episodes since that seed alone. An environment that the World flags as not
// finite ends (terminated, reward 0), and is itself again after its reset; its neighbours do not notice.
// Results do not depend on the number of threads. Nothing is allocated after construction.
// On a World on a CUDA device a step queues its work and returns: actions and outputs must lie in its memory, as the buffers below
// do. What is given to the host waits by itself, as do reset and AutoresetMode::kDisabled.
// Errors: std::invalid_argument for sizes, seeds, stepping an environment that has ended (kDisabled).
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "envs/core/parameters.h"
#include "envs/core/signals.h"
#include "envs/core/task_rows.h"
#include "host/world/world.h"

namespace stiction {

/// Names of a model's bodies, joints, geoms that a task asks for, by what it calls them.
using TaskNames = std::vector<std::pair<std::string, std::vector<std::string>>>;

struct BatchEnvOptions {
  AutoresetMode autoreset = AutoresetMode::kSameStep;
  int max_episode_steps = 0;  // 0: the task's; negative: no limit
  TaskNames names = {};       // for tasks on any robot
};

class BatchEnv {
 public:
  virtual ~BatchEnv() = default;
  BatchEnv(const BatchEnv&) = delete;

  /// Environments with mask[i] != 0 (null: all) begin a new episode; the others' rows show their present state. `seeds`
  /// (null: none) replaces the seed of those with seeded[i] != 0 (null: all) and starts their episodes' count anew.
  virtual void reset(const uint64_t* seeds, const uint8_t* seeded, const uint8_t* mask, const EnvOutputs& out) = 0;
  /// actions: T (num_envs, actions).
  virtual void step(const void* actions, const EnvOutputs& out) = 0;
  /// The rows that began an episode in the last of these calls, again, for who has changed something since.
  virtual void show_begun(const EnvOutputs& out) = 0;

  /// Rows that ended in the last step (kSameStep: 1, and their last observation and reports; others' rows are stale).
  std::span<const uint8_t> ended() const { return rows<uint8_t>(ended_); }
  bool any_ended() const;
  const void* final_observations() const { return fetched(final_observations_); }  // T (N, observations)
  std::span<const int> final_status() const { return rows<int>(final_status_); }
  const void* final_reports() const { return fetched(final_reports_); }  // T (reports, N)
  /// Rows that began an episode in the last step (kNextStep, kSameStep) or reset: 1.
  std::span<const uint8_t> began() const { return rows<uint8_t>(began_); }

  /// The task's weights, ranges and switches; what is set counts from the next call on. Throws std::invalid_argument.
  virtual std::vector<TaskParameter> parameters() const = 0;
  virtual void set_parameter(const std::string& name, const std::vector<double>& values) = 0;

  /// What each number of an observation and of an action is, with the present parameters.
  virtual std::vector<Signal> observation_signals() const = 0;
  virtual std::vector<Signal> action_signals() const = 0;

  /// All that a later step depends on besides the World's state, by name: what the episodes are and what the task remembers. The
  /// host's views, until the next call; written rows count after send_state().
  virtual std::vector<std::pair<std::string, ArrayView>> state() = 0;
  virtual void send_state() = 0;

  /// Control steps of the present episode; may be written between calls.
  std::span<int> elapsed() { return {static_cast<int*>(world_.keep(elapsed_, true)), size_t(num_envs())}; }

  /// The batch's own memory for actions and outputs, made when first asked for: pointers of the backend.
  void* actions_buffer();  // T (N, actions)
  const EnvOutputs& outputs_buffer();
  /// Between them and the host's memory; `to` has room for what a step, or a reset, writes.
  void send_actions(const void* actions);
  void read_outputs(const EnvOutputs& to);
  /// Everything above that the backend has, by name.
  std::vector<std::pair<std::string, ArrayView>> buffers();

  World& world() const { return world_; }
  bool on_device() const { return world_.options().cuda; }
  int num_envs() const { return world_.num_envs(); }
  int observations() const { return observations_; }
  int actions() const { return actions_; }
  int reset_reports() const { return reset_reports_; }
  int substeps() const { return substeps_; }
  int max_episode_steps() const { return max_episode_steps_; }
  double action_limit() const { return action_limit_; }
  bool float64() const { return world_.options().float64; }
  const std::vector<std::string>& report_names() const { return report_names_; }

 protected:
  BatchEnv(World& world, const char* name);
  using Rows = std::shared_ptr<Memory>;
  /// Zeroed memory of the backend.
  template <class T>
  Rows memory(int64_t count) const {
    return world_.allocate(sizeof(T) * count);
  }
  template <class T>
  static T* at(const Rows& rows) {
    return static_cast<T*>(rows->data());
  }
  const void* fetched(const Rows& rows) const {
    world_.fetch({rows.get()});
    return rows->mirror();
  }
  template <class T>
  std::span<const T> rows(const Rows& rows) const {
    return {static_cast<const T*>(fetched(rows)), size_t(num_envs())};
  }
  size_t real_bytes() const { return float64() ? 8 : 4; }

  World& world_;
  std::string name_;
  Rows ended_, began_;           // uint8_t (N,)
  Rows elapsed_, final_status_;  // int (N,)
  Rows final_observations_, final_reports_;
  int observations_ = 0, actions_ = 0, reset_reports_ = 0, substeps_ = 0, max_episode_steps_ = 0;
  double action_limit_ = 0;
  std::vector<std::string> report_names_;

 private:
  Rows action_rows_, observation_rows_, reward_rows_, terminated_, truncated_, report_rows_, status_;
  EnvOutputs outputs_buffer_{};
};

/// Tasks by name, envs/registry.cpp.
std::vector<std::string> task_names();
/// Throws std::invalid_argument for an unknown task, naming those there are, or a model that is not the task's.
std::unique_ptr<BatchEnv> make_batch_env(const std::string& task, World& world, const BatchEnvOptions& options);

}  // namespace stiction
