// VelocityTask: a walking robot follows commanded velocities on flat ground. Terms, weights and rates of Isaac Lab's
// flat-ground velocity tasks and of legged_gym (Rudin et al., "Learning to walk in minutes using massively parallel deep
// reinforcement learning", CoRL 2021), on any robot: see legged_robot.h.
//
//   observation  12 + 3 n for n joints: trunk's linear and angular velocity, direction of gravity (3 each, trunk's axes);
//                commands x, y, yaw; joint angles less the standing pose; joint velocities; last action   m/s, rad/s, 1, rad
//   action       n joint targets: standing pose + action_scale times the action                                         rad
//   reward       each term times the period. tracking: exp(-|error|^2 / sigma^2) of x, y and of yaw; costs: vertical velocity^2,
//                roll and pitch rate^2, tilt (horizontal part of gravity's direction)^2, torques^2, joint accelerations^2,
//                changes of the action^2, undesired bodies that touch; feet: (time in the air - 0.5 s) at each touch-down, while
//                asked to move. With weights of 0 but for bipeds: time since the last touch-down or lift-off (the shorter of
//                the feet's, at most wanted_air_time) while on one foot and asked to move; |joint angles less the standing
//                pose|; the fall
//   end          the trunk touches something: the force on its bodies is above trunk_force_limit
//   start        standing pose a little above the ground, any heading, joints + U(joint_noise), trunk's velocity U(start_velocity)
//   events       commands are drawn anew every command_period, the trunk is pushed (velocity + U(+-push_velocity)) every
//                push_interval. The curriculum: commands grow from curriculum_start to their whole ranges, by a tenth when an episode
//                reached 0.8 of the most that linear tracking gives; each environment's own
//
// Deviations: no noise on observations; a yaw rate is commanded, not a heading; joint accelerations are differences over
// the period; torques are the servos' at the end of the period. Touch is judged by the period's last time step.
// Tests: tests/python/test_velocity_env.py (every term against formulae and MuJoCo's quantities).
#pragma once
#include "envs/core/tolerance.h"
#include "envs/velocity/legged_robot.h"
#include "math/rotation.h"

namespace stiction {

struct VelocityTask {
  static constexpr int kSubsteps = 4, kMaxEpisodeSteps = 1000;
  static constexpr unsigned kNeeds = kNeedsActuatorForces | kNeedsGroupForces, kBeginNeeds = kNeedsNothing;
  static constexpr int kReports = 10, kResetReports = 4, kRewardTerms = 13;
  static constexpr double kLargestAction = 100;  // of observations; what is not finite ends the episode anyway

  // ---- the robot
  LeggedRobot robot;

  // ---- parameters
  Interval command_x = {-1, 1}, command_y = {-1, 1}, command_yaw = {-1, 1};  // m/s, m/s, rad/s
  double command_period = 10, smallest_command = 0.2;                        // s; m/s: slower commands are to stand
  double curriculum_start = 0.5;                                             // part of the ranges
  Interval push_interval = {10, 15};                                         // s
  double push_velocity = 0.5;                                                // m/s
  double action_scale = 0.5;                                                 // rad
  Interval joint_noise = {-0.1, 0.1}, start_velocity = {-0.5, 0.5};          // rad; m/s, rad/s
  double start_clearance = 0.03;                                             // m
  double touch_force = 1, trunk_force_limit = 1;                             // N
  double tracking_sigma = 0.5, wanted_air_time = 0.5;                        // m/s and rad/s; s
  double linear_tracking_weight = 1, yaw_tracking_weight = 0.5, vertical_velocity_weight = 2,
         roll_pitch_rate_weight = 0.05;
  double tilt_weight = 5, torque_weight = 2.5e-5, acceleration_weight = 2.5e-7, action_rate_weight = 0.01;
  double air_time_weight = 0.5, undesired_contact_weight = 1;
  double single_stance_weight = 0, joint_deviation_weight = 0, fall_weight = 0;  // for bipeds

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    f("command_x", self.command_x), f("command_y", self.command_y), f("command_yaw", self.command_yaw);
    f("command_period", self.command_period), f("smallest_command", self.smallest_command);
    f("curriculum_start", self.curriculum_start), f("push_interval", self.push_interval);
    f("push_velocity", self.push_velocity), f("action_scale", self.action_scale), f("joint_noise", self.joint_noise);
    f("start_velocity", self.start_velocity), f("start_clearance", self.start_clearance);
    f("touch_force", self.touch_force), f("trunk_force_limit", self.trunk_force_limit);
    f("tracking_sigma", self.tracking_sigma), f("wanted_air_time", self.wanted_air_time);
    f("linear_tracking_weight", self.linear_tracking_weight), f("yaw_tracking_weight", self.yaw_tracking_weight);
    f("vertical_velocity_weight", self.vertical_velocity_weight);
    f("roll_pitch_rate_weight", self.roll_pitch_rate_weight), f("tilt_weight", self.tilt_weight);
    f("torque_weight", self.torque_weight), f("acceleration_weight", self.acceleration_weight);
    f("action_rate_weight", self.action_rate_weight), f("air_time_weight", self.air_time_weight);
    f("undesired_contact_weight", self.undesired_contact_weight);
    f("single_stance_weight", self.single_stance_weight), f("joint_deviation_weight", self.joint_deviation_weight);
    f("fall_weight", self.fall_weight);
  }

