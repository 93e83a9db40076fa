// ArmTask: what the tasks of an arm with a gripper have in common: actions, the arm's part of the observation, costs, where cubes
// begin. See arm_lift_task.h and arm_stack_task.h; the robot: gripper_arm.h.
//
//   action       n joint targets, home pose + action_scale times the action, rad; then the gripper: from 0 on open, below 0 closed.
//                With binary_gripper off its target goes from closed at -1 to open at 1
//   observation  of the arm: joint angles less the home pose, joint velocities (n each), positions and velocities of the f
//                fingers, last action (n + 1)                                       rad, rad/s, m or rad, m/s or rad/s, 1
//                of a cube: position, orientation (w x y z), velocity, angular velocity (cube's axes)  m, 1, m/s, rad/s
//
// Positions are in the world's axes. Memory begins with what all have.
#pragma once
#include "envs/arm/gripper_arm.h"
#include "envs/core/body_point.h"
#include "envs/core/tolerance.h"
#include "math/rotation.h"

namespace stiction {

struct ArmTask {
  static constexpr int kSubsteps = 2, kMaxEpisodeSteps = 250;
  static constexpr unsigned kNeeds = kNeedsGroupForces | kNeedsBodyPoses, kBeginNeeds = kNeedsNothing;
  static constexpr double kLargestAction = 100;  // of observations; what is not finite ends the episode anyway

  // ---- the robot
  GripperArm robot;

  // ---- parameters
  double action_scale = 0.5;  // rad
  bool binary_gripper = true;
  double gripper_open = 1, gripper_closed = 0;                    // parts of the actuators' control ranges
  Interval joint_noise = {0, 0};                                  // rad
  Interval cube_x = {-0.1, 0.1}, cube_y = {-0.25, 0.25};          // from their place in the home pose    m
  Interval cube_yaw = {-0.7853981633974483, 0.7853981633974483};  // all there are, of a cube             rad
  double lift_height = 0.02, fall_depth = 0.05;                   // above, below that place              m
  double reach_scale = 0.1, lift_reach = 0.1;                     // m
  double touch_force = 0.1;                                       // N
  double action_rate_weight = 1e-4, joint_velocity_weight = 1e-4;

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    f("action_scale", self.action_scale), f("binary_gripper", self.binary_gripper);
    f("gripper_open", self.gripper_open), f("gripper_closed", self.gripper_closed);
    f("joint_noise", self.joint_noise), f("cube_x", self.cube_x), f("cube_y", self.cube_y);
    f("cube_yaw", self.cube_yaw), f("lift_height", self.lift_height), f("fall_depth", self.fall_depth);
    f("reach_scale", self.reach_scale), f("lift_reach", self.lift_reach), f("touch_force", self.touch_force);
    f("action_rate_weight", self.action_rate_weight), f("joint_velocity_weight", self.joint_velocity_weight);
  }

  static constexpr double action_limit() { return 3; }  // what the whole of the table needs
  HD int actions() const { return robot.joints + 1; }
  HD int arm_observations() const { return 2 * robot.joints + 2 * robot.fingers + actions(); }
  static constexpr int kCubeObservations = 13;
  const int* geom_groups() const { return robot.geom_group.data(); }

  // ---- memory
  enum Memory { kActionRate = 0, kLastAction };
  HD int arm_memory() const { return kLastAction + actions(); }

