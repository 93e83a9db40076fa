// A task: what is observed, rewarded and ended, and how an episode begins. One header per task, the same source on CPU and GPU.
//
// A task is a struct with constants and static-free function templates over Real (float, double, Pack<float, W>), branch-free
// on Reals as all physics is; TaskConcept below lists what it must have, envs/template/template_task.h shows it. It knows one
// environment (or one pack of them), no batch: counting steps, time limits, resetting, seeds and threads are batch_env's.
// Its parameters (weights, ranges, switches) are plain members with defaults, which `parameters` names (envs/core/parameters.h).
//
// Order of a control step: [disturb] -> begin -> act -> substeps -> [finish] -> reward, terminated, report, observe.
#pragma once
#include "core/philox.h"
#include "envs/core/signals.h"
#ifndef __CUDACC_RTC__
#include <concepts>
#endif

namespace stiction {

/// Quantities beyond the state, bits of a task's kNeeds: computed only for tasks that say so. envs/core/quantities.h.
enum TaskNeed : unsigned {
  kNeedsNothing = 0,
  kNeedsContactWrenches = 1,
  kNeedsTreeCentres = 2,
  kNeedsBodyInertias = 4,
  kNeedsBodyTwists = 8,
  kNeedsActuatorForces = 16,
  kNeedsGroupForces = 32,
  kNeedsBodyPoses = 64,
};

/// One environment as its task sees it, after the last time step. Positions and velocities as in MuJoCo's qpos and qvel.
/// Twists, wrenches and inertias refer to the centre of mass of the body's kinematic tree and to world axes.
template <class Real>
struct TaskView {
  const Real* qpos = nullptr;    // (nq)          m, rad, quaternions w x y z
  const Real* qvel = nullptr;    // (nv)          m/s, rad/s
  const Real* action = nullptr;  // (actions)     as given by the policy; null after a reset
  const Real* contact_wrench =
      nullptr;                        // (nbody, 6)    torque, force of the last time step's contacts: cfrc_ext  N m, N
  const Real* tree_centre = nullptr;  // (nbody, 3)    centre of mass of the body's tree                         m
  const Real* body_inertia =
      nullptr;  // (nbody, 10)   xx yy zz xy xz yz, first moment, mass: cinert       kg m^2, kg m, kg
  const Real* body_twist =
      nullptr;  // (nbody, 6)    angular, linear velocity: cvel                            rad/s, m/s
  const Real* actuator_force =
      nullptr;                        // (nv)          of the actuators, at this state: qfrc_actuator            N, N m
  const Real* group_force = nullptr;  // (groups, 3)   sum of the last time step's contact forces on a group of geoms  N
  const Real* body_position = nullptr;     // (nbody, 3)    xpos                                             m
  const Real* body_orientation = nullptr;  // (nbody, 4)    xquat
  Real period = Real(0);                   // time between two actions                                                s
};

/// A parameter that is an interval.
struct Interval { double low, high; };

/// How large things are. Tasks on one robot say so by constants, tasks on any robot by sizes().
struct TaskSizes {
  int qpos, qvel, bodies, controls;  // of the model; checked when a batch is made
  int observations, actions;
  int memory;  // numbers kept from call to call, per environment
  int groups;  // of geoms, for group_force
};

#ifndef __CUDACC_RTC__
/// A task whose sizes are constants, one action for each control.
template <class T>
concept FixedSizeTask = requires {
  { T::kQpos + T::kQvel + T::kBodies + T::kObservations + T::kActions + T::kMemory } -> std::convertible_to<int>;
};

template <class T>
TaskSizes sizes_of(const T& task) {
  if constexpr (FixedSizeTask<T>)
    return {T::kQpos, T::kQvel, T::kBodies, T::kActions, T::kObservations, T::kActions, T::kMemory, 0};
  else return task.sizes();
}

/// Task T for values Real. Besides: FixedSizeTask or `TaskSizes sizes() const`; and, where there is something to do,
///   disturb(random, view, qvel, memory)  at the beginning of a control step, one environment, with numbers of its own:
///                                        commands and pushes (qvel may be written)
///   finish(view, memory)                 after the time steps: the only other writer of the memory
///   geom_groups() -> const int*          (ngeom) group of each geom, -1 for none. With kNeedsGroupForces
template <class T, class Real = double>
concept TaskConcept = requires(const T task, T& parameters, const TaskView<Real>& view, const Scalar<Real>* model_qpos,
                               Real* out, Scalar<Real>* numbers, Random& random, Signals& signals) {
  sizes_of(task);
  // ---- constants
  { T::kSubsteps } -> std::convertible_to<int>;         // time steps per action
  { T::kMaxEpisodeSteps } -> std::convertible_to<int>;  // actions per episode by default
  { T::kNeeds } -> std::convertible_to<unsigned>;       // TaskNeed bits, of the views after the time steps
  { T::kBeginNeeds } -> std::convertible_to<unsigned>;  // those of them that `begin` reads; none of contacts
  { T::kReports } -> std::convertible_to<int>;       // numbers told beside the observation; the first kResetReports of
  { T::kResetReports } -> std::convertible_to<int>;  // them also of the state after a reset
  { T::kRewardTerms } -> std::convertible_to<int>;   // the reward is their sum
  { T::report_name(0) } -> std::convertible_to<const char*>;
  { T::reward_name(0) } -> std::convertible_to<const char*>;
  { T::action_limit() } -> std::convertible_to<double>;  // actions are meant to lie in +- this
  T::parameters(parameters, [](const char*, auto&) {});  // f(name, member) for each; double, Interval or bool
  // ---- functions
  task.begin(view, out);         // before the time steps; out: memory
  task.act(view, out);           // out: ctrl (nu)
  task.observe(view, out, out);  // memory; out: (observations)
  task.reward(view, out, out);   // memory; out: (kRewardTerms)
  { task.terminated(view) } -> std::convertible_to<Mask<Real>>;
  task.report(view, out, out);                                // memory; out: (kReports)
  task.reset(random, model_qpos, numbers, numbers, numbers);  // qpos0; out: qpos, qvel, memory, of one environment
  task.observation_signals(signals);                          // what observe writes, in its order
  task.action_signals(signals);                               // what act reads
};
#endif

}  // namespace stiction
