// ArmStackTask: an arm with a gripper puts one cube upon another and lets it go. Stages and weights of IsaacGymEnvs' FrankaCubeStack,
// on any arm: see gripper_arm.h, and arm_task.h for actions.
//
//   observation  33 + 3 n + 2 f for n joints, f fingers: the arm (arm_task.h); the first cube, the second (13 each); from the grasp
//                point to the first cube, from the first cube to where it should be, on top of the second (3 each)             m
//   action       n + 1: joint targets and the gripper
//   reward       each term times the period. reach: 1 - tanh(distance of grasp point and first cube / 0.1 m); lift: 1 while the first
//                cube is lifted, lift_height above its place and lift_reach from the grasp point at most; over, over_fine: while it is
//                lifted, 1 - tanh(distance from the top of the second / 0.3 m or 0.03 m); let_go: while it is on top, within
//                place_tolerance sideways and height_tolerance in height, the gripper's action from 0 at -limit to 1 at limit;
//                placed: 1 while it stands there: on top, no finger touching anything, slower than rest_speed; costs: changes of
//                the action^2, joint velocities^2
//   end          a cube fell: fall_depth below its place in the home pose
//   start        home pose; the cubes within cube_x, cube_y of their places, any yaw, `separation` or more between their centres
//   report       grasp_distance, place_distance: from the first cube to the top of the second; cube_height above its place; touching:
//                fingers that touch something; is_lifted; is_on_top: whoever holds it; is_success: placed
//
// Deviations: rewards of all stages add up; over reaches three times as far at twice the weight; over_fine and let_go are ours:
// else a cube is held over the other for ever, since a gripper that is told its side by a sign hardly ever opens by chance; placed
// asks for released fingers and rest, not for a distant gripper; actions are targets of joints, not of the hand.
// Tests: tests/python/test_manipulation_env.py (every term against formulae and MuJoCo's quantities; a script that stacks).
#pragma once
#include "envs/arm/arm_task.h"

namespace stiction {

struct ArmStackTask : ArmTask {
  static constexpr int kReports = 7, kResetReports = 2, kRewardTerms = 8;
  static constexpr int kTries = 100;  // of a start with cubes apart

  double over_scale = 0.3, over_fine_scale = 0.03;                            // m
  double place_tolerance = 0.02, height_tolerance = 0.005, separation = 0.1;  // m
  double rest_speed = 0.05;                                                   // m/s
  double reach_weight = 0.1, lift_weight = 1.5, over_weight = 4, over_fine_weight = 4;
  double let_go_weight = 12, placed_weight = 16;

  ArmStackTask() { lift_height = 0.04; }

  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    ArmTask::parameters(self, f);
    f("over_scale", self.over_scale), f("over_fine_scale", self.over_fine_scale),
        f("place_tolerance", self.place_tolerance);
    f("height_tolerance", self.height_tolerance), f("separation", self.separation), f("rest_speed", self.rest_speed);
    f("reach_weight", self.reach_weight), f("lift_weight", self.lift_weight), f("over_weight", self.over_weight);
    f("over_fine_weight", self.over_fine_weight), f("let_go_weight", self.let_go_weight),
        f("placed_weight", self.placed_weight);
  }

  void bind(const Model& model, const TaskNames& names) { robot = GripperArm::found(model, names, 2); }
  TaskSizes sizes() const {
    return {robot.qpos, robot.qvel,   robot.bodies, robot.controls, arm_observations() + 2 * kCubeObservations + 6,
            actions(),  arm_memory(), robot.fingers};
  }

  static const char* report_name(int i) {
    constexpr const char* kNames[] = {"grasp_distance", "place_distance", "cube_height", "touching",
                                      "is_lifted",      "is_on_top",      "is_success"};
    return kNames[i];
  }
  static const char* reward_name(int i) {
    constexpr const char* kNames[] = {"reward_reach",  "reward_lift",   "reward_over",        "reward_over_fine",
                                      "reward_let_go", "reward_placed", "reward_action_rate", "reward_joint_velocity"};
    return kNames[i];
  }

