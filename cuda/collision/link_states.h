// Where links are and how they go, for who looks at pairs of them.
//
// On a tile each lane has links of its own: so all are put into memory once, and lanes look at pairs of their own, whatever links these are of.
#pragma once
#include "collision/world_slots.h"
#include "core/arena.h"

namespace stiction {

/// Poses of links relative to one point for all trees, the trunk's origin, and the spheres around what may touch.
template <class Real>
struct LinkBound {
  struct Ball {
    Vec3<Real> center;
    Real margin;  // how near another link may be to take part: what it travels, a reserve, what hits it passes on
  };
  Pose<Real> pose;   // relative to the common point
  Vec3<Real> shift;  // from the common point to the link's own origin O
  Ball ball;
};

template <class L>
HD void link_bounds(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                    const PerLink<L, typename L::Real>& margin, PerLink<L, LinkBound<typename L::Real>>& bound) {
  using Real = typename L::Real;
  auto fill = [](const Pose<Real>& pose, Vec3<Real> shift, Real near, const auto& link, LinkBound<Real>& b) {
    b.ball.margin = near;
    b.pose = {pose.R, pose.p + shift};
    b.shift = shift;
    b.ball.center = b.pose * link.bound_center;
  };
  Vec3<Real> zero{Real(0), Real(0), Real(0)};
  for (int t = 0; t < m.trunk_links(); ++t) fill(kin.pose.trunk[t], zero, margin.trunk[t], m.trunk[t], bound.trunk[t]);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    Vec3<Real> shift = limb.on_trunk() ? zero : kin.limb_origin[at.limb] - kin.trunk_origin;
    for (int k = 0; k < limb.links(); ++k) {
      int i = at.link + k;
      fill(kin.pose.limb[i], shift, margin.limb[i], limb.link(k), bound.limb[i]);
    }
  });
}

/// What a pair needs of one of its links.
template <class Real>
struct LinkState {
  LinkBound<Real> bound;
  Motion<Real> now, free, bend;  // StepReach
  Real travel;
};

template <class Model>
HD int link_count(const Model& m) {
  int links = m.trunk_links();
  for (int l = 0; l < m.limbs(); ++l) links += m.limb[l].links;
  return links;
}

/// That of all links, by their flat number.
template <class L>
class LinkStates {
 public:
  using Real = typename L::Real;
  using Bounds = PerLink<L, LinkBound<Real>>;

  /// Collective. shared: link_count(m) of them, on a tile.
  HD LinkStates(const typename L::Group& g, const typename L::Model& m, const StepReach<L>& step, const Bounds& bound,
                LinkState<Real>* shared)
      : step_(step), bound_(bound), shared_(shared), trunk_(m.trunk_links()) {
    if constexpr (!L::kAlone) {
      g.sync();  // all are through with what was there
      for (int t = g.rank(); t < trunk_; t += L::Group::kSize)
        shared[t] = {bound.trunk[t], step.V.trunk[t], step.free.trunk[t], step.bends.trunk[t], step.travel.trunk[t]};
      each_limb<L>(g, m, [&](const auto& limb, Place at) {
        for (int k = 0; k < limb.links(); ++k) {
          const int i = at.link + k;
          shared[trunk_ + limb.t.first_link + k] = {bound.limb[i], step.V.limb[i], step.free.limb[i],
                                                    step.bends.limb[i], step.travel.limb[i]};
        }
      });
      g.sync();
    }
  }

  HD const LinkBound<Real>& bound(int flat) const {
    if constexpr (L::kAlone) return at_flat<L>(bound_, flat);
    else return of(flat).bound;
  }
  HD const Motion<Real>& now(int flat) const {
    if constexpr (L::kAlone) return at_flat<L>(step_.V, flat);
    else return of(flat).now;
  }
  HD const Motion<Real>& free(int flat) const {
    if constexpr (L::kAlone) return at_flat<L>(step_.free, flat);
    else return of(flat).free;
  }
  HD const Motion<Real>& bend(int flat) const {
    if constexpr (L::kAlone) return at_flat<L>(step_.bends, flat);
    else return of(flat).bend;
  }
  HD const Real& travel(int flat) const {
    if constexpr (L::kAlone) return at_flat<L>(step_.travel, flat);
    else return of(flat).travel;
  }

 private:
  HD const LinkState<Real>& of(int flat) const {
    const LinkState<Real>& state = shared_[flat < L::kLimbsFrom ? flat : trunk_ + flat - L::kLimbsFrom];
    lies_in_memory(state);
    return state;
  }

  const StepReach<L>& step_;
  const Bounds& bound_;
  LinkState<Real>* shared_;
  int trunk_;
};

}  // namespace stiction
