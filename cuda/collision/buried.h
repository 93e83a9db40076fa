// Faces and edges of static geometry inside other static geometry have no normals of their own.
//
// At the foot of a wall the least overlap may be with the wall's underside, or with its lower edge, though both lie on or in the
// floor: that contact would push a body into the floor, whose contact throws it out again. Such is what finds itself opposed by
// another contact of the body, and pushes from its witness on the static geom into another static geom. There the geom goes on into
// that: the pair is collided again with the static geom swept into the other one, away from the middle of the body's geom, which
// leaves the least overlap of those along directions that lead out (docs/theory.md, (3.1d)). Where what is so found is not on the
// geom itself, as under what hangs over, the contact stays as it was.
// Tests: tests/python/test_buried.py.
#pragma once
#include "collision/flush_floor.h"

namespace stiction {

inline constexpr float kOpposed = -0.05f;  // the cosine of directions that oppose each other, at most
inline constexpr float kBeside = 0.7f;     // none of directions that are all nearer than this to one oppose each other
// How far from a witness one looks for what is there, and how far static geoms are swept, in radii of the body's geom.
inline constexpr float kProbed = 1e-3f, kSwept = 64;
// How many times as deep as before it is at most, but for what the body travels in the step and this part of its radius.
inline constexpr float kDeeper = 16, kAnyDepth = 5e-3f;
inline constexpr int kMostBuriers = 3;  // static geoms into which one pair is swept: a corner has two besides

/// The candidates of one body that are near in some world, in the order of their features.
template <class L>
struct NearCandidates {
  static constexpr int kMost = L::Shape::kCandidates;
  Candidate<typename L::Real>* candidate;
  Surface<typename L::Number>* surface;
  int* number;
  int n;
};

/// Whether a static geom is ahead of x along n, within `little`: there it is at what is as far ahead, or beside that.
template <class Shape, class Real>
HD Mask<Real> is_ahead(const PlacedGeom<Real>& fixed, Vec3<Real> x, Vec3<Real> n, const Real& little, const Real& noise,
                       const Mask<Real>& wanted) {
  const Vec3<Real> ahead = x + n * little;
  if (fixed.type == GeomKind::kPlane) return is_inside<Shape>(fixed, ahead, noise, wanted);
  Candidate<Real> c;
  collide<Shape>(as_geom(ahead), fixed, wanted, {little, {}, {}, Real(0)}, &c);
  const Vec3<Real> nearest = ahead + c.normal * c.dist;
  return wanted & (c.dist < little) & ((c.dist < noise) | (dot(n, nearest - x) > little * Scalar<Real>(0.1)));
}

/// The direction out of a static geom, in or by which x is, towards the middle of what touches it: of a box that of a face which the middle
/// is above but for `little`, far above and x not far below. Zero where that is not known.
template <class Shape, class Real>
HD Vec3<Real> way_out(const PlacedGeom<Real>& fixed, Vec3<Real> x, Vec3<Real> middle, const Real& little,
                      const Mask<Real>& wanted) {
  using S = Scalar<Real>;
  const Vec3<Real> none{Real(0), Real(0), Real(0)};
  if (fixed.type == GeomKind::kPlane) return column(fixed.pose.R, 2);
  if (fixed.type == GeomKind::kBox) {
    Vec3<Real> best = none;
    Real most(-1e30f);
    for (int i = 0; i < 6; ++i) {
      const Vec3<Real> axis = column(fixed.pose.R, i / 2), face = i % 2 == 0 ? axis : -axis;
      const Real half = i / 2 == 0 ? fixed.size.x : i / 2 == 1 ? fixed.size.y : fixed.size.z;
      const Real height = dot(face, middle - fixed.pose.p) - half;
      const Real worth = height + (dot(face, x - fixed.pose.p) - half) * S(8);
      const Mask<Real> take = (height > -little) & (worth > most);
      best = select(take, face, best), most = select(take, worth, most);
    }
    return best;
  }
  Candidate<Real> c;
  collide<Shape>(as_geom(middle), fixed, wanted, {norm(middle - fixed.pose.p) * S(2), {}, {}, Real(0)}, &c);
  return select(c.dist < Real(kFar), -c.normal, none);
}

/// Contacts 0 .. room - 1 of shapes A and B, of which `swept`, one of them, is swept along `way`. It is faces that it has beside the way
/// which are touched: these are as high where it stands so far that its end is below the other's.
template <class T, class S>
HD_CALL void swept_pair(ConvexShape<T, S>& a, ConvexShape<T, S>& b, ConvexShape<T, S>& swept, Vec3<T> way, int room,
                        T reach, const Tipping<T>& tips, const Closing<T>& closing, Candidate<T>* out) {
  Touch<T> t;
  swept.way = way;
  const bool found = touch(a, b, reach, t);
  swept.way = {};
  for (int k = 0; k < room; ++k) out[k] = absent<T>();
  if (!found) return;
  const Vec3<T> along = way * (T(1) / norm(way));
  const T more = dot(along, support(&swept == &a ? b : a, along) - support(swept, along));
  const T round = radius(a) + radius(b);
  swept.pose.p = swept.pose.p + along * max(T(0), more + round + t.size * T(1e-3));
  make_manifold(a, b, t, tips, closing, room, out);
}

/// The candidates of a pair whose static geom is swept along `way`, in the wanted worlds; normals point to the body's geom.
template <class Real>
HD_CALL void collide_swept(const PlacedPair<Real>& x, Vec3<Real> way, const Mask<Real>& wanted,
                           const Reach<Real>& reach, Candidate<Real>* out) {
  const PlacedGeom<Real>&a = x.own_first ? x.own : x.fixed, &b = x.own_first ? x.fixed : x.own;
  const Reach<Real> goes = x.own_first ? reach.reversed() : reach;
  const int count = candidate_count(a.type, b.type);
  const Tipping<Real> tips = goes.tips(b.pose.p);
  for_each_lane<Real>(wanted, [&](int i) {
    ConvexLane<Scalar<Real>> pair = convex_lane(a, b, i, goes.now);
    Candidate<double> found[kMaxCandidates];
    swept_pair(pair.a, pair.b, x.own_first ? pair.b : pair.a, lane_of<double>(way, i), count,
               double(lane(reach.margin, i)), pair.from_origin(lane_of<double>(tips, i)), pair.closing, found);
    for (int k = 0; k < count; ++k) {
      if (found[k].dist < kFar) found[k].pos = found[k].pos + pair.origin;
      if (x.own_first) found[k].normal = -found[k].normal;
      set_lane_of(out[k], i, found[k]);
    }
  });
}

/// What the candidates of one pair are buried in.
template <class L, class Real = typename L::Real>
struct Burial {
  const typename L::Model& m;
  const StationModel& st;
  Vec3<Real> origin;
  Real margin;
  const NearCandidates<L>& near;
  const PlacedPair<Real>& x;
  int fixed, count;  // the pair's static geom, and how many candidates it has
  // Into how many geoms that was swept, in which worlds, out of them the way, and how far along it the pair's geom itself goes.
  int sweeps = 0;
  Mask<Real> in[kMostBuriers] = {};
  Vec3<Real> out_of[kMostBuriers] = {};
  Real level[kMostBuriers] = {};

