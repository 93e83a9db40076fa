// Humanoid: run forward (x) without falling. Observation, reward, end and start of Gymnasium's Humanoid-v5
// (gymnasium/envs/mujoco/humanoid_v5.py, default arguments) on envs/humanoid/humanoid.xml, whose sizes are the same.
//
//   observation  348 = qpos[2:] (22), qvel (23), inertia and twist of each body but the world about the centre of mass
//                (13 x 10, 13 x 6: MuJoCo's cinert, cvel), force of each motor (17), contact wrench of each body (13 x 6)
//   action       17 motor torques over their gears, meant within +-0.4; the simulator clamps them, the cost is of what was asked
//   reward       forward: 1.25 x velocity of the centre of mass; survive: 5 while healthy; ctrl: -0.1 |a|^2;
//                contact: -5e-7 |wrenches|^2, at most 10
//   end          not healthy: torso height outside (1, 2) m
//   start        qpos0 + U(-0.01, 0.01) on every coordinate, qvel U(-0.01, 0.01)
//
// Deviations: inertias, twists and motor forces are those of the state after the step (Gymnasium's lag it by one time step);
// wrenches come from our impulses of the last of the five time steps; the noisy quaternion of the start is normalised;
// tendon_length and tendon_velocity are told as two numbers each, left then right.
// Tests: tests/python/test_gymnasium_tasks.py (term by term against Gymnasium).
#pragma once
#include "envs/core/locomotion.h"

namespace stiction {

struct HumanoidTask {
  static constexpr int kQpos = 24, kQvel = 23, kBodies = 14, kMotors = 17;
  static constexpr int kObservations = (kQpos - 2) + kQvel + (10 + 6 + 6) * (kBodies - 1) + kMotors, kActions = kMotors;
  static constexpr int kMemory = 2;  // x and y of the centre of mass when the action was taken
  static constexpr int kSubsteps = 5, kMaxEpisodeSteps = 1000;
  static constexpr unsigned kNeeds =
      kNeedsContactWrenches | kNeedsTreeCentres | kNeedsBodyInertias | kNeedsBodyTwists | kNeedsActuatorForces;
  static constexpr unsigned kBeginNeeds = kNeedsTreeCentres;
  static constexpr int kReports = 9, kResetReports = 7, kRewardTerms = 4;

  // Gymnasium's names and values.
  double forward_reward_weight = 1.25, healthy_reward = 5, ctrl_cost_weight = 0.1, contact_cost_weight = 5e-7;
  Interval contact_cost_range = {-__builtin_inf(), 10};
  Interval healthy_z_range = {1, 2};  // m
  double reset_noise_scale = 0.01;
  bool terminate_when_unhealthy = true;

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    f("forward_reward_weight", self.forward_reward_weight), f("healthy_reward", self.healthy_reward);
    f("ctrl_cost_weight", self.ctrl_cost_weight), f("contact_cost_weight", self.contact_cost_weight);
    f("contact_cost_range", self.contact_cost_range), f("healthy_z_range", self.healthy_z_range);
    f("reset_noise_scale", self.reset_noise_scale), f("terminate_when_unhealthy", self.terminate_when_unhealthy);
  }

  static const char* report_name(int i) {
    constexpr const char* kNames[] = {
        "x_position",          "y_position",           "distance_from_origin",  "tendon_length_left",
        "tendon_length_right", "tendon_velocity_left", "tendon_velocity_right", "x_velocity",
        "y_velocity"};
    return kNames[i];
  }
  static const char* reward_name(int i) {
    constexpr const char* kNames[] = {"reward_forward", "reward_survive", "reward_ctrl", "reward_contact"};
    return kNames[i];
  }
  static constexpr double action_limit() { return 0.4; }

  template <class Real>
  HD void begin(const TaskView<Real>& view, Real* memory) const {
    memory[0] = view.tree_centre[3], memory[1] = view.tree_centre[4];  // of body 1's tree: the only one
  }
  template <class Real>
  HD void act(const TaskView<Real>& view, Real* ctrl) const {
    pass_actions<kActions>(view, ctrl);
  }
  void action_signals(Signals& s) const { s.add_controls(); }

