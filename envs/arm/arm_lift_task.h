// ArmLiftTask: an arm with a gripper takes a cube from the table and holds it where it is told. Terms, weights, ranges and rates of
// Isaac Lab's lift task (Isaac-Lift-Cube-Franka), on any arm: see gripper_arm.h, and arm_task.h for actions.
//
//   observation  20 + 3 n + 2 f for n joints, f fingers: the arm (arm_task.h); the cube (13); from the grasp point to the cube,
//                from the cube to its goal (3 each)                                                                       m
//   action       n + 1: joint targets and the gripper
//   reward       each term times the period. reach: 1 - tanh(distance of grasp point and cube / 0.1 m); lift: 1 while the cube is
//                lifted, lift_height above its place and lift_reach from the grasp point at most; goal, goal_fine: while it is
//                lifted, 1 - tanh(distance to the goal / 0.3 m or 0.05 m); costs: changes of the action^2, joint velocities^2
//   end          the cube fell: fall_depth below its place in the home pose
//   start        home pose; the cube within cube_x, cube_y of its place, any yaw; a goal within goal_x, goal_y, goal_z of it
//   report       the goal; grasp_distance, goal_distance, cube_height above its place; touching: fingers that touch something;
//                is_lifted; is_success: lifted and within success_distance of the goal
//
// Deviations: the cube's orientation and velocities and the two differences are observed too; the goal is a position; positions are
// in the world's axes and ranges about the cube's place; one goal an episode; a cube that was thrown is not lifted; no curriculum on
// the costs, which are the arm's.
// Tests: tests/python/test_manipulation_env.py (every term against formulae and MuJoCo's quantities; a script that lifts).
#pragma once
#include "envs/arm/arm_task.h"

namespace stiction {

struct ArmLiftTask : ArmTask {
  static constexpr int kReports = 9, kResetReports = 3, kRewardTerms = 6;

  Interval goal_x = {-0.1, 0.1}, goal_y = {-0.25, 0.25},
           goal_z = {0.225, 0.475};  // from the cube's place in the home pose    m
  double goal_scale = 0.3, goal_fine_scale = 0.05, success_distance = 0.02;  // m
  double reach_weight = 1, lift_weight = 15, goal_weight = 16, goal_fine_weight = 5;

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    ArmTask::parameters(self, f);
    f("goal_x", self.goal_x), f("goal_y", self.goal_y), f("goal_z", self.goal_z), f("goal_scale", self.goal_scale);
    f("goal_fine_scale", self.goal_fine_scale), f("success_distance", self.success_distance);
    f("reach_weight", self.reach_weight), f("lift_weight", self.lift_weight), f("goal_weight", self.goal_weight);
    f("goal_fine_weight", self.goal_fine_weight);
  }

  void bind(const Model& model, const TaskNames& names) { robot = GripperArm::found(model, names, 1); }
  TaskSizes sizes() const {
    return {robot.qpos, robot.qvel,       robot.bodies, robot.controls, arm_observations() + kCubeObservations + 6,
            actions(),  arm_memory() + 3, robot.fingers};
  }

  static const char* report_name(int i) {
    constexpr const char* kNames[] = {"goal_x",      "goal_y",   "goal_z",    "grasp_distance", "goal_distance",
                                      "cube_height", "touching", "is_lifted", "is_success"};
    return kNames[i];
  }
  static const char* reward_name(int i) {
    constexpr const char* kNames[] = {"reward_reach",     "reward_lift",        "reward_goal",
                                      "reward_goal_fine", "reward_action_rate", "reward_joint_velocity"};
    return kNames[i];
  }

  template <class Real>
  HD Vec3<Real> goal(const Real* memory) const {
    const Real* at = memory + arm_memory();
    return {at[0], at[1], at[2]};
  }

  template <class Real>
  HD void observe(const TaskView<Real>& view, const Real* memory, Real* observation) const {
    const Vec3<Real> cube = cube_position(view, 0);
    Real* of_cube = observation + arm_observations();
    observe_arm(view, memory, observation), observe_cube(view, 0, of_cube);
    observe_vector(cube - grasp_point(view), of_cube + kCubeObservations);
    observe_vector(goal(memory) - cube, of_cube + kCubeObservations + 3);
  }
  void observation_signals(Signals& s) const {
    arm_signals(s), cube_signals(0, s);
    s.add_vector("grasp_to_cube", "m", 1, "world's axes"), s.add_vector("cube_to_goal", "m", 1, "world's axes");
  }

  template <class Real>
  HD void reward(const TaskView<Real>& view, const Real* memory, Real* terms) const {
    const Real up = select(lifted(view), Real(1), Real(0)), distance = norm(goal(memory) - cube_position(view, 0));
    terms[0] = reach(view) * Real(reach_weight), terms[1] = up * Real(lift_weight);
    terms[2] = up * tanh_tolerance(distance, goal_scale) * Real(goal_weight);
    terms[3] = up * tanh_tolerance(distance, goal_fine_scale) * Real(goal_fine_weight);
    costs(view, memory, terms + 4);
    for (int i = 0; i < kRewardTerms; ++i) terms[i] = terms[i] * view.period;
  }

  template <class Real>
  HD void report(const TaskView<Real>& view, const Real* memory, Real* numbers) const {
    const Vec3<Real> cube = cube_position(view, 0);
    const Mask<Real> up = lifted(view);
    observe_vector(goal(memory), numbers);
    numbers[3] = norm(cube - grasp_point(view)), numbers[4] = norm(goal(memory) - cube);
    numbers[5] = height(view, 0), numbers[6] = touching(view), numbers[7] = select(up, Real(1), Real(0));
    numbers[8] = select(up & (numbers[4] < Real(success_distance)), Real(1), Real(0));
  }

  template <class S>
  HD void reset(Random& random, const S*, S* qpos, S* qvel, S* memory) const {
    reset_arm(random, qpos, qvel, memory), reset_cube(random, 0, qpos);
    const Interval ranges[] = {goal_x, goal_y, goal_z};
    for (int i = 0; i < 3; ++i)
      memory[arm_memory() + i] =
          S(robot.home[robot.cube_qpos[0] + i]) + random.uniform<S>(S(ranges[i].low), S(ranges[i].high));
  }
};

}  // namespace stiction
