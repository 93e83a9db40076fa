// SubADMM: subsystem ADMM with body split. CANAL/SubADMM paper, section VI; theory section 6 with its additions (relaxation,
// penalties per row, Anderson acceleration). Find v, l with
//
//   A v = b + J' l,   l_i = projection of l_i - B_i (J_i v + e_i)
//
// A row i has one slack z_ij = J_ij v_j per side j that can move: a contact of two links has two, a limit one, a tie one per
// dof. So every penalty is local to a link (a point mass B_i at the contact) or to a dof, and H keeps the tree's sparsity.
//
//   v      = H^-1 (b + sum J_ij' (B_i z_ij + l_i)),   H = A + sum J_ij' B_i J_ij
//   y_ij   = B_i (alpha J_ij v + (1 - alpha) z_ij) - l_i                                over-relaxation, alpha = 1.5
//   y      : Anderson (depth 3); y alone determines the next pass
//   l_i    = projection(-(sum_j y_ij + B_i e_i) / (n_i + B_i R_i)),   n_i: number of sides
//   z_ij   = (y_ij + l_i) / B_i
//
// Contacts: strict projection. Other rows: clamped to [lower, upper]. B_i = n_i / W_ii (tangential and normal apart); the
// paper's single B and the per-contact one are options. Rows that are not active have B = 0 and do nothing. With a tolerance a
// world is frozen as soon as its residual max |J v - z| + |change of l| / B is below it; without, iterations are fixed.
#pragma once
#include "contact/assemble.h"
#include "dynamics/crba.h"
#include "solvers/subadmm/packed_admm.h"

namespace stiction {

template <class L>
struct SubAdmm {
  using Real = typename L::Real;
  using Shape = typename L::Shape;
  using Group = typename L::Group;
  using Model = typename L::Model;
  using Kin = Kinematics<L>;
  using Opt = Options<Scalar<Real>>;
  using Vec = Vec3<Real>;
  static constexpr int kDepth = Shape::kAnderson ? 3 : 0, kColumns = Shape::kAnderson ? 3 : 1;
  static constexpr int kPairs = at_least_one(Shape::kPairs), kTies = at_least_one(Shape::kTies);

  struct Slot {
    Vec lambda, z, y;
    Real beta_t, beta_n, soft_t, soft_n;
  };
  struct Pair {
    Vec lambda, z[2], y[2];
    Real beta_t, beta_n, soft_t, soft_n;
  };
  struct Row { Real lambda, z, y, beta, soft; };
  struct Tie { Real lambda, z[Shape::kTieTerms], y[Shape::kTieTerms], beta, soft; };

  struct Histories {
    PerSlot<L, History<Vec, kColumns>> slot;
    History<Vec, kColumns> pair[kPairs][2];
    PerDof<L, History<Real, kColumns>> limit, friction;
    History<Real, kColumns> tie[kTies][Shape::kTieTerms];
  };
  struct None {};

  struct Workspace {
    TreeMatrix<L> H;
    PerSlot<L, Slot> slot;
    Pair pair[kPairs];
    PerDof<L, Row> limit, friction;
    Tie tie[kTies];
    PerLink<L, Force<Real>> extra;
    PerLink<L, Motion<Real>> V;
    PerLink<L, SymMat6<Real>> extra_inertia;
    Anderson<Real, kColumns> anderson;
    Histories history;
  };

  /// l: warm start on entry, the answer on exit; v: its velocity. Returns the iterations of each world.
  HD static Real solve_world(const Group& g, const Model& m, const Opt& opt, const Kin& kin,
                             const Contacts<L>& contacts, const ContactProblem<L>& problem, Workspace& w,
                             Impulses<L>& l, TreeVector<L>& v, Real scale) {
    if constexpr (kPacks<L>) {
      if (problem.packed.there() && any(problem.packed.fits))
        return solve_packed(g, m, opt, kin, contacts, problem, w, l, v, scale);
    }
    return solve_tree(g, m, opt, kin, contacts, problem, w, l, v, scale);
  }

