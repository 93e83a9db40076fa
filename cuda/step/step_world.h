// THE stage list: one step of one world, or of one pack of worlds, as every executor runs it.
//
//   stage       reads                              writes
//   fk          Model, State                       Kinematics
//   dynamics    Model, State, Loads, Kinematics    A, b, v*
//   collide     Model, Kinematics, v*              Contacts: what may touch within the step
//   assemble    Contacts, Kinematics, A, v*        ContactProblem and its half-solved rows, warm start
//   solve       rows, options                      impulses, v                                   step/solvers.h, step/fallback.h
//   certify     ContactProblem, impulses, v        Certificate
//   integrate   State, v                           State
//
// Solvers stand between: find_step, pose_step; solve; judge_step; improve what is flagged; settle_step; solve what is deep; end_step. A
// CPU calls these one after the other (step_world), a GPU launches them (kernels/), and StepState is what they leave each other.
#pragma once
#include "collision/moving_seams.h"
#include "contact/bias.h"
#include "contact/held.h"
#include "contact/residual.h"
#include "dynamics/lifts.h"
#include "step/carried.h"
#include "step/jams.h"
#include "step/loops.h"
#include "step/move_on.h"
#include "step/thrown.h"
#include "step/verdict.h"
#include "step/world_memory.h"

