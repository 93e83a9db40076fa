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
#include "host/step/batch.h"
#include "host/step/fallback.h"
#include "solvers/subadmm/subadmm.h"

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

/// Controls and applied forces; the worlds where one of them is not finite. Every lane reads what its limbs need.
template <class L, class Real = typename L::Real>
HD Mask<Real> load_controls(const typename L::Group& g, const typename L::Model& m, const BatchArrays<Scalar<Real>>& a,
                            const Rows<Real>& rows, Loads<L>& loads) {
  auto bad = mask_of<Real>(false);
  load_loads<L>(g, m, a, rows, loads, bad);
  return g.either(bad);
}

/// Wrenches of xfrc_applied (N, nbody, 6) and of gravity compensation on the links; turns the base's applied torque.
template <class L, class Real = typename L::Real>
HD void place_loads(const typename L::Group& g, const typename L::Model& m, const BatchArrays<Scalar<Real>>& a,
                    const Rows<Real>& rows, const Kinematics<L>& kin, Loads<L>& applied, Loads<L>& loads,
                    Mask<Real>& bad) {
  if constexpr (!L::Shape::kLoads) return;
  loads.any_force = applied.any_force, loads.any_wrench = applied.any_wrench;
  if (applied.any_force) {
    each_dof<L>(g, m, [](Real f, Real& to) { to = f; }, applied.force, loads.force);
    if (m.free_base()) {
      const Real* f = applied.force.trunk;
      Vec3<Real> torque = kin.pose.trunk[0].R * Vec3<Real>{f[0], f[1], f[2]};
      loads.force.trunk[0] = torque.x, loads.force.trunk[1] = torque.y, loads.force.trunk[2] = torque.z;
    }
  }
  if (!applied.any_wrench) return;
  clear_forces<L>(g, m, loads.wrench);
  if (m.has_buoyancy) {
    auto lift = [&](const auto& link, const Pose<Real>& pose, Force<Real>& F) {
      F = F + force_at(pose * link.buoyant_com, vec<Real>(m.gravity) * (-Real(link.buoyant_mass)));
    };
    if (g.rank() == 0)
      for (int t = 0; t < m.trunk_links(); ++t) lift(m.trunk[t], kin.pose.trunk[t], loads.wrench.trunk[t]);
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int k = 0; k < limb.links(); ++k)
        lift(limb.link(k), kin.pose.limb[at.link + k], loads.wrench.limb[at.link + k]);
    });
  }
  if (a.xfrc_applied == nullptr) return;
  for (int b = 1; b < m.nbody; ++b) {
    const auto& body = m.body[b];
    if (body.link < 0) continue;
    Real x[6];
    for (int i = 0; i < 6; ++i)
      x[i] = rows.get(a.xfrc_applied, 6 * m.nbody, 6 * b + i), bad = bad | negate(is_finite(x[i]));
    auto add = [&](const Pose<Real>& pose, Force<Real>& F) {
      F = F + force_at(pose * body.com, Vec3<Real>{x[0], x[1], x[2]});
      F.n = F.n + Vec3<Real>{x[3], x[4], x[5]};
    };
    if (body.link < L::kTrunkLinks) {
      if (g.rank() == 0) add(kin.pose.trunk[body.link], loads.wrench.trunk[body.link]);
    } else {
      each_limb<L>(g, m, [&](const auto& limb, Place at) {
        int k = body.link - L::kTrunkLinks - limb.t.first_link;
        if (k >= 0 && k < limb.links()) add(kin.pose.limb[at.link + k], loads.wrench.limb[at.link + k]);
      });
    }
  }
}

/// Impulses of the last step for the contacts of this one, matched by candidate; the record of every slot.
template <class L, class Real = typename L::Real>
struct Records {
  using Model = typename L::Model;
  using Group = typename L::Group;
  Real* real;  // of this pack or world

