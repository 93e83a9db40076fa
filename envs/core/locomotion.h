// What tasks have in common whose actions are the model's controls: functions that their headers call, no base class.
#pragma once
#include "envs/core/task.h"

namespace stiction {

inline constexpr const char* kAboutCentre = "about the tree's centre of mass, world's axes";
/// Elements of what tasks observe of every body, as quantity_view.h orders them, and their units.
inline constexpr std::initializer_list<std::pair<const char*, const char*>> kWrenchElements = {
    {"torque_x", "N m"}, {"torque_y", "N m"}, {"torque_z", "N m"},
    {"force_x", "N"},    {"force_y", "N"},    {"force_z", "N"}};
inline constexpr std::initializer_list<std::pair<const char*, const char*>> kTwistElements = {
    {"angular_x", "rad/s"}, {"angular_y", "rad/s"}, {"angular_z", "rad/s"},
    {"linear_x", "m/s"},    {"linear_y", "m/s"},    {"linear_z", "m/s"}};
inline constexpr std::initializer_list<std::pair<const char*, const char*>> kInertiaElements = {
    {"xx", "kg m^2"}, {"yy", "kg m^2"}, {"zz", "kg m^2"}, {"xy", "kg m^2"}, {"xz", "kg m^2"},
    {"yz", "kg m^2"}, {"mx", "kg m"},   {"my", "kg m"},   {"mz", "kg m"},   {"mass", "kg"}};

/// Actions as controls.
template <int Actions, class Real>
HD void pass_actions(const TaskView<Real>& view, Real* ctrl) {
  UNROLL for (int i = 0; i < Actions; ++i) ctrl[i] = view.action[i];
}
/// |a|^2 of the actions as given.
template <int Actions, class Real>
HD Real effort(const TaskView<Real>& view) {
  Real sum(0);
  UNROLL for (int i = 0; i < Actions; ++i) sum = sum + view.action[i] * view.action[i];
  return sum;
}
/// qpos0 + U(-noise, noise) on every coordinate.
template <int Qpos, class S>
HD void noisy_positions(Random& random, const S* qpos0, S noise, S* qpos) {
  for (int i = 0; i < Qpos; ++i) qpos[i] = qpos0[i] + random.uniform<S>(-noise, noise);
}
/// The quaternion of a free base, at qpos[3].
template <class S>
HD void normalize_orientation(S* qpos) {
  S square(0);
  for (int i = 3; i < 7; ++i) square += qpos[i] * qpos[i];
  for (int i = 3; i < 7; ++i) qpos[i] = qpos[i] / sqrt(square);
}

}  // namespace stiction
