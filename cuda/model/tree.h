// How one world's trees are spread over the lanes of a group: every lane holds the trunk, and the limbs rank, rank + size, ...
//
// So a lane needs no shared memory and no barrier. A pass over a tree reads
//
//   outward:  the trunk (all lanes alike)  ->  each_limb
//   inward:   each_limb, leaving a share for the trunk  ->  group.sum(share)  ->  the trunk (all lanes alike)
//
// A limb's data lie in flat arrays of the lane; `Place` tells where each limb begins.
#pragma once
#include "core/group.h"
#include "model/model_view.h"

namespace stiction {

/// The types of one execution: which value, which shape, which group, and the type of the model's numbers.
template <class Real_, class Shape_, class Group_, class Number_ = Scalar<Real_>>
struct Lane {
  using Real = Real_;
  using Shape = Shape_;
  using Group = Group_;
  using Number = Number_;
  using Model = ModelView<Shape, Number>;
  using Link = LinkModel<Number>;
  static constexpr int kTrunkLinks = Shape::kTrunkLinks, kTrunkDofs = Shape::kTrunkDofs, kLimbLinks = Shape::kLimbLinks;
  static constexpr int kLimbsFrom = stiction::kLimbsFrom<Shape>;
  static constexpr bool kAlone = Group::kSize == 1;
  static constexpr int kLimbs = kAlone ? Shape::kLimbs : Shape::kLaneLimbs;  // held by one lane, as all that follow
  static constexpr int kLinks = kAlone ? Shape::kLinks : Shape::kLaneLinks;
  static constexpr int kEntries = kAlone ? Shape::kEntries : Shape::kLaneEntries;
  static constexpr int kSlots = kAlone ? Shape::kSlots : Shape::kLaneSlots;
  static constexpr int kActuators = Shape::kActuators;
};

/// Where a limb's links, slots, matrix entries and actuators begin in this lane's arrays; limb: its place among this lane's.
struct Place { int limb, link, slot, entry, actuator; };

template <class L>
struct LimbView {
  using Shape = typename L::Shape;
  const typename L::Model& m;
  const LimbModel& t;
  int number;  // of the limb in the model

  HD int attach() const { return Shape::attach(t.attach); }
  HD bool on_trunk() const { return attach() >= 0; }
  HD int links() const { return Shape::links(t); }
  HD const typename L::Link& link(int k) const { return m.link[Shape::first_link(t, number) + k]; }
  HD int first_slot() const { return t.first_slot; }
  HD int parent(int k) const { return Shape::parent(link(k), k); }
  /// How many leading dofs of the trunk may move this limb.
  HD int trunk_dofs() const { return on_trunk() ? attach() + 1 + (m.free_base() ? 5 : 0) : 0; }
  HD const StationModel& station(int s) const { return s == 0 ? t.station : link(s - 1).station; }
  HD int slot_begin(int s) const { return station(s).slot_begin; }
  HD int slot_end(int s) const { return station(s).slot_begin + station(s).slots; }
  HD int slots() const { return t.slots; }
  /// body(k) for the links from the last to the first: as often as the longest limb of a ModelShape has links, where these are few. Over
  /// links() nvcc 13.0, which unrolls this, was seen to lose what was stored in an array of theirs (tests/python/test_machine_code.py).
  template <class Body>
  HD void each_inward(Body body) const {
    const int most = Shape::kAlike || Shape::kLimbLinks > 8 ? links() : Shape::kLimbLinks;
    UNROLL for (int k = most - 1; k >= 0; --k)
      if (k < links()) body(k);
  }
};

/// A limb that begins with a free joint: three slides, then a ball.
template <class L>
HD bool is_free_body(const LimbView<L>& limb) {
  return !limb.on_trunk() && limb.t.leading == 3 && limb.links() > 5 && limb.link(3).kind == kBallLink &&
         limb.link(0).joint == limb.link(3).joint;
}

template <class L, class T> struct PerLink { T trunk[L::kTrunkLinks], limb[L::kLinks]; };
template <class L, class T> struct PerSlot { T slot[L::kSlots]; };

/// One number per dof. Trunk with a free base: 0..2 angular velocity, 3..5 linear velocity of O (world axes), 6.. joints.
template <class L>
struct TreeVector {
  typename L::Real trunk[L::kTrunkDofs], limb[L::kLinks];
};
/// Something per dof.
template <class L, class T>
struct PerDof {
  T trunk[L::kTrunkDofs], limb[L::kLinks];
};

/// The lower half of a symmetric matrix with the sparsity of the trees: entries couple a dof with its ancestors only.
template <class L>
struct TreeMatrix {
  typename L::Real trunk[L::kTrunkDofs][L::kTrunkDofs];
  typename L::Real cross[L::kLinks][L::kTrunkDofs];  // limb row, trunk column
  typename L::Real limb[L::kEntries];                // row k, column j of a limb at entry + k (k + 1) / 2 + j
};
HD constexpr int entry_of(int k, int j) { return k * (k + 1) / 2 + j; }

/// body(limb, at) for the limbs of this lane.
template <class L, class Body>
HD void each_limb(const typename L::Group& g, const typename L::Model& m, Body body) {
  constexpr int kSize = L::Group::kSize;
  Place at{0, 0, 0, 0, 0};
  if constexpr (L::Shape::kAlike) {
    constexpr int kAll = L::Shape::kLimbs, kLinks = L::kLimbLinks;
  UNROLL for (int i = 0; i < L::kLimbs; ++i) {
      const int l = g.rank() + i * kSize;
      if (kAll % kSize != 0 && l >= kAll) break;
      at.limb = i, at.link = i * kLinks, at.entry = i * entry_of(kLinks, 0);
      at.actuator = at.link * L::Shape::actuators(m.link[0]);
      body(LimbView<L>{m, m.limb[l], l}, at);
      at.slot += m.limb[l].slots;
    }
  } else {
    for (int l = g.rank(); l < m.limbs(); l += kSize) {
      const LimbModel& t = m.limb[l];
      body(LimbView<L>{m, t, l}, at);
      at.limb += 1, at.link += t.links, at.slot += t.slots, at.entry += t.entries, at.actuator += t.actuators;
    }
  }
}

/// body(x...) for every link of one or several PerLinks.
template <class L, class Body, class... PerLinks>
HD void each_link(const typename L::Group& g, const typename L::Model& m, Body body, PerLinks&... x) {
  for (int t = 0; t < m.trunk_links(); ++t) body(x.trunk[t]...);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) body(x.limb[at.link + k]...);
  });
}

