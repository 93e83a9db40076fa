// BatchEnv: a task on every environment of a World. One call per control step: actions in, observations, rewards and ends out.
//
// Owns what an episode is: counts of steps, seeds, the time limit, automatic resets, the last observation of an episode. The
// World is the caller's and must outlive it; between two calls its state may be read and written. An environment's random
// numbers depend on its own seed and its number of episodes since that seed alone. An environment that the World flags as not
// finite ends (terminated, reward 0), and is itself again after its reset; its neighbours do not notice.
// Results do not depend on the number of threads. Nothing is allocated after construction.
// Errors: std::invalid_argument for sizes, seeds, stepping an environment that has ended (kDisabled).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "envs/core/parameters.h"
#include "host/world/world.h"

namespace stiction {

/// What happens to an environment whose episode has ended; names and meaning of gymnasium.vector.AutoresetMode.
enum class AutoresetMode {
  kNextStep,  // the next call resets it and ignores its action
  kSameStep,  // it is reset at once: the observation is the next episode's first, final_* keep the last of this one
  kDisabled,  // the caller resets it before the next call
};

/// Names of a model's bodies, joints, geoms that a task asks for, by what it calls them.
using TaskNames = std::vector<std::pair<std::string, std::vector<std::string>>>;

struct BatchEnvOptions {
  AutoresetMode autoreset = AutoresetMode::kSameStep;
  int max_episode_steps = 0;                   // 0: the task's; negative: no limit
  std::vector<TaskParameter> parameters = {};  // those that are not the task's defaults
  TaskNames names = {};                        // for tasks on any robot
};

/// Where a call writes, row-major; T is the World's float or double. `reports` is (names, num_envs): a row per name.
struct EnvOutputs {
  void* observations;               // T (N, observations)
  void* rewards;                    // T (N,)                     null in reset
  uint8_t *terminated, *truncated;  // (N,)                       null in reset
  void* reports;                    // T (reports, N): report names, then reward terms; zero where not told
  int* status;                      // (N,) the World's status bits; of an episode just begun: none
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

  /// Rows that ended in the last step (kSameStep): 1, and their last observation and reports. Others' rows are stale.
  const std::vector<uint8_t>& ended() const { return ended_; }
  bool any_ended() const { return any_ended_; }
  virtual const void* final_observations() const = 0;  // T (N, observations)
  const std::vector<int>& final_status() const { return final_status_; }
  virtual const void* final_reports() const = 0;  // T (reports, N)
  /// Rows that began an episode in the last step (kNextStep, kSameStep): 1.
  const std::vector<uint8_t>& began() const { return began_; }

  /// The task's weights, ranges and switches; what is set counts from the next call on. Throws std::invalid_argument.
  virtual std::vector<TaskParameter> parameters() const = 0;
  virtual void set_parameter(const std::string& name, const std::vector<double>& values) = 0;

  /// Control steps of the present episode; may be written.
  std::vector<int>& elapsed() { return elapsed_; }

  int num_envs() const { return static_cast<int>(elapsed_.size()); }
  int observations() const { return observations_; }
  int actions() const { return actions_; }
  int reset_reports() const { return reset_reports_; }
  int substeps() const { return substeps_; }
  int max_episode_steps() const { return max_episode_steps_; }
  double action_limit() const { return action_limit_; }
  bool float64() const { return float64_; }
  const std::vector<std::string>& report_names() const { return report_names_; }

 protected:
  BatchEnv() = default;
  std::vector<uint8_t> ended_, began_;
  std::vector<int> elapsed_, final_status_;
  bool any_ended_ = false, float64_ = false;
  int observations_ = 0, actions_ = 0, reset_reports_ = 0, substeps_ = 0, max_episode_steps_ = 0;
  double action_limit_ = 0;
  std::vector<std::string> report_names_;
};

/// Tasks by name, envs/core/registry.cpp.
std::vector<std::string> task_names();
/// Throws std::invalid_argument for an unknown task, naming those there are, or a model that is not the task's.
std::unique_ptr<BatchEnv> make_batch_env(const std::string& task, World& world, const BatchEnvOptions& options);

}  // namespace stiction
