// LeggedRobot: where the parts of a walking robot are in a model, found by names. What the velocity tasks know about their robot.
//
//   trunk      bodies of which none may touch anything; the one with the free joint is always among them
//   feet       geoms, or bodies (all geoms of that body); at least one
//   undesired  bodies that should touch nothing (default: all others that can); a foot's own geoms do not count
//   joints     hinges in the order of actions (default: those with an actuator, in the actuators' order), each with one
//              position servo; servos of other joints hold them
//   keyframe   the standing pose (default: 'home' or 'stand' if there is one, else qpos0)
//
// Errors: std::invalid_argument naming the role, the name and what the model has instead.
// Tests: tests/python/test_velocity_env.py.
#pragma once
#include "envs/core/batch_env.h"

namespace stiction {

struct LeggedRobot {
  static constexpr int kMaxJoints = 40, kMaxControls = 48, kMaxPositions = 64, kMaxFeet = 8, kMaxUndesired = 48;

  int qpos = 0, qvel = 0, bodies = 0, controls = 0;  // sizes of the model
  int joints = 0, feet = 0, undesired = 0;
  int joint_qpos[kMaxJoints] = {}, joint_dof[kMaxJoints] = {}, joint_control[kMaxJoints] = {};
  double standing[kMaxPositions] = {};      // qpos of the standing pose
  double standing_ctrl[kMaxControls] = {};  // targets that hold it                                  rad
  std::vector<int> geom_group;              // (ngeom) 0 trunk, 1.. feet, then undesired bodies; -1 none

  int groups() const { return 1 + feet + undesired; }
  static LeggedRobot found(const Model& model, const TaskNames& names);
};

}  // namespace stiction
