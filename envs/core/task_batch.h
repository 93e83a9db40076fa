// TaskBatch: BatchEnv of one task, on the host: the task's functions on every row of a World's arrays, threads over rows.
#pragma once
#include <algorithm>
#include <random>
#include <stdexcept>

#include "envs/core/batch_env.h"
#include "envs/core/quantities.h"
#include "envs/core/task.h"

namespace stiction {

template <class Task, class T>
  requires TaskConcept<Task, T>
class TaskBatch final : public BatchEnv {
 public:
  TaskBatch(const char* name, World& world, const BatchEnvOptions& options, const Task& task = {})
      : task_(task),
        name_(name),
        world_(world),
        sizes_(sizes_of(task_)),
        mode_(options.autoreset),
        threads_(world.num_threads()),
        quantities_(world, Task::kNeeds, geom_groups(), sizes_.groups) {
    check_model();
    for (const TaskParameter& p : options.parameters) set_parameter(p.name, p.values);
    const size_t n = world.num_envs();
    observations_ = sizes_.observations, actions_ = sizes_.actions, reset_reports_ = Task::kResetReports;
    substeps_ = Task::kSubsteps, action_limit_ = Task::action_limit(), float64_ = sizeof(T) == 8;
    const int limit = options.max_episode_steps;
    max_episode_steps_ = limit == 0 ? Task::kMaxEpisodeSteps : std::max(limit, -1);
    for (int i = 0; i < Task::kReports; ++i) report_names_.push_back(Task::report_name(i));
    for (int i = 0; i < Task::kRewardTerms; ++i) report_names_.push_back(Task::reward_name(i));
    ended_.assign(n, 0), began_.assign(n, 0), elapsed_.assign(n, 0), final_status_.assign(n, 0);
    pending_.assign(n, 0), episode_.assign(n, 0), memory_.assign(n * std::max(sizes_.memory, 1), 0);
    final_observations_.assign(n * observations_, 0), final_reports_.assign(n * kReported, 0);
    for (int t = 0; t < threads_.size(); ++t) scratch_.push_back(quantities_.scratch());
    for (double q : world.model().qpos0) qpos0_.push_back(static_cast<T>(q));
    qpos_ = data("qpos"), qvel_ = data("qvel"), ctrl_ = data("ctrl");
    status_ = static_cast<int*>(world.array("status").data);
    period_ = static_cast<T>(Task::kSubsteps * world.options().step.h);
    std::random_device entropy;
    const uint64_t first = static_cast<uint64_t>(entropy()) << 32 | entropy();
    seed_.resize(n);
    for (size_t e = 0; e < n; ++e) seed_[e] = first + e;
  }

  void reset(const uint64_t* seeds, const uint8_t* seeded, const uint8_t* mask, const EnvOutputs& out) override {
    for (int e = 0; e < num_envs(); ++e) {
      began_[e] = mask == nullptr || mask[e] != 0;
      if (!began_[e]) continue;
      if (seeds == nullptr || (seeded != nullptr && !seeded[e])) continue;
      seed_[e] = seeds[e], episode_[e] = 0;
      std::fill_n(memory(e), sizes_.memory, T(0));
    }
    std::fill(ended_.begin(), ended_.end(), 0);
    any_ended_ = false;
    begin_episodes();
    auto show = [&](int thread, int first, int last) {
      for (int e = first; e < last; ++e) {
        out.status[e] = status_[e];
        const TaskView<T> v = view(e, nullptr, Task::kNeeds, scratch_[thread]);
        task_.observe(v, memory(e), observation(out, e));
        began_[e] ? reset_report(v, out, e) : no_report(out, e);
      }
    };
    threads_.run(num_envs(), show);
  }

  void step(const void* actions, const EnvOutputs& out) override {
    if (mode_ == AutoresetMode::kDisabled)
      for (int e = 0; e < num_envs(); ++e)
        if (pending_[e])
          throw std::invalid_argument("environment " + std::to_string(e) +
                                      " has ended: reset it, with options={'reset_mask': ...}, before the next step");
    const T* action = static_cast<const T*>(actions);
    auto act = [&](int thread, int first, int last) {
      for (int e = first; e < last; ++e) begin_step(e, action + static_cast<int64_t>(e) * actions_, thread);
    };
    threads_.run(num_envs(), act);
    world_.step(Task::kSubsteps);
    auto finish = [&](int thread, int first, int last) {
      for (int e = first; e < last; ++e) finish_step(e, action + static_cast<int64_t>(e) * actions_, thread, out);
    };
    threads_.run(num_envs(), finish);

    const bool same = mode_ == AutoresetMode::kSameStep, next = mode_ == AutoresetMode::kNextStep;
    any_ended_ = false;
    bool any_begins = false;
    for (int e = 0; e < num_envs(); ++e) {
      const bool over = out.terminated[e] || out.truncated[e];
      ended_[e] = over;
      began_[e] = same ? over : next && pending_[e];
      pending_[e] = !same && over;
      any_ended_ |= over, any_begins |= began_[e] != 0;
    }
    if (!any_begins) return;
    if (same) keep_final(out);
    begin_episodes();
    for (int e = 0; e < num_envs(); ++e)
      if (began_[e]) show_beginning(e, out);
  }

  const void* final_observations() const override { return final_observations_.data(); }
  const void* final_reports() const override { return final_reports_.data(); }

  std::vector<TaskParameter> parameters() const override { return parameters_of(task_); }
  void set_parameter(const std::string& name, const std::vector<double>& values) override {
    stiction::set_parameter(task_, name_, name, values);
  }

