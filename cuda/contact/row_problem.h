// The contact problem as every solver sees it: the active contacts and other rows of a world, or of each world of a pack, in
// coordinates in which A is the identity (half-solved, or whitened, rows). docs/theory.md, section 7.
//
//   A = L' D L,   Y = J L^-1 D^-1/2,   v = v* + L^-1 D^-1/2 u
//   u = Y' l,   w = J v = J v* + Y u,   W = J A^-1 J' = Y Y'          find l with (w + e + R l, l) in the law (contact/law.h)
//
// Y comes in blocks of columns: the dofs of each limb, the trunk's last. A row is 0 outside the blocks that it touches, those of
// the bodies that it acts on: a heap of bodies costs what its contacts touch. Eliminated in that order, limbs that no row couples
// stay apart (linalg/block_cholesky.h).
//
// All that solvers are made of follows from Y: W = Y Y' (Gauss-Seidel), I + Y' G Y (Newton), (Y Y' + R + 1 / rho)^-1 on the smaller
// side (ADMM). No solver knows trees, slots or lanes.
//
// Rows: contact k has 3 k (t1), 3 k + 1 (t2), 3 k + 2 (n); other row k has 3 contacts + k. A world of a pack need not use all of
// them: in a place that it does not use all numbers are 0, W too, and the answer is l = 0.
// Where contacts have torsional or rolling friction there are three rows more for each, behind all others: its couple, in units
// of the contact's tangential impulse (spin_arms of contact/problem.h), in one cone with that.
// Contacts that the free motion does not close come last (`near` and later): a solver may leave them out at first.
#pragma once
#include "core/arena.h"
#include "core/group.h"
#include "linalg/column_blocks.h"
#include "math/vec3.h"

namespace stiction {

/// How many there are, or at most are.
struct RowCounts {
  int contacts = 0, scalars = 0, width = 0;  // width: of Y
  int spins = 0;                             // contacts, or 0: none has a couple
  bool by_tree = false;                      // V differs from row to row
  bool apart = false;                        // there are many blocks, and rows touch few of them, in every world alike
  bool by_island = false;  // and so many that worlds of a pack hardly have rows alike: one lane solves island by island
  HD int rows() const { return 3 * contacts + scalars + 3 * spins; }
  HD int scalar_row(int k) const { return 3 * contacts + k; }
  /// The first row of the couple of contact k.
  HD int spin_row(int k) const { return 3 * contacts + scalars + 3 * k; }
  /// The contact, or other row behind the contacts, that row i belongs to.
  HD int block_of(int i) const {
    return i < 3 * contacts ? i / 3 : i < 3 * contacts + scalars ? i - 2 * contacts : (i - spin_row(0)) / 3;
  }
  /// visit(i) for the rows of contact k, or of another row, counted behind the contacts.
  template <class Visit>
  HD void each_row(int k, Visit visit) const {
    if (k >= contacts) return visit(scalar_row(k - contacts));
    for (int d = 0; d < 3; ++d) visit(3 * k + d);
    for (int d = 0; d < 3 && spins > 0; ++d) visit(spin_row(k) + d);
  }
};

/// Read-only. n = rows().
template <class Real>
struct RowProblem : RowCounts {
  int near = 0;                              // contacts before those that stay open in the free motion
  ColumnBlocks blocks;                       // of Y
  const uint32_t* touched = nullptr;         // (contacts + scalars) blocks that a contact, or another row, touches
  const Real* Y = nullptr;                   // (n, width)                          1/sqrt(kg)
  const Real *free = nullptr, *e = nullptr;  // (n)   J v*, bias                    m/s
  const Real* R = nullptr;                   // (n)   compliance, equal for t1, t2  1/kg
  const Real* W = nullptr;   // (n)   W_ii, of a contact (W_11 + W_22) / 2 twice and W_33; 0: not used   1/kg
  const Real* mu = nullptr;  // (contacts)
  const Real *lower = nullptr, *upper = nullptr;  // (scalars) bounds of l               N s
  const Real* bend = nullptr;  // (contacts + scalars) what e, a contact's along its normal, has besides gaps   m/s
  Real columns = Real(0);      // of each world's own: width, but where it is an island beside larger ones
  Real least_velocity;         // floor of all velocity scales        m/s
  Real scale;                  // V, by what is closed or warm before anything is solved   m/s
  Mask<Real> lone =
      mask_of<Real>(false);  // each of the first `near` contacts is alone on its link, and holds it to what is static
  const Real* scales = nullptr;  // (contacts + scalars) of each alone, at most V; null: V of all

  /// V of contact k; of another row, counted behind the contacts. 0 of a place that is not used.
  HD Real scale_of(int k) const { return scales ? scales[k] : scale; }
  HD const Real* row(int i) const { return Y + static_cast<int64_t>(i) * width; }
  /// The blocks that contact k touches; of another row, counted behind the contacts.
  HD uint32_t touches(int k) const { return blocks.count == 1 ? 1u : touched[k]; }
  /// Whether all columns of a row are read: where worlds of a pack have the rows of different bodies in one place, few blocks of it are
  /// untouched. In these Y is 0, which changes no sum.
  HD bool dense() const { return kWidth<Real> > 1 && !apart; }
  /// Mean of a contact's W_ii; of another row, counted behind the contacts, W_ii.
  HD Real mobility(int k) const {
    if (k >= contacts) return W[scalar_row(k - contacts)];
    return (W[3 * k] * Real(2) + W[3 * k + 2]) * Real(Scalar<Real>(1.0 / 3));
  }