 private:
  /// Worlds that fit by PackedAdmm, the others by the tree.
  HD static Real solve_packed(const Group& g, const Model& m, const Opt& opt, const Kin& kin,
                              const Contacts<L>& contacts, const ContactProblem<L>& problem, Workspace& w,
                              Impulses<L>& l, TreeVector<L>& v, Real scale) {
    PackedAdmm<L> packed(problem.packed);
    Real* lambda = packed.lambda();
    for (int i = 0; i < problem.packed.size(); ++i) lambda[i] = Real(0);
    each_packed<L>(m, contacts, problem, l, [&](Mask<Real> is, int i, Real& f) { blend(is, f, lambda[i]); });
    Real iterations = packed.solve(opt, scale);
    if (!all(problem.packed.fits))
      iterations =
          select(problem.packed.fits, iterations, solve_tree(g, m, opt, kin, contacts, problem, w, l, v, scale));
    each_packed<L>(m, contacts, problem, l, [&](Mask<Real> is, int i, Real& f) { blend(is, lambda[i], f); });
    velocity_of<L>(g, m, kin, contacts, problem, l, w.extra, v);
    return iterations;
  }

  HD static Real solve_tree(const Group& g, const Model& m, const Opt& opt, const Kin& kin, const Contacts<L>& contacts,
                            const ContactProblem<L>& problem, Workspace& w, Impulses<L>& l, TreeVector<L>& v,
                            Real scale) {
    prepare(g, m, opt, kin, contacts, problem, w, l, v);
    add_penalty(g, m, kin, contacts, problem, w);
    factor<L>(g, m, w.H);
    bool accelerate = Shape::kAnderson && opt.anderson;
    if (accelerate) clear_histories(g, m, contacts, problem, w);

    Real count(0);
    auto done = mask_of<Real>(false);
    const bool stopping = !Shape::kFixed && opt.tolerance > 0;
    const bool adaptive = !Shape::kFixed && opt.penalty == kPenaltyAdaptive;
    Real total(1);  // what the penalties have been scaled by
    for (int n = 0; n < opt.iterations; ++n) {
      primal(g, m, kin, contacts, problem, w, v);
      images(g, m, opt, kin, contacts, problem, w, v);
      if (accelerate) advance(g, m, opt, contacts, problem, w);
      const AdmmChange<Real> change = multipliers(g, m, opt, contacts, problem, w, done, stopping || adaptive);
      count = select(done, count, count + Real(1));
      if (stopping) {
        done = done | (change.largest() <= scale * opt.tolerance);
        if (!g.any(negate(done))) break;
      }
      if (adaptive && (n + 1) % kAdaptivePasses == 0) {
        scale_penalty(g, m, contacts, problem, w, adapted(change, done, total));
        add_penalty(g, m, kin, contacts, problem, w);
        factor<L>(g, m, w.H);
        if (accelerate) clear_histories(g, m, contacts, problem, w);
      }
    }
    finish(g, m, contacts, problem, w, l);
    velocity_of<L>(g, m, kin, contacts, problem, l, w.extra, v);
    return count;
  }

  HD static Vec scaled(Real t, Real n, Vec a) { return {a.x * t, a.y * t, a.z * n}; }

  /// beta = sides / W, soft = 1 / beta; both 0 where inactive.
  HD static void weights(const Opt& opt, Mask<Real> active, const ContactRow<Real>& row, int sides, Real& beta_t,
                         Real& beta_n, Real& soft_t, Real& soft_n) {
    Real zero(0), n(static_cast<Scalar<Real>>(sides)), share(static_cast<Scalar<Real>>(1.0 / sides));
    Real wt = row.W_t, wn = row.W_n;
    if (opt.penalty == kPenaltyPerContact) wt = wn = (row.W_t * Real(2) + row.W_n) * Real(1.0f / 3);
    soft_t = select(active, wt * share, zero), soft_n = select(active, wn * share, zero);
    beta_t = select(active, n / wt, zero), beta_n = select(active, n / wn, zero);
  }

