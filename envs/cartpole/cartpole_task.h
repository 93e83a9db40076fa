// CartPole: keep a pole upright (balance), or swing it up first (swing-up), and the cart in the middle of its rail. The DeepMind
// Control Suite's cartpole `balance` and `swingup` (dm_control/suite/cartpole.py) on envs/cartpole/cartpole.xml, whose sizes are
// the same.
//
//   observation  5 = cart position, cosine and sine of the pole's angle, cart velocity, angular velocity   m, m/s, rad/s
//   action       1 force over the motor's gear of 10 N
//   reward       upright * centred * small control * small velocity, each in [0, 1]:
//                (1 + cos) / 2; (1 + g(x; 2 m)) / 2; (4 + q(a; 1)) / 5; (1 + g(angular velocity; 5 rad/s)) / 2, with the Gaussian g
//                and the quadratic q of tolerance.h
//   end          none; 1000 steps of 10 ms
//   start        balance: position U(-0.1, 0.1), angle U(-0.034, 0.034); swing-up: 0.01 N(0, 1), pi + 0.01 N(0, 1);
//                velocities 0.01 N(0, 1)
//
// Deviations: the rail's ends are rigid; semi-implicit Euler (the suite: RK4). Tests: tests/python/test_cartpole_env.py.
#pragma once
#include "envs/core/task.h"
#include "envs/core/tolerance.h"

namespace stiction {

template <bool SwingUp>
struct CartPoleTask {
  static constexpr int kQpos = 2, kQvel = 2, kBodies = 3;
  static constexpr int kObservations = 5, kActions = 1, kMemory = 0;
  static constexpr int kSubsteps = 1, kMaxEpisodeSteps = 1000;
  static constexpr unsigned kNeeds = kNeedsNothing, kBeginNeeds = kNeedsNothing;
  static constexpr int kReports = 6, kResetReports = 2, kRewardTerms = 1;

  double centred_margin = 2, control_margin = 1, velocity_margin = 5;  // m, 1, rad/s
  double position_noise = SwingUp ? 0.01 : 0.1, angle_noise = SwingUp ? 0.01 : 0.034, velocity_noise = 0.01;

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    f("centred_margin", self.centred_margin), f("control_margin", self.control_margin);
    f("velocity_margin", self.velocity_margin), f("position_noise", self.position_noise);
    f("angle_noise", self.angle_noise), f("velocity_noise", self.velocity_noise);
  }

  static const char* report_name(int i) {
    constexpr const char* kNames[] = {"position", "upright", "centred", "small_control", "small_velocity", "velocity"};
    return kNames[i];
  }
  static const char* reward_name(int) { return "reward_smooth"; }
  static constexpr double action_limit() { return 1; }

  template <class Real>
  HD void begin(const TaskView<Real>&, Real*) const {}
  template <class Real>
  HD void act(const TaskView<Real>& view, Real* ctrl) const {
    ctrl[0] = view.action[0];
  }
  void action_signals(Signals& s) const { s.add_controls(); }

  template <class Real>
  HD void observe(const TaskView<Real>& view, const Real*, Real* observation) const {
    observation[0] = view.qpos[0];
    sincos(view.qpos[1], observation[2], observation[1]);
    observation[3] = view.qvel[0], observation[4] = view.qvel[1];
  }
  void observation_signals(Signals& s) const {
    s.add_positions(0, 1), s.add("cos/" + s.joint(1), "1"), s.add("sin/" + s.joint(1), "1"), s.add_velocities(0, kQvel);
  }
  template <class Real>
  HD Mask<Real> terminated(const TaskView<Real>&) const {
    return mask_of<Real>(false);
  }

  template <class Real>
  HD Real upright(const TaskView<Real>& view) const {
    Real s, c;
    sincos(view.qpos[1], s, c);
    return (Real(1) + c) * Real(0.5);
  }
  template <class Real>
  HD Real centred(const TaskView<Real>& view) const {
    return (Real(1) + gaussian_tolerance(view.qpos[0], centred_margin)) * Real(0.5);
  }
  template <class Real>
  HD Real small_control(const TaskView<Real>& view) const {
    return (Real(4) + quadratic_tolerance(view.action[0], control_margin)) / Real(5);
  }
  template <class Real>
  HD Real small_velocity(const TaskView<Real>& view) const {
    return (Real(1) + gaussian_tolerance(view.qvel[1], velocity_margin)) * Real(0.5);
  }

  template <class Real>
  HD void reward(const TaskView<Real>& view, const Real*, Real* terms) const {
    terms[0] = upright(view) * centred(view) * small_control(view) * small_velocity(view);
  }
  template <class Real>
  HD void report(const TaskView<Real>& view, const Real*, Real* numbers) const {
    numbers[0] = view.qpos[0], numbers[1] = upright(view), numbers[2] = centred(view);
    numbers[3] = view.action == nullptr ? Real(1) : small_control(view);
    numbers[4] = small_velocity(view), numbers[5] = view.qvel[0];
  }

  template <class S>
  HD void reset(Random& random, const S* qpos0, S* qpos, S* qvel, S*) const {
    constexpr double kPi = 3.141592653589793;
    const S x = S(position_noise), angle = S(angle_noise);
    if constexpr (SwingUp)
      qpos[0] = qpos0[0] + x * random.normal<S>(), qpos[1] = qpos0[1] + S(kPi) + angle * random.normal<S>();
    else qpos[0] = qpos0[0] + random.uniform<S>(-x, x), qpos[1] = qpos0[1] + random.uniform<S>(-angle, angle);
    for (int i = 0; i < kQvel; ++i) qvel[i] = S(velocity_noise) * random.normal<S>();
  }
};

}  // namespace stiction
