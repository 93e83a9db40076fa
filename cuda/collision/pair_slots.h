// Pair slots: contacts between moving links, found by link pair, then geom pair, in fixed order.
//
// Broad phase: bounding spheres of links, then of geoms; `if (any(near))` around the narrow phase. What is found goes into the
// world's pool in that order. Of a tile each lane looks at pairs of its own.
#pragma once
#include "collision/link_states.h"
#include "collision/pair_pool.h"

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
               Real within_reach, const Mask<Real>& near_links)
      : pose1(own1),
        pose2(own2),
        center2(center_of_2),
        reach2(reach_of_2),
        margin(within_reach),
        links(near_links),
        near(near_links),
        center(own1.p) {}

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

/// What of two links may meet in a step: how near geoms must be for that now and, `aside`, when the free motion ends.
template <class Real>
struct NearLinks {
  Real nearest, aside, goes, radius2;
  Mask<Real> near;
};

/// What looks at pairs of links and of their geoms.
template <class L>
struct PairSearch {
  using Real = typename L::Real;
  const typename L::Model& m;
  const StepReach<L>& step;
  const LinkStates<L>& links;
  const Real& turned;  // see Contacts
  const Real& thrown;
  Mask<Real>& passed;

  HD Motion<Real> moved(const Motion<Real>& v, const Vec3<Real>& shift) const {
    return Motion<Real>{v.w, velocity_at(v, -shift)} * Real(step.h);
  }
  HD LinkPath<Real> path_of(int flat, const Vec3<Real>& shift) const {
    return {moved(links.free(flat), shift), moved(links.bend(flat), shift) * Real(step.h)};
  }

  /// Whether geoms of these two may meet in some world.
  HD bool near(const LinkPairModel& lp, NearLinks<Real>& of) const {
    const LinkBound<Real>&b1 = links.bound(lp.link1), &b2 = links.bound(lp.link2);
    const auto &ball1 = b1.ball, &ball2 = b2.ball;
    const Vec3<Real> d = ball2.center - ball1.center;
    const Real margin = ball1.margin + ball2.margin;
    of.radius2 = Real(flat_model_link<L>(m, lp.link2).bound_radius);
    const Real radii = of.radius2 + flat_model_link<L>(m, lp.link1).bound_radius;
    auto within = [&](Real reach) { return step.looks & (dot(d, d) < (reach + radii) * (reach + radii)); };
    if (!any(within(margin))) return false;
    // How near they must be when the free motion ends: what part of the margin was for the way they go is not for others, and the
    // reserve, which is in that of both, once.
    const Real travel = links.travel(lp.link1) + links.travel(lp.link2);
    of.aside = margin - Real(step.reserve) - max(travel * (1 - kAstray) - turned, Real(0));
    of.goes = goes_by(ball1.margin, step.reserve) + goes_by(ball2.margin, step.reserve);
    // And so now: links that go together hardly close, however fast.
    const Motion<Real> apart = moved(links.free(lp.link2), b2.shift) - moved(links.free(lp.link1), b1.shift);
    const Real closes = norm(velocity_at(apart, ball2.center)) + norm(apart.w) * (of.radius2 + margin);
    of.nearest = min(margin, of.aside + closes * Scalar<Real>(1.001));
    of.near = within(of.nearest);
    return any(of.near);
  }
  /// visit(j, wanted) for each of their pairs of geoms, number j of the model's, that may meet in the worlds `wanted`.
  template <class Visit>
  HD void each_near_pair(const LinkPairModel& lp, const NearLinks<Real>& of, Visit visit) const {
    const LinkBound<Real>&b1 = links.bound(lp.link1), &b2 = links.bound(lp.link2);
    NearGeoms<Real> look(b1.pose, b2.pose, b2.ball.center, of.nearest + of.radius2, of.nearest, of.near);
    for (int j = lp.pair_begin; j < lp.pair_begin + lp.pairs; ++j) {
      const auto& pair = m.pair[j];
      const auto &g1 = m.geom[pair.geom1], &g2 = m.geom[pair.geom2];
      const bool swapped = g1.link != lp.link1;  // geoms are ordered by type, links by number
      const Mask<Real> wanted = swapped ? look(pair.geom2, g2, g1) : look(pair.geom1, g1, g2);
      if (any(wanted)) visit(j, wanted);
    }
  }
  HD MovingGeoms<Real> ids(const LinkPairModel& lp, int j) const {
    const auto& pair = m.pair[j];
    const int link1 = m.geom[pair.geom1].link, link2 = m.geom[pair.geom2].link;
    return {link1, link2, pair.geom1, pair.geom2, surface_from<Real>(pair), step.twins_within(lp.thin)};
  }
  /// visit(k, candidate, active) for the candidates of pair j that may act in the worlds `active`. turns: by how much the hardest closes.
  template <class Visit>
  HD void meet(const NearLinks<Real>& links_near, int j, const Mask<Real>& wanted, Real& turns, Visit visit) const {
    const auto& pair = m.pair[j];
    const auto &g1 = m.geom[pair.geom1], &g2 = m.geom[pair.geom2];
    const LinkBound<Real>&l1 = links.bound(g1.link), &l2 = links.bound(g2.link);
    const Real &nearest = links_near.nearest, &aside = links_near.aside;
    const PlacedGeom<Real> x1 = carried_geom<L>(m, g1, l1.pose), x2 = carried_geom<L>(m, g2, l2.pose);
    Candidate<Real> out[kMaxCandidates + 2];
    // What both travel in the step, at the common point.
    const LinkPath<Real> path1 = path_of(g1.link, l1.shift), path2 = path_of(g2.link, l2.shift);
    const Motion<Real> way1 = surface_motion(x1, path1.way), way2 = surface_motion(x2, path2.way);
    const Motion<Real> now = surface_motion(x2, moved(links.now(g2.link), l2.shift)) -
                             surface_motion(x1, moved(links.now(g1.link), l1.shift));
    Reach<Real> nears{nearest, way2 - way1, now, turned + thrown};
    nears.turns_a = norm(way1.w), nears.turns_b = norm(way2.w), nears.path_a = &path1, nears.path_b = &path2;
    Hub<Real> hub1, hub2;
    if (any(turns_far(max(nears.turns_a, nears.turns_b)))) {
      hub1 = hub_of(flat_model_link<L>(m, g1.link), l1.pose, way1, nears.turns_a), nears.hub_a = &hub1;
      hub2 = hub_of(flat_model_link<L>(m, g2.link), l2.pose, way2, nears.turns_b), nears.hub_b = &hub2;
    }
    nears.ends = aside, nears.goes = links_near.goes, nears.lanes = step.lanes, nears.passed = &passed;
    collide<typename L::Shape>(x1, x2, wanted, nears, out);
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
    PairCandidate<Real> found;
    found.bounce = Real(0);
    for (int k = 0; k < count; ++k) {
      const Candidate<Real>& c = out[k];
      if (!any(c.dist < nearest)) continue;
      found.end_gap = nears.end_gap(c);
      const Mask<Real> active = (c.dist < nearest) & (found.end_gap < aside);
      turns = max(turns, select(active, -found.end_gap, Real(0)));
      auto touches = [&](const PlacedGeom<Real>& x, Scalar<Real> side) {
        if (max(x1.type, x2.type) == GeomKind::kSphere)  // on the line along which it is hit
          return x.pose.p - c.normal * ((x.size.x + min(c.dist, Real(0)) * Scalar<Real>(0.5)) * side);
        return c.pos + c.normal * (clamp(c.dist, Real(0), nearest) * (side / 2));
      };
      // The points that will touch: impulses act at these when the gap is closed.
      found.ahead = k < shaped ? aside_of(ahead, c.normal) : Vec3<Real>{};
      const Vec3<Real> on1 = touches(x1, -1), on2 = touches(x2, 1) + found.ahead;
      found.p = on2 - l2.shift, found.p1 = on1 - l1.shift, found.at = c.pos, found.normal = c.normal,
      found.gap = c.dist;
      if (m.has_restitution)
        found.bounce = bounce_of(c, surface_from<Real>(pair).restitution, nears.now, nears.way, step.h);
      if (any(active)) visit(k, found, active);
    }
  }
};

