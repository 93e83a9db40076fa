// TaskRows: what happens to one environment of a task's batch, the same source on the host and on a CUDA device.
//
// The stages of a call, each over all environments, with the World's step or reset between them (TaskBatch):
//
//   kBeginStep     disturb, begin, act                                           -> state, memory, ctrl
//   kFinishStep    finish, observe, report, reward, end; keep_final if it ended   -> outputs, ended, began, pending
//   kBeginEpisode  draws where an episode begins, of environments that `began`   -> state, memory
//   kShowBegun     observation and reports of those                              -> outputs
//   kShow          the same of all, of those that did not begin without reports  -> outputs
//
// Plain pointers into memory that the executor reaches; every row is touched by one thread.
#pragma once
#include "core/queue.h"
#include "core/status.h"
#include "envs/core/quantity_view.h"

namespace stiction {

/// What happens to an environment whose episode has ended; names and meaning of gymnasium.vector.AutoresetMode.
enum class AutoresetMode {
  kNextStep,  // the next call resets it and ignores its action
  kSameStep,  // it is reset at once: the observation is the next episode's first, final_* keep the last of this one
  kDisabled,  // the caller resets it before the next call
};

/// Where a call writes, row-major; T is the World's float or double. `reports` is (names, num_envs): a row per name.
struct EnvOutputs {
  void* observations;               // T (N, observations)
  void* rewards;                    // T (N,)                     null in reset
  uint8_t *terminated, *truncated;  // (N,)                       null in reset
  void* reports;                    // T (reports, N): report names, then reward terms; zero where not told
  int* status;                      // (N,) the World's status bits; of an episode just begun: none
};

enum class RowStage { kBeginStep, kFinishStep, kBeginEpisode, kShowBegun, kShow };

template <class T>
struct RowCall {
  const T* actions;  // (N, actions); null in reset
  EnvOutputs out;
};

template <class Task, class T>
struct TaskRows {
  static constexpr int kReported = Task::kReports + Task::kRewardTerms;

  Task task;
  TaskSizes sizes;
  QuantityView<T> quantities;
  AutoresetMode mode;
  int num_envs, max_episode_steps;
  T period;
  T *qpos, *qvel, *ctrl;                  // the World's
  const int* status;                      // the World's
  const T* qpos0;                         // (nq)
  T* memory;                              // (N, sizes.memory)
  T* scratch;                             // a part of quantities.scratch_size() numbers for each who computes at once
  T *final_observations, *final_reports;  // (N, observations), (reports, N)
  int *elapsed, *final_status;            // (N,)
  uint8_t *ended, *began, *pending;       // (N,); pending: ended, and not yet reset
  uint64_t* seed;                         // (N,)
  uint32_t* episode;                      // (N,) episodes begun since that seed

  /// place: whose part of the scratch is used.
  HD void perform(RowStage stage, const RowCall<T>& call, int e, int place) const {
    T* space = scratch + static_cast<int64_t>(place) * quantities.scratch_size();
    if (stage == RowStage::kBeginStep) begin_step(call, e, space);
    else if (stage == RowStage::kFinishStep) finish_step(call, e, space);
    else if (stage == RowStage::kBeginEpisode) begin_episode(e);
    else if (stage == RowStage::kShow || began[e]) show(call, e, space);
  }

 private:
  HD static T* part(T* all, int64_t e, int size) { return all + e * size; }
  HD T* memory_of(int e) const { return part(memory, e, sizes.memory); }
  HD T* observation(const EnvOutputs& out, int e) const {
    return part(static_cast<T*>(out.observations), e, sizes.observations);
  }
  HD const T* action(const RowCall<T>& call, int e) const {
    return call.actions + static_cast<int64_t>(e) * sizes.actions;
  }

  HD TaskView<T> view(int e, const T* action, unsigned needs, T* space) const {
    TaskView<T> v;
    v.qpos = part(qpos, e, sizes.qpos), v.qvel = part(qvel, e, sizes.qvel), v.action = action, v.period = period;
    quantities.fill(e, needs, !(status[e] & kNonFinite), space, v);  // what pushed a world that broke down is not told
    return v;
  }