  // ---- where things are
  template <class Real>
  HD Vec3<Real> cube_position(const TaskView<Real>& view, int cube) const {
    const Real* q = view.qpos + robot.cube_qpos[cube];
    return {q[0], q[1], q[2]};
  }
  /// The point between the fingertips.
  template <class Real>
  HD Vec3<Real> grasp_point(const TaskView<Real>& view) const {
    return body_point(view, robot.grasp_body, robot.grasp_point);
  }
  /// Of a cube's centre above its place in the home pose.
  template <class Real>
  HD Real height(const TaskView<Real>& view, int cube) const {
    const int z = robot.cube_qpos[cube] + 2;
    return view.qpos[z] - Real(robot.home[z]);
  }
  /// The first cube is up, and has not been thrown there.
  template <class Real>
  HD Mask<Real> lifted(const TaskView<Real>& view) const {
    const Real away = norm(grasp_point(view) - cube_position(view, 0));
    return (height(view, 0) > Real(lift_height)) & (away < Real(lift_reach));
  }
  /// Contact force on a finger, N.
  template <class Real>
  HD Real finger_force(const TaskView<Real>& view, int finger) const {
    const Real* f = view.group_force + 3 * finger;
    return norm(Vec3<Real>{f[0], f[1], f[2]});
  }
  /// How many fingers touch something.
  template <class Real>
  HD Real touching(const TaskView<Real>& view) const {
    Real n(0);
    for (int i = 0; i < robot.fingers; ++i) n = n + select(finger_force(view, i) > Real(touch_force), Real(1), Real(0));
    return n;
  }

  template <class Real>
  HD void begin(const TaskView<Real>&, Real*) const {}

  template <class Real>
  HD void act(const TaskView<Real>& view, Real* ctrl) const {
    for (int i = 0; i < robot.joints; ++i)
      ctrl[robot.joint_control[i]] = Real(robot.home[robot.joint_qpos[i]]) + view.action[i] * Real(action_scale);
    const Real a = view.action[robot.joints];
    const Mask<Real> binary =
        mask_of<Real>(binary_gripper) & (abs(a) <= Real(kLargestAction));  // else it is told as it is
    const Real open = select(binary, select(a < Real(0), Real(0), Real(1)), (a + Real(1)) * Real(0.5));
    const Real part = Real(gripper_closed) + open * Real(gripper_open - gripper_closed);
    for (int i = 0; i < robot.grippers; ++i) {
      const double low = robot.gripper_low[i], high = robot.gripper_high[i];
      ctrl[robot.gripper_control[i]] = Real(low) + part * Real(high - low);
    }
  }
  void action_signals(Signals& s) const {
    for (int i = 0; i < robot.joints; ++i) {
      const int q = robot.joint_qpos[i];
      s.add("joint_target/" + s.joint_at_qpos(q), "rad", action_scale, robot.home[q]);
    }
    const double half = 0.5 * (gripper_open - gripper_closed);  // parts of the gripper's control range
    s.add("gripper", "1", half, gripper_closed + half);
    if (binary_gripper) s.limit(1, -1, 1), s.add_note("part of its control range; 1 from 0 on, else -1");
    else s.add_note("part of its control range");
  }

  template <class Real>
  HD void finish(const TaskView<Real>& view, Real* memory) const {
    Real change(0);
    for (int i = 0; i < actions(); ++i) {
      const Real action = clamp(view.action[i], Real(-kLargestAction), Real(kLargestAction));
      const Real d = action - memory[kLastAction + i];
      change = change + d * d, memory[kLastAction + i] = action;
    }
    memory[kActionRate] = change;
  }