namespace stiction {

/// What a step reports of each world; over several steps the worst.
template <class Real>
struct Outcome {
  Certificate<Real> certificate;
  Real iterations, converged;
  Mask<Real> bad, overflow, fallback, immovable, without_impulses;
};

template <class Real>
HD Outcome<Real> fresh_outcome() {
  Real zero(0), one(1);
  auto no = mask_of<Real>(false);
  return {{zero, zero, zero, zero, zero, zero, zero, zero, Real(1e-30f), zero, zero}, zero, one, no, no, no, no, no};
}

/// What a step leaves solvers and the fallback, and they it. It knows neither model nor shape.
template <class Real>
struct PosedSolve {
  bool solving;                  // whether there is something to solve now
  RowProblem<Real> rows;         // the rows as a solver reads them
  Real* impulse;                 // of each: where it begins, and what is found
  Real iterations;               // of the step's solve
  Mask<Real> flagged, creeping;  // to be improved; to a part of `certify`
  Outcome<Real> out;
};

/// What the stages of a step leave each other of worlds, besides their Workspace.
template <class L>
struct StepState : PosedSolve<typename L::Real> {
  using Real = typename L::Real;
  State<L> x;
  Mask<Real> frozen;        // do not move
  bool placed;              // whether the last step of the call left kin and I of x
  Certificate<Real> c;      // of the step's impulses
  Mask<Real> moving, deep;  // that move; of those, that come out of an overlap
  TreeVector<L> v;          // the step's, while what is deep comes out
  int step;                 // of the call, from 0
};

/// Rows, their diagonal of W and free velocities.
template <class L, class Mocap, class Real = typename L::Real>
HD_ONCE void assemble_rows(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                           const State<L>& x, Mocap mocap, Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(worlds, x, w);
  const Options<Scalar<Real>>& opt = worlds.options.step;
  ContactProblem<L>& problem = w.problem;
  dof_rows<L>(g, m, opt, x, problem);
  tie_rows<L>(g, m, opt, x, w.loads.tie_ctrl, problem);
  bond_rows<L>(g, m, opt, w.kin, mocap, problem);
  bend_contacts<L>(g, m, opt, w.kin, w.I, x.v, w.contacts, w.free, w.motions, problem);
  refine_gaps<L>(g, m, w.kin, x.low, w.motions, w.contacts);
  refine_bonds<L>(g, m, opt, w.motions, problem);
  turn_axes<L>(g, m, w.I, w.contacts, w.kin);
  row_velocities<L>(
      g, m, w.kin, w.contacts, problem.free, w.motions,
      [&](const auto&, int c, const Motion<Real>& V) { free_row(m, w.contacts.point.slot[c], V, problem.row.slot[c]); },
      [&](int i, const Motion<Real>& V1, const Motion<Real>& V2) {
        free_row(m, w.contacts.pair[i].point, V2 - V1, problem.pair_row[i]);
      });
  free_bonds<L>(g, m, w.motions, problem);
  // Where iterations are fixed nothing is left for later: that would take a second solve. Nor under the convex law, where what
  // slides may push although it does not close.
  const bool all_at_once = opt.tolerance <= 0 || law_of(worlds.options.solver) == Law::kConvex;
  number_rows<L>(g, m, w.contacts, opt.h, all_at_once ? Scalar<Real>(-1) : opt.margin / 10, problem);
  problem.immovable = w.contacts.held, problem.deep = mask_of<Real>(false);
  for (int i = 0; i < m.ties; ++i) half_solve_tie<L>(g, m, i, problem);
  half_solve_bonds<L>(g, m, w.kin, problem);
  world_rows<L>(g, m, opt, w.kin, w.contacts, problem);
  pair_rows<L>(g, m, opt, w.kin, w.contacts, problem);
  contact_biases<L>(g, m, opt, w.contacts, problem);
  ignore_held<L>(g, m, opt, w.contacts, problem);
  fill_rows<L>(g, m, w.contacts, problem);
}
/// The same once loops have settled; tells whether there is anything to solve.
template <class L, class Real = typename L::Real>
HD bool assemble(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                 const State<L>& x, Workspace<L>& w) {
  auto mocap = [&](int i) { return mocap_pose(worlds.arrays, worlds.rows, m.nmocap, i); };
  auto rows = [&] { assemble_rows<L>(g, m, worlds, x, mocap, w); };
  settle_loops<L>(g, m, worlds.options.step, x, mocap, rows, w);
  rows();
  return w.problem.table.rows.rows() > 0;
}

/// Poses (`placed`: but for kin and I), the free motion, and what may touch within the step: what is hit, or turned by a contact, is
/// looked at again.
template <class L, class Real = typename L::Real>
HD_ONCE void find_contacts(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                           const State<L>& x, Workspace<L>& w, Mask<Real>& bad, bool placed = false) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(worlds, x, w);
  const Options<Scalar<Real>>& opt = worlds.options.step;
  move_freely<L>(g, m, worlds, x, placed, w, bad);
  if (m.pairs > 0) link_paths<L>(g, m, opt, w.kin, w.I, w.problem.free, w.free, w.bends);
  else link_motions<L>(g, m, w.kin, w.problem.free, w.free);
  travels<L>(g, m, w.kin, opt.h, w.free, w.travel);
  w.contacts.thrown = thrown_by_limits<L>(g, m, opt, x, w), w.contacts.turned = Real(0);
  // Some of its travel a link may take other ways as it is.
  each_link<L>(
      g, m,
      [&](Real travel, Real& margin) {
        margin = travel + max(margin - travel * Scalar<Real>(kAstray), Real(0)) + opt.margin;
      },
      w.travel, w.margin);
  link_motions<L>(g, m, w.kin, x.v, w.motions);
  StepReach<L> reach{
      w.motions,          w.free, w.bends, w.travel, opt.h, opt.margin, opt.margin / 10, opt.merge, opt.moves_centres(),
      worlds.rows.count()};
  w.contacts.overflow = w.contacts.held = mask_of<Real>(false);
  // What pushes more than what rests, and may throw elsewhere what passes by.   m
  const Real pushed = min(norm(vec<Real>(m.gravity)) * (2 * opt.h * opt.h) + Real(reach.slack), Real(opt.margin));
  for (int hit = 0;; ++hit) {
    w.contacts.overflow = w.contacts.overflow & negate(reach.looks), w.contacts.passed = mask_of<Real>(false);
    const Real turned =
        max(find_pair_contacts<L>(g, m, w.kin, w.margin, reach, static_cast<Real*>(w.memory.rows), w.bound, w.contacts),
            find_world_contacts<L>(g, m, w.kin, w.margin, reach, w.contacts));
    if (hit == kHits) break;
    Mask<Real> again = raise_margins<L>(g, m, w.contacts, opt.margin, w.travel, w.margin);
    // Where planes are all there is, nothing asks what turns.
    if (m.pairs > 0) {
      const Mask<Real> passed = g.either(w.contacts.passed);
      again = again | (turned > w.contacts.turned + select(passed, pushed, Real(opt.margin)));
    }
    if (!g.any(again)) break;
    w.contacts.turned = select(again, max(w.contacts.turned, turned), w.contacts.turned);
    reach.looks = g.either(again);  // others would find the same again
  }
  drop_hidden_contacts<L>(g, m, w.kin, reach, w.bound, w.contacts);
}