/// body(x...) for every dof of one or several TreeVectors or PerDofs; with_link: body(link, x...), joints only.
template <class L, class Body, class... Vectors>
HD void each_dof(const typename L::Group& g, const typename L::Model& m, Body body, Vectors&... x) {
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) body(x.trunk[t]...);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k) body(x.limb[at.link + k]...);
  });
}
template <class L, class Body, class... Vectors>
HD void each_joint(const typename L::Group& g, const typename L::Model& m, Body body, Vectors&... x) {
  UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) body(m.trunk[m.link_of_dof(t)], x.trunk[t]...);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k) body(limb.link(k), x.limb[at.link + k]...);
  });
}
/// What is used of x, into a vector that has room for any model.
template <class L>
HD void copy_dofs(const typename L::Group& g, const typename L::Model& m, const TreeVector<L>& x, TreeVector<L>& to) {
  using Real = typename L::Real;
  each_dof<L>(g, m, [](const Real& from, Real& copy) { copy = from; }, x, to);
}
/// body(H...) for every entry of TreeMatrices.
template <class L, class Body, class... Matrices>
HD void each_entry(const typename L::Group& g, const typename L::Model& m, Body body, Matrices&... H) {
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t)
    UNROLL for (int u = 0; u <= t; ++u) body(H.trunk[t][u]...);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      UNROLL for (int t = 0; t < limb.trunk_dofs(); ++t) body(H.cross[at.link + k][t]...);
      UNROLL for (int j = 0; j <= k; ++j) body(H.limb[at.entry + entry_of(k, j)]...);
    }
  });
}

/// The free base's six dofs are its own twist, hence a wrench on it is its six generalized forces.
template <class T> HD Motion<T> twist(const T* x) { return {{x[0], x[1], x[2]}, {x[3], x[4], x[5]}}; }
template <class T> HD void put(const Force<T>& F, T* x) {
  x[0] = F.n.x, x[1] = F.n.y, x[2] = F.n.z, x[3] = F.f.x, x[4] = F.f.y, x[5] = F.f.z;
}
template <class T> HD void put(const AxisForces<T>& F, Vec3<T>* x) {
  const auto &a = F.axis[0], &b = F.axis[1], &c = F.axis[2];
  x[0] = {a.n.x, b.n.x, c.n.x}, x[1] = {a.n.y, b.n.y, c.n.y}, x[2] = {a.n.z, b.n.z, c.n.z};
  x[3] = {a.f.x, b.f.x, c.f.x}, x[4] = {a.f.y, b.f.y, c.f.y}, x[5] = {a.f.z, b.f.z, c.f.z};
}

}  // namespace stiction
