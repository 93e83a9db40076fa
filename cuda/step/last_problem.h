// What is asked of one world between steps: its contact problem, and the velocity that solved it.
#pragma once
#include "contact/rows.h"
#include "step/step_world.h"

namespace stiction {

/// In the user's arrays the velocities of world `w` of a pack become those of the solve of a step from its state to `after` (nv), and
/// positions are lost. What rolls does so by the contacts that were found last, of the next problem.
template <class L>
HD void solved_velocity(const typename L::Model& m, const SteppedWorlds<L>& stepped, int w,
                        const Scalar<typename L::Real>* after, Workspace<L>& space) {
  using Real = typename L::Real;
  const typename L::Group g;
  const Scalar<Real> h = stepped.options.step.h;
  State<L> x;
  load_state<L>(g, m, stepped.arrays, stepped.rows, x);
  const TreeVector<L> v = x.v;
  Scalar<Real>* qvel = stepped.arrays.qvel + static_cast<int64_t>(stepped.rows.world(w)) * m.nv;
  for (int i = 0; i < m.nv; ++i) qvel[i] = after[i];
  load_state<L>(g, m, stepped.arrays, stepped.rows, x);
  forward_kinematics<L>(g, m, x, space.kin);
  link_inertias<L>(g, m, space.kin, space.I);
  mass_matrix<L>(g, m, space.kin, space.I, space.problem.A);
  const Quat<Real> before = x.orientation;  // whose axes x.v has
  const RollingParts<L> rolls = rolling_parts<L>(g, m, space.contacts);
  TreeVector<L> along = x.v;
  unturn_late<L>(g, m, h, space.kin, space.I, rolls.of, v, along);
  turn_along<L>(g, m, space.kin, space.I, space.contacts, along);
  unmove_centres<L>(g, m, h, space.problem.A, space.kin, space.I, space.motions, along, x);
  unturn_late<L>(g, m, h, space.kin, space.I, rolls.of, v, x.v);
  x.orientation = before;
  auto others = mask_of<Real>(true);
  set_lane(others, w, 0);
  store_state<L>(g, m, stepped.arrays, stepped.rows, x, others);
}

/// The contact problem of the last step of world `w` of a pack, dense, with the impulses that solved it: assembled again from
/// the state kept in the record; `next`: that of the next step, with the impulses that it would begin with. `memory`:
/// dense_problem_size numbers for all slots and rows.
template <class L, class T>
HD DenseProblem<T> last_problem(const typename L::Model& m, const SteppedWorlds<L>& stepped, int w, bool next,
                                Workspace<L>& space, T* memory) {
  using Real = typename L::Real;
  const auto& [options, arrays, rows, records] = stepped;
  const typename L::Group g;
  State<L> x;
  auto bad = mask_of<Real>(false);
  load_state<L>(g, m, arrays, rows, x);
  if (next) load_rest<L>(g, m, records.real, x);
  else each_state_entry<L>(g, m, x, records.real, [](Real& now, const Real& kept) { now = kept; });
  load_loads<L>(g, m, arrays, rows, space.applied, bad);
  copy_controls<L>(m, space.applied, space.loads);
  StepOptions<Scalar<Real>> warm = options;
  warm.step.warm_start = 1;
  if (!m.free_base()) x.position = {Real(0), Real(0), Real(0)};
  const SteppedWorlds<L> worlds{warm, arrays, rows, records};
  find_contacts<L>(g, m, worlds, x, space, bad);
  assemble_world<L>(g, m, worlds, x, space);
  multiply<L>(g, m, space.problem.A, space.problem.from, space.v);
  each_dof<L>(g, m, [](Real momentum, Real& b) { b = momentum + b; }, space.v, space.problem.b);  // A v* = b
  RowList<L> list;
  list.build(m, space.contacts, space.problem, space.impulses);
  return dense_problem<L>(m, space.kin, space.problem, list, w, memory);
}

}  // namespace stiction