/// All that is known before solving, once contacts are found: the contact problem and its warm start.
template <class L>
HD void assemble_world(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                       const State<L>& x, Workspace<L>& w) {
  w.problem.any_row = assemble<L>(g, m, worlds, x, w);
  g.sync();  // records of pairs and ties were written by one lane
  worlds.records.warm_start(g, m, w.contacts, w.problem, worlds.options.step.warm_start != 0, w.impulses);
}

/// The rows as a solver reads them.
template <class L, class Real = typename L::Real>
HD RowProblem<Real> row_problem(const typename L::Group& g, const typename L::Model& m,
                                const Options<Scalar<Real>>& opt, Workspace<L>& w) {
  const TreeScales<L> V = velocity_scales<L>(g, m, opt, w);
  if (V.several) put_scales<L>(g, m, V, w);
  return w.problem.table.rows.view(least_scale(norm(vec<Real>(m.gravity)), Real(opt.h)), V.largest);
}

/// Worlds of which some lane says so.
template <class L, class Real = typename L::Real>
HD Mask<Real> told_by_any(const typename L::Group& g, const Mask<Real>& own) {
  return g.max(select(own, Real(1), Real(0))) > Real(0);
}

/// What a solver is given: the rows, with the impulses that it starts from.
template <class L, class Real = typename L::Real>
HD_ONCE void pose_rows(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                       Workspace<L>& w, StepState<L>& s) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(w);
  s.rows = row_problem<L>(g, m, opt, w);
  Real* impulse = s.impulse = w.problem.table.rows.impulse;
  each_row<L>(g, m, w.contacts, w.problem, w.impulses,
              [&](const Mask<Real>& is, int i, Real& f) { blend(is, f, impulse[i]); });
  g.sync();
}

/// The chosen solver on these rows: from the impulses there to its answer. Returns its iterations.
template <class Real, class Group>
HD Real solve_posed(const Group& g, const StepOptions<Scalar<Real>>& options, const RowProblem<Real>& rows,
                    Real* impulse, void* memory) {
  return solve_rows(g, rows, options.limits(), options.solver, static_cast<Real*>(memory), impulse).iterations;
}

/// The fallback's impulses where the flagged worlds of some packs are better off with them. posed(i): theirs.
template <class Real, bool kAnySolver, class Group, class Posed>
HD void improve_posed(const Group& g, const StepOptions<Scalar<Real>>& options, int packs, Posed posed, void* memory) {
  FlaggedRows<Real> flagged[kImprovedTogether<Real>];
  for (const bool creeping : {false, true}) {
    bool some = false;
    for (int i = 0; i < packs; ++i) {
      const PosedSolve<Real>& s = posed(i);
      const Mask<Real> worlds = s.flagged & (creeping ? s.creeping : negate(s.creeping));
      flagged[i] = {&s.rows, s.impulse, worlds, mask_of<Real>(false)};
      some = some || any(worlds);
    }
    if (!some) continue;
    FallbackPlan plan;
    plan_fallback(options, plan), plan.certify *= creeping ? kStillPart : 1;
    fall_back<Real, kAnySolver>(g, flagged, packs, plan, memory);
    if (g.rank() != 0) continue;
    for (int i = 0; i < packs; ++i) {
      Outcome<Real>& out = posed(i).out;
      out.without_impulses = out.without_impulses | flagged[i].without, out.fallback = out.fallback | flagged[i].worlds;
    }
  }
}

