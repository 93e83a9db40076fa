// The free motion of worlds with loops, which welds, connects, and equalities of joints and tendons of more than the first degree close: what
// they hold goes together.
//
//   A v* = M v0 + h (f - c((v0 + v) / 2)),   v = v* + A^-1 J' l,   (J v, l) in the law of each row,   e = e0 + <J> v - J v
//
// J: all rows but contacts, of which equalities have the bend <J> v - J v in e; <J> v: the mean of J v over a step with the velocity v.
// v, which no contact has changed yet, stands for the velocity at the end of the step in two places. Coriolis forces are taken at the
// mean of it and v0 (dynamics/coriolis.h has the same of trees), so that a linkage keeps its energy; and what frames part by on their
// arcs is in the bias, so that a loop that turns stays closed. Solved by passes, each with the bend and c of the v before, the first
// with none and those of v0, and with rows held at the bounds that solves before left; W + R is factored anew, with R at least
// kBondCompliance of W.
//
// docs/theory.md, (2.3b) and (3.5). Worlds where passes do not settle, or take v too far, have no bend; where they do not settle without,
// no Coriolis forces either, which leaves joints their speeds. Worlds that move by less than kSlowTurn a step keep explicit forces.
#pragma once
#include "contact/bonds.h"
#include "contact/residual.h"
#include "linalg/gram.h"
#include "linalg/small_cholesky.h"
#include "step/free_step.h"

namespace stiction {

inline constexpr int kLoopPasses = 12;
/// Solves in which the rows at a bound are to be found.
inline constexpr int kLoopTries = 8;
/// How far bends may take v from that of explicit forces without bend, as a part of the speeds: kLoopTrust of what all dofs turn in the
/// step, and no more than kLoopMost. Near dead points, where W is nearly singular, they would throw it about.
inline constexpr float kLoopTrust = 0.5f, kLoopMost = 0.25f;
/// To stop: what the next pass would change if changes go on as they do, as a part of the speeds before and after.
template <class S> inline constexpr S kLoopTolerance = sizeof(S) == 4 ? S(1e-4) : S(1e-12);

/// What impulses of the rows but contacts are found with, in the memory of the step's rows, which come later.
template <class Real>
struct LoopRows {
  int n = 0, width = 0;
  Real* matrix;    // (n, n) above the diagonal W of the rows within their bounds, and its factor; below W          1/kg
  Real* diagonal;  // (n)   of W + R
  Real *l, *f,
      *bound;  // (n)   impulses; J v* + e; those of rows that are held at a bound                   N s, m/s, N s
  Real *held, *bend;  // (n)   1 of these; the part of e                                                   1, m/s
  Real* turned;       // (width) of what b has changed, half-solved

  HD void carve(Arena<Real>& arena) {
    matrix = arena.take(static_cast<int64_t>(n) * n), diagonal = arena.take(n);
    l = arena.take(n), f = arena.take(n), bound = arena.take(n), held = arena.take(n), bend = arena.take(n);
    turned = arena.take(width);
  }
  /// Numbers of memory, with those of the rows.
  template <class Model>
  HD static int64_t size(const Model& m) {
    if (!m.has_loops) return 0;
    RowCounts counts = most_rows<Real>(m);
    counts.contacts = counts.spins = 0;
    LoopRows loops;
    loops.n = counts.scalars, loops.width = counts.width;
    Arena<Real> measure;
    loops.carve(measure);
    return RowArrays<Real>::size(counts) + measure.used();
  }