  void bind(const Model& model, const TaskNames& names) { robot = LeggedRobot::found(model, names); }
  TaskSizes sizes() const {
    const int n = robot.joints;
    return {robot.qpos, robot.qvel, robot.bodies, robot.controls, 12 + 3 * n, n, air_at() + robot.feet, robot.groups()};
  }
  const int* geom_groups() const { return robot.geom_group.data(); }

  static const char* report_name(int i) {
    constexpr const char* kNames[] = {"command_x",  "command_y", "command_yaw",    "curriculum",    "velocity_x",
                                      "velocity_y", "yaw_rate",  "velocity_error", "feet_in_touch", "trunk_height"};
    return kNames[i];
  }
  static const char* reward_name(int i) {
    constexpr const char* kNames[] = {"reward_linear_tracking",
                                      "reward_yaw_tracking",
                                      "reward_vertical_velocity",
                                      "reward_roll_pitch_rate",
                                      "reward_tilt",
                                      "reward_torque",
                                      "reward_acceleration",
                                      "reward_action_rate",
                                      "reward_air_time",
                                      "reward_undesired_contact",
                                      "reward_single_stance",
                                      "reward_joint_deviation",
                                      "reward_fall"};
    return kNames[i];
  }
  static constexpr double action_limit() { return 1; }

  // ---- memory
  enum Memory {
    kCommand = 0,
    kCommandTime = 3,
    kPushTime,
    kCurriculum,
    kTracked,
    kAcceleration,
    kActionRate,
    kAirTime,
    kStance,
    kLastAction
  };
  HD int velocity_at() const { return kLastAction + robot.joints; }
  HD int air_at() const { return kLastAction + 2 * robot.joints; }

  /// v in the trunk's axes, v in the world's.
  template <class Real>
  HD static Vec3<Real> in_trunk(const TaskView<Real>& view, Vec3<Real> v) {
    const Vec3<Real> u{-view.qpos[4], -view.qpos[5], -view.qpos[6]}, t = cross(u, v) * Real(2);
    return v + t * view.qpos[3] + cross(u, t);
  }
  template <class Real>
  HD static Vec3<Real> linear_velocity(const TaskView<Real>& view) {
    return in_trunk(view, Vec3<Real>{view.qvel[0], view.qvel[1], view.qvel[2]});
  }
  template <class Real>
  HD static Vec3<Real> gravity_direction(const TaskView<Real>& view) {
    return in_trunk(view, Vec3<Real>{Real(0), Real(0), Real(-1)});
  }
  /// Whether the force on a group of geoms is more than `force`.
  template <class Real>
  HD static Mask<Real> touches(const TaskView<Real>& view, int group, double force) {
    const Real* f = view.group_force + 3 * group;
    return f[0] * f[0] + f[1] * f[1] + f[2] * f[2] > Real(force * force);
  }

  /// New commands, at the curriculum's level.
  template <class S>
  HD void draw_command(Random& random, S* memory) const {
    const S part = S(curriculum_start) + (S(1) - S(curriculum_start)) * memory[kCurriculum];
    auto draw = [&](Interval range) { return part * random.uniform<S>(S(range.low), S(range.high)); };
    S x = draw(command_x), y = draw(command_y);
    memory[kCommand + 2] = draw(command_yaw);
    const bool slow = x * x + y * y < S(smallest_command * smallest_command);
    memory[kCommand] = slow ? S(0) : x, memory[kCommand + 1] = slow ? S(0) : y;
    memory[kCommandTime] = S(command_period);
  }

  template <class S>
  HD void disturb(Random& random, const TaskView<S>& view, S* qvel, S* memory) const {
    const S soon = view.period * S(0.5);
    if (memory[kCommandTime] < soon) draw_command(random, memory);
    if (memory[kPushTime] < soon) {
      memory[kPushTime] = random.uniform<S>(S(push_interval.low), S(push_interval.high));
      for (int i = 0; i < 2; ++i) qvel[i] += random.uniform<S>(S(-push_velocity), S(push_velocity));
    }
    memory[kCommandTime] -= view.period, memory[kPushTime] -= view.period;
  }