/// Impulses and v = A^-1 (b + J'l) from the rows.
template <class L, class Real = typename L::Real>
HD_ONCE void take_answer(const typename L::Group& g, const typename L::Model& m, Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(w);
  const Real* impulse = w.problem.table.rows.impulse;
  each_row<L>(g, m, w.contacts, w.problem, w.impulses,
              [&](const Mask<Real>& is, int i, Real& f) { blend(is, impulse[i], f); });
  velocity_of<L>(g, m, w);
}

template <class L, class Real = typename L::Real>
HD Certificate<Real> certify_world(const typename L::Group& g, const typename L::Model& m,
                                   const StepOptions<Scalar<Real>>& options, Workspace<L>& w) {
  return certify<L>(g, m, options.step, law_of(options.solver), w);
}

/// Sum of the speeds of all dofs beyond which a world has run away.   m/s, rad/s
inline constexpr float kRunaway = 1e6f;

/// The worlds that are still finite, and slower than that: in the sum a NaN, an infinity or an absurd number of any dof shows.
template <class L, class Real = typename L::Real>
HD Mask<Real> finite_worlds(const typename L::Group& g, const typename L::Model& m, const State<L>& x,
                            const TreeVector<L>& v, const Certificate<Real>& c) {
  Real speed(0), own(0), trunk_speed(0), trunk = abs(x.position.x) + abs(x.position.y) + abs(x.position.z);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) {
      speed = speed + abs(v.limb[at.link + k]), own = own + abs(x.q.limb[at.link + k]);
    }
  });
  for (int t = 0; t < m.trunk_dofs(); ++t) trunk_speed = trunk_speed + abs(v.trunk[t]);
  for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) trunk = trunk + abs(x.q.trunk[t]);
  return is_finite(g.sum(own) + trunk) & (g.sum(speed) + trunk_speed < Real(kRunaway)) & is_finite(c.r_con) &
         is_finite(c.r_dyn);
}

/// Positions of `deep` worlds are to move with what closes their overlaps as fast as they may: a body that starts inside another
/// comes out and stays, with the step's velocity. Posed like the step, from its impulses, which are lost.
template <class L, class Real = typename L::Real>
HD_ONCE void pose_recovery(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                           Workspace<L>& w, StepState<L>& s) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(w);
  ContactProblem<L>& problem = w.problem;
  const RowArrays<Real>& rows = problem.table.rows;
  auto raise = [&](const ContactPoint<Real>& point, ContactRow<Real>& row, Real place, bool writes) {
    row.e = select(s.deep, recovery_bias(opt, point, row), row.e);
    if (writes) Places<Real>(place).each([&](int k, const Mask<Real>& is) { blend(is, row.e, rows.e[3 * k + 2]); });
  };
  each_slot<L>(g, m, w.contacts, [&](const auto&, Place, int, int c) {
    raise(w.contacts.point.slot[c], problem.row.slot[c], problem.table.slot.slot[c], true);
  });
  for (int i = 0; i < w.contacts.pairs; ++i)
    raise(w.contacts.pair[i].point, problem.pair_row[i], problem.table.pair[i], g.rank() == 0);
  copy_dofs<L>(g, m, w.v, s.v);
  pose_rows<L>(g, m, opt, w, s);
}
/// Integrates the worlds that move once that is solved; where it failed positions follow the step, too.
template <class L, class Real = typename L::Real>
HD_ONCE void recover(const typename L::Group& g, const typename L::Model& m, const StepOptions<Scalar<Real>>& options,
                     Workspace<L>& w, StepState<L>& s) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(w);
  take_answer<L>(g, m, w);
  const Certificate<Real> c = certify_world<L>(g, m, options, w);
  const Mask<Real> taken = s.deep & converges(options, c) & finite_worlds<L>(g, m, s.x, w.v, c);
  slow_recovery<L>(g, m, options.step, s.v, w);
  each_dof<L>(g, m, [&](Real vi, Real& to) { to = select(taken, to, vi); }, s.v, w.v);
  pay_for_lifts<L>(g, m, options.step.h, w.kin, w.I, w.v, s.v);
  if (options.step.moves_centres())
    turn_late<L>(g, m, options.step.h, w.kin, w.I, rolling_parts<L>(g, m, w.contacts).of, s.x.v, s.v);
  turn_along<L>(g, m, w.kin, w.I, w.contacts, w.v);
  const Mat3<Real> R = w.kin.pose.trunk[0].R;
  s.placed = move_on<L>(g, m, options.step, s.moving, w, w.v, s.v, s.x);
  keep_spin<L>(m, R, s.v, taken, s.x);  // the recovery turns it
}

