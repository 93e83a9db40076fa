// The place that every slot, limit, dry friction and tie has among the half-solved rows of its world, and those rows: made by
// contact/whiten.h. Row k of bond i is the other row 3 i + k in every world.
#pragma once
#include "collision/slots.h"
#include "contact/row_problem.h"

namespace stiction {

/// The rows that a dof may have.
enum DofRow { kLimitRow, kFrictionRow, kDriveRow, kDofRows };
/// One number for each of them.
template <class L>
using PerDofRow = PerDof<L, typename L::Real>[kDofRows];
template <class Model>
HD bool has_rows(const Model& m, int kind) {
  return kind == kLimitRow ? m.has_limits : kind == kFrictionRow ? m.has_friction : m.has_ranges;
}

/// The places that one slot or row has in the worlds of a pack.
template <class Real>
class Places {
 public:
  HD explicit Places(Real place) : first_(1 << 20), count_(0), spins_(false) {
    if constexpr (kWidth<Real> == 1) {
      if (place >= Real(0)) first_ = static_cast<int>(place), count_ = 1, is_[0] = true;
    } else {
      const Index<Real> number = to_int(place);
      const int last = greatest_lane(number);
      if (last < 0) return;
      first_ = least_lane(select(number < index_of<Real>(0), index_of<Real>(last), number)), count_ = last - first_ + 1;
      for (int i = 0; i < count_; ++i) is_[i] = place == Real(Scalar<Real>(first_ + i));
    }
  }
  /// body(k, is): place k, which the worlds `is` use.
  template <class Body>
  HD void each(Body body) const {
    if constexpr (kWidth<Real> == 1) {
      if (count_ > 0) body(first_, true);
    } else {
      for (int i = 0; i < count_; ++i) body(first_ + i, is_[i]);
    }
  }

  /// Of the couples of these contacts.
  HD Places of_spins() const {
    Places of = *this;
    of.spins_ = true;
    return of;
  }
  HD bool are_spins() const { return spins_; }

 private:
  static constexpr int kMost = 2 * (Capacity::kSlots + Capacity::kPairs);
  int first_, count_;
  bool spins_;
  Mask<Real> is_[kWidth<Real> == 1 ? 1 : kMost];
};

/// The tree of a limb: 0, the trunk's, or 1 + l, its own, where it stands free.
template <class Model>
HD int tree_of_limb(const Model& m, int l) {
  return m.limb[l].attach < 0 ? 1 + l : 0;
}
/// The limb of a flat link; -1: the trunk.
template <class Model>
HD int limb_of_link(const Model& m, int flat) {
  const int k = flat - kLimbsFrom<typename Model::Shape>;
  int l = k < 0 ? -1 : 0;
  while (l >= 0 && k >= m.limb[l].first_link + m.limb[l].links) ++l;
  return l;
}
template <class Model>
HD int tree_of_link(const Model& m, int flat) {
  const int l = limb_of_link(m, flat);
  return l < 0 ? 0 : tree_of_limb(m, l);
}
template <class Model>
HD bool has_several_trees(const Model& m) {
  int alone = 0;
  for (int l = 0; l < m.limbs(); ++l) alone += tree_of_limb(m, l) > 0;
  return alone > 1 || (alone == 1 && (m.trunk_dofs() > 0 || m.limbs() > 1));
}

/// The columns of Y, and of them those of the row that fills most.
struct Columns { int all, widest; };
template <class Model>
HD Columns columns_of(const Model& m) {
  int links = 0, widest = m.trunk_dofs();
  for (int l = 0; l < m.limbs(); ++l) {
    links += m.limb[l].links;
    widest = max(widest, m.limb[l].links + (m.limb[l].attach >= 0 ? m.trunk_dofs() : 0));
  }
  return {links + m.trunk_dofs(), widest};
}

/// At most so many rows take a place at once in worlds of the model. Contacts that stay open lie behind all that close: where one
/// world of a pack has all closing and another all open, that is twice as many.
template <class Real, class Model>
HD RowCounts most_rows(const Model& m) {
  const Columns columns = columns_of(m);
  RowCounts most;
  most.contacts = (m.world_slots + m.pair_slots) * (kWidth<Real> > 1 ? 2 : 1);
  // Limits and dry friction, both of which parameters per environment may bring, and drives.
  most.scalars = 3 * m.bonds + (m.has_ranges ? 3 : 2) * m.nv + m.ties;
  most.width = columns.all, most.spins = m.has_spin ? most.contacts : 0;
  most.by_tree = has_several_trees(m);
  // Worlds of a pack keep the rows of a limb in the same places where rows touch few blocks then; else packing them tight is worth more.
  // Of a hand and a cube (22 columns, 6) islands would be most of the world; of five bodies they are not.
  most.apart = columns.all > 3 * columns.widest, most.by_island = columns.all > 4 * columns.widest;
  return most;
}

/// Of many limbs so many follow each other in a block of Y.
template <class Model>
HD int limbs_of_block(const Model& m) {
  const int most = ColumnBlocks::kMost - (m.trunk_dofs() > 0 ? 1 : 0);
  return max(1, (m.limbs() + most - 1) / most);
}
/// The blocks of Y: limbs, then the trunk.
template <class Model>
HD ColumnBlocks row_blocks(const Model& m) {
  ColumnBlocks blocks;
  blocks.count = 0;
  int links = 0;
  for (int l = 0, of = limbs_of_block(m); l < m.limbs(); links += m.limb[l++].links)
    if (l % of == 0) blocks.begin[blocks.count++] = links;
  if (m.trunk_dofs() > 0) blocks.begin[blocks.count++] = links;
  blocks.begin[blocks.count] = links + m.trunk_dofs();
  return blocks;
}
/// What a row touches that acts on a trunk link (attach >= 0, or the base's), or on a link of limb l.
template <class Model>
HD uint32_t trunk_touched(const Model& m, int link) {
  if (link < 0 || m.trunk_dofs() == 0) return 0;
  const int of = limbs_of_block(m);
  return uint32_t(1) << (m.limbs() + of - 1) / of;
}
template <class Model>
HD uint32_t limb_touched(const Model& m, int l) {
  return uint32_t(1) << l / limbs_of_block(m) | trunk_touched(m, m.limb[l].attach);
}
/// On any link, numbered flat.
template <class Model>
HD uint32_t link_touched(const Model& m, int flat) {
  const int l = limb_of_link(m, flat);
  return l < 0 ? trunk_touched(m, flat) : limb_touched(m, l);
}

/// Puts the entries it sees into Y: of a contact's three rows at once (Vec3), or of another row.
template <class L>
struct RowVisit {
  using Real = typename L::Real;
  const RowArrays<Real>& rows;
  const TreeVector<L>& root;  // D^-1/2
  const Places<Real>& places;
  int limbs;  // column of the lane's first limb entry, less its number
  int trunk;  // column of the trunk
  Real sign;