  HD void begin_step(const RowCall<T>& call, int e, T* space) const {
    T* u = part(ctrl, e, sizes.controls);
    if (pending[e]) {  // a step that does not count
      for (int i = 0; i < sizes.controls; ++i) u[i] = T(0);
      return;
    }
    const TaskView<T> v = view(e, action(call, e), Task::kBeginNeeds, space);
    if constexpr (requires(Random& random) { task.disturb(random, v, qvel, memory); }) {
      Random random(seed[e], episode[e] - 1, static_cast<uint32_t>(elapsed[e]), kStreamTask);
      task.disturb(random, v, part(qvel, e, sizes.qvel), memory_of(e));
    }
    task.begin(v, memory_of(e));
    task.act(v, u);
  }

  /// Rewards, ends and observation of what the step made of environment e.
  HD void finish_step(const RowCall<T>& call, int e, T* space) const {
    const EnvOutputs& out = call.out;
    const bool was_pending = pending[e] != 0, same = mode == AutoresetMode::kSameStep;
    out.status[e] = status[e];
    T& total = static_cast<T*>(out.rewards)[e];
    total = 0, out.terminated[e] = out.truncated[e] = ended[e] = 0;
    began[e] = mode == AutoresetMode::kNextStep && was_pending;
    if (was_pending) {
      pending[e] = 0;
      return;
    }
    const TaskView<T> v = view(e, action(call, e), Task::kNeeds, space);
    if constexpr (requires { task.finish(v, memory); }) task.finish(v, memory_of(e));
    task.observe(v, memory_of(e), observation(out, e));
    ++elapsed[e];
    const bool broken = (status[e] & kNonFinite) != 0;
    T told[kReported];
    task.report(v, memory_of(e), told);
    task.reward(v, memory_of(e), told + Task::kReports);
    for (int i = Task::kReports; i < kReported; ++i) {
      if (broken) told[i] = 0;
      total += told[i];
    }
    tell(out.reports, e, told);
    out.terminated[e] = broken || task.terminated(v);
    out.truncated[e] = max_episode_steps > 0 && elapsed[e] >= max_episode_steps;
    const bool over = out.terminated[e] || out.truncated[e];
    ended[e] = over, began[e] = same && over, pending[e] = !same && over;
    if (same && over) keep_final(out, e, told);
  }

  HD void keep_final(const EnvOutputs& out, int e, const T* told) const {
    const T* last = observation(out, e);
    T* kept = part(final_observations, e, sizes.observations);
    for (int i = 0; i < sizes.observations; ++i) kept[i] = last[i];
    tell(final_reports, e, told);
    final_status[e] = out.status[e];
  }

  HD void begin_episode(int e) const {
    if (!began[e]) return;
    Random random(seed[e], episode[e]++, 0, kStreamReset);
    task.reset(random, qpos0, part(qpos, e, sizes.qpos), part(qvel, e, sizes.qvel), memory_of(e));
    elapsed[e] = 0, pending[e] = 0;
  }

  HD void show(const RowCall<T>& call, int e, T* space) const {
    call.out.status[e] = status[e];
    const TaskView<T> v = view(e, nullptr, Task::kNeeds, space);
    task.observe(v, memory_of(e), observation(call.out, e));
    T told[kReported] = {};
    if (began[e]) task.report(v, memory_of(e), told);
    for (int i = Task::kResetReports; i < kReported; ++i) told[i] = T(0);
    tell(call.out.reports, e, told);
  }

  HD void tell(void* reports, int e, const T* told) const {
    T* to = static_cast<T*>(reports) + e;
    for (int i = 0; i < kReported; ++i) to[static_cast<int64_t>(i) * num_envs] = told[i];
  }
};

/// On a CUDA device: a stage of environments 0 .. count - 1, queued. Defined in envs/cuda.
template <class Task>
void launch_rows(const TaskRows<Task, float>* rows, RowStage stage, const RowCall<float>& call, int count,
                 const CudaQueue& queue);

}  // namespace stiction
