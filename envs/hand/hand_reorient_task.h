// HandReorientTask: a hand turns a cube that lies in it to one orientation after the other. Terms and rates of Isaac Lab's repose
// task for the Allegro hand (Isaac-Repose-Cube-Allegro-Direct, after IsaacGymEnvs'), on any hand: see robot_hand.h.
//
//   observation  21 + 3 n + 3 f for n joints, f fingertips: joint angles as parts of their ranges, -1 to 1 (n); joint velocities
//                times 0.2 (n); cube: position from its place (3), orientation w x y z (4), velocity (3), angular velocity times
//                0.2 (3, cube's axes); goal orientation (4); rotation from goal to cube (4, w >= 0); fingertips' positions from the
//                cube's place (3 f); last action (n)                                                 1, rad/s, m, 1, m/s, rad/s
//   action       n joint targets: the home pose at 0, the joint's limits at -1 and 1
//   reward       rotation: 1 / (angle to the goal + 0.1); distance: minus that from the cube's place, m; action: -2e-4 |a|^2; goal:
//                250 when it is reached, an angle below success_angle; fall
//   end          the cube is fall_distance or more from its place
//   start        home pose, joints + U(joint_noise); the cube a little above its place, moved by up to cube_noise in x and y, on any
//                of its faces and turned by U(cube_yaw) about the vertical. A goal is the one before it, the first the cube, turned
//                by U(goal_turn), either way, about an axis within goal_tilt of the vertical. Places and faces are those of the home
//                pose; positions are in the world's axes
//   report       goals reached in this episode; angle to the goal (rad) and distance from its place (m) at the end of the step;
//                is_success: a goal was reached in this step; the goal that is now to be reached (w x y z)
//
// Deviations: an action of 0 is the home pose, not the middle of the ranges; goals and the cube's start as above (there: turns about
// two axes, so goals of all rotations); a goal is reached at 0.4 rad, as in OpenAI's Dactyl (there 0.2), and the distance weighs a
// tenth: any turn costs some; of fingertips the positions are observed alone; the distance is from where the cube rests, not from 4 cm
// below its start.
// Tests: tests/python/test_hand_env.py (every term against formulae and MuJoCo's quantities; the cube rests in the hand).
#pragma once
#include "envs/core/body_point.h"
#include "envs/hand/robot_hand.h"
#include "math/rotation.h"

namespace stiction {

struct HandReorientTask {
  static constexpr int kSubsteps = 4, kMaxEpisodeSteps = 300;
  static constexpr unsigned kNeeds = kNeedsBodyPoses, kBeginNeeds = kNeedsNothing;
  static constexpr int kReports = 8, kResetReports = 8, kRewardTerms = 5;
  static constexpr double kLargestAction = 100;  // of observations; what is not finite ends the episode anyway
  static constexpr double kVelocityScale = 0.2;  // of joint and angular velocities, as observed

  // ---- the robot
  RobotHand robot;

  // ---- parameters
  double success_angle = 0.4, fall_distance = 0.24;                                              // rad, m
  double rotation_weight = 1, rotation_offset = 0.1, distance_weight = 1, action_weight = 2e-4;  // offset: rad
  double goal_weight = 250, fall_weight = 0;
  Interval joint_noise = {-0.1, 0.1}, cube_yaw = {-0.2, 0.2};  // rad
  Interval goal_turn = {0.5, 1.5707963267948966};              // rad
  double goal_tilt = 0;                                        // rad, up to pi / 2: any axis
  double cube_noise = 0.005, start_clearance = 0.01;           // m

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    f("success_angle", self.success_angle), f("fall_distance", self.fall_distance);
    f("rotation_weight", self.rotation_weight), f("rotation_offset", self.rotation_offset);
    f("distance_weight", self.distance_weight), f("action_weight", self.action_weight);
    f("goal_weight", self.goal_weight), f("fall_weight", self.fall_weight), f("joint_noise", self.joint_noise);
    f("goal_turn", self.goal_turn), f("goal_tilt", self.goal_tilt), f("cube_yaw", self.cube_yaw),
        f("cube_noise", self.cube_noise), f("start_clearance", self.start_clearance);
  }

  void bind(const Model& model, const TaskNames& names) { robot = RobotHand::found(model, names); }
  TaskSizes sizes() const {
    const int n = robot.joints;
    return {robot.qpos,      robot.qvel, robot.bodies, robot.controls, 21 + 3 * n + 3 * robot.fingertips, n,
            kLastAction + n, 0};
  }

  static const char* report_name(int i) {
    constexpr const char* kNames[] = {"goals",  "angle",  "distance", "is_success",
                                      "goal_w", "goal_x", "goal_y",   "goal_z"};
    return kNames[i];
  }
  static const char* reward_name(int i) {
    constexpr const char* kNames[] = {"reward_rotation", "reward_distance", "reward_action", "reward_goal",
                                      "reward_fall"};
    return kNames[i];
  }
  static constexpr double action_limit() { return 1; }