  template <class Real>
  HD void begin(const TaskView<Real>& view, Real* memory) const {
    for (int i = 0; i < robot.joints; ++i) memory[velocity_at() + i] = view.qvel[robot.joint_dof[i]];
  }
  template <class Real>
  HD void act(const TaskView<Real>& view, Real* ctrl) const {
    for (int i = 0; i < robot.controls; ++i) ctrl[i] = Real(robot.standing_ctrl[i]);
    for (int i = 0; i < robot.joints; ++i) {
      const int c = robot.joint_control[i];
      ctrl[c] = Real(robot.standing_ctrl[c]) + view.action[i] * Real(action_scale);
    }
  }
  void action_signals(Signals& s) const {
    for (int i = 0; i < robot.joints; ++i) {
      const double standing = robot.standing_ctrl[robot.joint_control[i]];
      s.add("joint_target/" + s.joint_at_qpos(robot.joint_qpos[i]), "rad", action_scale, standing);
    }
  }

  template <class Real>
  HD void finish(const TaskView<Real>& view, Real* memory) const {
    Real acceleration(0), change(0), air(0), standing(0), least(wanted_air_time);
    for (int i = 0; i < robot.joints; ++i) {
      const Real a = (view.qvel[robot.joint_dof[i]] - memory[velocity_at() + i]) / view.period;
      const Real action = clamp(view.action[i], Real(-kLargestAction), Real(kLargestAction));
      const Real d = action - memory[kLastAction + i];
      acceleration = acceleration + a * a, change = change + d * d, memory[kLastAction + i] = action;
    }
    for (int f = 0; f < robot.feet; ++f) {
      Real& time = memory[air_at() + f];  // s in the air; below 0: on the ground
      const Mask<Real> touch = touches(view, 1 + f, touch_force);
      air = air + select(touch & (time > Real(0)), time - Real(wanted_air_time), Real(0));
      time = select(touch, min(time, Real(0)) - view.period, max(time, Real(0)) + view.period);
      standing = standing + select(touch, Real(1), Real(0)), least = min(least, abs(time));
    }
    const Real x = memory[kCommand], y = memory[kCommand + 1];
    const Mask<Real> moving = x * x + y * y > Real(0);
    memory[kAcceleration] = acceleration, memory[kActionRate] = change;
    memory[kAirTime] = select(moving, air, Real(0));
    memory[kStance] = select(moving & (standing == Real(1)), least, Real(0));
    memory[kTracked] = memory[kTracked] + linear_tracking(view, memory) / Real(kMaxEpisodeSteps);
  }

  template <class Real>
  HD void observe(const TaskView<Real>& view, const Real* memory, Real* observation) const {
    const Vec3<Real> v = linear_velocity(view), g = gravity_direction(view);
    const Real trunk[] = {v.x, v.y, v.z, view.qvel[3], view.qvel[4], view.qvel[5], g.x, g.y, g.z};
    for (int i = 0; i < 9; ++i) observation[i] = trunk[i];
    for (int i = 0; i < 3; ++i) observation[9 + i] = memory[kCommand + i];
    const int n = robot.joints;
    for (int i = 0; i < n; ++i) {
      const int q = robot.joint_qpos[i];
      observation[12 + i] = view.qpos[q] - Real(robot.standing[q]);
      observation[12 + n + i] = view.qvel[robot.joint_dof[i]];
      observation[12 + 2 * n + i] = memory[kLastAction + i];
    }
  }
  void observation_signals(Signals& s) const {
    s.add_vector("linear_velocity", "m/s", 1, "the trunk's, its axes");
    s.add_vector("angular_velocity", "rad/s", 1, "the trunk's, its axes");
    s.add_vector("gravity", "1", 1, "direction, the trunk's axes");
    s.add("command/x", "m/s"), s.add("command/y", "m/s"), s.add("command/yaw", "rad/s");
    auto each = [&](const char* term, const char* unit, auto&& offset) {
      for (int i = 0; i < robot.joints; ++i)
        s.add(std::string(term) + "/" + s.joint_at_qpos(robot.joint_qpos[i]), unit, 1, offset(robot.joint_qpos[i]));
    };
    each("joint_position", "rad", [&](int q) { return robot.standing[q]; });
    each("joint_velocity", "rad/s", [](int) { return 0.0; });
    each("last_action", "1", [](int) { return 0.0; }), s.limit(robot.joints, -kLargestAction, kLargestAction);
  }

  template <class Real>
  HD Mask<Real> terminated(const TaskView<Real>& view) const {
    return touches(view, 0, trunk_force_limit);
  }