  HD Real W(int i, int j) const { return i == j ? diagonal[i] : matrix[i > j ? i * n + j : j * n + i]; }
  /// By the lanes of a group together: W, and no row held but those that have no choice.
  template <class Group>
  HD void begin(const Group& g, const RowArrays<Real>& rows) {
    parallel_for(g, n, [&](int i) {
      const Real* y = rows.Y + static_cast<int64_t>(i) * width;
      for (int j = 0; j < i; ++j) matrix[i * n + j] = dot(width, y, rows.Y + static_cast<int64_t>(j) * width);
      const Real own = dot(width, y, y);
      diagonal[i] = own + max(rows.R[i], own * kBondCompliance<Scalar<Real>>);
      const Mask<Real> fixed = rows.lower[i] >= rows.upper[i];
      bound[i] = rows.lower[i], held[i] = select(fixed, Real(1), Real(0));
    });
  }
  /// l of f, and which rows are at a bound next: whether others than before. By one lane.
  HD_ONCE bool solve(const RowArrays<Real>& rows) {
    const Real zero(0), one(1);
    Real size(0);
    Mask<Real> moved = mask_of<Real>(false);
    for (int i = 0; i < n; ++i) {
      const Mask<Real> fixed = held[i] > zero;
      Real sum = f[i];
      for (int j = 0; j < n; ++j) {
        const Mask<Real> other = held[j] > zero;
        if (any(other)) sum = sum + select(other, W(i, j) * bound[j], zero);
        if (j >= i) matrix[i * n + j] = select(fixed | other, Real(i == j ? 1 : 0), W(i, j));
      }
      l[i] = select(fixed, bound[i], -sum), size = size + diagonal[i];
    }
    cholesky_factor(n, matrix, max(size * kEpsilon<Scalar<Real>>, Real(1e-30f)));
    cholesky_solve(n, matrix, l);
    for (int i = 0; i < n; ++i) {
      const Real low = rows.lower[i], high = rows.upper[i];
      const Mask<Real> was = held[i] > zero, below = negate(was) & (l[i] < low), above = negate(was) & (l[i] > high);
      Real s = f[i];
      if (any(was))
        for (int j = 0; j < n; ++j) s = s + W(i, j) * l[j];
      const Mask<Real> stays = was & (((bound[i] <= low) & (s >= zero)) | ((bound[i] >= high) & (s <= zero)));
      bound[i] = select(below, low, select(above, high, bound[i]));
      held[i] = select(stays | below | above, one, zero);
      moved = moved | below | above | (was & negate(stays));
    }
    return any(moved);
  }
};

/// v of v*, into w.v: with the impulses of all rows but contacts. base: b, where J v* is as the rows have it.
template <class L, class Real = typename L::Real>
HD_ONCE void hold_loops(const typename L::Group& g, const typename L::Model& m, const TreeVector<L>& base,
                        LoopRows<Real>& loops, Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(base, w);
  ContactProblem<L>& problem = w.problem;
  const RowTable<L>& table = problem.table;
  const RowArrays<Real>& rows = table.rows;
  TreeVector<L> more;
  Real share[L::kTrunkDofs];
  each_dof<L>(g, m, [](Real b, Real from, Real& to) { to = b - from; }, problem.b, base, more);
  for (int t = 0; t < m.trunk_dofs(); ++t) share[t] = Real(0);
  half_solve<L>(
      g, m, problem.factor, more, share,
      [&](const auto& limb, Place at, int i, Real y) {
        loops.turned[limb.t.first_link - at.link + i] = y * table.root.limb[i];
      },
      [&](int t, Real y) { loops.turned[table.trunk + t] = y * table.root.trunk[t]; });
  if (g.rank() == 0) {
    for (int i = 0; i < loops.n; ++i) loops.bend[i] = Real(0);
    for (int i = 0; i < m.bonds; ++i) {
      const Vec3<Real>& bend = problem.bond[i].bend;
      loops.bend[3 * i] = bend.x, loops.bend[3 * i + 1] = bend.y, loops.bend[3 * i + 2] = bend.z;
    }
    for (int i = 0; i < m.ties; ++i)
      if (problem.tie_live[i])
        Places<Real>(table.tie[i]).each([&](int k, const Mask<Real>& is) {
          blend(is, problem.tie_bend[i], loops.bend[k]);
        });
  }
  g.sync();
  parallel_for(g, loops.n, [&](int i) {
    loops.f[i] = rows.free[i] + rows.e[i] + loops.bend[i] +
                 dot(loops.width, rows.Y + static_cast<int64_t>(i) * loops.width, loops.turned);
  });
  if (g.rank() == 0)
    for (int i = 0; i < kLoopTries && loops.solve(rows);) ++i;
  g.sync();
  // A row that takes part only in other worlds of a pack pushes nothing.
  each_dof_row<L>(g, m, problem, [](bool, const auto&, Real& f) { f = Real(0); }, w.impulses.dof);
  for (int i = 0; i < m.ties; ++i) w.impulses.tie[i] = Real(0);
  each_row<L>(g, m, w.contacts, problem, w.impulses,
              [&](const Mask<Real>& is, int i, Real& f) { blend(is, loops.l[i], f); });
  velocity_of<L>(g, m, w);
  g.sync();  // l has been read
}

/// The part of a step, from its beginning and from its end, at which J v is looked at: Gauss's points, so that the mean of two is that of the whole step but for h^4.
inline constexpr double kLoopPoint = 0.21132486540518711775;

/// The bend of J v in a step with the velocity v, in worlds that are `active`: its mean over the step less what it is at the beginning.
template <class L, class Mocap, class Real = typename L::Real>
HD_ONCE void bend_loops(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const State<L>& x,
                        const TreeVector<L>& v, Mocap mocap, const Mask<Real>& active, Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(x, v, w);
  ContactProblem<L>& problem = w.problem;
  const Real zero(0), half(0.5f);
  auto velocity = [&](int i, const AxisForces<Real>(&F)[2]) {
    return dot(gather_at<L>(g, m, w.motions, m.bond[i].link[0]), F[0]) +
           dot(gather_at<L>(g, m, w.motions, m.bond[i].link[1]), F[1]);
  };
  Vec3<Real> point[ContactProblem<L>::kBonds];
  Real tie[ContactProblem<L>::kTies];
  link_motions<L>(g, m, w.kin, v, w.motions);
  for (int i = 0; i < m.bonds; ++i) point[i] = -velocity(i, problem.bond[i].F);
  for (int i = 0; i < m.ties; ++i) tie[i] = zero;
  for (const bool early : {true, false}) {
    const Scalar<Real> until = h * static_cast<Scalar<Real>>(early ? kLoopPoint : 1 - kLoopPoint);
    TreeVector<L> along;
    State<L> at;
    Kinematics<L> kin = w.kin;
    PerLink<L, RigidInertia<Real>> I = w.I;
    at.position = x.position, at.orientation = x.orientation;
    copy_dofs<L>(g, m, x.q, at.q), copy_dofs<L>(g, m, x.qw, at.qw), copy_dofs<L>(g, m, x.v, at.v);
    each_dof<L>(g, m, [&](Real& low) { low = zero; }, at.low);
    copy_dofs<L>(g, m, v, along);
    if (!move_centres<L>(g, m, until, problem.A, mask_of<Real>(true), along, v, kin, I, w.motions, at))
      forward_kinematics<L>(g, m, at, kin);
    link_motions<L>(g, m, kin, at.v, w.motions);
    for (int i = 0; i < m.bonds; ++i) {
      const BondFrames<Real> frames = bond_frames<L>(g, m, kin, mocap, i);
      Real same(0);  // below 0 where a turn's rows are those of the other sign of its quaternion
      for (int end = 0; end < 2; ++end)
        for (int k = 0; k < 3; ++k) same = same + dot(frames.F[end].axis[k].n, problem.bond[i].F[end].axis[k].n);
      const Mask<Real> other = mask_of<Real>(m.bond[i].kind == kBondTurn) & (same < zero);
      point[i] = point[i] + velocity(i, frames.F) * select(other, -half, half);
    }
    for (int i = 0; i < m.ties; ++i) {
      if (m.tie[i].kind != kTieEquality) continue;
      Real coef[L::Shape::kTieTerms];
      equality_of<L>(g, m, m.tie[i], at.q, coef);
      for (int j = 0; j < m.tie[i].terms; ++j)
        tie[i] = tie[i] + (coef[j] - problem.tie_coef[i][j]) * dof_of<L>(g, m, v, m.tie[i].link[j]) * half;
    }
  }
  auto set = [&](Real value, Real& to) { to = select(active, value, to); };
  for (int i = 0; i < m.bonds; ++i) {
    Vec3<Real>& bend = problem.bond[i].bend;
    set(point[i].x, bend.x), set(point[i].y, bend.y), set(point[i].z, bend.z);
  }
  for (int i = 0; i < m.ties; ++i) set(tie[i], problem.tie_bend[i]);
}

/// What a step has of contacts, put away.
template <class L>
struct HiddenContacts {
  Contacts<L>& contacts;
  SlotBits<L::kSlots> live;
  int pairs;

