// Every task is one source for plain numbers and for packs of environments: a pack's lanes are what floats give, to the bit.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "envs/ant/ant_task.h"
#include "envs/arm/arm_lift_task.h"
#include "envs/arm/arm_stack_task.h"
#include "envs/cartpole/cartpole_task.h"
#include "envs/half_cheetah/half_cheetah_task.h"
#include "envs/hand/hand_reorient_task.h"
#include "envs/hopper/hopper_task.h"
#include "envs/humanoid/humanoid_task.h"
#include "envs/velocity/humanoid_velocity_task.h"
#include "envs/walker2d/walker2d_task.h"

namespace stiction {
namespace {

/// All that a task reads and writes, for floats or packs.
template <class Real>
struct Rig {
  TaskSizes n;
  std::vector<Real> qpos, qvel, action, wrench, centre, inertia, twist, force, group, position, orientation, memory,
      ctrl, observation, numbers, terms;

  template <class Task>
  explicit Rig(const Task& task)
      : n(sizes_of(task)),
        qpos(n.qpos),
        qvel(n.qvel),
        action(n.actions),
        wrench(6 * n.bodies),
        centre(3 * n.bodies),
        inertia(10 * n.bodies),
        twist(6 * n.bodies),
        force(n.qvel),
        group(3 * n.groups + 1),
        position(3 * n.bodies),
        orientation(4 * n.bodies),
        memory(n.memory + 1),
        ctrl(n.controls),
        observation(n.observations),
        numbers(Task::kReports),
        terms(Task::kRewardTerms) {}

  std::vector<std::vector<Real>*> inputs() {
    return {&qpos,  &qvel,  &action, &wrench,   &centre,      &inertia,
            &twist, &force, &group,  &position, &orientation, &memory};
  }
  template <class Task>
  Mask<Real> run(const Task& task) {
    TaskView<Real> v;
    v.qpos = qpos.data(), v.qvel = qvel.data(), v.action = action.data(), v.contact_wrench = wrench.data();
    v.tree_centre = centre.data(), v.body_inertia = inertia.data(), v.body_twist = twist.data();
    v.actuator_force = force.data(), v.group_force = group.data();
    v.body_position = position.data(), v.body_orientation = orientation.data(), v.period = Real(0.02f);
    task.begin(v, memory.data()), task.act(v, ctrl.data());
    for (Real& x : qvel) x = x * Real(1.25f);  // the time steps
    if constexpr (requires { task.finish(v, memory.data()); }) task.finish(v, memory.data());
    task.reward(v, memory.data(), terms.data()), task.report(v, memory.data(), numbers.data());
    task.observe(v, memory.data(), observation.data());
    return task.terminated(v);
  }
};

template <class Task>
void expect_lanes_to_agree(const Task& task, const char* name) {
  using P = Pack<float, 8>;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.5f, 1.5f);
  Rig<P> packs(task);
  std::vector<Rig<float>> singles(8, Rig<float>(task));
  for (size_t array = 0; array < packs.inputs().size(); ++array)
    for (size_t i = 0; i < packs.inputs()[array]->size(); ++i)
      for (int w = 0; w < 8; ++w) {
        const float x = uniform(random);
        set_lane((*packs.inputs()[array])[i], w, x), (*singles[w].inputs()[array])[i] = x;
      }
  const auto over = packs.run(task);
  for (int w = 0; w < 8; ++w) {
    EXPECT_EQ(lane(over, w) != 0, singles[w].run(task)) << name;
    auto same = [&](const std::vector<P>& a, const std::vector<float>& b, const char* what) {
      for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(lane(a[i], w), b[i]) << name << ": " << what << " " << i;
    };
    same(packs.ctrl, singles[w].ctrl, "ctrl"), same(packs.memory, singles[w].memory, "memory");
    same(packs.terms, singles[w].terms, "term"), same(packs.numbers, singles[w].numbers, "report");
    same(packs.observation, singles[w].observation, "observation");
  }
}

/// Three joints, two feet and a knee that should touch nothing.
template <class Task>
Task walking() {
  Task task;
  LeggedRobot& r = task.robot;
  r.qpos = 10, r.qvel = 9, r.bodies = 4, r.controls = 3, r.joints = 3, r.feet = 2, r.undesired = 1;
  for (int i = 0; i < 3; ++i) r.joint_qpos[i] = 7 + i, r.joint_dof[i] = 6 + i, r.joint_control[i] = 2 - i;
  return task;
}

/// Two joints, two fingers that one actuator moves, and cubes.
template <class Task>
Task grasping(int cubes) {
  Task task;
  GripperArm& r = task.robot;
  r.qpos = 4 + 7 * cubes, r.qvel = 4 + 6 * cubes, r.bodies = 5 + cubes, r.controls = 3;
  r.joints = r.fingers = 2, r.grippers = 1, r.cubes = cubes;
  for (int i = 0; i < 2; ++i) {
    r.joint_qpos[i] = r.joint_dof[i] = r.joint_control[i] = 1 - i, r.finger_qpos[i] = r.finger_dof[i] = 2 + i;
    r.cube_body[i] = 5 + i, r.cube_qpos[i] = 4 + 7 * i, r.cube_dof[i] = 4 + 6 * i, r.cube_half[i] = 0.02;
  }
  r.gripper_control[0] = 2, r.gripper_high[0] = 0.04, r.grasp_body = 2, r.grasp_point[2] = -0.1;
  return task;
}

/// Two joints with a fingertip each, and a cube.
HandReorientTask handling() {
  HandReorientTask task;
  RobotHand& r = task.robot;
  r.qpos = 9, r.qvel = 8, r.bodies = 4, r.controls = r.joints = r.fingertips = 2, r.cube_qpos = r.cube_dof = 2;
  for (int i = 0; i < 2; ++i) {
    r.joint_qpos[i] = r.joint_dof[i] = i, r.joint_control[i] = 1 - i, r.tip_body[i] = 1 + i;
    r.joint_low[i] = -1, r.joint_high[i] = 1.5, r.tip_point[3 * i] = 0.05;
  }
  return task;
}

TEST(Tasks, PacksDoWhatFloatsDo) {
  expect_lanes_to_agree(AntTask{}, "ant");
  expect_lanes_to_agree(grasping<ArmLiftTask>(1), "arm_lift");
  expect_lanes_to_agree(grasping<ArmStackTask>(2), "arm_stack");
  expect_lanes_to_agree(CartPoleTask<true>{}, "cartpole");
  expect_lanes_to_agree(HalfCheetahTask{}, "half_cheetah");
  expect_lanes_to_agree(handling(), "hand_reorient");
  expect_lanes_to_agree(HopperTask{}, "hopper");
  expect_lanes_to_agree(HumanoidTask{}, "humanoid");
  expect_lanes_to_agree(Walker2dTask{}, "walker2d");
  expect_lanes_to_agree(walking<VelocityTask>(), "quadruped_velocity");
  expect_lanes_to_agree(walking<HumanoidVelocityTask>(), "humanoid_velocity");
}

}  // namespace
}  // namespace stiction