  template <class Real>
  HD void observe(const TaskView<Real>& view, const Real*, Real* observation) const {
    int at = 0;
    for (int i = 2; i < kQpos; ++i) observation[at++] = view.qpos[i];
    for (int i = 0; i < kQvel; ++i) observation[at++] = view.qvel[i];
    for (int i = 10; i < 10 * kBodies; ++i) observation[at++] = view.body_inertia[i];
    for (int i = 6; i < 6 * kBodies; ++i) observation[at++] = view.body_twist[i];
    for (int i = 6; i < kQvel; ++i) observation[at++] = view.actuator_force[i];
    for (int i = 6; i < 6 * kBodies; ++i) observation[at++] = view.contact_wrench[i];
  }
  void observation_signals(Signals& s) const {
    s.add_positions(2, kQpos - 2), s.add_velocities(0, kQvel);
    s.add_bodies("inertia", kInertiaElements, kAboutCentre), s.add_bodies("twist", kTwistElements, kAboutCentre);
    s.add_dofs("actuator_force", 6, kMotors), s.add_bodies("contact_wrench", kWrenchElements, kAboutCentre);
  }

  template <class Real>
  HD Mask<Real> healthy(const TaskView<Real>& view) const {
    return (view.qpos[2] > Real(healthy_z_range.low)) & (view.qpos[2] < Real(healthy_z_range.high));
  }
  template <class Real>
  HD Mask<Real> terminated(const TaskView<Real>& view) const {
    return mask_of<Real>(terminate_when_unhealthy) & negate(healthy(view));
  }

  template <class Real>
  HD void reward(const TaskView<Real>& view, const Real* memory, Real* terms) const {
    Real contact(0);
    for (int i = 6; i < 6 * kBodies; ++i) contact = contact + view.contact_wrench[i] * view.contact_wrench[i];
    terms[0] = (view.tree_centre[3] - memory[0]) / view.period * Real(forward_reward_weight);
    terms[1] = select(healthy(view), Real(healthy_reward), Real(0));
    terms[2] = -effort<kActions>(view) * Real(ctrl_cost_weight);
    terms[3] = -clamp(contact * Real(contact_cost_weight), Real(contact_cost_range.low), Real(contact_cost_range.high));
  }

  template <class Real>
  HD void report(const TaskView<Real>& view, const Real* memory, Real* numbers) const {
    // Coordinates of the tendons' joints: right hip y, right knee, left hip y, left knee.
    constexpr int kRightHip = 12, kRightKnee = 13, kLeftHip = 16, kLeftKnee = 17;
    const Real *q = view.qpos, *v = view.qvel;  // a velocity is one place earlier
    numbers[0] = q[0], numbers[1] = q[1], numbers[2] = sqrt(q[0] * q[0] + q[1] * q[1]);
    numbers[3] = q[kLeftKnee] - q[kLeftHip], numbers[4] = q[kRightKnee] - q[kRightHip];
    numbers[5] = v[kLeftKnee - 1] - v[kLeftHip - 1], numbers[6] = v[kRightKnee - 1] - v[kRightHip - 1];
    numbers[7] = (view.tree_centre[3] - memory[0]) / view.period;
    numbers[8] = (view.tree_centre[4] - memory[1]) / view.period;
  }

  template <class S>
  HD void reset(Random& random, const S* qpos0, S* qpos, S* qvel, S* memory) const {
    const S noise = S(reset_noise_scale);
    noisy_positions<kQpos>(random, qpos0, noise, qpos);
    normalize_orientation(qpos);
    for (int i = 0; i < kQvel; ++i) qvel[i] = random.uniform<S>(-noise, noise);
    memory[0] = qpos[0], memory[1] = qpos[1];
  }
};

}  // namespace stiction