  HD void operator()(bool on_trunk, int i, Real y) const {
    const Real entry = y * (on_trunk ? root.trunk[i] : root.limb[i]) * sign;
    Real* column = rows.Y + 3ll * rows.contacts * rows.width + (on_trunk ? trunk : limbs) + i;
    lies_in_memory(*column);
    places.each([&](int k, const Mask<Real>& is) { blend(is, entry, column[static_cast<int64_t>(k) * rows.width]); });
  }
  HD void operator()(bool on_trunk, int i, const Vec3<Real>& y) const {
    const Vec3<Real> entry = y * (on_trunk ? root.trunk[i] : root.limb[i]);
    Real* column = threes() + (on_trunk ? trunk : limbs) + i;
    lies_in_memory(*column);
    places.each([&](int k, const Mask<Real>& is) {
      Real* at = column + 3ll * k * rows.width;
      blend(is, entry.x, at[0]), blend(is, entry.y, at[rows.width]), blend(is, entry.z, at[2 * rows.width]);
    });
  }
  HD Real* threes() const {
    return rows.Y + (places.are_spins() ? static_cast<int64_t>(rows.spin_row(0)) * rows.width : 0);
  }
};

/// Which places all rows have, and the numbers behind them.
template <class L>
struct RowTable {
  using Real = typename L::Real;
  using Shape = typename L::Shape;

  RowArrays<Real> rows;
  PerSlot<L, Real> slot;
  Real pair[at_least_one(Shape::kPairs)], tie[at_least_one(Shape::kTies)];
  PerDofRow<L> dof;
  TreeVector<L> root;  // D^-1/2
  int trunk;           // its first column
  Real* memory;        // of `rows`, for most_rows<Real>(m), shared by the lanes

  HD RowVisit<L> visit(const LimbView<L>& limb, Place at, const Places<Real>& places, Real sign = Real(1)) const {
    return {rows, root, places, limb.t.first_link - at.link, trunk, sign};
  }
  /// The three rows of a bond lie where those of a contact behind all contacts would.
  HD Places<Real> bond(int i) const { return Places<Real>(Real(static_cast<Scalar<Real>>(rows.contacts + i))); }
  /// Of rows on the trunk alone.
  HD RowVisit<L> visit(const Places<Real>& places, Real sign = Real(1)) const {
    return {rows, root, places, 0, trunk, sign};
  }
};

}  // namespace stiction