  /// From the first cube to its place upon the second.
  template <class Real>
  HD Vec3<Real> to_place(const TaskView<Real>& view) const {
    const Vec3<Real> up{Real(0), Real(0), Real(robot.cube_half[0] + robot.cube_half[1])};
    return cube_position(view, 1) + up - cube_position(view, 0);
  }
  template <class Real>
  HD Mask<Real> on_top(const TaskView<Real>& view) const {
    const Vec3<Real> d = to_place(view);
    const double near = place_tolerance;
    return (d.x * d.x + d.y * d.y < Real(near * near)) & (abs(d.z) < Real(height_tolerance));
  }
  /// On top, let go and at rest.
  template <class Real>
  HD Mask<Real> placed(const TaskView<Real>& view) const {
    const Real* v = view.qvel + robot.cube_dof[0];
    const Real square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    return on_top(view) & (touching(view) < Real(0.5)) & (square < Real(rest_speed * rest_speed));
  }

  template <class Real>
  HD void observe(const TaskView<Real>& view, const Real* memory, Real* observation) const {
    Real* cubes = observation + arm_observations();
    observe_arm(view, memory, observation);
    observe_cube(view, 0, cubes), observe_cube(view, 1, cubes + kCubeObservations);
    observe_vector(cube_position(view, 0) - grasp_point(view), cubes + 2 * kCubeObservations);
    observe_vector(to_place(view), cubes + 2 * kCubeObservations + 3);
  }
  void observation_signals(Signals& s) const {
    arm_signals(s), cube_signals(0, s), cube_signals(1, s);
    s.add_vector("grasp_to_cube", "m", 1, "world's axes"), s.add_vector("cube_to_place", "m", 1, "world's axes");
  }

  template <class Real>
  HD void reward(const TaskView<Real>& view, const Real* memory, Real* terms) const {
    const Real up = select(lifted(view), Real(1), Real(0)), distance = norm(to_place(view));
    terms[0] = reach(view) * Real(reach_weight), terms[1] = up * Real(lift_weight);
    terms[2] = up * tanh_tolerance(distance, over_scale) * Real(over_weight);
    terms[3] = up * tanh_tolerance(distance, over_fine_scale) * Real(over_fine_weight);
    const double limit = action_limit();
    const Real told =
        (Real(1) + clamp(view.action[robot.joints], Real(-limit), Real(limit)) * Real(1 / limit)) * Real(0.5);
    terms[4] = select(on_top(view), told * Real(let_go_weight), Real(0));
    terms[5] = select(placed(view), Real(placed_weight), Real(0));
    costs(view, memory, terms + 6);
    for (int i = 0; i < kRewardTerms; ++i) terms[i] = terms[i] * view.period;
  }

  template <class Real>
  HD void report(const TaskView<Real>& view, const Real*, Real* numbers) const {
    auto told = [](Mask<Real> m) { return select(m, Real(1), Real(0)); };
    numbers[0] = norm(cube_position(view, 0) - grasp_point(view)), numbers[1] = norm(to_place(view));
    numbers[2] = height(view, 0), numbers[3] = touching(view);
    numbers[4] = told(lifted(view)), numbers[5] = told(on_top(view)), numbers[6] = told(placed(view));
  }

  template <class S>
  HD void reset(Random& random, const S*, S* qpos, S* qvel, S* memory) const {
    reset_arm(random, qpos, qvel, memory), reset_cube(random, 1, qpos);
    const S *a = qpos + robot.cube_qpos[0], *b = qpos + robot.cube_qpos[1];
    auto close = [&] {
      const S x = a[0] - b[0], y = a[1] - b[1];
      return x * x + y * y < S(separation * separation);
    };
    for (int i = 0; i < kTries && (i == 0 || close()); ++i) reset_cube(random, 0, qpos);
    if (close()) qpos[robot.cube_qpos[0] + 1] = b[1] + S(separation);  // ranges too narrow for two
  }
};

}  // namespace stiction