  template <class Real>
  HD void observe_arm(const TaskView<Real>& view, const Real* memory, Real* observation) const {
    const int n = robot.joints, f = robot.fingers;
    for (int i = 0; i < n; ++i) {
      const int q = robot.joint_qpos[i];
      observation[i] = view.qpos[q] - Real(robot.home[q]), observation[n + i] = view.qvel[robot.joint_dof[i]];
    }
    for (int i = 0; i < f; ++i) {
      observation[2 * n + i] = view.qpos[robot.finger_qpos[i]];
      observation[2 * n + f + i] = view.qvel[robot.finger_dof[i]];
    }
    for (int i = 0; i < actions(); ++i) observation[2 * (n + f) + i] = memory[kLastAction + i];
  }
  void arm_signals(Signals& s) const {
    auto joint = [&](int i) { return s.joint_at_qpos(robot.joint_qpos[i]); };
    const int n = robot.joints;
    for (int i = 0; i < n; ++i) s.add("joint_position/" + joint(i), "rad", 1, robot.home[robot.joint_qpos[i]]);
    for (int i = 0; i < n; ++i) s.add("joint_velocity/" + joint(i), "rad/s");
    for (int i = 0; i < robot.fingers; ++i) s.add_positions(robot.finger_qpos[i], 1), s.move_term("finger_position");
    for (int i = 0; i < robot.fingers; ++i) s.add_velocities(robot.finger_dof[i], 1), s.move_term("finger_velocity");
    for (int i = 0; i < n; ++i) s.add("last_action/" + joint(i), "1");
    s.add("last_action/gripper", "1"), s.limit(actions(), -kLargestAction, kLargestAction);
  }
  template <class Real>
  HD void observe_cube(const TaskView<Real>& view, int cube, Real* observation) const {
    for (int i = 0; i < 7; ++i) observation[i] = view.qpos[robot.cube_qpos[cube] + i];
    for (int i = 0; i < 6; ++i) observation[7 + i] = view.qvel[robot.cube_dof[cube] + i];
  }
  void cube_signals(int cube, Signals& s) const {
    const std::string name = cube == 0 ? "cube" : "cube_" + std::to_string(cube + 1);
    s.add_vector(name + "_position", "m", 1, "world's axes"), s.add_quaternion(name + "_orientation");
    s.add_vector(name + "_linear_velocity", "m/s", 1, "world's axes");
    s.add_vector(name + "_angular_velocity", "rad/s", 1, "the cube's axes");
  }
  template <class Real>
  HD static void observe_vector(Vec3<Real> v, Real* observation) {
    observation[0] = v.x, observation[1] = v.y, observation[2] = v.z;
  }

  template <class Real>
  HD Mask<Real> terminated(const TaskView<Real>& view) const {
    Mask<Real> fallen = mask_of<Real>(false);
    for (int c = 0; c < robot.cubes; ++c) fallen = fallen | (height(view, c) < Real(-fall_depth));
    return fallen;
  }

  /// 1 - tanh(distance of grasp point and first cube / reach_scale).
  template <class Real>
  HD Real reach(const TaskView<Real>& view) const {
    return tanh_tolerance(norm(grasp_point(view) - cube_position(view, 0)), reach_scale);
  }
  /// Two terms: changes of the action, joint velocities, squared.
  template <class Real>
  HD void costs(const TaskView<Real>& view, const Real* memory, Real* terms) const {
    Real speed(0);
    for (int i = 0; i < robot.joints; ++i) {
      const Real v = view.qvel[robot.joint_dof[i]];
      speed = speed + v * v;
    }
    terms[0] = -memory[kActionRate] * Real(action_rate_weight), terms[1] = -speed * Real(joint_velocity_weight);
  }

  /// The home pose at rest, with noise on the arm's joints.
  template <class S>
  HD void reset_arm(Random& random, S* qpos, S* qvel, S* memory) const {
    for (int i = 0; i < robot.qpos; ++i) qpos[i] = S(robot.home[i]);
    for (int i = 0; i < robot.qvel; ++i) qvel[i] = S(0);
    for (int i = 0; i < robot.joints; ++i)
      qpos[robot.joint_qpos[i]] += random.uniform<S>(S(joint_noise.low), S(joint_noise.high));
    for (int i = 0; i < arm_memory(); ++i) memory[i] = S(0);
  }
  /// A cube somewhere about its place, turned about the vertical.
  template <class S>
  HD void reset_cube(Random& random, int cube, S* qpos) const {
    const int at = robot.cube_qpos[cube];
    qpos[at] = S(robot.home[at]) + random.uniform<S>(S(cube_x.low), S(cube_x.high));
    qpos[at + 1] = S(robot.home[at + 1]) + random.uniform<S>(S(cube_y.low), S(cube_y.high));
    const double* home = robot.home + at + 3;
    const Quat<S> q = yaw(random.uniform<S>(S(cube_yaw.low), S(cube_yaw.high))) *
                      Quat<S>{S(home[0]), S(home[1]), S(home[2]), S(home[3])};
    qpos[at + 3] = q.w, qpos[at + 4] = q.x, qpos[at + 5] = q.y, qpos[at + 6] = q.z;
  }
};

}  // namespace stiction