/// Integrates the worlds that move with the step's velocity where nothing is deep.
template <class L, class Real = typename L::Real>
HD void go_on(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt, Workspace<L>& w,
              StepState<L>& s) {
  const RollingParts<L> rolls = rolling_parts<L>(g, m, w.contacts);
  if (!opt.moves_centres() || !g.any(rolls.some | some_turn<L>(g, m, w.contacts))) {
    s.placed = move_on<L>(g, m, opt, s.moving, w, w.v, w.v, s.x);
    return;
  }
  copy_dofs<L>(g, m, w.v, s.v);
  turn_late<L>(g, m, opt.h, w.kin, w.I, rolls.of, s.x.v, s.v);
  turn_along<L>(g, m, w.kin, w.I, w.contacts, w.v);
  s.placed = move_on<L>(g, m, opt, s.moving, w, w.v, s.v, s.x);
}

/// Takes a step's certificate into the worst of the worlds that move; what is NaN stays.
template <class Real>
HD void gather_worst(const Mask<Real>& moving, const Mask<Real>& converged, const Certificate<Real>& c, Real iterations,
                     Outcome<Real>& out) {
  const Mask<Real> judged = (c.r_con == c.r_con) & (c.scale == c.scale),
                   worse = (c.r_con * out.certificate.scale > out.certificate.r_con * c.scale) | negate(judged);
  const Real before = out.certificate.scale, one(1), zero(0);
  auto take = [&](Real& to, Real from) { to = select(moving, maximum(to, from), to); };
  out.certificate.r_con = select(moving & worse, c.r_con, out.certificate.r_con);
  out.certificate.scale = select(moving & worse, c.scale, out.certificate.scale);
  // Of V of the step whose r_con is kept, whatever V was where they were largest.
  const Real V = out.certificate.scale, known = select(before > Real(1e-29f), V / before, zero),
             now = select(c.scale > zero, V / c.scale, one);
  auto take_of_scale = [&](Real& to, Real from) { to = select(moving, maximum(to * known, from * now), to); };
  take_of_scale(out.certificate.r_ccp, c.r_ccp), take_of_scale(out.certificate.r_mdp, c.r_mdp);
  take_of_scale(out.certificate.r_split, c.r_split);
  take(out.certificate.r_dyn, c.r_dyn), take(out.certificate.r_row, c.r_row);
  take(out.certificate.r_cone, c.r_cone), take(out.certificate.penetration, c.penetration);
  take(out.certificate.num_contacts, c.num_contacts), take(out.iterations, iterations);
  out.converged = select(converged | negate(moving), out.converged, Real(0));
}

