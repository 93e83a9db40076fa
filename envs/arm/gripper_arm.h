// GripperArm: where the parts of an arm with a gripper, and the cubes it handles, are in a model, found by names. What the arm
// tasks know about their robot.
//
//   arm       hinges in the order of actions (default: all hinges with an actuator), each with one position servo
//   gripper   actuators that open and close it, all alike (default: all that do not drive the arm); each has a control range,
//             low is closed
//   fingers   joints that the gripper moves, one body each (default: all slides and hinges that are not the arm's)
//   grasp     site or body: the point between the fingertips
//   cubes     bodies with a free joint and one box geom with equal sides that can be touched (default: all free bodies)
//   keyframe  the home pose: of the arm with open gripper, and of the cubes at rest (default: 'home' if there is one, else qpos0)
//
// Errors: std::invalid_argument naming the role, the name and what the model has instead.
// Tests: tests/python/test_manipulation_env.py.
#pragma once
#include "envs/core/batch_env.h"

namespace stiction {

struct GripperArm {
  static constexpr int kMaxJoints = 16, kMaxFingers = 8, kMaxControls = 24, kMaxPositions = 64, kMaxCubes = 2;

  int qpos = 0, qvel = 0, bodies = 0, controls = 0;  // sizes of the model
  int joints = 0, fingers = 0, grippers = 0, cubes = 0;
  int joint_qpos[kMaxJoints] = {}, joint_dof[kMaxJoints] = {}, joint_control[kMaxJoints] = {};
  int finger_qpos[kMaxFingers] = {}, finger_dof[kMaxFingers] = {};
  int gripper_control[kMaxControls] = {};
  double gripper_low[kMaxControls] = {}, gripper_high[kMaxControls] = {};  // control ranges
  int grasp_body = 0;
  double grasp_point[3] = {};  // in that body's frame   m
  int cube_body[kMaxCubes] = {}, cube_qpos[kMaxCubes] = {}, cube_dof[kMaxCubes] = {};
  double cube_half[kMaxCubes] = {};  // half an edge, where there are several                                       m
  double home[kMaxPositions] = {};   // qpos of the home pose
  std::vector<int> geom_group;       // (ngeom) a group for each finger; -1 none

  /// `cubes`: how many the task needs; one alone may have any shape.
  static GripperArm found(const Model& model, const TaskNames& names, int cubes);
};

}  // namespace stiction
