// RobotHand: where the parts of a hand, and the cube in it, are in a model, found by names. What the hand task knows about its
// robot.
//
//   joints      hinges in the order of actions (default: all that have an actuator), each with limits and one position servo;
//               servos of other joints hold them
//   fingertips  sites or bodies whose positions are observed; at least one
//   cube        body with a free joint and one box geom with equal sides that can be touched (default: the only free body)
//   keyframe    the home pose: the hand about the cube, the cube at rest in it (default: 'home' if there is one, else qpos0)
//
// Errors: std::invalid_argument naming the role, the name and what the model has instead.
// Tests: tests/python/test_hand_env.py.
#pragma once
#include "envs/core/batch_env.h"

namespace stiction {

struct RobotHand {
  static constexpr int kMaxJoints = 32, kMaxControls = 40, kMaxPositions = 64, kMaxFingertips = 8;

  int qpos = 0, qvel = 0, bodies = 0, controls = 0;  // sizes of the model
  int joints = 0, fingertips = 0;
  int joint_qpos[kMaxJoints] = {}, joint_dof[kMaxJoints] = {}, joint_control[kMaxJoints] = {};
  double joint_low[kMaxJoints] = {}, joint_high[kMaxJoints] = {};  // limits                          rad
  int tip_body[kMaxFingertips] = {};
  double tip_point[3 * kMaxFingertips] = {};  // in that body's frame                                 m
  int cube_qpos = 0, cube_dof = 0;
  double home[kMaxPositions] = {};      // qpos of the home pose
  double home_ctrl[kMaxControls] = {};  // targets that hold it                                       rad

  static RobotHand found(const Model& model, const TaskNames& names);
};

}  // namespace stiction