  // ---- memory: the goal, the one after it, what the last step made of them
  enum Memory { kGoal = 0, kNextGoal = 4, kNextUsed = 8, kGoals, kAngle, kReached, kEffort, kLastAction };

  template <class Real>
  HD static Quat<Real> quat_at(const Real* q) {
    return {q[0], q[1], q[2], q[3]};
  }
  template <class Real>
  HD static void put(const Quat<Real>& q, Real* to) {
    to[0] = q.w, to[1] = q.x, to[2] = q.y, to[3] = q.z;
  }
  template <class Real>
  HD Vec3<Real> from_place(Vec3<Real> p) const {
    const double* at = robot.home + robot.cube_qpos;
    return p - Vec3<Real>{Real(at[0]), Real(at[1]), Real(at[2])};
  }
  template <class Real>
  HD Vec3<Real> cube_offset(const TaskView<Real>& view) const {
    const Real* q = view.qpos + robot.cube_qpos;
    return from_place(Vec3<Real>{q[0], q[1], q[2]});
  }
  template <class Real>
  HD Quat<Real> orientation(const TaskView<Real>& view) const {
    return quat_at(view.qpos + robot.cube_qpos + 3);
  }
  template <class Real>
  HD Vec3<Real> fingertip(const TaskView<Real>& view, int tip) const {
    return body_point(view, robot.tip_body[tip], robot.tip_point + 3 * tip);
  }

  /// The goal after the next, when that has been used.
  template <class S>
  HD void disturb(Random& random, const TaskView<S>&, S*, S* memory) const {
    if (memory[kNextUsed] > S(0)) put_next_goal(random, memory), memory[kNextUsed] = S(0);
  }
  template <class S>
  HD void put_next_goal(Random& random, S* memory) const {
    put(after(random, quat_at(memory + kGoal)), memory + kNextGoal);
  }
  template <class S>
  HD Quat<S> after(Random& random, const Quat<S>& from) const {
    return turn_about_some(random.uniform<S>(S(goal_turn.low), S(goal_turn.high)), S(goal_tilt), random) * from;
  }
  template <class Real>
  HD void begin(const TaskView<Real>&, Real*) const {}

  template <class Real>
  HD void act(const TaskView<Real>& view, Real* ctrl) const {
    for (int i = 0; i < robot.controls; ++i) ctrl[i] = Real(robot.home_ctrl[i]);
    for (int i = 0; i < robot.joints; ++i) {
      const double home = robot.home[robot.joint_qpos[i]];
      const Real a = view.action[i], up = Real(robot.joint_high[i] - home), down = Real(home - robot.joint_low[i]);
      ctrl[robot.joint_control[i]] = Real(home) + a * select(a > Real(0), up, down);
    }
  }
  void action_signals(Signals& s) const {
    for (int i = 0; i < robot.joints; ++i) {
      const int q = robot.joint_qpos[i];
      const double home = robot.home[q];
      Signal& target = s.add("joint_target/" + s.joint_at_qpos(q), "rad", robot.joint_high[i] - home, home);
      target.scale_below = home - robot.joint_low[i];
    }
  }

  template <class Real>
  HD void finish(const TaskView<Real>& view, Real* memory) const {
    Real effort(0);
    for (int i = 0; i < robot.joints; ++i) {
      const Real action = clamp(view.action[i], Real(-kLargestAction), Real(kLargestAction));
      effort = effort + action * action, memory[kLastAction + i] = action;
    }
    const Real angle = rotation_angle(difference(orientation(view), quat_at(memory + kGoal)));
    const Mask<Real> reached = angle < Real(success_angle);
    memory[kEffort] = effort, memory[kAngle] = angle, memory[kReached] = select(reached, Real(1), Real(0));
    memory[kGoals] = memory[kGoals] + memory[kReached];
    memory[kNextUsed] = select(reached, Real(1), memory[kNextUsed]);
    for (int i = 0; i < 4; ++i) memory[kGoal + i] = select(reached, memory[kNextGoal + i], memory[kGoal + i]);
  }

