// World slots: the contacts of every link with static geometry, up to the station's slots, chosen out of its candidates.
//
// Most candidates are probes, points with a radius against a plane: a sphere, the ends of a capsule, the corners of a box.
// The rest comes from the narrow phase. With no more of them near than there are slots each has its own; else those that
// touch or close first and spread the patch most are kept (select_spread), and `overflow` tells where one that can close in
// the step is missing. A skip may save work, never change a bit.
#pragma once
#include "collision/buried.h"
#include "collision/mid_turn.h"
#include "collision/rolling_rim.h"
#include "collision/slots.h"
#include "collision/whip.h"

namespace stiction {

/// What collision needs of a step besides poses and margins.
template <class L>
struct StepReach {
  // Of the links at the start of the step, and in the free motion; what that changes by while joints and roots keep their velocities,
  // where there are pairs of geoms.
  const PerLink<L, Motion<typename L::Real>>&V, &free, &bends;
  const PerLink<L, typename L::Real>& travel;         // how far free takes any of their points         m
  Scalar<typename L::Real> h, reserve, slack, merge;  // reserve, slack: what a gap may change besides, and a part of it
  bool moves_centres;                                 // see Options
  int lanes;                                          // with worlds of their own, see Reach
  Mask<typename L::Real> looks =
      mask_of<typename L::Real>(true);  // worlds that are looked at; others keep what was found in them

  /// Contacts of what is `thin` (StationModel, LinkPairModel) that are nearer to each other may be one.   m
  HD Scalar<typename L::Real> twins_within(Scalar<typename L::Real> thin) const { return min(merge, thin * kTwinPart); }
};

/// How many times as fast as it came something may leave what it hits.
template <class Model>
HD typename Model::Plain rebound(const Model& m) {
  return m.has_restitution ? 2 : 1;
}

/// What a link's margin is more than the reserve, if it moves by more than that, or is hit.   m
template <class Real> HD Real goes_by(const Real& margin, Scalar<Real> reserve) {
  return select(margin > Real(2 * reserve), margin - Real(reserve), Real(0));
}

template <class Real>
HD void blend_surface(const Mask<Real>& is, const Surface<Real>& from, Surface<Real>& to) {
  to.mu = select(is, from.mu, to.mu), to.stiffness = select(is, from.stiffness, to.stiffness);
  to.dissipation = select(is, from.dissipation, to.dissipation);
  to.restitution = select(is, from.restitution, to.restitution);
  to.torsion = select(is, from.torsion, to.torsion), to.rolling = select(is, from.rolling, to.rolling);
}

/// Newton's law of impact: what would hit within the step leaves with a part of the speed at which it came, unless that is
/// below what gravity gives in two steps, of which a resting body is to make nothing. It begins its way back from where it is,
/// above the surface, with so much less that it rises as high as from there: of v^2 + v a h + 2 a gap, which steps of a fall by a h
/// keep, the square of the restitution is left. a: by what the free motion, `way`, closes more than `now`.   m/s
template <class Real, class S>
HD Real bounce_of(const Candidate<Real>& c, const Real& restitution, const Closing<Real>& now, const Closing<Real>& way,
                  S h) {
  const Real zero(0), closed = closed_by(now, c.normal, c.pos), part = restitution * restitution;
  const Real fall = max(-dot(c.normal, velocity_at(way, c.pos)) - closed, zero), half = fall * S(0.5),
             above = fall * max(c.dist, zero) * S(2);
  const Real left = half * half + part * (closed * (closed + fall) + above) - above;
  const Mask<Real> hits = (closed + fall >= c.dist) & (closed > Real(S(2 * 9.81) * h * h));
  return select(hits, max(sqrt(max(left, zero)) - half, zero) * (S(-1) / h), zero);
}

/// The point of the body that will touch: an impulse acts when the gap is closed, and what lands is to roll by its own radius.
template <class Real, class Number>
HD void fill_point(const Candidate<Real>& c, const Surface<Number>& s, Real id, Real margin, ContactPoint<Real>& x) {
  const Real open = clamp(c.dist, Real(0), margin);
  x.p = c.pos + c.normal * (open * Scalar<Real>(0.5)), x.gap = c.dist, x.id = id, x.bounce = Real(0),
  x.bend = {Real(0), Real(0), Real(0)};
  x.mu = Real(s.mu), x.stiffness = Real(s.stiffness), x.dissipation = Real(s.dissipation);
  x.torsion = Real(s.torsion), x.rolling = Real(s.rolling);
  x.active = c.dist < margin;
}

/// The candidate of a probe; the normal points from the plane to the link.
template <class Real, class Number>
HD Candidate<Real> probe_candidate(const ProbeModel<Number>& probe, const PlaneModel<Number>& plane,
                                   const Pose<Real>& link, Vec3<Real> origin, const Reach<Real>& reach,
                                   const Turning<Real>& body) {
  Vec3<Real> center = link * probe.center, n = vec<Real>(plane.frame.row[2]);
  const Real above = dot(n, origin) - plane.distance;
  Real height = above + dot(n, center), gap = height - probe.radius;
  Candidate<Real> c = turning_point({center - n * (height - gap * Scalar<Real>(0.5)), n, gap}, center, body);
  if (reach.hub_b != nullptr)
    c.dist = select((gap > Real(0)) & stays_above(n, above + dot(n, reach.hub_b->at), reach), Real(kFar), c.dist);
  return c;
}

/// Drops what a body cannot touch because of its other contacts. The n candidates, near in some world, are in the order of their
/// features.
template <class L, class Real = typename L::Real>
HD void drop_hidden_candidates(const typename L::Model& m, const StationModel& st, const Pose<Real>& link,
                               Vec3<Real> origin, Real margin, int n, const int* feature, Candidate<Real>* candidate) {
  int first = 0;
  for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) {
    const auto& pair = m.pair[i];
    while (first < n && feature[first] < pair.id) ++first;
    int end = first;
    while (end < n && feature[end] < pair.id + pair.candidates) ++end;
    if (end == first || end - first == n || m.geom[pair.geom1].type == GeomKind::kPlane) continue;
    const int hull = own_geom<L>(m, i), own = m.geom[hull].type == GeomKind::kMesh ? hull : -1;
    auto is_own = [&](int k) {
      if (own < 0 || feature[k] < st.probes) return false;
      int j = st.static_begin;
      while (m.pair[j].id + m.pair[j].candidates <= feature[k]) ++j;
      return own == m.pair[j].geom1 || own == m.pair[j].geom2;
    };
    drop_hidden(placed_pair<L>(m, i, link, origin), first, end, n, margin, is_own, candidate);
  }
}