  HD explicit HiddenContacts(Contacts<L>& of) : contacts(of), live(of.live), pairs(of.pairs) {
    of.live.clear();
    if constexpr (L::Shape::kPairs > 0) of.pairs = 0;
  }
  HD void show() {
    contacts.live = live;
    if constexpr (L::Shape::kPairs > 0) contacts.pairs = pairs;
  }
};

/// No bends, in some worlds.
template <class L, class Real = typename L::Real>
HD void straighten(const typename L::Model& m, const Mask<Real>& which, ContactProblem<L>& problem) {
  const Real zero(0);
  for (int i = 0; i < m.bonds; ++i) {
    Vec3<Real>& bend = problem.bond[i].bend;
    bend = select(which, Vec3<Real>{zero, zero, zero}, bend);
  }
  for (int i = 0; i < m.ties; ++i) problem.tie_bend[i] = select(which, zero, problem.tie_bend[i]);
}

/// b, its solution, and the bends of equalities, from explicit forces. w.v on entry: what b has of inverse dynamics. assemble():
/// the problem's rows.
template <class L, class Mocap, class Assemble, class Real = typename L::Real>
HD_ONCE void settle_loops(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                          const State<L>& x, Mocap mocap, Assemble assemble, Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(x, w);
  if constexpr (L::Shape::kLoops) {
    using S = Scalar<Real>;
    const Real zero(0);
    ContactProblem<L>& problem = w.problem;
    straighten<L>(m, mask_of<Real>(true), problem);
    if (!opt.moves_centres() || !m.has_loops) return;
    const Real before = size_of<L>(g, m, x.v);
    Mask<Real> active = before * opt.h > S(kSlowTurn);
    if (!g.any(active)) return;

    TreeVector<L> v, first, plain;
    copy_dofs<L>(g, m, problem.b, first);
    without_coriolis<L>(g, m, opt.h, problem.b, w.v, w.mean.rest);
    w.mean.taken = mask_of<Real>(false);
    const Mask<Real> fast = active;
    HiddenContacts<L> contacts(w.contacts);
    assemble();
    LoopRows<Real> loops;
    loops.n = problem.table.rows.rows(), loops.width = problem.table.rows.width;
    Arena<Real> arena(problem.table.memory);
    arena.take(problem.table.rows.used);
    loops.carve(arena);
    g.sync();
    loops.begin(g, problem.table.rows);
    auto apart = [&](const TreeVector<L>& a, const TreeVector<L>& b) {
      TreeVector<L> change;
      each_dof<L>(g, m, [](Real from, Real to, Real& by) { by = to - from; }, a, b, change);
      return size_of<L>(g, m, change);
    };
    const Real trust = min(before * (opt.h * kLoopTrust), Real(kLoopMost));
    for (const bool bends : {true, false}) {
      const Mask<Real> tried = fast & negate(w.mean.taken);
      active = tried;
      if (!g.any(active)) break;
      copy_dofs<L>(g, m, x.v, v), copy_dofs<L>(g, m, x.v, plain);
      if (!bends) {
        each_dof<L>(g, m, [&](Real old, Real& bi) { bi = select(tried, old, bi); }, first, problem.b);
        straighten<L>(m, tried, problem);
      }
      Mask<Real> found = mask_of<Real>(false);
      Real last(0);
      for (int pass = 0; pass < kLoopPasses && g.any(active); ++pass) {
        hold_loops<L>(g, m, first, loops, w);
        const Real changed = apart(v, w.v);
        each_dof<L>(g, m, [&](Real to, Real& vi) { vi = select(active, to, vi); }, w.v, v);
        if (bends) bend_loops<L>(g, m, opt.h, x, v, mocap, active, w);
        move_at_mean<L>(g, m, {opt.h, w.kin, w.I, x.v, problem.from, problem.A, problem.factor}, v, w.mean.part,
                        w.mean.rest, active, problem.b, problem.free);
        if (pass == 0) copy_dofs<L>(g, m, v, plain);
        const Real size = before + size_of<L>(g, m, v);
        const Real next = pass == 0 ? changed : changed * min(changed / max(last, size * kEpsilon<S>), Real(1));
        last = changed;
        found = (active & (changed <= size * S(kTurnFound))) | (negate(active) & found);
        active = active & (next > size * kLoopTolerance<S>);
      }
      if (bends) found = found & negate(apart(plain, v) > (before + size_of<L>(g, m, plain)) * trust);
      w.mean.taken = w.mean.taken | (tried & found);
    }
    contacts.show();
    const Mask<Real> wild = fast & negate(w.mean.taken);
    if (!g.any(wild)) return;
    each_dof<L>(g, m, [&](Real& vi) { vi = zero; }, v);
    move_at_mean<L>(g, m, {opt.h, w.kin, w.I, x.v, problem.from, problem.A, problem.factor}, v, Real(1), w.mean.rest,
                    wild, problem.b, problem.free);
  }
}

}  // namespace stiction
