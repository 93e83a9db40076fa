// THE stage list: one step of one world, or of one pack of worlds, as every executor runs it.
//
//   stage       reads                              writes
//   fk          Model, State                       Kinematics
//   dynamics    Model, State, Loads, Kinematics    A, b, v*
//   collide     Model, Kinematics, v*              Contacts: what may touch within the step
//   assemble    Contacts, Kinematics, A, v*        ContactProblem (read-only from here), warm start
//   solve       ContactProblem, options            impulses, v
//   certify     ContactProblem, impulses, v        Certificate
//   integrate   State, v                           State
#pragma once
#include "collision/pair_slots.h"
#include "dynamics/integrate.h"
#include "solvers/subadmm/subadmm.h"
#include "step/fallback.h"
#include "step/loads.h"
#include "step/records.h"

namespace stiction {

/// Everything derived from a state. Registers on a GPU tile if the shape is fixed; a thread's scratch memory elsewhere.
template <class L, class Solver>
struct Workspace {
  using Real = typename L::Real;
  Kinematics<L> kin;
  PerLink<L, RigidInertia<Real>> I;
  Loads<L> loads, applied;
  Contacts<L> contacts;
  ContactProblem<L> problem;
  Impulses<L> impulses;
  TreeVector<L> v;
  typename Solver::Workspace solver;
  PerLink<L, LinkBound<Real>> bound;
  PerLink<L, Real> margin;
  FallbackMemory<L> fallback;
};

/// What a step reports of each world; over several steps the worst.
template <class Real>
struct Outcome {
  Certificate<Real> certificate;
  Real iterations, converged;
  Mask<Real> bad, overflow, fallback, immovable;
};

/// A world that turns bad keeps the state it had at the beginning of the call, not of the step: a fixed shape has no
/// registers for a second state.
template <class L>
inline constexpr bool kKeepsAtStart = L::Shape::kFixed && kWidth<typename L::Real> == 1;

template <class Real, class S>
HD Mask<Real> converges(const Options<S>& opt, const Certificate<Real>& c) {
  return ((opt.convex ? c.r_ccp : c.r_con) <= c.scale * opt.certify) & (c.r_row <= Real(opt.certify));
}

/// Sets the rows' diagonal weights and free velocities; tells whether there is anything to solve.
template <class L, class Real = typename L::Real>
HD bool assemble(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                 const Kinematics<L>& kin, const State<L>& x, const Loads<L>& loads, const Contacts<L>& contacts,
                 PerLink<L, Force<Real>>& extra, PerLink<L, Motion<Real>>& V, ContactProblem<L>& problem) {
  dof_rows<L>(g, m, opt, x.q, problem);
  tie_rows<L>(g, m, opt, x, loads.tie_ctrl, problem);
  tie_weights<L>(g, m, problem);
  row_velocities<L>(
      g, m, kin, contacts, problem.free, V, [&](int c, Vec3<Real> w) { problem.row.slot[c].free = w; },
      [&](int i, Vec3<Real> w1, Vec3<Real> w2) { problem.pair_row[i].free = w2 - w1; });
  bool packing = false;
  if constexpr (kPacks<L>) {
    packing = problem.packed.there();
    // In fixed-iteration mode nothing is left for later: that would take a second solve. Nor under the convex law, where what
    // slides may push although it does not close.
    const bool all_at_once = opt.tolerance <= 0 || opt.convex;
    if (packing) number_rows<L>(m, contacts, opt.h, all_at_once ? Scalar<Real>(-1) : opt.margin / 10, problem);
  }
  problem.immovable = mask_of<Real>(false);
  world_rows<L>(g, m, opt, kin, contacts, problem);
  pair_rows<L>(g, m, opt, kin, contacts, extra, problem);
  if constexpr (kPacks<L>)
    if (packing) pack_rows<L>(m, contacts, problem);
  if constexpr (L::Shape::kFixed) return true;
  bool found = contacts.pairs > 0 || m.ties > 0;
  each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int) { found = true; });
  each_dof<L>(g, m, [&](int a, int b) { found = found || a || b; }, problem.limit_live, problem.friction_live);
  return g.any(found);
}