/// Pairs that are near, of this lane's part of all pairs of links: that of links and that of geoms, in memory. The lists of all lanes one
/// after the other are in the order of pairs.
template <class L>
class NearPairs {
 public:
  using Real = typename L::Real;
  static constexpr int kLanes = L::Group::kSize;

  /// Collective. list: see PairSearchMemory.
  HD NearPairs(const typename L::Group& g, const typename L::Model& m, const PairSearch<L>& search, uint32_t* list)
      : m_(m), list_(list) {
    lies_in_memory(*list_);
    int own = 0;
    for (int i = first(g.rank()), begin = begin_of(g.rank()); i < first(g.rank() + 1); ++i) {
      NearLinks<Real> of;
      if (!search.near(m.link_pair[i], of)) continue;
      search.each_near_pair(m.link_pair[i], of, [&](int j, const Mask<Real>&) {
        list_[begin + 2 * own] = i, list_[begin + 2 * own + 1] = j;
        ++own;
      });
    }
    g.sync();
    UNROLL for (int r = 0; r < kLanes; ++r) count_[r] = static_cast<int>(g.from(Real(Scalar<Real>(own)), r)), all_ += count_[r];
  }
  HD int count() const { return all_; }
  /// visit(i, j): number n of them.
  template <class Visit>
  HD void at(int n, Visit visit) const {
    int begin = 0, k = n;
    bool here = false;
    UNROLL for (int r = 0; r < kLanes; ++r) {
      if (!here && k < count_[r]) begin = begin_of(r) + 2 * k, here = true;
      if (!here) k -= count_[r];
    }
    visit(static_cast<int>(list_[begin]), static_cast<int>(list_[begin + 1]));
  }

 private:
  HD int first(int rank) const { return m_.link_pairs * rank / kLanes; }
  HD int begin_of(int rank) const {
    const int i = first(rank);
    return i < m_.link_pairs ? 2 * (m_.link_pair[i].pair_begin - m_.link_pair[0].pair_begin) : 0;
  }
  const typename L::Model& m_;
  uint32_t* list_;
  int count_[kLanes], all_ = 0;
};