/// Fills the slots of a station that has probes alone, a slot each.
template <class L, class Real = typename L::Real>
HD void probe_slots(const typename L::Model& m, const StationModel& st, const Pose<Real>& link, Vec3<Real> origin,
                    const Reach<Real>& reach, const StepReach<L>& step, const Turning<Real>& body,
                    ContactPoint<Real>* slot) {
  for (int i = 0; i < st.probes; ++i) {
    const auto& probe = m.probe[st.probe_begin + i];
    const auto& plane = m.plane[probe.plane];
    const Candidate<Real> c = probe_candidate(probe, plane, link, origin, reach, body);
    if (kWidth<Real> == 1 && !any(c.dist < reach.margin)) {
      slot[i].active = mask_of<Real>(false);  // of what is not there no more is read
      continue;
    }
    fill_point(c, surface_from<typename L::Number>(probe), Real(Scalar<Real>(i)), reach.margin, slot[i]);
    if (m.has_restitution) slot[i].bounce = bounce_of(c, Real(probe.restitution), reach.now, reach.way, step.h);
    slot[i].frame = {{vec<Real>(plane.frame.row[0]), vec<Real>(plane.frame.row[1]), vec<Real>(plane.frame.row[2])}};
  }
}
/// Those of another, of the candidates that are near; returns where one that can close in the step is missing.
template <class L, class Real = typename L::Real>
HD Mask<Real> chosen_slots(const typename L::Model& m, const StationModel& st, const Pose<Real>& link,
                           Vec3<Real> origin, const Reach<Real>& reach, const StepReach<L>& step,
                           const Turning<Real>& body, ContactPoint<Real>* slot) {
  constexpr int K = L::Shape::kStationSlots;
  constexpr int kMost = L::Shape::kCandidates;
  Candidate<Real> candidate[kMost];  // those near in some world; one more is left out and told
  Surface<typename L::Number> surface[kMost];
  int number[kMost];  // of all candidates
  int n = 0;
  auto overflow = mask_of<Real>(false);
  auto add = [&](int own, const Candidate<Real>& c, const Surface<typename L::Number>& s) {
    const Mask<Real> near = c.dist < reach.margin;
    if (!any(near)) return;
    if (n < kMost) candidate[n] = c, surface[n] = s, number[n++] = own;
    else overflow = overflow | (near & (c.dist < closed_by(reach.now, c.normal, c.pos) + Real(step.slack)));
  };
  for (int i = 0; i < st.probes; ++i) {
    const auto& probe = m.probe[st.probe_begin + i];
    add(i, probe_candidate(probe, m.plane[probe.plane], link, origin, reach, body),
        surface_from<typename L::Number>(probe));
  }
  static_candidates<L>(m, st, link, origin, reach, body, step.looks, add);
  if constexpr (L::Shape::kWalls) {
    NearCandidates<L> near{candidate, surface, number, n};
    if (n > 1) overflow = overflow | unbury<L>(m, st, link, origin, reach, body, near);
    n = near.n;
  }
  if (n > 1) drop_hidden_candidates<L>(m, st, link, origin, reach.margin, n, number, candidate);
  auto fill = [&](const Candidate<Real>& from, const Surface<Real>& of, const Real& feature, ContactPoint<Real>& to) {
    fill_point(from, of, feature, reach.margin, to);
    if (m.has_restitution) to.bounce = bounce_of(from, of.restitution, reach.now, reach.way, step.h);
    to.frame = frame_of_normal(from.normal);
  };
  auto is_near = [&](int k) { return any(candidate[k].dist < reach.margin); };
  auto number_of = [&](int k) { return Real(Scalar<Real>(number[k])); };
  int live = 0, to = 0;
  for (int k = 0; k < n; ++k) live += is_near(k);
  if (live <= st.slots) {
    for (int k = 0; k < n; ++k)
      if (is_near(k)) fill(candidate[k], surface_from<Real>(surface[k]), number_of(k), slot[to++]);
  } else {
    Candidate<Real> chosen[K];
    Surface<Real> of[K];
    Real feature[K], index[K];
    for (int k = 0; k < st.slots; ++k)
      of[k] = {Real(0), Real(0), Real(0), Real(0), Real(0), Real(0)}, feature[k] = Real(-1);
    overflow = overflow | select_spread<Real, K, kMost>(candidate, n, st.slots, reach.margin, reach.now, reach.way,
                                                        Real(step.slack), chosen, index);
    for (int i = 0; i < n; ++i) {
      if (!is_near(i)) continue;
      const Surface<Real> own = surface_from<Real>(surface[i]);
      for (int k = 0; k < st.slots; ++k) {
        const Mask<Real> is = index[k] == Real(Scalar<Real>(i));
        blend_surface(is, own, of[k]), feature[k] = select(is, number_of(i), feature[k]);
      }
    }
    for (; to < st.slots; ++to) fill(chosen[to], of[to], feature[to], slot[to]);
  }
  const Real zero(0);
  for (; to < st.slots; ++to) {
    if (kWidth<Real> == 1) slot[to].active = mask_of<Real>(false);
    else
      fill(absent<Real>(), {zero, zero, zero, zero, zero, zero}, Real(-1),
           slot[to]);  // another world of the pack may have it
  }
  return overflow;
}

