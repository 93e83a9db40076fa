// Pair slots: contacts between moving links, found by link pair, then geom pair, in fixed order.
//
// Broad phase: bounding spheres of links, then of geoms; `if (any(near))` around the narrow phase. What is found goes into the
// world's pool in that order; when it is full, the one that closes last gives way, and `overflow` tells where that one could
// have closed in the step.
#pragma once
#include "collision/world_slots.h"

namespace stiction {

/// The squared distance of the segments c1 + s a1 and c2 + t a2, |s|, |t| <= 1, d = c2 - c1: at least what is returned is less
/// than it by rounding only. Lumelsky's clamped two-variable minimum.
template <class Real>
HD Real segment_distance_squared(Vec3<Real> a1, Vec3<Real> a2, Vec3<Real> d) {
  const Real one(1), tiny(1e-12f);
  Real aa = dot(a1, a1), bb = dot(a2, a2), ab = dot(a1, a2), da = dot(d, a1), db = dot(d, a2);
  Real det = aa * bb - ab * ab;
  Real s = clamp((da * bb - db * ab) / max(det, tiny), -one, one);
  Real t = clamp((s * ab - db) / max(bb, tiny), -one, one);
  s = clamp((t * ab + da) / max(aa, tiny), -one, one);
  t = clamp((s * ab - db) / max(bb, tiny), -one, one);
  Vec3<Real> gap = d + a2 * t - a1 * s;
  return dot(gap, gap);
}

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

/// The part of its travel that a link may take other ways than its free motion, beside what contacts turn it.
inline constexpr float kAstray = 0.25f;

/// Which geoms of two links may come within `margin` of each other: by balls, first one around all of link 2 (center2, reach2
/// with the margin), then by capsules. Pairs come geom by geom of link 1.
template <class Real>
struct NearGeoms {
  const Pose<Real>&pose1, &pose2;
  Vec3<Real> center2;
  Real reach2, margin;
  Mask<Real> links;  // worlds where the links are near
  int geom = -1;     // of link 1, which the last pair had
  bool any_near = false;
  Mask<Real> near;  // worlds where it is near link 2
  Vec3<Real> center;

  HD NearGeoms(const Pose<Real>& own1, const Pose<Real>& own2, Vec3<Real> center_of_2, Real reach_of_2,
               Real within_reach,
               const Mask<Real>& near_links)  // makes no zeros of what the first geom fills
      : pose1(own1), pose2(own2), center2(center_of_2), reach2(reach_of_2), margin(within_reach), links(near_links) {}

  template <class Number>
  HD Mask<Real> operator()(int index, const GeomModel<Number>& g1, const GeomModel<Number>& g2) {
    if (index != geom) {
      geom = index, center = pose1 * g1.pose.p;
      near = links & within(center2 - center, reach2 + g1.radius);
      any_near = any(near);
    }
    if (!any_near) return near;
    const Mask<Real> balls = near & within(pose2 * g2.pose.p - center, margin + g1.radius + g2.radius);
    if (max(g1.type, g2.type) == GeomKind::kSphere || !any(balls)) return balls;
    const Real touch = margin + g1.capsule_radius + g2.capsule_radius;
    const Vec3<Real> between = pose2 * g2.capsule_center - pose1 * g1.capsule_center;
    return balls & (segment_distance_squared<Real>(pose1.R * g1.capsule_axis, pose2.R * g2.capsule_axis, between) <
                    touch * touch);
  }
  HD static Mask<Real> within(Vec3<Real> d, Real reach) { return dot(d, d) < reach * reach; }
};

template <class L>
HD const typename L::Link& flat_model_link(const typename L::Model& m, int flat) {
  return flat < L::kLimbsFrom ? m.trunk[flat] : m.link[flat - L::kLimbsFrom];
}

/// The pool while it is filled.
template <class L>
struct PairPool {
  const int capacity;
  const StepReach<L>& step;
  int used[kWidth<typename L::Real>] = {};
  // The gap of a slot at the end of the step if nothing stops it.   m
  typename L::Real end_gap[at_least_one(L::Shape::kPairs)];