  /// u += Y_i' l of one row.
  HD void add_push(int i, Real l, Real* u) const {
    const Real* y = row(i);
    blocks.each_run(touches(block_of(i)), [&](int begin, int end) {
      for (int a = begin; a < end; ++a) u[a] = u[a] + y[a] * l;
    });
  }
  /// u = Y' l.
  HD_ONCE void push(const Real* l, Real* u) const { push(Serial{}, l, u); }
  /// By the lanes of a group together, which share both.
  template <class Group>
  HD_ONCE void push(const Group& g, const Real* l, Real* u) const {
    parallel_for(g, width, [&](int a) { u[a] = Real(0); });
    if constexpr (Group::kSize == 1) {
      int i = 0;
      for (constexpr int R = 4; dense() && i + R <= rows(); i += R)
        for (int a = 0; a < width; ++a) {
          Real sum = u[a];
          for (int r = 0; r < R; ++r) sum = sum + row(i)[r * width + a] * l[i + r];
          u[a] = sum;
        }
      for (; i < rows(); ++i) add_push(i, l[i], u);
    } else
      parallel_for(g, blocks.count, [&](int b) {
        for (int i = 0; i < rows(); ++i)
          if (touches(block_of(i)) >> b & 1)
            for (int a = blocks.begin[b]; a < blocks.begin[b + 1]; ++a) u[a] = u[a] + row(i)[a] * l[i];
      });
  }
  /// w_i of u.
  HD Real velocity(int i, const Real* u) const { return free[i] + along(i, u); }
  /// Y_i u.
  HD_ONCE Real along(int i, const Real* u) const {
    const Real* y = row(i);
    Real w(0);
    if (dense()) {
      for (int a = 0; a < width; ++a) w = w + y[a] * u[a];
      return w;
    }
    blocks.each_run(touches(block_of(i)), [&](int begin, int end) {
      for (int a = begin; a < end; ++a) w = w + y[a] * u[a];
    });
    return w;
  }
  /// s_i = w_i + e_i + R_i l_i of impulses l and u = Y'l.
  HD Real slip(int i, const Real* l, const Real* u) const { return velocity(i, u) + e[i] + R[i] * l[i]; }
  /// W_nt / (W_nn + R_n) of contact k, which is used: how its normal impulse moves its tangents, per how it moves its normal.
  HD Vec2<Real> coupling(int k) const {
    const Real *y = row(3 * k + 2), one_over = Real(1) / (W[3 * k + 2] + R[3 * k + 2]);
    return {along(3 * k, y) * one_over, along(3 * k + 1, y) * one_over};
  }
};

/// The numbers of a RowProblem where they are made.
template <class Real>
struct RowArrays : RowCounts {
  int near = 0;
  Mask<Real> lone = mask_of<Real>(false);
  ColumnBlocks blocks;  // one, unless set
  uint32_t* touched = nullptr;
  Real *Y = nullptr, *free = nullptr, *e = nullptr, *R = nullptr, *W = nullptr;
  Real *mu = nullptr, *lower = nullptr, *upper = nullptr, *bend = nullptr;
  Real* scale = nullptr;    // (contacts + scalars), or null
  Real* impulse = nullptr;  // (n) warm start on a solver's entry, its answer on exit                         N s
  int64_t used = 0;

  HD explicit RowArrays(const RowCounts& counts = {}) : RowCounts(counts), blocks(counts.width) {}
  HD void carve(Arena<Real>& arena) {
    const int64_t n = rows(), begin = arena.used();
    Y = arena.take(n * width);
    free = arena.take(n), e = arena.take(n), R = arena.take(n), W = arena.take(n), impulse = arena.take(n);
    mu = arena.take(contacts), lower = arena.take(scalars), upper = arena.take(scalars);
    bend = arena.take(contacts + scalars);
    if (by_tree) scale = arena.take(contacts + scalars);
    touched = arena.take_bits(contacts + scalars);
    used = arena.used() - begin;
  }
  /// Numbers of memory for so many rows.
  HD static int64_t size(const RowCounts& most) {
    Arena<Real> measure;
    RowArrays(most).carve(measure);
    return measure.used();
  }
  /// Sets all to 0, the lanes of a group together; pieces lie one behind the other.
  template <class Group>
  HD void clear(const Group& g) {
    for (int64_t i = g.rank(); i < used; i += Group::kSize) Y[i] = Real(0);
  }
  HD RowProblem<Real> view(Real least_velocity, Real largest) const {
    RowProblem<Real> p;
    static_cast<RowCounts&>(p) = *this;
    p.near = near, p.blocks = blocks, p.touched = touched, p.Y = Y, p.free = free, p.e = e, p.R = R, p.W = W, p.mu = mu,
    p.lower = lower, p.upper = upper, p.bend = bend;
    p.columns = Real(static_cast<Scalar<Real>>(width));
    p.least_velocity = least_velocity, p.scale = largest, p.scales = scale, p.lone = lone;
    return p;
  }
};

}  // namespace stiction