  template <class Real>
  HD Real tracking(Real square) const {
    return exponential(-square / Real(tracking_sigma * tracking_sigma));
  }
  template <class Real>
  HD Real linear_tracking(const TaskView<Real>& view, const Real* memory) const {
    const Vec3<Real> v = linear_velocity(view);
    const Real x = v.x - memory[kCommand], y = v.y - memory[kCommand + 1];
    return tracking(x * x + y * y);
  }

  template <class Real>
  HD void reward(const TaskView<Real>& view, const Real* memory, Real* terms) const {
    const Vec3<Real> v = linear_velocity(view), g = gravity_direction(view);
    const Real yaw = view.qvel[5] - memory[kCommand + 2];
    Real torque(0), undesired(0), deviation(0);
    for (int i = 0; i < robot.joints; ++i) {
      const Real t = view.actuator_force[robot.joint_dof[i]];
      const int q = robot.joint_qpos[i];
      torque = torque + t * t, deviation = deviation + abs(view.qpos[q] - Real(robot.standing[q]));
    }
    for (int i = 0; i < robot.undesired; ++i)
      undesired = undesired + select(touches(view, 1 + robot.feet + i, touch_force), Real(1), Real(0));
    terms[0] = linear_tracking(view, memory) * Real(linear_tracking_weight);
    terms[1] = tracking(yaw * yaw) * Real(yaw_tracking_weight);
    terms[2] = -v.z * v.z * Real(vertical_velocity_weight);
    terms[3] = -(view.qvel[3] * view.qvel[3] + view.qvel[4] * view.qvel[4]) * Real(roll_pitch_rate_weight);
    terms[4] = -(g.x * g.x + g.y * g.y) * Real(tilt_weight);
    terms[5] = -torque * Real(torque_weight), terms[6] = -memory[kAcceleration] * Real(acceleration_weight);
    terms[7] = -memory[kActionRate] * Real(action_rate_weight), terms[8] = memory[kAirTime] * Real(air_time_weight);
    terms[9] = -undesired * Real(undesired_contact_weight);
    terms[10] = memory[kStance] * Real(single_stance_weight);
    terms[11] = -deviation * Real(joint_deviation_weight);
    terms[12] = select(terminated(view), Real(-fall_weight), Real(0));
    for (int i = 0; i < kRewardTerms; ++i) terms[i] = terms[i] * view.period;
  }

  template <class Real>
  HD void report(const TaskView<Real>& view, const Real* memory, Real* numbers) const {
    const Vec3<Real> v = linear_velocity(view);
    const Real x = v.x - memory[kCommand], y = v.y - memory[kCommand + 1];
    Real touching(0);
    for (int f = 0; f < robot.feet; ++f)
      touching = touching + select(touches(view, 1 + f, touch_force), Real(1), Real(0));
    for (int i = 0; i < 3; ++i) numbers[i] = memory[kCommand + i];
    numbers[3] = memory[kCurriculum], numbers[4] = v.x, numbers[5] = v.y, numbers[6] = view.qvel[5];
    numbers[7] = sqrt(x * x + y * y), numbers[8] = touching, numbers[9] = view.qpos[2];
  }

  template <class S>
  HD void reset(Random& random, const S*, S* qpos, S* qvel, S* memory) const {
    const bool learned = memory[kTracked] > S(0.8);
    const S level = learned && memory[kCurriculum] < S(0.95) ? memory[kCurriculum] + S(0.1) : memory[kCurriculum];
    for (int i = 0; i < air_at() + robot.feet; ++i) memory[i] = S(0);
    memory[kCurriculum] = level;
    draw_command(random, memory);
    memory[kPushTime] = random.uniform<S>(S(push_interval.low), S(push_interval.high));

    for (int i = 0; i < robot.qpos; ++i) qpos[i] = S(robot.standing[i]);
    for (int i = 0; i < robot.qvel; ++i) qvel[i] = S(0);
    qpos[2] += S(start_clearance);
    const S half = random.uniform<S>(S(-1.5707963267948966), S(1.5707963267948966));
    const Quat<S> q = yaw(S(2) * half) * Quat<S>{qpos[3], qpos[4], qpos[5], qpos[6]};
    qpos[3] = q.w, qpos[4] = q.x, qpos[5] = q.y, qpos[6] = q.z;
    for (int i = 0; i < 6; ++i) qvel[i] = random.uniform<S>(S(start_velocity.low), S(start_velocity.high));
    for (int i = 0; i < robot.joints; ++i)
      qpos[robot.joint_qpos[i]] += random.uniform<S>(S(joint_noise.low), S(joint_noise.high));
  }
};

}  // namespace stiction
