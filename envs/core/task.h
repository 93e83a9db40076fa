// A task: what is observed, rewarded and ended, and how an episode begins. One header per task, the same source on CPU and GPU.
//
// A task is a struct with constants and static-free function templates over Real (float, double, Pack<float, W>), branch-free
// on Reals as all physics is; TaskConcept below lists what it must have, envs/template/template_task.h shows it. It knows one
// environment (or one pack of them), no batch: counting steps, time limits, resetting, seeds and threads are batch_env's.
// Its parameters (weights, ranges) are plain members with defaults.
//
// Order of a control step: begin -> act -> kSubsteps time steps -> reward, terminated, report, observe.
#pragma once
#include "core/philox.h"
#ifndef __CUDACC_RTC__
#include <concepts>
#endif

namespace stiction {

/// One environment as its task sees it, after the last time step. Positions and velocities as in MuJoCo's qpos and qvel.
template <class Real>
struct TaskView {
  const Real* qpos = nullptr;    // (nq)          m, rad, quaternions w x y z
  const Real* qvel = nullptr;    // (nv)          m/s, rad/s
  const Real* action = nullptr;  // (kActions)    as given by the policy
  const Real* contact_wrench =
      nullptr;            // (nbody, 6)    torque about the centre of mass of the body's tree, then force, world
                          //               axes, of the last time step's contacts  N m, N. If kContactWrenches
  Real period = Real(0);  // time between two actions                              s
};

#ifndef __CUDACC_RTC__
/// Task T for values Real. Sizes are checked against the model when a batch is made.
template <class T, class Real = double>
concept TaskConcept = requires(const T task, const TaskView<Real>& view, const Scalar<Real>* model_qpos, Real* out,
                               Scalar<Real>* numbers, Random& random) {
  // ---- sizes
  { T::kQpos + T::kQvel + T::kBodies } -> std::convertible_to<int>;  // of the model
  { T::kObservations + T::kActions } -> std::convertible_to<int>;
  { T::kMemory } -> std::convertible_to<int>;            // numbers kept from call to call, set by reset and begin
  { T::kSubsteps } -> std::convertible_to<int>;          // time steps per action
  { T::kMaxEpisodeSteps } -> std::convertible_to<int>;   // actions per episode by default
  { T::kContactWrenches } -> std::convertible_to<bool>;  // whether contact_wrench is needed
  { T::kReports } -> std::convertible_to<int>;       // numbers told beside the observation; the first kResetReports of
  { T::kResetReports } -> std::convertible_to<int>;  // them also of the state after a reset
  { T::kRewardTerms } -> std::convertible_to<int>;   // the reward is their sum
  { T::report_name(0) } -> std::convertible_to<const char*>;
  { T::reward_name(0) } -> std::convertible_to<const char*>;
  { T::action_limit() } -> std::convertible_to<double>;  // actions are meant to lie in +- this
  // ---- functions
  task.begin(view, out);         // before the time steps; out: memory
  task.act(view, out);           // out: ctrl (nu)
  task.observe(view, out, out);  // memory; out: (kObservations)
  task.reward(view, out, out);   // memory; out: (kRewardTerms)
  { task.terminated(view) } -> std::convertible_to<Mask<Real>>;
  task.report(view, out, out);                                // memory; out: (kReports)
  task.reset(random, model_qpos, numbers, numbers, numbers);  // qpos0; out: qpos, qvel, memory, of one environment
};
#endif

}  // namespace stiction