/// Fills a station's slots; returns where one that can close in the step is missing.
template <class L, class Real = typename L::Real>
HD Mask<Real> station_slots(const typename L::Model& m, const StationModel& st, const Pose<Real>& link,
                            Vec3<Real> origin, const Reach<Real>& reach, const StepReach<L>& step,
                            const Turning<Real>& body, ContactPoint<Real>* slot) {
  if constexpr (!L::Shape::kOnlyProbes)
    if (st.statics > 0 || st.probes > st.slots) return chosen_slots<L>(m, st, link, origin, reach, step, body, slot);
  probe_slots<L>(m, st, link, origin, reach, step, body, slot);
  return mask_of<Real>(false);
}

/// How far any point of a link moves in the step at the velocities V.   m
template <class L, class Real = typename L::Real>
HD void travels(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin, Scalar<Real> h,
                const PerLink<L, Motion<Real>>& V, PerLink<L, Real>& travel) {
  auto fill = [&](const auto& link, const Pose<Real>& pose, const Motion<Real>& v) {
    return (norm(velocity_at(v, pose.p)) + norm(v.w) * link.reach) * h;
  };
  for (int t = 0; t < m.trunk_links(); ++t) travel.trunk[t] = fill(m.trunk[t], kin.pose.trunk[t], V.trunk[t]);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k)
      travel.limb[at.link + k] = fill(limb.link(k), kin.pose.limb[at.link + k], V.limb[at.link + k]);
  });
}