  /// Calls visit(geom, worlds where it has a candidate) of the static geoms near the body but that of the pair.
  template <class Visit> HD void each_other(Visit visit) const {
    int at = st.static_begin, last = -1;
    auto touches = mask_of<Real>(false);
    auto tell = [&] {
      if (last >= 0 && last != fixed && any(touches)) visit(static_geom<L>(m, m.geom[last], origin), touches);
    };
    for (int j = 0; j < near.n; ++j) {
      int geom;
      if (near.number[j] < st.probes) {
        geom = m.plane[m.probe[st.probe_begin + near.number[j]].plane].geom;
      } else {
        while (near.number[j] >= m.pair[at].id + m.pair[at].candidates) ++at;
        const auto& pair = m.pair[at];
        geom = m.geom[pair.geom1].link < 0 ? pair.geom1 : pair.geom2;
      }
      if (geom != last) tell(), last = geom, touches = mask_of<Real>(false);
      touches = touches | (near.candidate[j].dist < margin);
    }
    tell();
  }
  /// Where a candidate is on the static geom, were that not swept.
  HD Vec3<Real> witness(const Candidate<Real>& c) const {
    Vec3<Real> at = c.pos - c.normal * (c.dist * Scalar<Real>(0.5));
    for (int k = 0; k < sweeps; ++k) {
      const Real back = max(Real(0), level[k] + little() * Scalar<Real>(2) - dot(out_of[k], at));
      at = select(in[k], at + out_of[k] * back, at);
    }
    return at;
  }
  HD Real little() const { return x.radius * Scalar<Real>(kProbed); }
  /// Of out[0 .. count) those that are as deep as any.
  HD Mask<Real> is_deepest(const Candidate<Real>* out, int k) const {
    return (out[k].dist < margin) & (out[k].dist <= deepest_of(out, count).dist + x.noise());
  }

