// HumanoidVelocity: the velocity task for robots on two legs, weights and ranges as Isaac Lab's flat-ground task of Unitree's H1:
// commands forward and turning, no pushes; standing on one foot in turn is rewarded, falling is not. See velocity_task.h.
#pragma once
#include "envs/velocity/velocity_task.h"

namespace stiction {

struct HumanoidVelocityTask : VelocityTask {
  HumanoidVelocityTask() {
    command_x = {0, 1}, command_y = {0, 0};
    push_velocity = 0, start_velocity = {0, 0}, joint_noise = {-0.05, 0.05};
    wanted_air_time = 0.4, air_time_weight = 0, single_stance_weight = 1;
    vertical_velocity_weight = 0, tilt_weight = 1, torque_weight = 2e-6, acceleration_weight = 1.25e-7;
    action_rate_weight = 0.005, joint_deviation_weight = 0.1, fall_weight = 200;
  }
};

}  // namespace stiction