/// All that is known before solving: from the state to the contact problem and its warm start.
template <class L, class Solver, class Real = typename L::Real>
HD void assemble_world(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                       const BatchArrays<Scalar<Real>>& arrays, const Rows<Real>& rows, const Records<L>& records,
                       const State<L>& x, Workspace<L, Solver>& w, Mask<Real>& bad) {
  forward_kinematics<L>(g, m, x, w.kin);
  link_inertias<L>(g, m, w.kin, w.I);
  if constexpr (L::Shape::kFixed)
    bad = bad | load_controls<L>(g, m, arrays, rows, w.loads);  // each step: no registers to keep
  place_loads<L>(g, m, arrays, rows, w.kin, w.applied, w.loads, bad);

  ContactProblem<L>& problem = w.problem;
  free_motion<L>(g, m, opt, w.kin, w.I, x, w.loads, w.v, problem.A, problem.b);
  each_entry<L>(g, m, [](Real a, Real& copy) { copy = a; }, problem.A, problem.factor);
  factor<L>(g, m, problem.factor);
  Real share[L::kTrunkDofs];
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) share[t] = Real(0);
  each_dof<L>(g, m, [](Real b, Real& v) { v = b; }, problem.b, problem.free);
  solve<L>(g, m, problem.factor, problem.free, share);

  link_motions<L>(g, m, w.kin, problem.free, w.solver.V);
  reach_margins<L>(g, m, w.kin, opt.h, opt.margin, w.solver.V, w.margin);
  if constexpr (!L::Shape::kFixed) link_motions<L>(g, m, w.kin, x.v, w.solver.V);
  const StepReach<L> reach{w.solver.V, opt.h, opt.margin / 10, opt.merge};
  find_world_contacts<L>(g, m, w.kin, w.margin, reach, w.contacts);
  find_pair_contacts<L>(g, m, w.kin, w.margin, reach, w.bound, w.contacts);
  problem.any_row = assemble<L>(g, m, opt, w.kin, x, w.loads, w.contacts, w.solver.extra, w.solver.V, problem);
  g.sync();  // records of pairs and ties were written by one lane
  records.warm_start(g, m, w.contacts, problem, opt.warm_start != 0, w.impulses);
}

