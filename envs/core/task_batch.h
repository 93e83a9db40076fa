// TaskBatch: BatchEnv of one task: its memory, and the stages of TaskRows over all environments, on threads of the host or on the
// World's CUDA device. There nothing waits for the device: work is queued, and who reads the results waits (BatchEnv).
#pragma once
#include <algorithm>
#include <random>
#include <stdexcept>

#include "envs/core/batch_env.h"
#include "envs/core/quantities.h"
#include "envs/core/task_rows.h"

namespace stiction {

template <class Task, class T>
  requires TaskConcept<Task, T>
class TaskBatch final : public BatchEnv {
 public:
  TaskBatch(const char* name, World& world, const BatchEnvOptions& options, const Task& task = {})
      : BatchEnv(world, name),
        sizes_(sizes_of(task)),
        mode_(options.autoreset),
        threads_(world.num_threads()),
        quantities_(world, Task::kNeeds, groups_of(task), sizes_.groups) {
    check_model();
    observations_ = sizes_.observations, actions_ = sizes_.actions, reset_reports_ = Task::kResetReports;
    substeps_ = Task::kSubsteps, action_limit_ = Task::action_limit();
    const int limit = options.max_episode_steps;
    max_episode_steps_ = limit == 0 ? Task::kMaxEpisodeSteps : std::max(limit, -1);
    for (int i = 0; i < Task::kReports; ++i) report_names_.push_back(Task::report_name(i));
    for (int i = 0; i < Task::kRewardTerms; ++i) report_names_.push_back(Task::reward_name(i));
    make_rows(task);
    for (const TaskParameter& p : options.parameters) set_parameter(p.name, p.values);
    std::random_device entropy;
    const uint64_t first = static_cast<uint64_t>(entropy()) << 32 | entropy();
    for (int e = 0; e < num_envs(); ++e) rows_->seed[e] = first + e;
  }
  ~TaskBatch() override { rows_->~Rows(); }

  void reset(const uint64_t* seeds, const uint8_t* seeded, const uint8_t* mask, const EnvOutputs& out) override {
    world_.wait();
    for (int e = 0; e < num_envs(); ++e) {
      began_[e] = mask == nullptr || mask[e] != 0, ended_[e] = 0;
      if (!began_[e] || seeds == nullptr || (seeded != nullptr && !seeded[e])) continue;
      rows_->seed[e] = seeds[e], rows_->episode[e] = 0;
      std::fill_n(rows_->memory + static_cast<int64_t>(e) * sizes_.memory, sizes_.memory, T(0));
    }
    begin_episodes();
    run(RowStage::kShow, {nullptr, out});
  }

  void step(const void* actions, const EnvOutputs& out) override {
    if (mode_ == AutoresetMode::kDisabled) refuse_ended();
    const RowCall<T> call{static_cast<const T*>(actions), out};
    run(RowStage::kBeginStep, call);
    world_.step(Task::kSubsteps);
    run(RowStage::kFinishStep, call);
    if (!on_device() && std::find(began_, began_ + num_envs(), 1) == began_ + num_envs()) return;
    if (mode_ == AutoresetMode::kDisabled) return;
    begin_episodes();
    run(RowStage::kShowBegun, call);
  }

  std::vector<std::pair<std::string, ArrayView>> state() override {
    const int64_t n = num_envs();
    const DType real = sizeof(T) == 8 ? DType::kFloat64 : DType::kFloat32;
    return {{"seed", {rows_->seed, DType::kInt64, {n}, true}},
            {"episode", {rows_->episode, DType::kInt32, {n}, true}},
            {"elapsed", {elapsed_, DType::kInt32, {n}, true}},
            {"pending", {rows_->pending, DType::kBool, {n}, true}},
            {"memory", {rows_->memory, real, {n, sizes_.memory}, true}}};
  }
  std::vector<TaskParameter> parameters() const override { return parameters_of(rows_->task); }
  void set_parameter(const std::string& name, const std::vector<double>& values) override {
    world_.wait();
    stiction::set_parameter(rows_->task, name_, name, values);
  }

 private:
  using Rows = TaskRows<Task, T>;

  void check_model() const {
    const Model& m = world_.model();
    auto expect = [this](const char* what, int got, int expected) {
      if (got != expected)
        throw std::invalid_argument("the model has " + std::to_string(got) + " " + what + ", but task '" + name_ +
                                    "' expects " + std::to_string(expected));
    };
    expect("positions (nq)", m.nq, sizes_.qpos), expect("velocities (nv)", m.nv, sizes_.qvel);
    expect("bodies (nbody)", m.nbody, sizes_.bodies), expect("controls (nu)", m.nu, sizes_.controls);
  }
  static const int* groups_of(const Task& task) {
    if constexpr (requires { task.geom_groups(); }) return task.geom_groups();
    else return nullptr;
  }
  T* data(const char* name) { return static_cast<T*>(world_.array(name).data); }

  void make_rows(const Task& task) {
    const int64_t n = num_envs();
    const Reals& qpos0 = world_.model().qpos0;
    T* start = memory<T>(qpos0.size());
    std::transform(qpos0.begin(), qpos0.end(), start, [](double q) { return static_cast<T>(q); });
    final_observations_ = memory<T>(n * observations_);
    final_reports_ = memory<T>(n * Rows::kReported);
    const int64_t places = on_device() ? n : threads_.size();
    rows_ = new (memory<Rows>(1)) Rows{task,
                                       sizes_,
                                       quantities_.view(),
                                       mode_,
                                       num_envs(),
                                       max_episode_steps_,
                                       static_cast<T>(Task::kSubsteps * world_.options().step.h),
                                       data("qpos"),
                                       data("qvel"),
                                       data("ctrl"),
                                       static_cast<const int*>(world_.array("status").data),
                                       start,
                                       memory<T>(n * sizes_.memory),
                                       memory<T>(places * quantities_.view().scratch_size()),
                                       static_cast<T*>(final_observations_),
                                       static_cast<T*>(final_reports_),
                                       elapsed_,
                                       final_status_,
                                       ended_,
                                       began_,
                                       memory<uint8_t>(n),
                                       memory<uint64_t>(n),
                                       memory<uint32_t>(n)};
  }

  void run(RowStage stage, const RowCall<T>& call) {
#if STICTION_WITH_CUDA
    if constexpr (sizeof(T) == sizeof(float))
      if (on_device()) return launch_rows<Task>(rows_, stage, call, num_envs(), world_.queue());
#endif
    auto work = [&](int thread, int first, int last) {
      for (int e = first; e < last; ++e) rows_->perform(stage, call, e, thread);
    };
    threads_.run(num_envs(), work);
  }

  /// New episodes where began_ is set.
  void begin_episodes() {
    world_.reset_state(began_);
    run(RowStage::kBeginEpisode, {});
    world_.update(began_);
  }

  void refuse_ended() {
    world_.wait();
    for (int e = 0; e < num_envs(); ++e)
      if (rows_->pending[e])
        throw std::invalid_argument("environment " + std::to_string(e) +
                                    " has ended: reset it, with options={'reset_mask': ...}, before the next step");
  }

  TaskSizes sizes_;
  AutoresetMode mode_;
  ThreadPool threads_;
  Quantities<T> quantities_;
  Rows* rows_ = nullptr;
};

}  // namespace stiction