  /// Where all of the deepest push into static geometry: another sweep is made out of that of the first of them.
  HD Mask<Real> finds(const Candidate<Real>* out, const Mask<Real>& wanted) {
    Vec3<Real>& leads_to = out_of[sweeps];
    Real& until = level[sweeps];
    Mask<Real> left[kMaxCandidates];  // as deep as any, and not seen to be buried
    auto known = mask_of<Real>(false), open = known;
    for (int k = 0; k < count; ++k) left[k] = wanted & is_deepest(out, k);
    each_other([&](const PlacedGeom<Real>& other, const Mask<Real>& touches) {
      for (int k = 0; k < count; ++k) {
        const Mask<Real> look = left[k] & touches;
        if (!any(look)) continue;
        const Vec3<Real>&n = out[k].normal, at = witness(out[k]);
        Mask<Real> meets = is_ahead<typename L::Shape>(other, at, n, little(), x.noise(), look);
        if (!any(meets)) continue;
        const Vec3<Real> leads = way_out<typename L::Shape>(other, at, x.own.pose.p, little(), meets);
        meets = meets & (dot(leads, n) < Real(kOpposed));
        left[k] = left[k] & negate(meets);
        const Mask<Real> first = meets & negate(known);
        leads_to = select(first, leads, leads_to), until = select(first, dot(leads, at), until);
        known = known | meets;
      }
    });
    for (int k = 0; k < count; ++k) open = open | left[k];
    in[sweeps] = known & negate(open);
    return in[sweeps];
  }

  /// Where one of the deepest is on the pair's geom itself, and less deep than `most`; or all are too far.
  HD Mask<Real> stands(const Candidate<Real>* out, const Mask<Real>& wanted, const Real& most) const {
    const Real deepest = deepest_of(out, count).dist;
    auto found = wanted & negate(deepest < margin);
    const Mask<Real> shallow = wanted & (deepest > -most);
    for (int k = 0; k < count; ++k) {
      const Mask<Real> look = shallow & negate(found) & is_deepest(out, k);
      if (any(look))
        found =
            found | is_inside<typename L::Shape>(x.fixed, witness(out[k]) - out[k].normal * little(), x.noise(), look);
    }
    return found;
  }
};

/// Puts `out` in the place of what `near` has of pair `i`, in worlds `is`. Returns where there was no room.
template <class L, class Real = typename L::Real>
HD Mask<Real> put_candidates(const typename L::Model& m, int i, const Candidate<Real>* out, const Mask<Real>& is,
                             const Real& margin, NearCandidates<L>& near) {
  const auto& pair = m.pair[i];
  auto missing = mask_of<Real>(false);
  for (int k = 0; k < pair.candidates; ++k) {
    int to = 0;
    while (to < near.n && near.number[to] < pair.id + k) ++to;
    if (to == near.n || near.number[to] != pair.id + k) {
      const Mask<Real> there = is & (out[k].dist < margin);
      if (!any(there)) continue;
      if (near.n == NearCandidates<L>::kMost) {
        missing = missing | there;
        continue;
      }
      for (int j = near.n++; j > to; --j)
        near.candidate[j] = near.candidate[j - 1], near.surface[j] = near.surface[j - 1],
        near.number[j] = near.number[j - 1];
      near.candidate[to] = absent<Real>(), near.surface[to] = surface_from<typename L::Number>(pair);
      near.number[to] = pair.id + k;
    }
    near.candidate[to] = select<Real>(is, out[k], near.candidate[to]);
  }
  return missing;
}

/// Collides pair `i` again where its candidates push into static geometry. Returns where there was no room for what it found.
template <class L, class Real = typename L::Real>
HD_CALL Mask<Real> unbury_pair(const typename L::Model& m, const StationModel& st, int i, const Pose<Real>& link,
                               Vec3<Real> origin, const Reach<Real>& reach, const Turning<Real>& body,
                               const Mask<Real>& opposed, NearCandidates<L>& near) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(link, reach, body, near);
  const auto& pair = m.pair[i];
  const PlacedPair<Real> x = placed_pair<L>(m, i, link, origin);
  const int count = candidate_count(min(x.own.type, x.fixed.type), max(x.own.type, x.fixed.type));
  Burial<L> burial{m, st, origin, reach.margin, near, x, x.own_first ? pair.geom2 : pair.geom1, count};
  Candidate<Real> out[kMaxCandidates + 1];
  for (int k = 0; k < pair.candidates; ++k) out[k] = absent<Real>();
  const Vec3<Real> ahead = collide_placed<typename L::Shape>(x, opposed, reach, out);
  // In a groove between two static geoms a sweep crosses what is free, and finds a body in it far too deep.
  const Real travel = norm(velocity_at(reach.way, x.own.pose.p)) + norm(reach.way.w) * x.radius,
             most = max(-deepest_of(out, count).dist, Real(0)) * Scalar<Real>(kDeeper) + travel +
                    x.radius * Scalar<Real>(kAnyDepth);
  Vec3<Real> way{Real(0), Real(0), Real(0)};
  auto swept = mask_of<Real>(false);
  for (Mask<Real> look = opposed; burial.sweeps < kMostBuriers; ++burial.sweeps) {
    look = burial.finds(out, look);
    if (!any(look)) break;
    way = select(look, way - burial.out_of[burial.sweeps], way), swept = swept | look;
    collide_swept(x, way * (x.radius * Scalar<Real>(kSwept)), look, reach, out);
  }
  if (burial.sweeps == 0) return swept;
  swept = burial.stands(out, swept, min(most, x.radius));
  if (!any(swept)) return swept;
  for (int k = 0; k < pair.candidates; ++k) out[k] = select<Real>(swept, out[k], absent<Real>());
  turn_shaped<L>(m, st, i, x, origin, reach, body, out);
  add_middle<L>(m, st, i, x, origin, reach, body, ahead, out);
  drop_ghosts(x, swept, reach, pair.candidates, pair.middle, out);
  return put_candidates<L>(m, i, out, swept, reach.margin, near);
}