/// One step. `frozen`: worlds that must not move. `out` gathers the worst over the steps of a call; begin it with fresh().
template <class L, class Solver>
HD void step_world(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<typename L::Real>>& opt,
                   const BatchArrays<Scalar<typename L::Real>>& arrays, const Rows<typename L::Real>& rows,
                   const Records<L>& records, State<L>& x, Mask<typename L::Real> frozen, Workspace<L, Solver>& w,
                   Outcome<typename L::Real>& out) {
  using Real = typename L::Real;
  const Real zero(0);
  assemble_world<L, Solver>(g, m, opt, arrays, rows, records, x, w, out.bad);
  ContactProblem<L>& problem = w.problem;
  auto& extra = w.solver.extra;
  Real iterations(0);
  Certificate<Real> c;
  for (GivenUp given_up = GivenUp::kNothing;;) {
    if (!problem.any_row) {
      each_dof<L>(g, m, [](Real b, Real& v) { v = b; }, problem.free, w.v);
    } else if (given_up == GivenUp::kSolving) {
      velocity_of<L>(g, m, w.kin, w.contacts, problem, w.impulses, extra, w.v);
    } else {
      Real scale = velocity_scale<L>(g, m, opt, w.contacts, problem, w.impulses);
      iterations = max(iterations, Solver::solve_world(g, m, opt, w.kin, w.contacts, problem, w.solver, w.impulses,
                                                       w.v, scale));
    }
    if constexpr (L::Shape::kCertificate) {
      int times = L::Group::kSize == 1 && !L::Shape::kFixed ? opt.certificates : 1;
      do c = certify<L>(g, m, opt, w.kin, w.contacts, problem, w.impulses, w.v, w.solver.V, extra);
      while (--times > 0);
    } else {
      c = {zero, zero, zero, zero, zero, zero, Real(1e-30f), zero};
    }
    if constexpr (kGivesUp<L>) {
      if (given_up == GivenUp::kSolving || !opt.fallback || opt.convex) break;
      const bool worth_it = is_worth_it<L>(g, m, w.contacts, problem, w.impulses, c);
      const bool first = given_up == GivenUp::kNothing;
      if (first && worth_it) break;
      if (!worth_it) records.warm_start(g, m, w.contacts, problem, false, w.impulses);
      Options<Scalar<Real>> asked = opt;
      if (first) asked.erp = asked.max_recovery = 0;
      problem.any_row = assemble<L>(g, m, asked, w.kin, x, w.loads, w.contacts, extra, w.solver.V, problem);
      given_up = first ? GivenUp::kRecovery : GivenUp::kSolving;
      out.fallback = true;
    } else {
      break;
    }
  }
  if constexpr (L::Group::kSize == 1 && !L::Shape::kFixed) {
    auto flagged = negate(converges(opt, c)) & is_finite(c.r_con) & negate(frozen | out.bad);
    if (opt.fallback && !opt.convex && w.fallback.memory != nullptr && any(flagged)) {
      fall_back<L>(m, opt, w.kin, w.contacts, problem, flagged, c, w.fallback, w.impulses);
      velocity_of<L>(g, m, w.kin, w.contacts, problem, w.impulses, extra, w.v);
      c = certify<L>(g, m, opt, w.kin, w.contacts, problem, w.impulses, w.v, w.solver.V, extra);
      out.fallback = out.fallback | flagged;
    }
  }

  // A world that is no longer finite stands still: in the sum a NaN, an infinity or an absurd number of any dof shows.
  Real own(0), trunk = abs(x.position.x) + abs(x.position.y) + abs(x.position.z);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k) own = own + abs(w.v.limb[at.link + k]) + abs(x.q.limb[at.link + k]);
  });
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) trunk = trunk + abs(w.v.trunk[t]);
  UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) trunk = trunk + abs(x.q.trunk[t]);
  auto finite = is_finite(g.sum(own) + trunk) & is_finite(c.r_con) & is_finite(c.r_dyn);
  auto bad = out.bad | negate(finite);
  auto moving = negate(bad | frozen);
  records.store(g, m, w.kin, w.contacts, problem, w.impulses);
  integrate<L>(g, m, opt.h, w.kin, w.v, kKeepsAtStart<L> ? mask_of<Real>(true) : moving, x);

  auto converged = converges(opt, c);
  auto worse = c.r_con * out.certificate.scale > out.certificate.r_con * c.scale;
  auto take = [&](Real& to, Real from) { to = select(moving, max(to, from), to); };
  out.certificate.r_con = select(moving & worse, c.r_con, out.certificate.r_con);
  out.certificate.scale = select(moving & worse, c.scale, out.certificate.scale);
  take(out.certificate.r_dyn, c.r_dyn), take(out.certificate.r_ccp, c.r_ccp), take(out.certificate.r_row, c.r_row);
  take(out.certificate.r_cone, c.r_cone), take(out.certificate.penetration, c.penetration);
  take(out.certificate.num_contacts, c.num_contacts), take(out.iterations, iterations);
  out.converged = select(converged | negate(moving), out.converged, zero);
  out.bad = bad;
  out.overflow = out.overflow | (w.contacts.overflow & moving);
  if constexpr (!L::Shape::kFixed)
    out.immovable = out.immovable | (moving & (g.max(select(problem.immovable, Real(1), zero)) > zero));
}

template <class Real>
HD Outcome<Real> fresh_outcome() {
  Real zero(0), one(1);
  auto no = mask_of<Real>(false);
  return {{zero, zero, zero, zero, zero, zero, Real(1e-30f), zero}, zero, one, no, no, no, no};
}