/// By the lanes of a tile: states of links, and NearPairs.
template <class Real>
struct PairSearchMemory {
  LinkState<Real>* links;
  uint32_t* list;

  template <class Model>
  HD PairSearchMemory(const Model& m, Arena<Real>& arena) {
    links = arena.template take_as<LinkState<Real>>(link_count(m)), list = nullptr;
    if (m.link_pairs == 0) return;
    const LinkPairModel& last = m.link_pair[m.link_pairs - 1];
    list = arena.take_bits(int64_t{2} * (last.pair_begin + last.pairs - m.link_pair[0].pair_begin));
  }
  /// Reals.
  template <class Model>
  HD static int64_t size(const Model& m) {
    Arena<Real> arena;
    PairSearchMemory(m, arena);
    return arena.used();
  }
};

/// By the lanes of a tile, each of which looks at pairs of its own, so many at a time; what they find goes into the pool of every lane in
/// the order of pairs.
template <class L, class Real = typename L::Real>
HD Real search_by_lanes(const typename L::Group& g, const typename L::Model& m, const PairSearch<L>& search, uint32_t* list,
                        PairPool<L>& pool, Contacts<L>& contacts) {
  struct Found {
    PairCandidate<Real> candidate;
    Real number;  // of its pair
  };
  Real turns(0);
  const NearPairs<L> near(g, m, search, list);
  for (int first = 0; first < near.count(); first += L::Group::kSize) {
    Found found[kMaxCandidates + 2];
    int count = 0, pair_of_links = 0, pair = 0;
    if (first + g.rank() < near.count())
      near.at(first + g.rank(), [&](int i, int j) {
        pair_of_links = i, pair = j;
        NearLinks<Real> of;
        if (!search.near(m.link_pair[i], of)) return;
        search.meet(of, j, of.near, turns, [&](int k, const PairCandidate<Real>& c, const Mask<Real>&) {
          found[count++] = {c, Real(Scalar<Real>(k))};
        });
      });
    for (int r = 0; r < L::Group::kSize; ++r) {
      auto of_lane = [&](int x) { return static_cast<int>(g.from(Real(Scalar<Real>(x)), r)); };
      const int there = of_lane(count);
      if (there == 0) continue;
      const int i = of_lane(pair_of_links), j = of_lane(pair);
      const MovingGeoms<Real> ids = search.ids(m.link_pair[i], j);
      for (int k = 0; k < there; ++k) {
        Found theirs{};
        if (k < count) theirs = found[k];
        theirs = taken_from<Real>(g, theirs, r);
        insert_pair<L>(theirs.candidate, m.pair[j].id + static_cast<int>(theirs.number), ids, 0, pool, contacts);
      }
    }
  }
  return g.max(turns);
}

template <class L, class Real = typename L::Real>
HD Real fill_pair_slots(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                        const PerLink<L, Real>& margins, const StepReach<L>& step, Real* memory,
                        PerLink<L, LinkBound<Real>>& bound, Contacts<L>& contacts) {
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
  Arena<Real> arena(memory);
  const PairSearchMemory<Real> shared(m, arena);
  const LinkStates<L> links(g, m, step, bound, shared.links);
  const PairSearch<L> search{m, step, links, contacts.turned, contacts.thrown, contacts.passed};
  if constexpr (L::kAlone) {
    for (int i = 0; i < m.link_pairs; ++i) {
      const LinkPairModel& lp = m.link_pair[i];
      NearLinks<Real> of;
      if (!search.near(lp, of)) continue;
      search.each_near_pair(lp, of, [&](int j, const Mask<Real>& wanted) {
        const MovingGeoms<Real> ids = search.ids(lp, j);
        search.meet(of, j, wanted, turns, [&](int k, const PairCandidate<Real>& c, const Mask<Real>& active) {
          for_each_lane<Real>(active,
                              [&](int w) { insert_pair<L>(c, m.pair[j].id + k, ids, w, pool, contacts); });
        });
      });
    }
  } else {
    turns = search_by_lanes<L>(g, m, search, shared.list, pool, contacts);
  }
  for (int s = 0; s < contacts.pairs; ++s)
    contacts.pair[s].point.frame = frame_of_normal(contacts.pair[s].point.frame.row[2]);
  return turns * rebound(m);
}

/// Returns by how much they turn bodies: see Contacts. memory: PairSearchMemory, on a tile.
template <class L, class Real = typename L::Real>
HD_ONCE Real find_pair_contacts(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                                const PerLink<L, Real>& margins, const StepReach<L>& step, Real* memory,
                                PerLink<L, LinkBound<Real>>& bound, Contacts<L>& contacts) {
  lies_in_memory(m),
      lies_in_lane<typename L::Shape>(kin, margins, step, step.V, step.free, step.travel, bound, contacts);
  if constexpr (L::Shape::kPairs > 0) return fill_pair_slots<L>(g, m, kin, margins, step, memory, bound, contacts);
  else return Real(0);
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
