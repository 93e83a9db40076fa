// TaskBatch: BatchEnv of one task: its memory, and the stages of TaskRows over all environments, on threads of the host or on the
// World's CUDA device. There nothing waits for the device: work is queued, and who reads the results waits (BatchEnv). The stages
// read TaskRows, of which the host has the original and the device a copy.
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
        task_(task),
        sizes_(sizes_of(task)),
        mode_(options.autoreset),
        quantities_(world, Task::kNeeds, groups_of(task), sizes_.groups) {
    check_model();
    observations_ = sizes_.observations, actions_ = sizes_.actions, reset_reports_ = Task::kResetReports;
    substeps_ = Task::kSubsteps, action_limit_ = Task::action_limit();
    const int limit = options.max_episode_steps;
    max_episode_steps_ = limit == 0 ? Task::kMaxEpisodeSteps : std::max(limit, -1);
    for (int i = 0; i < Task::kReports; ++i) report_names_.push_back(Task::report_name(i));
    for (int i = 0; i < Task::kRewardTerms; ++i) report_names_.push_back(Task::reward_name(i));
    make_rows();
    check_signals("observation", observation_signals(), observations_),
        check_signals("action", action_signals(), actions_);
    std::random_device entropy;
    const uint64_t first = static_cast<uint64_t>(entropy()) << 32 | entropy();
    auto* seed = static_cast<uint64_t*>(seed_->mirror());
    for (int e = 0; e < num_envs(); ++e) seed[e] = first + e;
    world.send(*seed_);
  }
  ~TaskBatch() override { host_rows()->~TaskRows(); }

  void reset(const uint64_t* seeds, const uint8_t* seeded, const uint8_t* mask, const EnvOutputs& out) override {
    world_.fetch({seed_.get(), episode_.get(), task_memory_.get()});
    auto *began = static_cast<uint8_t*>(began_->mirror()), *ended = static_cast<uint8_t*>(ended_->mirror());
    auto* seed = static_cast<uint64_t*>(seed_->mirror());
    auto* episode = static_cast<uint32_t*>(episode_->mirror());
    T* memory = static_cast<T*>(task_memory_->mirror());
    for (int e = 0; e < num_envs(); ++e) {
      began[e] = mask == nullptr || mask[e] != 0, ended[e] = 0;
      if (!began[e] || seeds == nullptr || (seeded != nullptr && !seeded[e])) continue;
      seed[e] = seeds[e], episode[e] = 0;
      std::fill_n(memory + static_cast<int64_t>(e) * sizes_.memory, sizes_.memory, T(0));
    }
    for (Memory* changed : {began_.get(), ended_.get(), seed_.get(), episode_.get(), task_memory_.get()})
      world_.send(*changed);
    begin_episodes();
    run(RowStage::kShow, {nullptr, out});
  }

  void step(const void* actions, const EnvOutputs& out) override {
    if (mode_ == AutoresetMode::kDisabled) refuse_ended();
    const RowCall<T> call{static_cast<const T*>(actions), out};
    run(RowStage::kBeginStep, call);
    world_.step(Task::kSubsteps);
    run(RowStage::kFinishStep, call);
    const uint8_t* began = at<uint8_t>(began_);
    if (!on_device() && std::find(began, began + num_envs(), 1) == began + num_envs()) return;
    if (mode_ == AutoresetMode::kDisabled) return;
    begin_episodes();
    run(RowStage::kShowBegun, call);
  }

  void show_begun(const EnvOutputs& out) override {
    world_.update(at<uint8_t>(began_));
    run(RowStage::kShowBegun, {nullptr, out});
  }

  std::vector<std::pair<std::string, ArrayView>> state() override {
    const int64_t n = num_envs();
    const DType real = sizeof(T) == 8 ? DType::kFloat64 : DType::kFloat32;
    world_.fetch({seed_.get(), episode_.get(), elapsed_.get(), pending_.get(), task_memory_.get()});
    return {{"seed", {seed_->mirror(), DType::kInt64, {n}, true}},
            {"episode", {episode_->mirror(), DType::kInt32, {n}, true}},
            {"elapsed", {elapsed_->mirror(), DType::kInt32, {n}, true}},
            {"pending", {pending_->mirror(), DType::kBool, {n}, true}},
            {"memory", {task_memory_->mirror(), real, {n, sizes_.memory}, true}}};
  }
  void send_state() override {
    for (Memory* changed : {seed_.get(), episode_.get(), elapsed_.get(), pending_.get(), task_memory_.get()})
      world_.send(*changed);
    world_.release();
  }
  std::vector<TaskParameter> parameters() const override { return parameters_of(task_); }
  std::vector<Signal> observation_signals() const override {
    Signals signals(world_.model());
    task_.observation_signals(signals);
    return signals.list();
  }
  std::vector<Signal> action_signals() const override {
    Signals signals(world_.model());
    task_.action_signals(signals);
    return signals.list();
  }
  void set_parameter(const std::string& name, const std::vector<double>& values) override {
    stiction::set_parameter(task_, name_, name, values);
    world_.fetch({});  // a copy of the rows may be under way
    host_rows()->task = task_;
    world_.send(*rows_), world_.release();
  }

 private:
  using TaskRows = stiction::TaskRows<Task, T>;

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
  void check_signals(const char* what, const std::vector<Signal>& named, int expected) const {
    if (static_cast<int>(named.size()) != expected)
      throw std::logic_error("task '" + name_ + "' names " + std::to_string(named.size()) + " numbers of an " + what +
                             " of " + std::to_string(expected));
  }
  static const int* groups_of(const Task& task) {
    if constexpr (requires { task.geom_groups(); }) return task.geom_groups();
    else return nullptr;
  }
  T* data(const char* name) { return static_cast<T*>(world_.array(name).data); }

  void make_rows() {
    const int64_t n = num_envs();
    const Reals& qpos0 = world_.model().qpos0;
    start_ = memory<T>(qpos0.size());
    std::transform(qpos0.begin(), qpos0.end(), static_cast<T*>(start_->mirror()),
                   [](double q) { return static_cast<T>(q); });
    world_.send(*start_);
    final_observations_ = memory<T>(n * observations_);
    final_reports_ = memory<T>(n * TaskRows::kReported);
    const int64_t places = on_device() ? n : world_.threads().size();
    task_memory_ = memory<T>(n * sizes_.memory);
    scratch_ = memory<T>(places * quantities_.view().scratch_size());
    pending_ = memory<uint8_t>(n), seed_ = memory<uint64_t>(n), episode_ = memory<uint32_t>(n);
    rows_ = memory<TaskRows>(1);
    new (rows_->mirror()) TaskRows{task_,
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
                                   at<T>(start_),
                                   at<T>(task_memory_),
                                   at<T>(scratch_),
                                   at<T>(final_observations_),
                                   at<T>(final_reports_),
                                   at<int>(elapsed_),
                                   at<int>(final_status_),
                                   at<uint8_t>(ended_),
                                   at<uint8_t>(began_),
                                   at<uint8_t>(pending_),
                                   at<uint64_t>(seed_),
                                   at<uint32_t>(episode_)};
    world_.send(*rows_);
  }
  TaskRows* host_rows() const { return static_cast<TaskRows*>(rows_->mirror()); }

  void run(RowStage stage, const RowCall<T>& call) {
#if STICTION_WITH_CUDA
    if constexpr (sizeof(T) == sizeof(float))
      if (on_device()) {
        world_.release();
        return launch_rows<Task>(at<TaskRows>(rows_), stage, call, num_envs(), world_.queue());
      }
#endif
    const TaskRows& rows = *host_rows();
    auto work = [&](int thread, int first, int last) {
      for (int e = first; e < last; ++e) rows.perform(stage, call, e, thread);
    };
    world_.threads().run(num_envs(), work);
  }

  /// New episodes where began_ is set.
  void begin_episodes() {
    world_.reset_state(at<uint8_t>(began_));
    run(RowStage::kBeginEpisode, {});
    world_.update(at<uint8_t>(began_));
  }

  void refuse_ended() {
    const auto pending = rows<uint8_t>(pending_);
    for (int e = 0; e < num_envs(); ++e)
      if (pending[e])
        throw std::invalid_argument("environment " + std::to_string(e) +
                                    " has ended: reset it, with options={'reset_mask': ...}, before the next step");
  }

  Task task_;  // as users set it; rows have copies
  TaskSizes sizes_;
  AutoresetMode mode_;
  Quantities<T> quantities_;
  Rows rows_, start_, task_memory_, scratch_, pending_, seed_, episode_;
};

}  // namespace stiction