/// To what may touch within the step.
template <class L>
HD void find_step(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                  Workspace<L>& w, StepState<L>& s) {
  find_contacts<L>(g, m, worlds, s.x, w, s.out.bad, s.placed);
}
/// To the contact problem of this step, and its rows.
template <class L>
HD void pose_step(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                  Workspace<L>& w, StepState<L>& s) {
  using Real = typename L::Real;
  assemble_world<L>(g, m, worlds, s.x, w);
  s.solving = w.problem.any_row, s.iterations = Real(0);
  if (s.solving) {
    pose_rows<L>(g, m, worlds.options.step, w, s);
    return tighten_rested<L>(g, m, worlds.options.step, s.x.v, w, s.rows);
  }
  each_dof<L>(g, m, [](Real b, Real& v) { v = b; }, w.problem.free, w.v);
}
/// Takes the answer and certifies it: `flagged` are to be improved.
template <class L>
HD void judge_step(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                   Workspace<L>& w, StepState<L>& s) {
  using Real = typename L::Real;
  const StepOptions<Scalar<Real>>& options = worlds.options;
  if (s.solving) take_answer<L>(g, m, w);
  s.c = certify_world<L>(g, m, options, w);
  s.flagged = mask_of<Real>(w.memory.fallback != nullptr);
  s.creeping = mask_of<Real>(false);
  if (any(s.flagged)) s.creeping = creeping_worlds<L>(g, m, options, s.c, s.x.v, w);
  Mask<Real> jammed = s.c.given > Real(1);
  s.flagged = s.flagged & (s.creeping | jammed | negate(solves(options, s.c))) & negate(s.frozen | s.out.bad);
  // Where a state is not finite, what is found and solved follows other worlds'.
  if (any(s.flagged))
    s.flagged = s.flagged & finite_worlds<L>(g, m, s.x, w.problem.free, fresh_outcome<Real>().certificate);
  for (int i = worlds.rows.count(); i < kWidth<Real>; ++i) set_lane(s.flagged, i, 0);  // the last world again
  if (!any(s.flagged)) return;
  const Mask<Real> wild = s.flagged & negate(finite_worlds<L>(g, m, s.x, w.v, s.c));
  if (any(wild)) drop_impulses<L>(g, m, wild, w);
  pose_rows<L>(g, m, options.step, w, s);
  jammed = s.flagged & (jammed | wild);
  if (any(jammed)) keep_overlaps<L>(g, m, jammed, w);
}
/// Records the step, with improved impulses where some were flagged; moves on, unless some worlds are `deep`: these are posed.
template <class L>
HD void settle_step(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                    Workspace<L>& w, StepState<L>& s) {
  using Real = typename L::Real;
  const StepOptions<Scalar<Real>>& options = worlds.options;
  Outcome<Real>& out = s.out;
  if (any(s.flagged)) {
    take_answer<L>(g, m, w);
    s.c = certify_world<L>(g, m, options, w);
    if (const Mask<Real> jammed = s.flagged & (s.c.given > Real(1)); any(jammed)) {
      drop_impulses<L>(g, m, jammed, w);
      s.c = certify_world<L>(g, m, options, w), out.without_impulses = out.without_impulses | jammed;
    }
  }
  out.bad = out.bad | negate(finite_worlds<L>(g, m, s.x, w.v, s.c));
  s.moving = negate(out.bad | s.frozen);
  worlds.records.store(g, m, w.kin, w.contacts, w.problem, w.impulses);
  gather_worst(s.moving, converges(options, s.c) & w.problem.free_found, s.c, s.iterations, out);
  out.overflow = out.overflow | (w.contacts.overflow & s.moving);
  out.immovable = out.immovable | (s.moving & told_by_any<L>(g, w.problem.immovable));
  if (options.step.moves_centres())
    owe_coriolis<L>(g, m, {options.step.h, w.kin, w.I, s.x.v, w.problem.from, w.problem.A, w.problem.factor}, w.mean,
                    w.problem.b, w.problem.free, w.v, s.moving, s.x.owed);
  Mask<Real> deep = w.problem.deep;
  if (options.step.theta_vq != 1) deep = deep | hold_back<L>(g, m, options.step, s.x, w);
  s.deep = s.moving & told_by_any<L>(g, deep), s.solving = any(s.deep);
  if (s.solving) pose_recovery<L>(g, m, options.step, w, s);
  else go_on<L>(g, m, options.step, w, s);
}