  /// Penalties, and z = J A^-1 (b + J' l) from the warm start; 0 in rows that are not active, which other worlds of a pack may
  /// have and which are not to show in the residual.
  HD static void prepare(const Group& g, const Model& m, const Opt& opt, const Kin& kin, const Contacts<L>& contacts,
                         const ContactProblem<L>& problem, Workspace& w, Impulses<L>& l, TreeVector<L>& v) {
    Real zero(0), one(1);
    const Vec none{zero, zero, zero};
    velocity_of<L>(g, m, kin, contacts, problem, l, w.extra, v);
    each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) {
      Slot& s = w.slot.slot[c];
      weights(opt, contacts.point.slot[c].active, problem.row.slot[c], 1, s.beta_t, s.beta_n, s.soft_t, s.soft_n);
      s.lambda = l.slot.slot[c];
    });
    for (int i = 0; i < contacts.pairs; ++i) {
      Pair& s = w.pair[i];
      weights(opt, contacts.pair[i].point.active, problem.pair_row[i], 2, s.beta_t, s.beta_n, s.soft_t, s.soft_n);
      s.lambda = l.pair[i];
    }
    if (!Shape::kFixed && opt.penalty == kPenaltyPaper) paper_penalty(g, m, contacts, problem, w);
    row_velocities<L>(
        g, m, kin, contacts, v, w.V,
        [&](int c, Vec z) { w.slot.slot[c].z = select(contacts.point.slot[c].active, z, none); },
        [&](int i, Vec w1, Vec w2) {
          auto active = contacts.pair[i].point.active;
          w.pair[i].z[0] = select(active, -w1, none), w.pair[i].z[1] = select(active, w2, none);
        });
    auto row = [&](const ScalarRow<Real>& r, Row& s, Real lambda, Real vi) {
      s.soft = select(r.active, r.W, zero), s.beta = select(r.active, one / r.W, zero);
      s.lambda = lambda, s.z = select(r.active, r.sign * vi, zero);
    };
    each_dof_row<L>(
        g, m, problem.limit_live, [&](bool, const auto& r, Row& s, Real a, Real vi) { row(r, s, a, vi); },
        problem.limit, w.limit, l.limit, v);
    each_dof_row<L>(
        g, m, problem.friction_live, [&](bool, const auto& r, Row& s, Real a, Real vi) { row(r, s, a, vi); },
        problem.friction, w.friction, l.friction, v);
    for (int i = 0; i < m.ties; ++i) {
      if (!problem.tie_live[i]) continue;
      const ScalarRow<Real>& r = problem.tie[i];
      Real n(static_cast<Scalar<Real>>(m.tie[i].terms));
      Tie& s = w.tie[i];
      s.beta = select(r.active, n / r.W, zero), s.soft = select(r.active, r.W / n, zero);
      s.lambda = l.tie[i];
      for (int j = 0; j < m.tie[i].terms; ++j)
        s.z[j] = select(r.active, problem.tie_coef[i][j] * dof_of<L>(g, m, v, m.tie[i].link[j]), zero);
    }
  }

  /// One beta for all contacts: the harmonic mean over contacts of 1 / mean(W_ii). (The paper's is the geometric mean over
  /// bodies of mass / number of contacts; a link of a robot has no mass of its own that a contact feels, so the effective one
  /// is taken, which knows nothing of how many contacts share it.)
  HD static void paper_penalty(const Group& g, const Model& m, const Contacts<L>& contacts,
                               const ContactProblem<L>& problem, Workspace& w) {
    // The product of many effective masses as mantissas would overflow floats: use the harmonic mean, which is within the
    // spread of the masses of the geometric one and needs no logarithm.
    Real own(0), own_count(0), shared(0), shared_count(0), zero(0), one(1);
    auto mean = [](const ContactRow<Real>& r) { return (r.W_t * Real(2) + r.W_n) * Real(1.0f / 3); };
    each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) {
      auto active = contacts.point.slot[c].active;
      own = own + select(active, mean(problem.row.slot[c]), zero), own_count = own_count + select(active, one, zero);
    });
    for (int i = 0; i < contacts.pairs; ++i) {
      auto active = contacts.pair[i].point.active;
      shared = shared + select(active, mean(problem.pair_row[i]), zero);
      shared_count = shared_count + select(active, one, zero);
    }
    Real count = g.sum(own_count) + shared_count, sum = g.sum(own) + shared;
    Real soft = sum / max(count, one), beta = one / select(soft > zero, soft, one);
    auto set = [&](Mask<Real> active, Real& beta_t, Real& beta_n, Real& soft_t, Real& soft_n) {
      beta_t = beta_n = select(active, beta, zero), soft_t = soft_n = select(active, soft, zero);
    };
    each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) {
      Slot& s = w.slot.slot[c];
      set(contacts.point.slot[c].active, s.beta_t, s.beta_n, s.soft_t, s.soft_n);
    });
    for (int i = 0; i < contacts.pairs; ++i) {
      Pair& s = w.pair[i];
      set(contacts.pair[i].point.active, s.beta_t, s.beta_n, s.soft_t, s.soft_n);
    }
  }

  HD static void scale_penalty(const Group& g, const Model& m, const Contacts<L>& contacts,
                               const ContactProblem<L>& problem, Workspace& w, Real by) {
    const Real inverse = Real(1) / by;
    auto contact = [&](auto& s) {
      s.beta_t = s.beta_t * by, s.beta_n = s.beta_n * by, s.soft_t = s.soft_t * inverse, s.soft_n = s.soft_n * inverse;
    };
    auto row = [&](auto& s) { s.beta = s.beta * by, s.soft = s.soft * inverse; };
    each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) { contact(w.slot.slot[c]); });
    for (int i = 0; i < contacts.pairs; ++i) contact(w.pair[i]);
    each_dof_row<L>(g, m, problem.limit_live, [&](bool, Row& s) { row(s); }, w.limit);
    each_dof_row<L>(g, m, problem.friction_live, [&](bool, Row& s) { row(s); }, w.friction);
    for (int i = 0; i < m.ties; ++i)
      if (problem.tie_live[i]) row(w.tie[i]);
  }

  /// H = A + sum J' B J.
  HD static void add_penalty(const Group& g, const Model& m, const Kin& kin, const Contacts<L>& contacts,
                             const ContactProblem<L>& problem, Workspace& w) {
    using Inertia = SymMat6<Real>;
    each_entry<L>(g, m, [](Real a, Real& copy) { copy = a; }, problem.A, w.H);
    const Inertia none = zero_inertia(static_cast<Inertia*>(nullptr));
    bool moving = contacts.pairs > 0;
    if (moving) {
    UNROLL for (int t = 0; t < m.trunk_links(); ++t) w.extra_inertia.trunk[t] = none;
      each_limb<L>(g, m, [&](const auto& limb, Place at) {
        for (int k = 0; k < limb.links(); ++k) w.extra_inertia.limb[at.link + k] = none;
      });
      for (int i = 0; i < contacts.pairs; ++i) {
        const PairContact<L>& c = contacts.pair[i];
        SymMat3<Real> B = in_world(c.point.frame, Vec{w.pair[i].beta_t, w.pair[i].beta_t, w.pair[i].beta_n});
        scatter_add<L>(g, m, w.extra_inertia, c.link2, point_inertia(c.point.p, B));
        scatter_add<L>(g, m, w.extra_inertia, c.link1, point_inertia(c.p1, B));
      }
    }
    auto on_station = [&](const auto& limb, Place at, int s) {
      Inertia sum = none;
      each_station_slot<L>(limb, at, s, contacts, [&](int c) {
        const Slot& x = w.slot.slot[c];
        const ContactPoint<Real>& p = contacts.point.slot[c];
        const Real o(0), t = x.beta_t;
        SymMat3<Real> B = m.level ? SymMat3<Real>{t, o, o, t, o, x.beta_n} : in_world(p.frame, Vec{t, t, x.beta_n});
        sum = sum + point_inertia(p.p, B);
      });
      return sum;
    };
    add_composite<L, Inertia>(
        g, m, kin,
        [&](const auto& limb, Place at, int k) {
          Inertia own = on_station(limb, at, k + 1);
          return moving ? own + w.extra_inertia.limb[at.link + k] : own;
        },
        [&](const auto& limb, Place at) { return on_station(limb, at, 0); },
        [&](int t) {
          if (!moving) return none;
          Inertia x = w.extra_inertia.trunk[t];  // rank 0 holds it; the others hold 0
          sum_over(g, x);
          return x;
        },
        w.H);
    auto diagonal = [&](const PerDof<L, int>& live, const PerDof<L, Row>& rows) {
      UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t)
        if (live.trunk[t]) w.H.trunk[t][t] = w.H.trunk[t][t] + rows.trunk[t].beta;
      each_limb<L>(g, m, [&](const auto& limb, Place at) {
        UNROLL for (int k = 0; k < limb.links(); ++k) {
          Real& h = w.H.limb[at.entry + entry_of(k, k)];
          if (live.limb[at.link + k]) h = h + rows.limb[at.link + k].beta;
        }
      });
    };
    diagonal(problem.limit_live, w.limit);
    diagonal(problem.friction_live, w.friction);
    for (int i = 0; i < m.ties; ++i)
      if (problem.tie_live[i])
        for (int j = 0; j < m.tie[i].terms; ++j)
          add_to_diagonal(g, m, w.H, m.tie[i].link[j], w.tie[i].beta * problem.tie_coef[i][j] * problem.tie_coef[i][j]);
  }

  HD static void add_to_diagonal(const Group& g, const Model& m, TreeMatrix<L>& H, int flat, Real x) {
    if (flat < L::kTrunkLinks) {
      int t = flat + m.base_dofs() - m.base_links();
      H.trunk[t][t] = H.trunk[t][t] + x;
      return;
    }
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      int k = flat - L::kTrunkLinks - limb.t.first_link;
      if (k >= 0 && k < limb.links()) H.limb[at.entry + entry_of(k, k)] = H.limb[at.entry + entry_of(k, k)] + x;
    });
  }

  HD static void clear_histories(const Group& g, const Model& m, const Contacts<L>& contacts,
                                 const ContactProblem<L>& problem, Workspace& w) {
    const Real zero(0);
    const Vec none{zero, zero, zero};
    auto& a = w.anderson;
    a.clear();
    each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) { a.clear(w.history.slot.slot[c], none); });
    for (int i = 0; i < contacts.pairs; ++i)
      for (int j = 0; j < 2; ++j) a.clear(w.history.pair[i][j], none);
    auto clear = [&](bool, auto& h) { a.clear(h, zero); };
    each_dof_row<L>(g, m, problem.limit_live, clear, w.history.limit);
    each_dof_row<L>(g, m, problem.friction_live, clear, w.history.friction);
    for (int i = 0; i < m.ties; ++i)
      for (int j = 0; j < m.tie[i].terms; ++j) a.clear(w.history.tie[i][j], zero);
  }

  /// v = H^-1 (b + sum J' (B z + l)).
  HD static void primal(const Group& g, const Model& m, const Kin& kin, const Contacts<L>& contacts,
                        const ContactProblem<L>& problem, Workspace& w, TreeVector<L>& v) {
    Real share[L::kTrunkDofs];
    each_dof<L>(g, m, [](Real b, Real& x) { x = b; }, problem.b, v);
    add_row_forces<L>(
        g, m, kin, contacts, problem,
        [&](int c) {
          const Slot& s = w.slot.slot[c];
          return scaled(s.beta_t, s.beta_n, s.z) + s.lambda;
        },
        [&](int i, int side) {
          // On body 1 the row is -F v1, so its force there is -F'(...): add_row_forces brings the sign.
          const Pair& s = w.pair[i];
          return scaled(s.beta_t, s.beta_n, s.z[side]) + s.lambda;
        },
        [&](TreeVector<L>& x) {
          each_dof_row<L>(g, m, problem.limit_live,
                          [](bool, const auto& r, const Row& s, Real& xi) { xi = xi + r.sign * (s.beta * s.z + s.lambda); },
                          problem.limit, w.limit, x);
          each_dof_row<L>(g, m, problem.friction_live,
                          [](bool, const Row& s, Real& xi) { xi = xi + (s.beta * s.z + s.lambda); }, w.friction, x);
        },
        [&](int i, int j) { return w.tie[i].beta * w.tie[i].z[j] + w.tie[i].lambda; }, w.extra, v, share);
    solve<L>(g, m, w.H, v, share);
  }

  /// y = B (alpha J v + (1 - alpha) z) - l.
  HD static void images(const Group& g, const Model& m, const Opt& opt, const Kin& kin, const Contacts<L>& contacts,
                        const ContactProblem<L>& problem, Workspace& w, const TreeVector<L>& v) {
    Real alpha(opt.relaxation), rest = Real(1) - alpha;
    row_velocities<L>(
        g, m, kin, contacts, v, w.V,
        [&](int c, Vec x) {
          Slot& s = w.slot.slot[c];
          s.y = scaled(s.beta_t, s.beta_n, x * alpha + s.z * rest) - s.lambda;
        },
        [&](int i, Vec w1, Vec w2) {
          Pair& s = w.pair[i];
          s.y[0] = scaled(s.beta_t, s.beta_n, s.z[0] * rest - w1 * alpha) - s.lambda;
          s.y[1] = scaled(s.beta_t, s.beta_n, w2 * alpha + s.z[1] * rest) - s.lambda;
        });
    auto image = [&](bool, const ScalarRow<Real>& r, Row& s, Real vi) {
      s.y = s.beta * (r.sign * vi * alpha + s.z * rest) - s.lambda;
    };
    each_dof_row<L>(g, m, problem.limit_live, image, problem.limit, w.limit, v);
    each_dof_row<L>(g, m, problem.friction_live, image, problem.friction, w.friction, v);
    for (int i = 0; i < m.ties; ++i) {
      if (!problem.tie_live[i]) continue;
      Tie& s = w.tie[i];
      for (int j = 0; j < m.tie[i].terms; ++j) {
        Real x = problem.tie_coef[i][j] * dof_of<L>(g, m, v, m.tie[i].link[j]);
        s.y[j] = s.beta * (x * alpha + s.z[j] * rest) - s.lambda;
      }
    }
  }

  /// visit(history, y, sums, soft_t, soft_n) for every entry of y.
  template <class Visit>
  HD static void each_entry_of_y(const Group& g, const Model& m, const Contacts<L>& contacts,
                                 const ContactProblem<L>& problem, Workspace& w, Visit visit) {
    auto& own = w.anderson.own;
    auto& shared = w.anderson.shared;
    each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) {
      Slot& s = w.slot.slot[c];
      visit(w.history.slot.slot[c], s.y, own, [&s](Vec x) { return scaled(s.soft_t, s.soft_n, x); });
    });
    for (int i = 0; i < contacts.pairs; ++i) {
      Pair& s = w.pair[i];
      for (int j = 0; j < 2; ++j)
        visit(w.history.pair[i][j], s.y[j], shared, [&s](Vec x) { return scaled(s.soft_t, s.soft_n, x); });
    }
    auto row = [&](bool is_own, Row& s, auto& h) {
      visit(h, s.y, is_own ? own : shared, [&s](Real x) { return x * s.soft; });
    };
    each_dof_row<L>(g, m, problem.limit_live, row, w.limit, w.history.limit);
    each_dof_row<L>(g, m, problem.friction_live, row, w.friction, w.history.friction);
    for (int i = 0; i < m.ties; ++i) {
      if (!problem.tie_live[i]) continue;
      Tie& s = w.tie[i];
      for (int j = 0; j < m.tie[i].terms; ++j)
        visit(w.history.tie[i][j], s.y[j], shared, [&s](Real x) { return x * s.soft; });
    }
  }

  HD static void advance(const Group& g, const Model& m, const Opt& opt, const Contacts<L>& contacts,
                         const ContactProblem<L>& problem, Workspace& w) {
    auto& a = w.anderson;
    a.begin_sums();
    each_entry_of_y(g, m, contacts, problem, w,
                    [&](auto& h, auto& y, auto& sums, auto weighted) { a.gather(h, y, sums, weighted); });
    a.finish_sums(g, Real(opt.tikhonov));
    each_entry_of_y(g, m, contacts, problem, w, [&](auto& h, auto& y, auto&, auto) { y = a.step(h); });
  }

  HD static Vec projected(const Opt& opt, Vec y, Real beta_t, Real beta_n, const ContactRow<Real>& row, Real mu,
                          int sides) {
    Real n(static_cast<Scalar<Real>>(sides)), bt = n + beta_t * row.R_t, bn = n + beta_n * row.R_n;
    const Vec free{-y.x / bt, -y.y / bt, -(y.z + beta_n * row.e) / bn};
    if constexpr (!L::Shape::kFixed)
      if (opt.convex) return project_weighted(free, mu, sqrt(bt * beta_n / (bn * beta_t)));
    return project_strict(free, mu);
  }
  HD static Real largest(Vec a) { return max(max(abs(a.x), abs(a.y)), abs(a.z)); }

  /// l and z from y; their largest changes where `watched`. Worlds that are done keep theirs.
  HD static AdmmChange<Real> multipliers(const Group& g, const Model& m, const Opt& opt, const Contacts<L>& contacts, const ContactProblem<L>& problem,
                             Workspace& w, Mask<Real> done, bool watched) {
    AdmmChange<Real> own, shared;
    auto keep = [&](auto fresh, auto old) { return watched ? select(done, old, fresh) : fresh; };
    each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) {
      Slot& s = w.slot.slot[c];
      Vec lambda = projected(opt, s.y, s.beta_t, s.beta_n, problem.row.slot[c], contacts.point.slot[c].mu, 1);
      Vec z = scaled(s.soft_t, s.soft_n, s.y + lambda);
      if (watched) own.add(largest(z - s.z), largest(scaled(s.soft_t, s.soft_n, lambda - s.lambda)));
      s.lambda = keep(lambda, s.lambda), s.z = keep(z, s.z);
    });
    for (int i = 0; i < contacts.pairs; ++i) {
      Pair& s = w.pair[i];
      Vec lambda = projected(opt, s.y[0] + s.y[1], s.beta_t, s.beta_n, problem.pair_row[i], contacts.pair[i].point.mu, 2);
      if (watched) shared.add(Real(0), largest(scaled(s.soft_t, s.soft_n, lambda - s.lambda)));
      s.lambda = keep(lambda, s.lambda);
      for (int j = 0; j < 2; ++j) {
        Vec z = scaled(s.soft_t, s.soft_n, s.y[j] + lambda);
        if (watched) shared.add(largest(z - s.z[j]), Real(0));
        s.z[j] = keep(z, s.z[j]);
      }
    }
    auto row = [&](bool is_own, const ScalarRow<Real>& r, Row& s) {
      Real lambda = clamp(-(s.y + s.beta * r.e) / (Real(1) + s.beta * r.R), r.lower, r.upper);
      lambda = select(r.active, lambda, Real(0));
      Real z = s.soft * (s.y + lambda);
      if (watched) (is_own ? own : shared).add(abs(z - s.z), s.soft * abs(lambda - s.lambda));
      s.lambda = keep(lambda, s.lambda), s.z = keep(z, s.z);
    };
    each_dof_row<L>(g, m, problem.limit_live, row, problem.limit, w.limit);
    each_dof_row<L>(g, m, problem.friction_live, row, problem.friction, w.friction);
    for (int i = 0; i < m.ties; ++i) {
      if (!problem.tie_live[i]) continue;
      const ScalarRow<Real>& r = problem.tie[i];
      Tie& s = w.tie[i];
      Real y(0), n(static_cast<Scalar<Real>>(m.tie[i].terms));
      for (int j = 0; j < m.tie[i].terms; ++j) y = y + s.y[j];
      Real lambda = clamp(-(y + s.beta * r.e) / (n + s.beta * r.R), r.lower, r.upper);
      lambda = select(r.active, lambda, Real(0));
      if (watched) shared.add(Real(0), s.soft * abs(lambda - s.lambda));
      s.lambda = keep(lambda, s.lambda);
      for (int j = 0; j < m.tie[i].terms; ++j) {
        Real z = s.soft * (s.y[j] + lambda);
        if (watched) shared.add(abs(z - s.z[j]), Real(0));
        s.z[j] = keep(z, s.z[j]);
      }
    }
    if (watched) own.z = g.max(own.z), own.lambda = g.max(own.lambda), own.add(shared.z, shared.lambda);
    return own;
  }

  HD static void finish(const Group& g, const Model& m, const Contacts<L>& contacts, const ContactProblem<L>& problem,
                        Workspace& w, Impulses<L>& l) {
    each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) { l.slot.slot[c] = w.slot.slot[c].lambda; });
    for (int i = 0; i < contacts.pairs; ++i) l.pair[i] = w.pair[i].lambda;
    auto take = [](bool, const Row& s, Real& out) { out = s.lambda; };
    each_dof_row<L>(g, m, problem.limit_live, take, w.limit, l.limit);
    each_dof_row<L>(g, m, problem.friction_live, take, w.friction, l.friction);
    for (int i = 0; i < m.ties; ++i)
      if (problem.tie_live[i]) l.tie[i] = w.tie[i].lambda;
  }
};

}  // namespace stiction