/// `steps` steps of worlds rows.first, ...: load, step, store.
template <class L, class Solver>
HD void step_batch(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<typename L::Real>>& opt,
                   const BatchArrays<Scalar<typename L::Real>>& arrays, const Rows<typename L::Real>& rows,
                   typename L::Real* record, int steps, Workspace<L, Solver>& w) {
  using Real = typename L::Real;
  State<L> x;
  Outcome<Real> out = fresh_outcome<Real>();
  Records<L> records{record};
  load_state<L>(g, m, arrays, rows, x);
  if constexpr (!L::Shape::kFixed) {
    out.bad = load_controls<L>(g, m, arrays, rows, w.applied);
    for (int i = 0; i < at_least_one(L::kActuators); ++i) w.loads.ctrl[i] = w.applied.ctrl[i];
    for (int i = 0; i < m.ties; ++i) w.loads.tie_ctrl[i] = w.applied.tie_ctrl[i];
  }
  auto frozen = mask_of<Real>(false);
  for (int i = 0; i < kWidth<Real>; ++i)
    if (arrays.status[rows.world(i)] & kNonFinite) set_lane(frozen, i, kWidth<Real> == 1 ? 1 : -1);
  for (int s = 0; s < steps; ++s) {
    if (!L::Shape::kFixed && s + 1 == steps)
      each_state_entry<L>(g, m, x, record, [](const Real& now, Real& kept) { kept = now; });
    step_world<L, Solver>(g, m, opt, arrays, rows, records, x, frozen, w, out);
  }
  g.sync();  // all have read what is now written
  const Rows<Real> at_end = rows.again();
  if (!kKeepsAtStart<L> || !any(out.bad | frozen)) store_state<L>(g, m, arrays, at_end, x, frozen);

  if (g.rank() != 0) return;
  const Certificate<Real>& c = out.certificate;
  const Real field[kCertificateFields] = {c.r_dyn, c.r_con, c.r_ccp, c.r_row, c.r_cone, c.penetration, c.scale,
                                          c.num_contacts, out.iterations, out.converged};
  UNROLL for (int f = 0; f < (L::Shape::kCertificate ? kCertificateFields : 0); ++f)
    at_end.set(arrays.certificate[f], 1, 0, field[f]);
  for (int i = 0; i < at_end.count(); ++i) {
    int world = at_end.first + i;
    int bits = (lane(out.bad, i) ? kNonFinite : 0) | (lane(out.overflow, i) ? kContactOverflow : 0) |
               (lane(out.fallback, i) ? kFallback : 0) | (lane(out.immovable, i) ? kImmovable : 0) |
               (lane(out.converged, i) > 0 ? 0 : kNotConverged);
    arrays.status[world] |= bits;
    if (!lane(frozen, i) && !lane(out.bad, i)) arrays.time[world] += steps * static_cast<double>(opt.h);
  }
}

/// The contact problem of the last step of world `w` of a pack, dense, with the impulses that solved it: assembled again from
/// the state kept in the record. `memory`: dense_problem_size numbers for all slots and rows.
template <class L, class Solver, class T>
HD DenseProblem<T> last_problem(const typename L::Model& m, const Options<Scalar<typename L::Real>>& opt,
                                const BatchArrays<Scalar<typename L::Real>>& arrays, const Rows<typename L::Real>& rows,
                                typename L::Real* record, int w, Workspace<L, Solver>& space, T* memory) {
  using Real = typename L::Real;
  const typename L::Group g;
  State<L> x;
  Records<L> records{record};
  auto bad = mask_of<Real>(false);
  each_state_entry<L>(g, m, x, record, [](Real& now, const Real& kept) { now = kept; });
  load_loads<L>(g, m, arrays, rows, space.applied, bad);
  for (int i = 0; i < at_least_one(L::kActuators); ++i) space.loads.ctrl[i] = space.applied.ctrl[i];
  for (int i = 0; i < m.ties; ++i) space.loads.tie_ctrl[i] = space.applied.tie_ctrl[i];
  Options<Scalar<Real>> warm = opt;
  warm.warm_start = 1;
  if (!m.free_base()) x.position = {Real(0), Real(0), Real(0)};
  assemble_world<L, Solver>(g, m, warm, arrays, rows, records, x, space, bad);
  RowList<L>& list = space.fallback.list;
  list.build(m, space.contacts, space.problem, space.impulses);
  return dense_problem<L>(m, space.kin, space.problem, list, w, memory);
}

}  // namespace stiction