/// Contacts that hardly differ make the problem rank-deficient and slow: of two, the shallower gives way. merge: twins are nearer to
/// each other.   m
template <class Real>
HD Mask<Real> is_twin(const ContactPoint<Real>& a, const ContactPoint<Real>& b, Scalar<Real> merge) {
  const Vec3<Real> d = b.p - a.p;
  return (dot(d, d) < Real(merge * merge)) & (dot(a.frame.row[2], b.frame.row[2]) > Real(0.999f)) & (a.mu == b.mu) &
         (a.stiffness == b.stiffness) & (a.dissipation == b.dissipation) & (a.torsion == b.torsion) &
         (a.rolling == b.rolling);
}
template <class Real>
HD void merge_slots(ContactPoint<Real>* slot, int count, Scalar<Real> merge) {
  for (int i = 0; i < count; ++i)
    for (int j = i + 1; j < count; ++j) {
      ContactPoint<Real>&a = slot[i], &b = slot[j];
      const Mask<Real> both = a.active & b.active;
      if (!any(both)) continue;
      const Mask<Real> twins = both & is_twin(a, b, merge);
      a.active = a.active & negate(Mask<Real>(twins & (b.gap < a.gap)));
      b.active = b.active & negate(Mask<Real>(twins & (b.gap >= a.gap)));
    }
}

/// By how much the hinge of the link of station s turns it in the free motion; else 0.   rad
template <class L, class Real = typename L::Real>
HD Vec3<Real> hinge_turn(const LimbView<L>& limb, Place at, int s, const StepReach<L>& step) {
  if (s == 0 || limb.link(s - 1).kind != kHingeLink) return {};
  const int up = limb.parent(s - 1);
  const Vec3<Real> turn = step.free.limb[at.link + s - 1].w;
  if (up >= 0) return (turn - step.free.limb[at.link + up].w) * Real(step.h);
  return (limb.on_trunk() ? turn - step.free.trunk[limb.attach()].w : turn) * Real(step.h);
}

/// Whether a body has a geom of that type that may touch static ones, planes aside if they have probes.
template <class L>
HD bool has_own(const typename L::Model& m, const StationModel& st, int type) {
  for (int i = st.static_begin; i < st.static_begin + st.statics; ++i)
    if (m.geom[own_geom<L>(m, i)].type == type) return true;
  return false;
}

/// The forces of the free motion on a body on its own, whose pose is `link`.
template <class Link, class Real>
HD Push<Real> push_on(const Link& own, const Pose<Real>& link, const Reach<Real>& reach) {
  const Vec3<Real> centre = link * own.com, along = velocity_at(reach.way, centre) - velocity_at(reach.now, centre);
  const auto turning = placed(Pose<Real>{link.R, link.R * own.com * Real(-1)}, own.mass, own.com, own.inertia).J;
  const Vec3<Real> couple = turning * (reach.way.w - reach.now.w);  // times the step squared
  const Real square = dot(along, along) * own.mass;
  return {centre + cross(along, couple) * (Real(1) / select(square > Real(0), square, Real(1))), along};
}

