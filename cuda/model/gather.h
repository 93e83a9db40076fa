// Links as data: reading and adding to a link that differs from world to world, and to dofs that other lanes may hold.
#pragma once
#include "model/tree.h"

namespace stiction {

template <class L, class T>
HD T& at_flat(PerLink<L, T>& x, int flat) {
  return flat < L::kLimbsFrom ? x.trunk[flat] : x.limb[flat - L::kLimbsFrom];
}
template <class L, class T>
HD const T& at_flat(const PerLink<L, T>& x, int flat) {
  return flat < L::kLimbsFrom ? x.trunk[flat] : x.limb[flat - L::kLimbsFrom];
}

/// What lane i of a tile has: a struct of Reals. Collective.
template <class Real, class Group, class T>
HD T taken_from(const Group& g, const T& x, int i) {
  T of;
  const Real* in = reinterpret_cast<const Real*>(&x);
  Real* out = reinterpret_cast<Real*>(&of);
  UNROLL for (int k = 0; k < static_cast<int>(sizeof(T) / sizeof(Real)); ++k) out[k] = g.from(in[k], i);
  return of;
}
/// body(flat, is) for every link that worlds `left` of a pack have, and those that have it: few, most have the same.
template <class L, class Body, class Real = typename L::Real>
HD void each_other_link(const Index<Real>& link, Mask<Real> left, Body body) {
  for (int w = 0; w < kWidth<Real> && any(left); ++w) {
    if (!lane(left, w)) continue;
    const Mask<Real> is = left & (link == index_of<Real>(lane(link, w)));
    left = left & negate(is);
    body(lane(link, w), is);
  }
}
/// x[link] where the link is data. T: a struct of N Reals.
template <class L, class T>
HD T gather(const typename L::Group& g, const typename L::Model& m, const PerLink<L, T>& x,
            Index<typename L::Real> link) {
  using Real = typename L::Real;
  constexpr int kReals = sizeof(T) / sizeof(Real), W = kWidth<Real>;
  if constexpr (L::Group::kSize > 1) {  // from the lane that holds it
    T sum;
    Real* out = reinterpret_cast<Real*>(&sum);
    UNROLL for (int i = 0; i < kReals; ++i) out[i] = Real(0);
    if (link < L::kLimbsFrom) {
      if (g.rank() == 0) sum = x.trunk[link];
    } else {
      each_limb<L>(g, m, [&](const auto& limb, Place at) {
        int k = link - L::kLimbsFrom - limb.t.first_link;
        if (k >= 0 && k < limb.links()) sum = x.limb[at.link + k];
      });
    }
    UNROLL for (int i = 0; i < kReals; ++i) out[i] = g.sum(out[i]);
    return sum;
  } else if constexpr (W == 1) {
    return at_flat<L>(x, link);
  } else {
    T result = at_flat<L>(x, lane(link, 0));
    Real* out = reinterpret_cast<Real*>(&result);
    each_other_link<L>(link, negate(link == index_of<Real>(lane(link, 0))), [&](int flat, const Mask<Real>& is) {
      const Real* in = reinterpret_cast<const Real*>(&at_flat<L>(x, flat));
      for (int i = 0; i < kReals; ++i) out[i] = select(is, in[i], out[i]);
    });
    return result;
  }
}

/// x[link] += y where the link is data; on a tile by the lane that holds it (the trunk: by rank 0 only).
template <class L, class T>
HD void scatter_add(const typename L::Group& g, const typename L::Model& m, PerLink<L, T>& x,
                    Index<typename L::Real> link, const T& y) {
  using Real = typename L::Real;
  constexpr int kReals = sizeof(T) / sizeof(Real), W = kWidth<Real>;
  if constexpr (L::Group::kSize > 1) {
    if (link < L::kLimbsFrom) {
      if (g.rank() == 0) x.trunk[link] = x.trunk[link] + y;
    } else {
      each_limb<L>(g, m, [&](const auto& limb, Place at) {
        int k = link - L::kLimbsFrom - limb.t.first_link;
        if (k >= 0 && k < limb.links()) x.limb[at.link + k] = x.limb[at.link + k] + y;
      });
    }
  } else if constexpr (W == 1) {
    T& t = at_flat<L>(x, link);
    t = t + y;
  } else {
    const Real* in = reinterpret_cast<const Real*>(&y);
    each_other_link<L>(link, mask_of<Real>(true), [&](int flat, const Mask<Real>& is) {
      Real* out = reinterpret_cast<Real*>(&at_flat<L>(x, flat));
      for (int i = 0; i < kReals; ++i) out[i] = select(is, out[i] + in[i], out[i]);
    });
  }
}

/// x[link] and x[link] += y where the link is the same in all worlds; on a tile as above.
template <class L, class T>
HD T gather_at(const typename L::Group& g, const typename L::Model& m, const PerLink<L, T>& x, int flat) {
  if constexpr (L::Group::kSize > 1) return gather<L>(g, m, x, flat);
  else return at_flat<L>(x, flat);
}
template <class L, class T>
HD void add_at(const typename L::Group& g, const typename L::Model& m, PerLink<L, T>& x, int flat, const T& y) {
  if constexpr (L::Group::kSize > 1) scatter_add<L>(g, m, x, flat, y);
  else at_flat<L>(x, flat) = at_flat<L>(x, flat) + y;
}

/// The dof of a flat link, the same in all worlds. Trunk links are below the free base.
template <class L>
HD typename L::Real dof_of(const typename L::Group& g, const typename L::Model& m, const TreeVector<L>& x, int flat) {
  using Real = typename L::Real;
  if (flat < L::kLimbsFrom) return x.trunk[flat + m.base_dofs() - m.base_links()];
  if constexpr (L::Group::kSize == 1) return x.limb[flat - L::kLimbsFrom];
  Real sum(0);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    int k = flat - L::kLimbsFrom - limb.t.first_link;
    if (k >= 0 && k < limb.links()) sum = x.limb[at.link + k];
  });
  return g.sum(sum);
}
/// x[dof] += y; on a trunk dof in every lane.
template <class L, class Vector, class Real = typename L::Real>
HD void add_to_dof(const typename L::Group& g, const typename L::Model& m, Vector& x, int flat, Real y) {
  if (flat < L::kLimbsFrom) {
    Real& t = x.trunk[flat + m.base_dofs() - m.base_links()];
    t = t + y;
  } else if constexpr (L::Group::kSize == 1) {
    x.limb[flat - L::kLimbsFrom] = x.limb[flat - L::kLimbsFrom] + y;
  } else {
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      int k = flat - L::kLimbsFrom - limb.t.first_link;
      if (k >= 0 && k < limb.links()) x.limb[at.link + k] = x.limb[at.link + k] + y;
    });
  }
}

}  // namespace stiction