/// Candidates first .. end - 1 of `near`: where one has a normal that opposes that of another pair's.
template <class L, class Real = typename L::Real>
HD Mask<Real> opposed_ones(const NearCandidates<L>& near, int first, int end, const Real& margin) {
  auto found = mask_of<Real>(false);
  for (int k = first; k < end; ++k)
    for (int j = 0; j < near.n; ++j) {
      if (j >= first && j < end) continue;
      const Candidate<Real>&a = near.candidate[k], &b = near.candidate[j];
      found = found | ((a.dist < margin) & (b.dist < margin) & (dot(a.normal, b.normal) < Real(kOpposed)));
    }
  return found;
}

/// Gives pairs whose candidates push into static geometry their right ones. Returns where there was no room for them.
template <class L, class Real = typename L::Real>
HD Mask<Real> unbury(const typename L::Model& m, const StationModel& st, const Pose<Real>& link, Vec3<Real> origin,
                     const Reach<Real>& reach, const Turning<Real>& body, NearCandidates<L>& near) {
  auto missing = mask_of<Real>(false), known = missing, wide = missing;
  Vec3<Real> first_normal{Real(0), Real(0), Real(1)};
  for (int k = 0; k < near.n; ++k) {
    const Candidate<Real>& c = near.candidate[k];
    const Mask<Real> there = c.dist < reach.margin;
    first_normal = select(there & negate(known), c.normal, first_normal), known = known | there;
    wide = wide | (there & (dot(c.normal, first_normal) < Real(kBeside)));
  }
  if (!any(wide)) return missing;
  Mask<Real> opposed[NearCandidates<L>::kMost];  // of pairs that are near, before any has others
  int pairs[NearCandidates<L>::kMost], some = 0, first = 0;
  for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) {
    const auto& pair = m.pair[i];
    while (first < near.n && near.number[first] < pair.id) ++first;
    int end = first;
    while (end < near.n && near.number[end] < pair.id + pair.candidates) ++end;
    if (end == first || end - first == near.n || m.geom[pair.geom1].type == GeomKind::kPlane) continue;
    opposed[some] = opposed_ones<L>(near, first, end, reach.margin);
    if (any(opposed[some])) pairs[some++] = i;
  }
  for (int k = 0; k < some; ++k)
    missing = missing | unbury_pair<L>(m, st, pairs[k], link, origin, reach, body, opposed[k], near);
  return missing;
}

}  // namespace stiction
