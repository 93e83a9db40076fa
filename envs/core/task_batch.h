// TaskBatch: BatchEnv of one task, on the host: the task's functions on every row of a World's arrays, threads over rows.
#pragma once
#include <algorithm>
#include <random>
#include <stdexcept>

#include "envs/core/batch_env.h"
#include "envs/core/contact_wrench.h"
#include "envs/core/task.h"

namespace stiction {

template <class Task, class T>
  requires TaskConcept<Task, T>
class TaskBatch final : public BatchEnv {
 public:
  TaskBatch(const char* name, World& world, const BatchEnvOptions& options, const Task& task = {})
      : task_(task), world_(world), mode_(options.autoreset), threads_(world.num_threads()), wrenches_(world) {
    check_model(name);
    const size_t n = world.num_envs();
    observations_ = Task::kObservations, actions_ = Task::kActions, reset_reports_ = Task::kResetReports;
    substeps_ = Task::kSubsteps, action_limit_ = Task::action_limit(), float64_ = sizeof(T) == 8;
    const int limit = options.max_episode_steps;
    max_episode_steps_ = limit == 0 ? Task::kMaxEpisodeSteps : std::max(limit, -1);
    for (int i = 0; i < Task::kReports; ++i) report_names_.push_back(Task::report_name(i));
    for (int i = 0; i < Task::kRewardTerms; ++i) report_names_.push_back(Task::reward_name(i));
    ended_.assign(n, 0), began_.assign(n, 0), elapsed_.assign(n, 0), final_status_.assign(n, 0);
    pending_.assign(n, 0), episode_.assign(n, 0), memory_.assign(n * kMemory, 0);
    final_observations_.assign(n * Task::kObservations, 0), final_reports_.assign(n * kReported, 0);
    scratch_.resize(threads_.size());
    for (Scratch& s : scratch_) s.wrench.assign(6 * Task::kBodies, 0), s.centre.resize(Task::kBodies);
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
      if (seeds != nullptr && (seeded == nullptr || seeded[e])) seed_[e] = seeds[e], episode_[e] = 0;
    }
    std::fill(ended_.begin(), ended_.end(), 0);
    any_ended_ = false;
    begin_episodes();
    auto show = [&](int thread, int first, int last) {
      for (int e = first; e < last; ++e) {
        out.status[e] = status_[e];
        TaskView<T> v = view(e, nullptr, scratch_[thread]);
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
      for (int e = first; e < last; ++e) {
        T* ctrl = ctrl_ + static_cast<int64_t>(e) * world_.model().nu;
        TaskView<T> v = view(e, action + static_cast<int64_t>(e) * Task::kActions, scratch_[thread], false);
        task_.begin(v, memory(e));
        task_.act(v, ctrl);
        if (pending_[e]) std::fill(ctrl, ctrl + world_.model().nu, T(0));  // an action that is ignored must not harm
      }
    };
    threads_.run(num_envs(), act);
    world_.step(Task::kSubsteps);
    auto finish = [&](int thread, int first, int last) {
      for (int e = first; e < last; ++e) finish_step(e, action + static_cast<int64_t>(e) * Task::kActions, thread, out);
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

 private:
  static constexpr int kMemory = Task::kMemory > 0 ? Task::kMemory : 1;
  static constexpr int kReported = Task::kReports + Task::kRewardTerms;
  struct alignas(64) Scratch {
    std::vector<T> wrench;
    std::vector<Vec3<T>> centre;
    bool clean = true;
  };

  void check_model(const char* name) const {
    const Model& m = world_.model();
    auto expect = [name](const char* what, int got, int expected) {
      if (got != expected)
        throw std::invalid_argument("the model has " + std::to_string(got) + " " + what + ", but task '" + name +
                                    "' expects " + std::to_string(expected));
    };
    expect("positions (nq)", m.nq, Task::kQpos), expect("velocities (nv)", m.nv, Task::kQvel);
    expect("bodies (nbody)", m.nbody, Task::kBodies), expect("controls (nu)", m.nu, Task::kActions);
  }

  T* data(const char* name) { return static_cast<T*>(world_.array(name).data); }
  T* memory(int e) { return memory_.data() + static_cast<int64_t>(e) * kMemory; }
  static T* observation(const EnvOutputs& out, int e) {
    return static_cast<T*>(out.observations) + static_cast<int64_t>(e) * Task::kObservations;
  }

  TaskView<T> view(int e, const T* action, Scratch& s, bool contacts = true) {
    TaskView<T> v;
    v.qpos = qpos_ + static_cast<int64_t>(e) * Task::kQpos, v.qvel = qvel_ + static_cast<int64_t>(e) * Task::kQvel;
    v.action = action, v.period = period_;
    if (Task::kContactWrenches && contacts) {
      const bool any =
          wrenches_.any(e) && !(status_[e] & kNonFinite);  // what pushed a world that broke down is not told
      if (any) wrenches_(e, s.centre.data(), s.wrench.data());
      else if (!s.clean) std::fill(s.wrench.begin(), s.wrench.end(), T(0));
      s.clean = !any;
    }
    v.contact_wrench = s.wrench.data();
    return v;
  }

  /// Rewards, ends and observation of what the step made of environment e.
  void finish_step(int e, const T* action, int thread, const EnvOutputs& out) {
    out.status[e] = status_[e];
    T& total = static_cast<T*>(out.rewards)[e];
    total = 0, out.terminated[e] = out.truncated[e] = 0;
    if (pending_[e]) return;
    const TaskView<T> v = view(e, action, scratch_[thread]);
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
      std::copy_n(observation(out, e), Task::kObservations, final_observations_.data() + e * Task::kObservations);
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
        T qpos0[Task::kQpos];
        for (int i = 0; i < Task::kQpos; ++i) qpos0[i] = static_cast<T>(world_.model().qpos0[i]);
        task_.reset(random, qpos0, qpos_ + static_cast<int64_t>(e) * Task::kQpos,
                    qvel_ + static_cast<int64_t>(e) * Task::kQvel, memory(e));
        elapsed_[e] = 0, pending_[e] = 0;
      }
    };
    threads_.run(num_envs(), draw);
    world_.forward_envs(began_.data());
  }
  void show_beginning(int e, const EnvOutputs& out) {
    const TaskView<T> v = view(e, nullptr, scratch_[0]);
    task_.observe(v, memory(e), observation(out, e));
    reset_report(v, out, e);
    out.status[e] = status_[e];
  }

  Task task_;
  World& world_;
  AutoresetMode mode_;
  ThreadPool threads_;
  ContactWrenches<T> wrenches_;
  std::vector<Scratch> scratch_;
  std::vector<uint8_t> pending_;  // ended, and not yet reset
  std::vector<uint64_t> seed_;
  std::vector<uint32_t> episode_;
  std::vector<T> memory_, final_observations_, final_reports_;
  T *qpos_, *qvel_, *ctrl_, period_;
  const int* status_;
};

}  // namespace stiction