  HD void warm_start(const Group& g, const Model& m, const Contacts<L>& contacts, const ContactProblem<L>& problem,
                     bool warm, Impulses<L>& l) const {
    RecordLayout<Model> layout(m);
    Real zero(0);
    Vec3<Real> none{zero, zero, zero};
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      int base = limb.first_slot();
    UNROLL for (int s = 0; s <= limb.links(); ++s)
        UNROLL for (int c = limb.slot_begin(s); c < limb.slot_end(s); ++c) {
          if (contacts.skip(at.slot + c)) continue;
          const ContactPoint<Real>& x = contacts.point.slot[at.slot + c];
          Vec3<Real> found = none;
          if (warm) UNROLL for (int o = limb.slot_begin(s); o < limb.slot_end(s); ++o) {
            const Real* r = real + layout.slot(base + o);
            found = select(x.active & (r[kRecordId] == x.id), Vec3<Real>{r[kRecordT1], r[kRecordT2], r[kRecordN]}, found);
          }
          l.slot.slot[at.slot + c] = found;
        }
    });
    for (int s = 0; s < contacts.pairs; ++s) {
      const ContactPoint<Real>& x = contacts.pair[s].point;
      Vec3<Real> found = none;
      if (warm) for (int o = 0; o < layout.pairs; ++o) {
        const Real* r = real + layout.pair(o);
        found = select(x.active & (r[kRecordId] == x.id), Vec3<Real>{r[kRecordT1], r[kRecordT2], r[kRecordN]}, found);
      }
      l.pair[s] = found;
    }
    auto dof = [&](const auto& link, const ScalarRow<Real>& limit, int limit_live, int friction_live, Real& li, Real& fi) {
      if (limit_live) {
        // The sign tells which end it was: an impulse at the other end is no warm start.
        Real old = warm && link.dof >= 0 ? real[layout.limit(link.dof)] * limit.sign : zero;
        li = select(limit.active, max(old, zero), zero);
      }
      if (friction_live) fi = warm && link.dof >= 0 ? real[layout.friction(link.dof)] : zero;
    };
    each_joint<L>(g, m, dof, problem.limit, problem.limit_live, problem.friction_live, l.limit, l.friction);
    for (int i = 0; i < m.ties; ++i)
      l.tie[i] = warm ? select(problem.tie[i].active, clamp(real[layout.tie(i)] * problem.tie[i].sign, problem.tie[i].lower,
                                                            problem.tie[i].upper), zero) : zero;
  }

  HD void store(const Group& g, const Model& m, const Kinematics<L>& kin, const Contacts<L>& contacts,
                const ContactProblem<L>& problem, const Impulses<L>& l) const {
    RecordLayout<Model> layout(m);
    auto put = [&](Real* r, const ContactPoint<Real>& x, Vec3<Real> f, Vec3<Real> p) {
      Vec3<Real> n = x.frame.row[2];
      r[kRecordId] = select(x.active, x.id, Real(-1));
      r[kRecordT1] = f.x, r[kRecordT2] = f.y, r[kRecordN] = f.z, r[kRecordGap] = x.gap, r[kRecordMu] = x.mu;
      r[kRecordX] = p.x, r[kRecordY] = p.y, r[kRecordZ] = p.z, r[kRecordNx] = n.x, r[kRecordNy] = n.y, r[kRecordNz] = n.z;
    };
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      UNROLL for (int c = 0; c < limb.slots(); ++c) {
        Real* r = real + layout.slot(limb.first_slot() + c);
        if (contacts.skip(at.slot + c)) r[kRecordId] = Real(-1);
        else put(r, contacts.point.slot[at.slot + c], l.slot.slot[at.slot + c],
                 contacts.point.slot[at.slot + c].p + kin.limb_origin[at.limb]);
      }
    });
    if (g.rank() == 0) {
      for (int s = 0; s < layout.pairs; ++s) {
        Real* r = real + layout.pair(s);
        if (s >= contacts.pairs) {
          r[kRecordId] = Real(-1);
          continue;
        }
        const PairContact<L>& c = contacts.pair[s];
        put(r, c.point, l.pair[s], c.at + kin.trunk_origin);
        for (int w = 0; w < kWidth<Real>; ++w) {
          set_lane(r[kRecordGeom1], w, static_cast<Scalar<Real>>(lane(c.geom1, w)));
          set_lane(r[kRecordGeom2], w, static_cast<Scalar<Real>>(lane(c.geom2, w)));
        }
      }
      for (int i = 0; i < m.ties; ++i)
        real[layout.tie(i)] = problem.tie_live[i] ? l.tie[i] * problem.tie[i].sign : Real(0);
    }
    auto dof = [&](const auto& link, const ScalarRow<Real>& limit, int limit_live, int friction_live, Real li, Real fi) {
      if (link.dof < 0) return;
      if (m.has_limits) real[layout.limit(link.dof)] = limit_live ? li * limit.sign : Real(0);
      if (m.has_friction) real[layout.friction(link.dof)] = friction_live ? fi : Real(0);
    };
    each_joint<L>(g, m, dof, problem.limit, problem.limit_live, problem.friction_live, l.limit, l.friction);
  }
};

/// The state, kept in a record, and back.
template <class L, class Real, class Touch>
HD void each_state_entry(const typename L::Group& g, const typename L::Model& m, State<L>& x, Real* record, Touch touch) {
  RecordLayout<typename L::Model> layout(m);
  if (m.free_base()) {
    Real* r = record + layout.base();
    touch(x.position.x, r[0]), touch(x.position.y, r[1]), touch(x.position.z, r[2]);
    touch(x.orientation.w, r[3]), touch(x.orientation.x, r[4]), touch(x.orientation.y, r[5]), touch(x.orientation.z, r[6]);
    UNROLL for (int t = 0; t < 6; ++t) touch(x.v.trunk[t], record[layout.velocity(m.trunk[0].dof + t)]);
  }
  each_joint<L>(g, m,
                [&](const auto& link, Real& q, Real& v, Real& qw) {
                  if (link.dof < 0) return;
                  touch(q, record[layout.position(link.dof)]), touch(v, record[layout.velocity(link.dof)]);
                  if (link.kind == kBallLink) touch(qw, record[layout.quaternion(link.dof)]);
                },
                x.q, x.v, x.qw);
}

/// Sets the rows' diagonal weights and free velocities; tells whether there is anything to solve.
template <class L, class Real = typename L::Real>
HD bool assemble(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                 const Kinematics<L>& kin, const State<L>& x, const Loads<L>& loads, const Contacts<L>& contacts,
                 PerLink<L, Force<Real>>& extra, PerLink<L, Motion<Real>>& V, ContactProblem<L>& problem) {
  dof_rows<L>(g, m, opt, x.q, problem);
  tie_rows<L>(g, m, opt, x, loads.tie_ctrl, problem);
  tie_weights<L>(g, m, problem);
  row_velocities<L>(g, m, kin, contacts, problem.free, V, [&](int c, Vec3<Real> w) { problem.row.slot[c].free = w; },
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
  if constexpr (L::Shape::kFixed) bad = bad | load_controls<L>(g, m, arrays, rows, w.loads);  // each step: no registers to keep
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
  find_world_contacts<L>(g, m, w.kin, w.margin, opt.merge, w.contacts);
  find_pair_contacts<L>(g, m, w.kin, w.margin, opt.merge, w.bound, w.contacts);
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