 private:
  static constexpr int kReported = Task::kReports + Task::kRewardTerms;
  using Scratch = typename Quantities<T>::Scratch;

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
  const int* geom_groups() const {
    if constexpr (requires { task_.geom_groups(); }) return task_.geom_groups();
    else return nullptr;
  }

  T* data(const char* name) { return static_cast<T*>(world_.array(name).data); }
  T* memory(int e) { return memory_.data() + static_cast<int64_t>(e) * sizes_.memory; }
  T* qpos(int e) { return qpos_ + static_cast<int64_t>(e) * sizes_.qpos; }
  T* qvel(int e) { return qvel_ + static_cast<int64_t>(e) * sizes_.qvel; }
  T* observation(const EnvOutputs& out, int e) const {
    return static_cast<T*>(out.observations) + static_cast<int64_t>(e) * observations_;
  }

  TaskView<T> view(int e, const T* action, unsigned needs, Scratch& s) {
    TaskView<T> v;
    v.qpos = qpos(e), v.qvel = qvel(e), v.action = action, v.period = period_;
    quantities_.fill(e, needs, !(status_[e] & kNonFinite), s, v);  // what pushed a world that broke down is not told
    return v;
  }

  void begin_step(int e, const T* action, int thread) {
    T* ctrl = ctrl_ + static_cast<int64_t>(e) * sizes_.controls;
    if (pending_[e]) return void(std::fill_n(ctrl, sizes_.controls, T(0)));  // a step that does not count
    const TaskView<T> v = view(e, action, Task::kBeginNeeds, scratch_[thread]);
    if constexpr (requires(Random& random) { task_.disturb(random, v, qvel(e), memory(e)); }) {
      Random random(seed_[e], episode_[e] - 1, static_cast<uint32_t>(elapsed_[e]), kStreamTask);
      task_.disturb(random, v, qvel(e), memory(e));
    }
    task_.begin(v, memory(e));
    task_.act(v, ctrl);
  }

  /// Rewards, ends and observation of what the step made of environment e.
  void finish_step(int e, const T* action, int thread, const EnvOutputs& out) {
    out.status[e] = status_[e];
    T& total = static_cast<T*>(out.rewards)[e];
    total = 0, out.terminated[e] = out.truncated[e] = 0;
    if (pending_[e]) return;
    const TaskView<T> v = view(e, action, Task::kNeeds, scratch_[thread]);
    if constexpr (requires { task_.finish(v, memory(e)); }) task_.finish(v, memory(e));
    task_.observe(v, memory(e), observation(out, e));
    ++elapsed_[e];
    const bool broken = (status_[e] & kNonFinite) != 0;
    T told[kReported];
    task_.report(v, memory(e), told);
    task_.reward(v, memory(e), told + Task::kReports);
    for (int i = Task::kReports; i < kReported; ++i) {
      if (broken) told[i] = 0;
      total += told[i];
    }
    tell(out, e, told);
    out.terminated[e] = broken || task_.terminated(v);
    out.truncated[e] = max_episode_steps_ > 0 && elapsed_[e] >= max_episode_steps_;
  }

  void tell(const EnvOutputs& out, int e, const T* told) const {
    T* to = static_cast<T*>(out.reports) + e;
    for (int i = 0; i < kReported; ++i) to[static_cast<int64_t>(i) * num_envs()] = told[i];
  }
  void no_report(const EnvOutputs& out, int e) const {
    const T none[kReported] = {};
    tell(out, e, none);
  }
  void reset_report(const TaskView<T>& v, const EnvOutputs& out, int e) {
    T told[kReported] = {};
    task_.report(v, memory(e), told);
    std::fill(told + Task::kResetReports, told + kReported, T(0));
    tell(out, e, told);
  }

  void keep_final(const EnvOutputs& out) {
    const int64_t n = num_envs();
    const T* reports = static_cast<const T*>(out.reports);
    for (int64_t e = 0; e < n; ++e) {
      if (!ended_[e]) continue;
      std::copy_n(observation(out, e), observations_, final_observations_.data() + e * observations_);
      for (int64_t i = 0; i < kReported; ++i) final_reports_[i * n + e] = reports[i * n + e];
      final_status_[e] = out.status[e];
    }
  }

  /// New episodes where began_ is set.
  void begin_episodes() {
    world_.reset(began_.data());
    auto draw = [&](int, int first, int last) {
      for (int e = first; e < last; ++e) {
        if (!began_[e]) continue;
        Random random(seed_[e], episode_[e]++, 0, kStreamReset);
        task_.reset(random, qpos0_.data(), qpos(e), qvel(e), memory(e));
        elapsed_[e] = 0, pending_[e] = 0;
      }
    };
    threads_.run(num_envs(), draw);
    world_.forward_envs(began_.data());
  }
  void show_beginning(int e, const EnvOutputs& out) {
    const TaskView<T> v = view(e, nullptr, Task::kNeeds, scratch_[0]);
    task_.observe(v, memory(e), observation(out, e));
    reset_report(v, out, e);
    out.status[e] = status_[e];
  }

  Task task_;
  std::string name_;
  World& world_;
  TaskSizes sizes_;
  AutoresetMode mode_;
  ThreadPool threads_;
  Quantities<T> quantities_;
  std::vector<Scratch> scratch_;
  std::vector<uint8_t> pending_;  // ended, and not yet reset
  std::vector<uint64_t> seed_;
  std::vector<uint32_t> episode_;
  std::vector<T> memory_, final_observations_, final_reports_, qpos0_;
  T *qpos_, *qvel_, *ctrl_, period_;
  const int* status_;
};

}  // namespace stiction