/// Fills all world slots and tells which some world has active. Returns by how much they turn bodies: see Contacts.
template <class L>
HD_ONCE typename L::Real find_world_contacts(const typename L::Group& g, const typename L::Model& m,
                                             const Kinematics<L>& kin, const PerLink<L, typename L::Real>& margin,
                                             const StepReach<L>& step, Contacts<L>& contacts) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(kin, margin, step, step.V, step.free, step.travel, contacts);
  using Real = typename L::Real;
  Real turns(0);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    Vec3<Real> origin = kin.limb_origin[at.limb];
    Real& rolls = contacts.rolls[at.limb];
    Vec3<Real>& half = contacts.half_turn[at.limb];
    rolls = select(step.looks, Real(0), rolls), half = select(step.looks, Vec3<Real>{}, half);
    for (int s = 0; s <= limb.links(); ++s) {
      const StationModel& st = limb.station(s);
      int begin = at.slot + limb.slot_begin(s), end = at.slot + limb.slot_end(s);
      if (begin == end) continue;
      Pose<Real> link = s == 0 ? kin.pose.trunk[limb.attach()] : kin.pose.limb[at.link + s - 1];
      auto of_link = [&](const auto& x) { return s == 0 ? x.trunk[limb.attach()] : x.limb[at.link + s - 1]; };
      const Motion<Real> way = of_link(step.free) * Real(step.h);
      Reach<Real> reach{of_link(margin), way, of_link(step.V) * Real(step.h), contacts.turned + contacts.thrown};
      const LinkPath<Real> path{way,
                                st.statics > 0 ? of_link(step.bends) * Real(step.h * step.h) : zero_motion<Real>()};
      reach.path_b = &path, reach.turns_b = norm(way.w), reach.goes = goes_by(reach.margin, step.reserve),
      reach.lanes = step.lanes, reach.passed = &contacts.passed;
      Hub<Real> hub;
      if (any(turns_far(reach.turns_b))) {
        hub = hub_of(s == 0 ? m.trunk[limb.attach()] : limb.link(s - 1), link, way, reach.turns_b);
        reach.hub_b = &hub;
      }
      const bool alone = is_lone_body<L>(limb) && s == limb.links();
      Turning<Real> body{reach.way.w, link.p, alone, alone ? reach.way.w : hinge_turn<L>(limb, at, s, step),
                         alone && step.moves_centres && st.rolls && !m.has_loops};
      reach.with_passing = body.straight;
      Mask<Real> stays = mask_of<Real>(false);
      if (alone && step.moves_centres && !m.has_loops && any(body.part(kLeastPointTurn) > Real(0)) &&
          !has_own<L>(m, st, GeomKind::kMesh)) {
        const Real far = clamp(Real(2) - norm(body.turn) * Real(2 / kMostPushed), Real(0), Real(1));
        body.slender = slenderness<Real>(limb.link(s - 1).inertia) * far, body.stays = &stays;
      }
      if (body.straight && step.moves_centres) body.centre = link * limb.link(s - 1).com;
      if constexpr (has_cylinders<typename L::Shape>())
        if (body.straight) reach.push = push_on(limb.link(s - 1), link, reach);
      const bool keeps = kWidth<Real> > 1 && !all(step.looks);
      ContactPoint<Real>*slot = contacts.point.slot + begin, kept[L::Shape::kStationSlots];
      for (int c = 0; keeps && c < end - begin; ++c) kept[c] = slot[c];
      Mask<Real> missing = mask_of<Real>(false);
      for (int look = 0; look < 2; ++look) {
        missing = station_slots<L>(m, st, link, origin, reach, step, body, slot);
        if (!alone || look > 0) break;
        const Real hit = goes_in(reach, end - begin, slot);
        const Mask<Real> farther = step.looks & (hit > Real(step.reserve));
        if (!L::Shape::kOnlyProbes && st.statics > 0 &&
            m.geom[own_geom<L>(m, st.static_begin)].type == GeomKind::kEllipsoid) {
          const Vec3<Real> blow = turned_by_blow(limb.link(s - 1), link, reach, end - begin, slot);
          const Mask<Real> whips = step.looks & (dot(blow, blow) > Real(kLeastWhip * kLeastWhip));
          reach.blow = select(whips, blow, reach.blow);
        }
        if (!any(farther | (dot(reach.blow, reach.blow) > Real(0)))) break;
        if (!L::Shape::kOnlyProbes && st.statics > 1)
          reach.first = first_hit(reach, end - begin, slot, Real(step.reserve));
        reach.margin = reach.margin + select(farther, hit * rebound(m), Real(0));
        reach.goes = select(farther, goes_by(reach.margin, step.reserve), reach.goes);
      }
      contacts.overflow = contacts.overflow | (missing & step.looks);
      if (body.bends)
        rolls =
            select(step.looks, bend_rolling<L>(m, st, link, reach, body, step.h, step.slack, end - begin, slot), rolls);
      merge_slots(slot, end - begin, step.twins_within(st.thin));
      if (any(body.slender > Real(0))) {
        const float least = has_own<L>(m, st, GeomKind::kEllipsoid) ? kLeastTurn : kLeastPointTurn;
        half = select(step.looks, half_turn(body, least, rolls, stays, end - begin, slot), half);
      }
      for (int c = 0; keeps && c < end - begin; ++c) slot[c] = select_point(step.looks, slot[c], kept[c]);
      for (int c = begin; c < end; ++c) contacts.live.set(c, any(contacts.point.slot[c].active));
      turns = max(turns, goes_in(reach, end - begin, slot));
    }
  });
  return g.max(turns) * rebound(m);
}

}  // namespace stiction
