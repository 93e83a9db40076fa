// Ant: run forward (x) without falling or tipping over. Observation, reward, end and start of Gymnasium's Ant-v5
// (gymnasium/envs/mujoco/ant_v5.py, default arguments) on envs/ant/ant.xml, whose sizes are the same.
//
//   observation  105 = qpos[2:] (13), qvel (14), contact wrench of each body but the world, clipped to +-1 (13 x 6)
//   action       8 motor torques over their gear of 150 N m; the simulator clamps them, the cost is of what was asked for
//   reward       forward: x velocity; survive: 1 while healthy; ctrl: -0.5 |a|^2; contact: -5e-4 |clipped wrenches|^2
//   end          not healthy: torso height outside [0.2, 1] m (a state that is not finite ends the episode in batch_env)
//   start        qpos0 + U(-0.1, 0.1) on every coordinate, qvel 0.1 N(0, 1)
//
// Deviations: contact wrenches come from our impulses of the last of the five time steps, not from MuJoCo's soft contacts of
// the step before it; x velocity is the torso's displacement over the control period, of positions that do not lag by a time
// step; the noisy quaternion of the start is normalised (Gymnasium's first observation shows it unnormalised).
// Tests: tests/python/test_gymnasium_tasks.py (term by term against Gymnasium).
#pragma once
#include "envs/core/locomotion.h"

namespace stiction {

struct AntTask {
  static constexpr int kQpos = 15, kQvel = 14, kBodies = 14;
  static constexpr int kObservations = (kQpos - 2) + kQvel + 6 * (kBodies - 1), kActions = 8;
  static constexpr int kMemory = 2;  // x and y of the torso when the action was taken
  static constexpr int kSubsteps = 5, kMaxEpisodeSteps = 1000;
  static constexpr unsigned kNeeds = kNeedsContactWrenches, kBeginNeeds = kNeedsNothing;
  static constexpr int kReports = 5, kResetReports = 3, kRewardTerms = 4;

  // Gymnasium's names and values.
  double forward_reward_weight = 1, healthy_reward = 1, ctrl_cost_weight = 0.5, contact_cost_weight = 5e-4;
  Interval healthy_z_range = {0.2, 1};     // m
  Interval contact_force_range = {-1, 1};  // N m, N
  double reset_noise_scale = 0.1;
  bool terminate_when_unhealthy = true;

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    f("forward_reward_weight", self.forward_reward_weight), f("healthy_reward", self.healthy_reward);
    f("ctrl_cost_weight", self.ctrl_cost_weight), f("contact_cost_weight", self.contact_cost_weight);
    f("healthy_z_range", self.healthy_z_range), f("contact_force_range", self.contact_force_range);
    f("reset_noise_scale", self.reset_noise_scale), f("terminate_when_unhealthy", self.terminate_when_unhealthy);
  }

  static const char* report_name(int i) {
    constexpr const char* kNames[] = {"x_position", "y_position", "distance_from_origin", "x_velocity", "y_velocity"};
    return kNames[i];
  }
  static const char* reward_name(int i) {
    constexpr const char* kNames[] = {"reward_forward", "reward_survive", "reward_ctrl", "reward_contact"};
    return kNames[i];
  }
  static constexpr double action_limit() { return 1; }

  template <class Real>
  HD void begin(const TaskView<Real>& view, Real* memory) const {
    memory[0] = view.qpos[0], memory[1] = view.qpos[1];
  }
  template <class Real>
  HD void act(const TaskView<Real>& view, Real* ctrl) const {
    pass_actions<kActions>(view, ctrl);
  }
  void action_signals(Signals& s) const { s.add_controls(); }

  template <class Real>
  HD Real clipped(Real wrench) const {
    return clamp(wrench, Real(contact_force_range.low), Real(contact_force_range.high));
  }

  template <class Real>
  HD void observe(const TaskView<Real>& view, const Real*, Real* observation) const {
    int at = 0;
    UNROLL for (int i = 2; i < kQpos; ++i) observation[at++] = view.qpos[i];
    UNROLL for (int i = 0; i < kQvel; ++i) observation[at++] = view.qvel[i];
    UNROLL for (int i = 6; i < 6 * kBodies; ++i) observation[at++] = clipped(view.contact_wrench[i]);
  }
  void observation_signals(Signals& s) const {
    s.add_positions(2, kQpos - 2), s.add_velocities(0, kQvel);
    s.add_bodies("contact_wrench", kWrenchElements, kAboutCentre);
    s.limit(6 * (kBodies - 1), contact_force_range.low, contact_force_range.high);
  }

  template <class Real>
  HD Mask<Real> healthy(const TaskView<Real>& view) const {
    return (view.qpos[2] >= Real(healthy_z_range.low)) & (view.qpos[2] <= Real(healthy_z_range.high));
  }
  template <class Real>
  HD Mask<Real> terminated(const TaskView<Real>& view) const {
    return mask_of<Real>(terminate_when_unhealthy) & negate(healthy(view));
  }

  template <class Real>
  HD void reward(const TaskView<Real>& view, const Real* memory, Real* terms) const {
    Real contact(0);
    UNROLL for (int i = 6; i < 6 * kBodies; ++i) {
      const Real w = clipped(view.contact_wrench[i]);
      contact = contact + w * w;
    }
    terms[0] = (view.qpos[0] - memory[0]) / view.period * Real(forward_reward_weight);
    terms[1] = select(healthy(view), Real(healthy_reward), Real(0));
    terms[2] = -effort<kActions>(view) * Real(ctrl_cost_weight);
    terms[3] = -contact * Real(contact_cost_weight);
  }

  template <class Real>
  HD void report(const TaskView<Real>& view, const Real* memory, Real* numbers) const {
    const Real x = view.qpos[0], y = view.qpos[1];
    numbers[0] = x, numbers[1] = y, numbers[2] = sqrt(x * x + y * y);
    numbers[3] = (x - memory[0]) / view.period, numbers[4] = (y - memory[1]) / view.period;
  }

  template <class S>
  HD void reset(Random& random, const S* qpos0, S* qpos, S* qvel, S* memory) const {
    const S noise = S(reset_noise_scale);
    noisy_positions<kQpos>(random, qpos0, noise, qpos);
    normalize_orientation(qpos);
    for (int i = 0; i < kQvel; ++i) qvel[i] = noise * random.normal<S>();
    memory[0] = qpos[0], memory[1] = qpos[1];
  }
};

}  // namespace stiction
