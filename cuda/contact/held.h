// Overlaps that loops hold. The rod of a closed linkage may be modelled so that it overlaps what it drives: its ends are pinned, and no
// velocity that the bonds allow opens the contact. The bonds and the contact would push against each other without bound, lock the
// joints between them by friction, and no solver would find an answer. Such a contact gets no impulse and is told (IMMOVABLE), as
// one on the axis of a hinge is (contact_row of assemble.h).
//
//   held    gap < -0.1 mm  and  |y - Q'Q y|^2 <= 1e-5 |y|^2       y: the normal's row of Y, Q: of bonds and equalities, orthonormal
//
// No bond to a mocap body is in Q, for that gives way; and a compliant contact pushes by its depth alone, however deep.
//
// The left side is 1 over the mass that the normal moves while the bonds stay closed, the right one that of the links alone. Shallower
// contacts give way by their near-rigid compliance, or are touched as those of a gripper that closes.
#pragma once
#include "contact/bonds.h"

namespace stiction {

inline constexpr float kHeldDepth = 1e-4f;  // m
inline constexpr float kHeldPart = 1e-5f;
/// A row with less left of its square, once what other rows hold is taken out, says nothing new.
inline constexpr float kNothingNew = 1e-6f;

/// Reals behind those of the rows that ignore_held needs.
template <class Model>
HD int64_t held_size(const Model& m, const RowCounts& most) {
  return m.bonds > 0 ? most.contacts + int64_t{most.width} * (3 * m.bonds + m.ties + 1) : 0;
}

/// Rows of Y that are made orthonormal one after the other.
template <class Real, class Group>
struct Span {
  const Group& g;
  Real* row;  // (n + 1, width)
  int width, n = 0;

  HD Real* next() const { return row + static_cast<int64_t>(n) * width; }
  HD Real along(const Real* x) const {
    const Real* y = next();
    Real sum(0);
    for (int a = g.rank(); a < width; a += Group::kSize) sum = sum + y[a] * x[a];
    return g.sum(sum);
  }
  /// Takes what the rows before hold out of next(), twice for the sake of rounding. Returns what is left of its square.
  HD Real clear() const {
    for (int i = 0; i < 2 * n; ++i) {
      const Real* q = row + static_cast<int64_t>(i % n) * width;
      const Real d = along(q);
      parallel_for(g, width, [&](int a) { next()[a] = next()[a] - q[a] * d; });
    }
    return along(next());
  }
  HD void add() {
    const Real zero(0), one(1), before = along(next()), left = clear();
    const Mask<Real> is_new = left > before * kNothingNew;
    const Real scale = select(is_new, one / sqrt(select(is_new, left, one)), zero);
    parallel_for(g, width, [&](int a) { next()[a] = next()[a] * scale; });
    ++n;
  }
};

/// Contacts that are held are not active any more. Needs the rows of contacts, bonds and ties.
template <class L, class Real = typename L::Real>
HD_ONCE void ignore_held(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                         Contacts<L>& contacts, ContactProblem<L>& problem) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(contacts, problem);
  RowTable<L>& table = problem.table;
  const RowArrays<Real>& rows = table.rows;
  if (m.bonds == 0 || rows.contacts == 0) return;
  const Real zero(0), one(1), none(-1);
  Real* deep = table.memory + rows.used;  // (contacts) 1 of what overlaps, then of what is held
  parallel_for(g, rows.contacts, [&](int k) { deep[k] = zero; });
  Mask<Real> found = mask_of<Real>(false);
  auto mark = [&](const ContactPoint<Real>& x, Real place) {
    const Mask<Real> overlaps = x.active & (x.stiffness <= zero) & (x.gap < Real(-kHeldDepth));
    found = found | overlaps;
    if (any(overlaps))
      Places<Real>(place).each([&](int k, const Mask<Real>& is) { blend(is & overlaps, one, deep[k]); });
  };
  each_slot<L>(g, m, contacts,
               [&](const auto&, Place, int, int c) { mark(contacts.point.slot[c], table.slot.slot[c]); });
  for (int i = 0; g.rank() == 0 && i < contacts.pairs; ++i) mark(contacts.pair[i].point, table.pair[i]);
  if (!g.any(found)) return;
  g.sync();

  Span<Real, typename L::Group> bonds{g, deep + rows.contacts, rows.width};
  auto other = [&](int k) { return rows.Y + static_cast<int64_t>(rows.scalar_row(k)) * rows.width; };
  for (int k = 0; k < 3 * m.bonds; ++k) {
    if (m.bond[k / 3].mocap[0] >= 0 || m.bond[k / 3].mocap[1] >= 0) continue;  // that gives way: bonds.h
    parallel_for(g, rows.width, [&](int a) { bonds.next()[a] = other(k)[a]; });
    bonds.add();
  }
  for (int i = 0; i < m.ties; ++i) {
    if (m.tie[i].kind != kTieEquality) continue;
    parallel_for(g, rows.width, [&](int a) { bonds.next()[a] = zero; });
    Places<Real>(table.tie[i]).each([&](int k, const Mask<Real>& is) {
      parallel_for(g, rows.width, [&](int a) { blend(is, other(k)[a], bonds.next()[a]); });
    });
    bonds.add();
  }
  for (int k = 0; k < rows.contacts; ++k) {
    const Mask<Real> overlaps = deep[k] > zero;
    g.sync();
    if (!any(overlaps)) continue;
    Real* y = rows.Y + 3ll * k * rows.width;
    parallel_for(g, rows.width, [&](int a) { bonds.next()[a] = y[2 * rows.width + a]; });
    const Real alone = bonds.along(bonds.next());
    const Mask<Real> held = overlaps & (bonds.clear() <= alone * kHeldPart);
    if (g.rank() == 0) deep[k] = select(held, one, zero);
    parallel_for(g, 3 * rows.width, [&](int a) { blend(held, zero, y[a]); });
    if (rows.spins == 0) continue;
    y = rows.Y + static_cast<int64_t>(rows.spin_row(k)) * rows.width;
    parallel_for(g, 3 * rows.width, [&](int a) { blend(held, zero, y[a]); });
  }

  problem.deep = mask_of<Real>(false);
  auto leave_out = [&](ContactPoint<Real>& x, const ContactRow<Real>& row, Real& place) {
    Mask<Real> held = mask_of<Real>(false);
    Places<Real>(place).each([&](int k, const Mask<Real>& is) { held = held | (is & (deep[k] > zero)); });
    x.active = x.active & negate(held), place = select(held, none, place), contacts.held = contacts.held | held;
    problem.deep = problem.deep | (recovery_bias(opt, x, row) < row.e);
  };
  g.sync();
  each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int c) {
    leave_out(contacts.point.slot[c], problem.row.slot[c], table.slot.slot[c]);
  });
  for (int i = 0; i < contacts.pairs; ++i) leave_out(contacts.pair[i].point, problem.pair_row[i], table.pair[i]);
  problem.immovable = problem.immovable | contacts.held;
}

}  // namespace stiction