/// State, controls and loads of worlds, before the first step of a call.
template <class L>
HD void begin_steps(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                    Workspace<L>& w, StepState<L>& s) {
  using Real = typename L::Real;
  const BatchArrays<Scalar<Real>>& arrays = worlds.arrays;
  const Rows<Real>& rows = worlds.rows;
  s.out = fresh_outcome<Real>(), s.step = 0, s.placed = false;
  load_state<L>(g, m, arrays, rows, s.x);
  load_rest<L>(g, m, worlds.records.real, s.x);
  s.out.bad = load_controls<L>(g, m, arrays, rows, w.applied);
  copy_controls<L>(m, w.applied, w.loads);
  s.frozen = mask_of<Real>(false);
  for (int i = 0; i < kWidth<Real>; ++i)
    if (arrays.status[rows.world(i)] & kNonFinite) set_lane(s.frozen, i, kWidth<Real> == 1 ? 1 : -1);
}
/// The state as step number `step` of a call begins with it: as a call of its own would; of the last one it is kept.
template <class L>
HD void enter_step(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds, int step,
                   int steps, StepState<L>& s) {
  using Real = typename L::Real;
  if (step > 0) round_base<L>(m, s.x);
  if (step + 1 < steps) return;
  each_state_entry<L>(g, m, s.x, worlds.records.real, [](const Real& now, Real& kept) { kept = now; });
}
/// What users see of worlds after the last of `steps` steps.
template <class L>
HD void end_steps(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds, int steps,
                  StepState<L>& s) {
  using Real = typename L::Real;
  const BatchArrays<Scalar<Real>>& arrays = worlds.arrays;
  const Rows<Real>& rows = worlds.rows;
  const Outcome<Real>& out = s.out;
  const Mask<Real>& frozen = s.frozen;
  g.sync();  // all have read what is now written
  store_state<L>(g, m, arrays, rows, s.x, frozen);
  round_base<L>(m, s.x);
  store_rest<L>(g, m, s.x, worlds.records.real);

  if (g.rank() != 0) return;
  const Certificate<Real>& c = out.certificate;
  const Real converged = select(out.bad | frozen, Real(0), out.converged);
  const Real field[kCertificateFields] = {c.r_dyn, c.r_con,        c.r_split,      c.r_ccp,
                                          c.r_mdp, c.r_row,        c.r_cone,       c.penetration,
                                          c.scale, c.num_contacts, out.iterations, converged};
  for (int f = 0; f < kCertificateFields; ++f) rows.set(arrays.certificate[f], 1, 0, field[f]);
  for (int i = 0; i < rows.count(); ++i) {
    int world = rows.first + i;
    int bits = (lane(out.bad, i) ? kNonFinite : 0) | (lane(out.overflow, i) ? kContactOverflow : 0) |
               (lane(out.fallback, i) ? kFallback : 0) | (lane(out.immovable, i) ? kImmovable : 0) |
               (lane(out.without_impulses, i) ? kNoImpulses : 0) | (lane(out.converged, i) > 0 ? 0 : kNotConverged);
    arrays.status[world] |= bits;
    if (lane(frozen, i) || lane(out.bad, i)) continue;
    for (int k = 0; k < steps; ++k) arrays.time[world] += static_cast<double>(worlds.options.step.h);
  }
}

/// The rest of a step.
template <class L>
HD_ONCE void settle(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                    Workspace<L>& w, StepState<L>& s) {
  settle_step<L>(g, m, worlds, w, s);
  if (s.solving) {
    solve_posed(g, worlds.options, s.rows, s.impulse, w.memory.solver);
    recover<L>(g, m, worlds.options, w, s);
  }
  ++s.step;
}
/// On a CPU: goes on until some worlds are flagged (true), which are to be improved and settled then, or `steps` steps are taken.
template <class L>
HD bool take_steps(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds, int steps,
                   Workspace<L>& w, StepState<L>& s) {
  while (s.step < steps) {
    enter_step<L>(g, m, worlds, s.step, steps, s);
    find_step<L>(g, m, worlds, w, s);
    pose_step<L>(g, m, worlds, w, s);
    if (s.solving) s.iterations = solve_posed(g, worlds.options, s.rows, s.impulse, w.memory.solver);
    judge_step<L>(g, m, worlds, w, s);
    if (any(s.flagged)) return true;
    settle<L>(g, m, worlds, w, s);
  }
  return false;
}

}  // namespace stiction
