// PlanarWalker: what Hopper and Walker2d share: a robot in the plane x z that runs forward (x) and must not fall.
// Coordinates: x, z, pitch, then one hinge for each of the `Motors` motors.
//
//   observation  qpos[1:], qvel clipped to +-10
//   action       motor torques over their gears; the simulator clamps them, the cost is of what was asked for
//   reward       forward: x velocity; survive: 1 while healthy; ctrl: -1e-3 |a|^2
//   end          not healthy: height, or pitch, or one of pitch, later coordinates and velocities outside its range (strict)
//   start        qpos0 + U(-0.005, 0.005), qvel U(-0.005, 0.005)
//
// Source: gymnasium/envs/mujoco/hopper_v5.py and walker2d_v5.py, default arguments, with their names of parameters.
// Deviation: contacts are rigid. Tests: tests/python/test_gymnasium_tasks.py (term by term against Gymnasium).
#pragma once
#include "envs/core/locomotion.h"

namespace stiction {

template <int Motors>
struct PlanarWalker {
  static constexpr int kQpos = 3 + Motors, kQvel = 3 + Motors, kBodies = 2 + Motors;
  static constexpr int kObservations = (kQpos - 1) + kQvel, kActions = Motors;
  static constexpr int kMemory = 1;  // x when the action was taken
  static constexpr int kSubsteps = 4, kMaxEpisodeSteps = 1000;
  static constexpr unsigned kNeeds = kNeedsNothing, kBeginNeeds = kNeedsNothing;
  static constexpr int kReports = 3, kResetReports = 2, kRewardTerms = 3;
  static constexpr double kStartHeight = 1.25, kLargestVelocity = 10;  // m; m/s and rad/s, of observations
  static constexpr double kUnlimited = __builtin_inf();

  double forward_reward_weight = 1, healthy_reward = 1, ctrl_cost_weight = 1e-3;
  Interval healthy_z_range, healthy_angle_range;             // m, rad
  Interval healthy_state_range = {-kUnlimited, kUnlimited};  // of pitch, later coordinates, velocities
  double reset_noise_scale = 5e-3;
  bool terminate_when_unhealthy = true;

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    f("forward_reward_weight", self.forward_reward_weight), f("healthy_reward", self.healthy_reward);
    f("ctrl_cost_weight", self.ctrl_cost_weight), f("reset_noise_scale", self.reset_noise_scale);
    f("healthy_z_range", self.healthy_z_range), f("healthy_angle_range", self.healthy_angle_range);
    f("terminate_when_unhealthy", self.terminate_when_unhealthy);
  }

  static const char* report_name(int i) {
    constexpr const char* kNames[] = {"x_position", "z_distance_from_origin", "x_velocity"};
    return kNames[i];
  }
  static const char* reward_name(int i) {
    constexpr const char* kNames[] = {"reward_forward", "reward_survive", "reward_ctrl"};
    return kNames[i];
  }
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
    UNROLL for (int i = 0; i < kQvel; ++i)
      observation[at++] = clamp(view.qvel[i], Real(-kLargestVelocity), Real(kLargestVelocity));
  }
  void observation_signals(Signals& s) const {
    s.add_positions(1, kQpos - 1), s.add_velocities(0, kQvel), s.limit(kQvel, -kLargestVelocity, kLargestVelocity);
  }

  template <class Real>
  HD static Mask<Real> within(Real x, Interval range) { return (x > Real(range.low)) & (x < Real(range.high)); }
  template <class Real>
  HD Mask<Real> healthy(const TaskView<Real>& view) const {
    Mask<Real> is = within(view.qpos[1], healthy_z_range) & within(view.qpos[2], healthy_angle_range);
    UNROLL for (int i = 2; i < kQpos; ++i) is = is & within(view.qpos[i], healthy_state_range);
    UNROLL for (int i = 0; i < kQvel; ++i) is = is & within(view.qvel[i], healthy_state_range);
    return is;
  }
  template <class Real>
  HD Mask<Real> terminated(const TaskView<Real>& view) const {
    return mask_of<Real>(terminate_when_unhealthy) & negate(healthy(view));
  }

  template <class Real>
  HD void reward(const TaskView<Real>& view, const Real* memory, Real* terms) const {
    terms[0] = (view.qpos[0] - memory[0]) / view.period * Real(forward_reward_weight);
    terms[1] = select(healthy(view), Real(healthy_reward), Real(0));
    terms[2] = -effort<kActions>(view) * Real(ctrl_cost_weight);
  }
  template <class Real>
  HD void report(const TaskView<Real>& view, const Real* memory, Real* numbers) const {
    numbers[0] = view.qpos[0], numbers[1] = view.qpos[1] - Real(kStartHeight);
    numbers[2] = (view.qpos[0] - memory[0]) / view.period;
  }

  template <class S>
  HD void reset(Random& random, const S* qpos0, S* qpos, S* qvel, S* memory) const {
    const S noise = S(reset_noise_scale);
    noisy_positions<kQpos>(random, qpos0, noise, qpos);
    for (int i = 0; i < kQvel; ++i) qvel[i] = random.uniform<S>(-noise, noise);
    memory[0] = qpos[0];
  }
};

}  // namespace stiction
