// HalfCheetah: run forward (x). Observation, reward and start of Gymnasium's HalfCheetah-v5
// (gymnasium/envs/mujoco/half_cheetah_v5.py, default arguments) on envs/half_cheetah/half_cheetah.xml, whose sizes are the same.
//
//   observation  17 = qpos[1:] (8), qvel (9)
//   action       6 motor torques over their gears; the simulator clamps them, the cost is of what was asked for
//   reward       forward: x velocity; ctrl: -0.1 |a|^2
//   end          none
//   start        qpos0 + U(-0.1, 0.1) on every coordinate, qvel 0.1 N(0, 1)
//
// Deviations: contacts and joint limits are rigid; Gymnasium's give way (solimp 0 to 0.8 within a centimetre, 0.03 rad).
// Tests: tests/python/test_gymnasium_tasks.py (term by term against Gymnasium).
#pragma once
#include "envs/core/locomotion.h"

namespace stiction {

struct HalfCheetahTask {
  static constexpr int kQpos = 9, kQvel = 9, kBodies = 8;
  static constexpr int kObservations = (kQpos - 1) + kQvel, kActions = 6;
  static constexpr int kMemory = 1;  // x when the action was taken
  static constexpr int kSubsteps = 5, kMaxEpisodeSteps = 1000;
  static constexpr unsigned kNeeds = kNeedsNothing, kBeginNeeds = kNeedsNothing;
  static constexpr int kReports = 2, kResetReports = 1, kRewardTerms = 2;

  // Gymnasium's names and values.
  double forward_reward_weight = 1, ctrl_cost_weight = 0.1;
  double reset_noise_scale = 0.1;

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    f("forward_reward_weight", self.forward_reward_weight), f("ctrl_cost_weight", self.ctrl_cost_weight);
    f("reset_noise_scale", self.reset_noise_scale);
  }

  static const char* report_name(int i) { return i == 0 ? "x_position" : "x_velocity"; }
  static const char* reward_name(int i) { return i == 0 ? "reward_forward" : "reward_ctrl"; }
  static constexpr double action_limit() { return 1; }

  template <class Real>
  HD void begin(const TaskView<Real>& view, Real* memory) const {
    memory[0] = view.qpos[0];
  }
  template <class Real>
  HD void act(const TaskView<Real>& view, Real* ctrl) const {
    pass_actions<kActions>(view, ctrl);
  }
  void action_signals(Signals& s) const { s.add_controls(); }

  template <class Real>
  HD void observe(const TaskView<Real>& view, const Real*, Real* observation) const {
    int at = 0;
    UNROLL for (int i = 1; i < kQpos; ++i) observation[at++] = view.qpos[i];
    UNROLL for (int i = 0; i < kQvel; ++i) observation[at++] = view.qvel[i];
  }
  void observation_signals(Signals& s) const { s.add_positions(1, kQpos - 1), s.add_velocities(0, kQvel); }
  template <class Real>
  HD Mask<Real> terminated(const TaskView<Real>&) const { return mask_of<Real>(false); }

  template <class Real>
  HD void reward(const TaskView<Real>& view, const Real* memory, Real* terms) const {
    terms[0] = (view.qpos[0] - memory[0]) / view.period * Real(forward_reward_weight);
    terms[1] = -effort<kActions>(view) * Real(ctrl_cost_weight);
  }
  template <class Real>
  HD void report(const TaskView<Real>& view, const Real* memory, Real* numbers) const {
    numbers[0] = view.qpos[0], numbers[1] = (view.qpos[0] - memory[0]) / view.period;
  }

  template <class S>
  HD void reset(Random& random, const S* qpos0, S* qpos, S* qvel, S* memory) const {
    const S noise = S(reset_noise_scale);
    noisy_positions<kQpos>(random, qpos0, noise, qpos);
    for (int i = 0; i < kQvel; ++i) qvel[i] = noise * random.normal<S>();
    memory[0] = qpos[0];
  }
};

}  // namespace stiction
