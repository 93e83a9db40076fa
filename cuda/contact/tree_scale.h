// V, the velocity scale that residuals are judged by, of every tree of a world by the contacts that touch it. A tree is the
// trunk with the limbs that hang from it, or a limb that stands free: what slides fast says nothing of what rests beside it.
//
//   V   of a tree: max of |J v*|_inf over its contacts with l_n > 0 or phi <= 0, at least g h and 1e-4 m/s
//       of a contact or another row: the largest of the trees it acts on;   of a world: of all its trees          m/s
#pragma once
#include "contact/law.h"
#include "contact/workspace.h"

namespace stiction {

/// visit(worlds, tree1, tree2) for the trees that a contact acts on, once for all worlds in which they are the same links'.
template <class L, class Visit, class Real = typename L::Real>
HD void each_tree_pair(const typename L::Model& m, const PairContact<L>& c, Visit visit) {
  for (Mask<Real> left = c.point.active; any(left);) {
    int w = 0;
    while (!lane(left, w)) ++w;
    const int link1 = lane(c.link1, w), link2 = lane(c.link2, w);
    const Mask<Real> same = left & (c.link1 == index_of<Real>(link1)) & (c.link2 == index_of<Real>(link2));
    visit(same, tree_of_link(m, link1), tree_of_link(m, link2));
    left = left & negate(same);
  }
}

template <class Real>
HD Real largest_part(const Vec3<Real>& v) {
  return max(max(abs(v.x), abs(v.y)), abs(v.z));
}

/// In m/s.
template <class L>
struct TreeScales {
  using Real = typename L::Real;
  bool several;  // trees; where not, `largest` is all
  Real largest;  // V of the world
  Real tree[L::Shape::kLimbs + 1];

  HD Real of(int number) const { return several ? tree[number] : largest; }
  HD Real of_pair(const typename L::Model& m, const PairContact<L>& c) const {
    Real V = largest;
    if (several)
      each_tree_pair<L>(
          m, c, [&](const Mask<Real>& is, int one, int two) { V = select(is, maximum(tree[one], tree[two]), V); });
    return V;
  }
  /// Of a row over dofs of links that are the same in all worlds.
  HD Real of_links(const typename L::Model& m, int links, const int* link) const {
    Real V(0);
    for (int j = 0; j < links; ++j) V = maximum(V, of(tree_of_link(m, link[j])));
    return V;
  }
};

/// Of the present impulses: warm ones before anything is solved.
template <class L, class Real = typename L::Real>
HD_ONCE TreeScales<L> velocity_scales(const typename L::Group& g, const typename L::Model& m,
                                      const Options<Scalar<Real>>& opt, const Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(w);
  const Contacts<L>& contacts = w.contacts;
  const ContactProblem<L>& problem = w.problem;
  const Impulses<L>& l = w.impulses;
  const Real zero(0), least = least_scale(norm(vec<Real>(m.gravity)), Real(opt.h));
  auto size = [&](const ContactPoint<Real>& x, const ContactRow<Real>& row, Vec3<Real> li) {
    return select(x.active & ((x.gap <= zero) | (li.z > zero)), largest_part(row.free), zero);
  };
  TreeScales<L> V;
  V.several = has_several_trees(m), V.largest = zero;
  const int trees = V.several ? m.limbs() + 1 : 0;
  for (int t = 0; t < trees; ++t) V.tree[t] = least;
  each_slot<L>(g, m, contacts, [&](const auto& limb, Place, int, int c) {
    const Real a = size(contacts.point.slot[c], problem.row.slot[c], l.slot.slot[c]);
    V.largest = maximum(V.largest, a);
    if (V.several) {
      Real& own = V.tree[tree_of_limb(m, limb.number)];
      own = maximum(own, a);
    }
  });
  V.largest = g.max(V.largest);
  for (int t = 0; t < trees; ++t) V.tree[t] = g.max(V.tree[t]);
  for (int i = 0; i < contacts.pairs; ++i) {
    const PairContact<L>& c = contacts.pair[i];
    const Real a = size(c.point, problem.pair_row[i], l.pair[i]);
    V.largest = maximum(V.largest, a);
    if (V.several)
      each_tree_pair<L>(m, c, [&](const Mask<Real>& is, int one, int two) {
        V.tree[one] = select(is, maximum(V.tree[one], a), V.tree[one]);
        V.tree[two] = select(is, maximum(V.tree[two], a), V.tree[two]);
      });
  }
  V.largest = maximum(V.largest, least);
  return V;
}

/// V of every active contact and other row, for solvers.
template <class L>
HD void put_scales(const typename L::Group& g, const typename L::Model& m, const TreeScales<L>& V, Workspace<L>& w) {
  using Real = typename L::Real;
  const RowTable<L>& table = w.problem.table;
  const RowArrays<Real>& rows = table.rows;
  auto put = [&](int first, Real place, Real scale) {
    Places<Real>(place).each([&](int k, const Mask<Real>& is) { blend(is, scale, rows.scale[first + k]); });
  };
  const int others = rows.contacts;
  each_slot<L>(g, m, w.contacts, [&](const auto& limb, Place, int, int c) {
    put(0, table.slot.slot[c], V.of(tree_of_limb(m, limb.number)));
  });
  for (int kind = 0; kind < kDofRows; ++kind) {
    if (!has_rows(m, kind)) continue;
    const PerDof<L, int>& live = w.problem.dof[kind].live;
    const PerDof<L, Real>& place = table.dof[kind];
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int i = at.link; i < at.link + limb.links(); ++i)
        if (live.limb[i]) put(others, place.limb[i], V.of(tree_of_limb(m, limb.number)));
    });
    for (int t = m.base_dofs(); g.rank() == 0 && t < m.trunk_dofs(); ++t)
      if (live.trunk[t]) put(others, place.trunk[t], V.of(0));
  }
  if (g.rank() != 0) return;
  for (int i = 0; i < w.contacts.pairs; ++i) put(0, table.pair[i], V.of_pair(m, w.contacts.pair[i]));
  for (int i = 0; i < 3 * m.bonds; ++i)
    put(others, Real(static_cast<Scalar<Real>>(i)), V.of_links(m, 2, m.bond[i / 3].link));
  for (int i = 0; i < m.ties; ++i)
    if (w.problem.tie_live[i]) put(others, table.tie[i], V.of_links(m, m.tie[i].terms, m.tie[i].link));
}

}  // namespace stiction
