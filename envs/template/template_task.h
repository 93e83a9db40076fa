// Template of a task: a slider on a rail is pushed to a target. Copy it to begin a task of your own; see README.md beside it.
//
//   observation  3 = position, velocity, target                        m, m/s, m
//   action       1 force over the motor's gear
//   reward       near: -(position - target)^2; effort: -0.01 a^2
//   end          off the rail: |position| > 1 m
//   start        position, target U(-0.5, 0.5), at rest
//
// Tests: tests/envs/task_batch_test.cpp, which drives every rule of an episode through this task.
#pragma once
#include "envs/core/task.h"

namespace stiction {

struct TemplateTask {
  static constexpr int kQpos = 1, kQvel = 1, kBodies = 2;  // of the model; checked when a batch is made
  static constexpr int kObservations = 3, kActions = 1;
  static constexpr int kMemory = 1;  // the target
  static constexpr int kSubsteps = 2, kMaxEpisodeSteps = 50;
  static constexpr unsigned kNeeds = kNeedsNothing, kBeginNeeds = kNeedsNothing;
  static constexpr int kReports = 2, kResetReports = 1, kRewardTerms = 2;

  double rail = 1;               // m
  Interval start = {-0.5, 0.5};  // m
  double effort_weight = 0.01;
  bool ends_off_rail = true;

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    f("rail", self.rail), f("start", self.start), f("effort_weight", self.effort_weight);
    f("ends_off_rail", self.ends_off_rail);
  }

  static const char* report_name(int i) { return i == 0 ? "position" : "distance"; }
  static const char* reward_name(int i) { return i == 0 ? "reward_near" : "reward_effort"; }
  static constexpr double action_limit() { return 1; }

  template <class Real>
  HD void begin(const TaskView<Real>&, Real*) const {}
  template <class Real>
  HD void act(const TaskView<Real>& view, Real* ctrl) const {
    ctrl[0] = view.action[0];
  }
  void action_signals(Signals& s) const { s.add_controls(); }

  template <class Real>
  HD void observe(const TaskView<Real>& view, const Real* memory, Real* observation) const {
    observation[0] = view.qpos[0], observation[1] = view.qvel[0], observation[2] = memory[0];
  }
  void observation_signals(Signals& s) const { s.add_positions(0, 1), s.add_velocities(0, 1), s.add("target", "m"); }
  template <class Real>
  HD Mask<Real> terminated(const TaskView<Real>& view) const {
    return mask_of<Real>(ends_off_rail) & (abs(view.qpos[0]) > Real(rail));
  }
  template <class Real>
  HD void reward(const TaskView<Real>& view, const Real* memory, Real* terms) const {
    const Real away = view.qpos[0] - memory[0], a = view.action[0];
    terms[0] = -away * away, terms[1] = -a * a * Real(effort_weight);
  }
  template <class Real>
  HD void report(const TaskView<Real>& view, const Real* memory, Real* numbers) const {
    numbers[0] = view.qpos[0], numbers[1] = abs(view.qpos[0] - memory[0]);
  }
  template <class S>
  HD void reset(Random& random, const S* qpos0, S* qpos, S* qvel, S* memory) const {
    qpos[0] = qpos0[0] + random.uniform<S>(S(start.low), S(start.high)), qvel[0] = S(0);
    memory[0] = random.uniform<S>(S(start.low), S(start.high));
  }
};

}  // namespace stiction