  HD PairPool(int slots, const StepReach<L>& reach) : capacity(slots), step(reach) {}
};

/// What two geoms on moving links give each of their candidates.
template <class L, class Real = typename L::Real>
struct MovingPair {
  const Vec3<Real>&shift1, &shift2;  // see LinkBound
  int link1, link2, geom1, geom2;
  Vec3<Real> on1, on2;  // of the candidate: the points that will touch, which impulses act at when the gap is closed
  Vec3<Real> ahead;     // of these, from the first to the second, across the normal
  Surface<Real> surface;
  Scalar<Real> merge;  // twins are nearer to each other  m
  Real bounce;         // of the candidate
};

/// The slot in use whose contact hardly differs from candidate c (merge_slots); -1: none.
template <class L, class Real = typename L::Real>
HD int twin_of(const Candidate<Real>& c, const MovingPair<L>& of, int w, const PairPool<L>& pool,
               const Contacts<L>& contacts) {
  using S = Scalar<Real>;
  auto one = [w](const Vec3<Real>& a) { return Vec3<S>{lane(a.x, w), lane(a.y, w), lane(a.z, w)}; };
  auto same = [w](const Real& a, const Real& b) { return lane(a, w) == lane(b, w); };
  for (int s = 0; s < pool.used[w]; ++s) {
    const PairContact<L>& x = contacts.pair[s];
    if (lane(x.link1, w) != of.link1 || lane(x.link2, w) != of.link2 || !same(x.point.mu, of.surface.mu) ||
        !same(x.point.stiffness, of.surface.stiffness) || !same(x.point.dissipation, of.surface.dissipation) ||
        !same(x.point.torsion, of.surface.torsion) || !same(x.point.rolling, of.surface.rolling))
      continue;
    const Vec3<S> d = one(of.on2) - one(of.shift2) - one(x.point.p);
    const S merge = of.merge;
    if (dot(d, d) < merge * merge && dot(one(c.normal), one(x.point.frame.row[2])) > S(0.999)) return s;
  }
  return -1;
}

/// Puts candidate c of world `w`, feature `id`, into a slot. end_gap: see PairPool.
template <class L, class Real = typename L::Real>
HD_CALL void insert_pair(const Candidate<Real>& c, int id, Scalar<Real> end_gap, const MovingPair<L>& of, int w,
                         PairPool<L>& pool, Contacts<L>& contacts) {
  lies_in_lane<typename L::Shape>(c, of, pool, contacts);
  using S = Scalar<Real>;
  S gap = lane(c.dist, w);
  int slot = pool.used[w];
  const int twin = twin_of<L>(c, of, w, pool, contacts);
  if (twin >= 0) {
    if (gap >= lane(contacts.pair[twin].point.gap, w)) return;
    slot = twin;
  } else if (slot == pool.capacity) {
    slot = -1;
    S worst = end_gap;
    for (int s = 0; s < pool.capacity; ++s)
      if (lane(pool.end_gap[s], w) > worst) worst = lane(pool.end_gap[s], w), slot = s;
    if (worst < pool.step.slack) set_lane(contacts.overflow, w, kWidth<Real> == 1 ? 1 : -1);
    if (slot < 0) return;
  } else {
    ++pool.used[w];
  }
  if (slot == contacts.pairs) {  // the first world to use it
    PairContact<L>& fresh = contacts.pair[contacts.pairs++];
    Real zero(0), one(1);
    fresh.point = {
        {zero, zero, zero},  {}, Real(kFar), zero, zero, zero, zero, zero, {zero, zero, zero}, zero, Real(-1),
        mask_of<Real>(false)};
    fresh.point.frame.row[2] = {zero, zero, one};
    fresh.p1 = fresh.at = fresh.ahead = {zero, zero, zero};
    fresh.link1 = index_of<Real>(of.link1), fresh.link2 = index_of<Real>(of.link2);
    fresh.geom1 = index_of<Real>(of.geom1), fresh.geom2 = index_of<Real>(of.geom2);
  }
  PairContact<L>& x = contacts.pair[slot];
  auto copy = [w](Real& to, const Real& from) { set_lane(to, w, lane(from, w)); };
  auto put = [&](Vec3<Real>& to, const Vec3<Real>& from) {
    copy(to.x, from.x), copy(to.y, from.y), copy(to.z, from.z);
  };
  put(x.point.p, of.on2 - of.shift2), put(x.p1, of.on1 - of.shift1), put(x.at, c.pos);
  put(x.ahead, of.ahead);
  put(x.point.frame.row[2], c.normal);
  set_lane(pool.end_gap[slot], w, end_gap), set_lane(x.point.gap, w, gap), set_lane(x.point.id, w, static_cast<S>(id));
  copy(x.point.mu, of.surface.mu), copy(x.point.stiffness, of.surface.stiffness);
  copy(x.point.dissipation, of.surface.dissipation), copy(x.point.bounce, of.bounce);
  copy(x.point.torsion, of.surface.torsion), copy(x.point.rolling, of.surface.rolling);
  set_lane(x.point.active, w, kWidth<Real> == 1 ? 1 : -1);
  set_lane(x.link1, w, of.link1), set_lane(x.link2, w, of.link2);
  set_lane(x.geom1, w, of.geom1), set_lane(x.geom2, w, of.geom2);
}

/// The middle of geom `own` of two moving ones, which have n candidates. side: 1 where normals point to own, else -1. turn: of the free
/// motion. ahead: how far own goes until it touches, see meet_ahead. size: of the other.
template <class Shape, class Real>
HD Candidate<Real> moving_middle(const PlacedGeom<Real>& own, const PlacedGeom<Real>& other, Scalar<Real> side,
                                 const Vec3<Real>& turn, const Vec3<Real>& ahead, const Real& margin, const Real& size,
                                 const Candidate<Real>* found, int n) {
  const Real least = inner_radius(own.type, own.size, Real(0)) * Scalar<Real>(1 - kInnerBall);
  const Mask<Real> wide = margin > least;  // of a pack's worlds each by itself
  if (!any(wide)) return absent<Real>();
  Candidate<Real> c = select<Real>(wide, deepest_of(found, n), absent<Real>());
  c.normal = c.normal * side;
  const Vec3<Real> aside = aside_of(ahead, c.normal);
  auto under = [&](Vec3<Real> x, const Real& most, const Mask<Real>& wanted) {
    return find_under<Shape>(other, size, x + aside, c.normal, most, wanted);
  };
  Candidate<Real> middle = middle_candidate(c, own, turning_part(turn), margin, under);
  middle.normal = middle.normal * side;
  return middle;
}

template <class L>
HD typename L::Real fill_pair_slots(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                                    const PerLink<L, typename L::Real>& margins, const StepReach<L>& step,
                                    PerLink<L, LinkBound<typename L::Real>>& bound, Contacts<L>& contacts) {
  using Real = typename L::Real;
  if (kWidth<Real> == 1 || all(step.looks)) contacts.pairs = 0;
  for (int s = 0; s < contacts.pairs; ++s) {
    ContactPoint<Real>& x = contacts.pair[s].point;
    x.active = x.active & negate(step.looks);
    x.gap = select(step.looks, Real(kFar), x.gap), x.id = select(step.looks, Real(-1), x.id);
  }
  Real turns(0);
  if (m.link_pairs == 0) return turns;
  link_bounds<L>(g, m, kin, margins, bound);
  PairPool<L> pool(m.pair_slots, step);
  auto link_of = [&](const auto& per_link, int flat) -> decltype(auto) {
    if constexpr (L::Group::kSize == 1) return at_flat<L>(per_link, flat);
    else return gather<L>(g, m, per_link, flat);
  };
  auto ball_of = [&](int flat) -> decltype(auto) {  // few are near: of the others no more is asked
    using Bound = LinkBound<Real>;
    if constexpr (L::Group::kSize == 1) return (at_flat<L>(bound, flat).ball);
    else return gather_part<L>(g, m, bound, flat, [](const Bound& b) { return b.ball; });
  };
  auto moved = [&](const auto& V, int flat, Vec3<Real> shift) {
    const Motion<Real> v = link_of(V, flat);
    return Motion<Real>{v.w, velocity_at(v, -shift)} * Real(step.h);
  };
  auto path_of = [&](int flat, Vec3<Real> shift) {
    return LinkPath<Real>{moved(step.free, flat, shift), moved(step.bends, flat, shift) * Real(step.h)};
  };
  for (int i = 0; i < m.link_pairs; ++i) {
    const LinkPairModel& lp = m.link_pair[i];
    const auto &ball1 = ball_of(lp.link1), &ball2 = ball_of(lp.link2);
    const Vec3<Real> d = ball2.center - ball1.center;
    const Real margin = ball1.margin + ball2.margin, radius2 = Real(flat_model_link<L>(m, lp.link2).bound_radius);
    const Real radii = radius2 + flat_model_link<L>(m, lp.link1).bound_radius;
    auto within = [&](Real reach) { return step.looks & (dot(d, d) < (reach + radii) * (reach + radii)); };
    if (!g.any(within(margin))) continue;
    const auto &b1 = link_of(bound, lp.link1), &b2 = link_of(bound, lp.link2);
    // How near they must be when the free motion ends: what part of the margin was for the way they go is not for others, and the
    // reserve, which is in that of both, once.
    const Real travel = link_of(step.travel, lp.link1) + link_of(step.travel, lp.link2);
    const Real aside = margin - Real(step.reserve) - max(travel * (1 - kAstray) - contacts.turned, Real(0));
    const Real goes = goes_by(ball1.margin, step.reserve) + goes_by(ball2.margin, step.reserve);
    // And so now: links that go together hardly close, however fast.
    const Motion<Real> apart = moved(step.free, lp.link2, b2.shift) - moved(step.free, lp.link1, b1.shift);
    const Real closes = norm(velocity_at(apart, ball2.center)) + norm(apart.w) * (radius2 + margin);
    const Real nearest = min(margin, aside + closes * Scalar<Real>(1.001));
    const Mask<Real> near = within(nearest);
    if (!g.any(near)) continue;
    NearGeoms<Real> look(b1.pose, b2.pose, ball2.center, nearest + radius2, nearest, near);
    for (int j = lp.pair_begin; j < lp.pair_begin + lp.pairs; ++j) {
      const auto& pair = m.pair[j];
      const auto &g1 = m.geom[pair.geom1], &g2 = m.geom[pair.geom2];
      const bool swapped = g1.link != lp.link1;  // geoms are ordered by type, links by number
      const auto &l1 = swapped ? b2 : b1, &l2 = swapped ? b1 : b2;
      const Mask<Real> wanted = swapped ? look(pair.geom2, g2, g1) : look(pair.geom1, g1, g2);
      if (!any(wanted)) continue;
      const PlacedGeom<Real> x1 = carried_geom<L>(m, g1, l1.pose), x2 = carried_geom<L>(m, g2, l2.pose);
      Candidate<Real> out[kMaxCandidates + 2];
      // What both travel in the step, at the common point.
      const LinkPath<Real> path1 = path_of(g1.link, l1.shift), path2 = path_of(g2.link, l2.shift);
      const Motion<Real> way1 = surface_motion(x1, path1.way), way2 = surface_motion(x2, path2.way);
      const Motion<Real> now =
          surface_motion(x2, moved(step.V, g2.link, l2.shift)) - surface_motion(x1, moved(step.V, g1.link, l1.shift));
      Reach<Real> nears{nearest, way2 - way1, now, contacts.turned + contacts.thrown};
      nears.turns_a = norm(way1.w), nears.turns_b = norm(way2.w), nears.path_a = &path1, nears.path_b = &path2;
      Hub<Real> hub1, hub2;
      if (any(turns_far(max(nears.turns_a, nears.turns_b)))) {
        hub1 = hub_of(flat_model_link<L>(m, g1.link), l1.pose, way1, nears.turns_a), nears.hub_a = &hub1;
        hub2 = hub_of(flat_model_link<L>(m, g2.link), l2.pose, way2, nears.turns_b), nears.hub_b = &hub2;
      }
      nears.ends = aside, nears.goes = goes, nears.lanes = step.lanes;
      collide<typename L::Shape>(x1, x2, wanted, nears, out);
      const Scalar<Real> twins = step.twins_within(lp.thin);
      MovingPair<L> of{l1.shift,   l2.shift, g1.link, g2.link, pair.geom1,
                       pair.geom2, {},       {},      {},      surface_from<Real>(pair),
                       twins,      Real(0)};
      const int shaped = candidate_count(g1.type, g2.type);
      int count = shaped;
      // How far geom 1 goes against the other before it touches, elsewhere than where they are nearest.
      Vec3<Real> ahead{};
      if (g1.type <= GeomKind::kCylinder && g2.type > GeomKind::kSphere)
        ahead = meet_pair_ahead<typename L::Shape>(x1, x2, Real(g1.radius), wanted, nears, shaped, out);
      auto add_middle = [&](const auto& own, const auto& other, Scalar<Real> side, const auto& way, const auto& size) {
        out[count] =
            moving_middle<typename L::Shape>(own, other, side, way.w, ahead * -side, nearest, Real(size), out, shaped);
        drop_passing_middle(x1, x2, wanted, nears, shaped, out, out[count++]);
      };
      if (pair.middle & 1) add_middle(x1, x2, -1, way1, g2.radius);
      if (pair.middle & 2) add_middle(x2, x1, 1, way2, g1.radius);
      for (int k = 0; k < count; ++k) {
        if (!any(out[k].dist < nearest)) continue;
        const Real end_gap = nears.end_gap(out[k]);
        const Mask<Real> active = (out[k].dist < nearest) & (end_gap < aside);
        turns = max(turns, select(active, -end_gap, Real(0)));
        const Candidate<Real>& c = out[k];
        auto touches = [&](const PlacedGeom<Real>& x, Scalar<Real> side) {
          if (max(x1.type, x2.type) == GeomKind::kSphere)  // on the line along which it is hit
            return x.pose.p - c.normal * ((x.size.x + min(c.dist, Real(0)) * Scalar<Real>(0.5)) * side);
          return c.pos + c.normal * (clamp(c.dist, Real(0), nearest) * (side / 2));
        };
        of.ahead = k < shaped ? aside_of(ahead, c.normal) : Vec3<Real>{};
        of.on1 = touches(x1, -1), of.on2 = touches(x2, 1) + of.ahead;
        if (m.has_restitution) of.bounce = bounce_of(out[k], of.surface.restitution, nears.now, step.h);
        for_each_lane<Real>(
            active, [&](int w) { insert_pair<L>(out[k], pair.id + k, lane(end_gap, w), of, w, pool, contacts); });
      }
    }
  }
  for (int s = 0; s < contacts.pairs; ++s)
    contacts.pair[s].point.frame = frame_of_normal(contacts.pair[s].point.frame.row[2]);
  return turns * rebound(m);
}

/// Returns by how much they turn bodies: see Contacts.
template <class L>
HD_ONCE typename L::Real find_pair_contacts(const typename L::Group& g, const typename L::Model& m,
                                            const Kinematics<L>& kin, const PerLink<L, typename L::Real>& margins,
                                            const StepReach<L>& step, PerLink<L, LinkBound<typename L::Real>>& bound,
                                            Contacts<L>& contacts) {
  lies_in_memory(m),
      lies_in_lane<typename L::Shape>(kin, margins, step, step.V, step.free, step.travel, bound, contacts);
  if constexpr (L::Shape::kPairs > 0) return fill_pair_slots<L>(g, m, kin, margins, step, bound, contacts);
  else return typename L::Real(0);
}

/// Hits that one passes on to the next within a step.
inline constexpr int kHits = 2;

/// What may be hit in the step may leave faster than it came: where two links can meet, a margin that is much smaller than the
/// other's (by more than the reserve) grows to what both can move, twice that where something bounces. Returns the worlds in which
/// some did: what was out of reach may now be near.
template <class L, class Real = typename L::Real>
HD_ONCE Mask<Real> raise_margins(const typename L::Group& g, const typename L::Model& m, const Contacts<L>& contacts,
                                 Scalar<Real> reserve, const PerLink<L, Real>& travel, PerLink<L, Real>& margin) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(contacts, travel, margin);
  auto raised = mask_of<Real>(false);
  if constexpr (L::Shape::kPairs > 0) {
    if (contacts.pairs == 0) return raised;
    Real largest(0);
    each_link<L>(g, m, [&](Real own) { largest = max(largest, own); }, margin);
    if (!g.any(largest > Real(2 * reserve))) return raised;  // none moves further than the reserve
    auto raise = [&](Index<Real> link, Real by) {
      if constexpr (L::Group::kSize > 1) {
        if (link < L::kLimbsFrom) {
          margin.trunk[link] = margin.trunk[link] + by;  // which all lanes have
          return;
        }
      }
      scatter_add<L>(g, m, margin, link, by);
    };
    const Real zero(0);
    // How far what has hit a link so far moves, or the link itself: counted once, however many contacts tell of it.
    auto push = [&](Real own, Real present) { return max(own, (present - reserve) / Real(rebound(m)) - own); };
    for (int i = 0; i < contacts.pairs; ++i) {
      const PairContact<L>& c = contacts.pair[i];
      const Real travel1 = gather<L>(g, m, travel, c.link1), travel2 = gather<L>(g, m, travel, c.link2);
      const Real margin1 = gather<L>(g, m, margin, c.link1), margin2 = gather<L>(g, m, margin, c.link2);
      const Real push1 = push(travel1, margin1), push2 = push(travel2, margin2);
      auto missing = [&](Real own, Real present, Real pushed, Real other) {
        const Real both = (own + other) * rebound(m) + reserve;
        return select(c.point.active & (other > pushed + reserve), max(both - present, zero), zero);
      };
      const Real more1 = missing(travel1, margin1, push1, push2), more2 = missing(travel2, margin2, push2, push1);
      const Mask<Real> more = more1 + more2 > zero;
      if (!any(more)) continue;
      raised = raised | more;
      raise(c.link1, more1), raise(c.link2, more2);
    }
  }
  return raised;
}

}  // namespace stiction