  template <class Real>
  HD void observe(const TaskView<Real>& view, const Real* memory, Real* observation) const {
    const int n = robot.joints;
    for (int i = 0; i < n; ++i) {
      const double low = robot.joint_low[i], high = robot.joint_high[i];
      observation[i] = (view.qpos[robot.joint_qpos[i]] - Real(0.5 * (low + high))) * Real(2 / (high - low));
      observation[n + i] = view.qvel[robot.joint_dof[i]] * Real(kVelocityScale);
    }
    Real* o = observation + 2 * n;
    const Real* velocity = view.qvel + robot.cube_dof;
    const Vec3<Real> cube = cube_offset(view);
    const Quat<Real> q = orientation(view), goal = quat_at(memory + kGoal);
    o[0] = cube.x, o[1] = cube.y, o[2] = cube.z;
    put(q, o + 3);
    for (int i = 0; i < 3; ++i) o[7 + i] = velocity[i], o[10 + i] = velocity[3 + i] * Real(kVelocityScale);
    put(goal, o + 13), put(difference(q, goal), o + 17);
    for (int t = 0; t < robot.fingertips; ++t) {
      const Vec3<Real> p = from_place(fingertip(view, t));
      o[21 + 3 * t] = p.x, o[22 + 3 * t] = p.y, o[23 + 3 * t] = p.z;
    }
    for (int i = 0; i < n; ++i) o[21 + 3 * robot.fingertips + i] = memory[kLastAction + i];
  }
  void observation_signals(Signals& s) const {
    auto joint = [&](int i) { return "/" + s.joint_at_qpos(robot.joint_qpos[i]); };
    auto place = [&](int axis) { s.last().offset = robot.home[robot.cube_qpos + axis]; };
    const char* axes[] = {"x", "y", "z"};
    const int n = robot.joints;
    for (int i = 0; i < n; ++i) {
      const double low = robot.joint_low[i], high = robot.joint_high[i];
      s.add("joint_position" + joint(i), "rad", 2 / (high - low), 0.5 * (low + high));
    }
    for (int i = 0; i < n; ++i) s.add("joint_velocity" + joint(i), "rad/s", kVelocityScale);
    for (int i = 0; i < 3; ++i) s.add(std::string("cube_position/") + axes[i], "m"), place(i);
    s.add_quaternion("cube_orientation"), s.add_vector("cube_linear_velocity", "m/s", 1, "world's axes");
    s.add_vector("cube_angular_velocity", "rad/s", kVelocityScale, "the cube's axes");
    s.add_quaternion("goal_orientation"), s.add_quaternion("goal_to_cube", "w >= 0");
    for (int t = 0; t < robot.fingertips; ++t)
      for (int i = 0; i < 3; ++i)
        s.add("fingertip_position/" + s.point(robot.tip_body[t], robot.tip_point + 3 * t) + "." + axes[i], "m"),
            place(i);
    for (int i = 0; i < n; ++i) s.add("last_action" + joint(i), "1");
    s.limit(n, -kLargestAction, kLargestAction);
  }

  template <class Real>
  HD Mask<Real> terminated(const TaskView<Real>& view) const {
    return norm(cube_offset(view)) >= Real(fall_distance);
  }

  template <class Real>
  HD void reward(const TaskView<Real>& view, const Real* memory, Real* terms) const {
    terms[0] = Real(rotation_weight) / (memory[kAngle] + Real(rotation_offset));
    terms[1] = -norm(cube_offset(view)) * Real(distance_weight), terms[2] = -memory[kEffort] * Real(action_weight);
    terms[3] = memory[kReached] * Real(goal_weight), terms[4] = select(terminated(view), Real(-fall_weight), Real(0));
  }

  template <class Real>
  HD void report(const TaskView<Real>& view, const Real* memory, Real* numbers) const {
    numbers[0] = memory[kGoals], numbers[1] = memory[kAngle], numbers[2] = norm(cube_offset(view));
    numbers[3] = memory[kReached];
    for (int i = 0; i < 4; ++i) numbers[4 + i] = memory[kGoal + i];
  }

  template <class S>
  HD void reset(Random& random, const S*, S* qpos, S* qvel, S* memory) const {
    for (int i = 0; i < robot.qpos; ++i) qpos[i] = S(robot.home[i]);
    for (int i = 0; i < robot.qvel; ++i) qvel[i] = S(0);
    for (int i = 0; i < kLastAction + robot.joints; ++i) memory[i] = S(0);
    for (int i = 0; i < robot.joints; ++i) {
      const S angle = qpos[robot.joint_qpos[i]] + random.uniform<S>(S(joint_noise.low), S(joint_noise.high));
      qpos[robot.joint_qpos[i]] = clamp(angle, S(robot.joint_low[i]), S(robot.joint_high[i]));
    }
    S* cube = qpos + robot.cube_qpos;
    for (int i = 0; i < 2; ++i) cube[i] += random.uniform<S>(S(-cube_noise), S(cube_noise));
    cube[2] += S(start_clearance);
    const Quat<S> turn = yaw(random.uniform<S>(S(cube_yaw.low), S(cube_yaw.high)));
    put(turn * quat_at(cube + 3) * cube_symmetry<S>(random), cube + 3);
    put(after(random, quat_at(cube + 3)), memory + kGoal), put_next_goal(random, memory);
    memory[kAngle] = rotation_angle(difference(quat_at(cube + 3), quat_at(memory + kGoal)));
  }
};

}  // namespace stiction
