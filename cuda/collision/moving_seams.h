// What slides over flush geoms of which some can move must not feel the joints between them: seams.h of contacts instead of candidates.
//
// A contact that touches is a plane. Where it has all of one geom above it and all of another below, these two can touch through it
// only: a contact of theirs with another normal is dropped, unless the geom below rises against what the plane's contact stands on.
// Asked of contacts of which one at least is between moving links; those of static geometry alone are seams.h's.
// Tests: tests/python/test_moving_seams.py.
#pragma once
#include "collision/pair_slots.h"

namespace stiction {

/// By how much flush geoms may differ in height: a part of the radius of what is on them; what contacts sink by.      m
inline constexpr double kSeamPart = 1e-3, kSeamSunk = 3e-6;
/// A contact with no larger gap touches.   m
inline constexpr float kSeamTouches = 1e-4f;
/// The cosine of two normals that are one: what two things press a jaw with that are turned by a little is not hidden.
inline constexpr float kSeamSame = 0.99999f;

/// A contact of a geom in one world: its gap, the middle of that, and its normal to the geom.   m
struct SeamContact {
  double gap;
  Vec3<double> at, normal;
};

namespace moving_seams {

/// Whether `plane` of a geom of that radius hides its contact c with the one below, which rises by that much against what the plane's is
/// with.
template <class S>
HD bool hides(const SeamContact& plane, const SeamContact& c, ConvexShape<double, S> own, double own_radius,
              ConvexShape<double, S> below, double rises) {
  const double lip = own_radius * kSeamPart + kSeamSunk;
  if (!(plane.gap < kSeamTouches) || c.gap < plane.gap - lip || rises > lip) return false;
  const Vec3<double>& up = plane.normal;
  if (dot(c.normal, up) >= kSeamSame) return false;
  const double middle = dot(up, plane.at);
  return dot(up, support(below, up)) + radius(below) <= middle - plane.gap / 2 + lip &&
         dot(up, support(own, -up)) - radius(own) >= middle - abs(plane.gap) / 2 - lip;
}

/// Worlds in which one of two contacts may hide the other: both surfaces of what is hidden are at the plane.
template <class Real>
HD Mask<Real> may_hide(const Vec3<Real>& na, const Vec3<Real>& nb, const Vec3<Real>& d, const Real& gap_a,
                       const Real& gap_b) {
  const Real same = abs(dot(na, nb)), ga = abs(gap_a), gb = abs(gap_b);
  return (min(gap_a, gap_b) < Real(kSeamTouches)) & (same < Real(kSeamSame)) &
         (min(abs(dot(na, d)), abs(dot(nb, d))) < max(ga, gb) * same + min(ga, gb) + Real(2 * kSeamTouches));
}

/// In world w, as end 1 or 2 has it.
template <class L>
HD SeamContact seen_by(const PairContact<L>& c, int end, int w) {
  return {lane(c.point.gap, w), lane_of<double>(c.at, w),
          lane_of<double>(c.point.frame.row[2], w) * (end == 2 ? 1 : -1)};
}
template <class L>
HD int geom_of(const PairContact<L>& c, int end, int w) {
  return end == 2 ? lane(c.geom2, w) : lane(c.geom1, w);
}
template <class Real>
HD void drop(ContactPoint<Real>& c, int w) {
  set_lane(c.active, w, 0), set_lane(c.gap, w, Scalar<Real>(kFar)), set_lane(c.id, w, Scalar<Real>(-1));
}

/// Of two contacts between moving links. pose_of(link), way_of(link): about the common point.
template <class L, class PoseOf, class WayOf, class Real = typename L::Real>
HD void drop_pairs_hidden_by_pairs(const typename L::Model& m, PoseOf pose_of, WayOf way_of, Contacts<L>& contacts) {
  auto hides_pair = [&](const PairContact<L>& plane, const PairContact<L>& c, int w) {
    for (int end = 1; end <= 2; ++end)
      for (int at = 1; at <= 2; ++at) {
        const int own = geom_of(plane, end, w);
        if (geom_of(c, at, w) != own) continue;
        const int below = geom_of(c, 3 - at, w), on = geom_of(plane, 3 - end, w);
        auto placed = [&](int geom) {
          return convex_shape(carried_geom<L>(m, m.geom[geom], pose_of(m.geom[geom].link)), w);
        };
        const SeamContact up = seen_by(plane, end, w), hidden = seen_by(c, at, w);
        auto goes = [&](int geom) { return velocity_at(lane_of<double>(way_of(m.geom[geom].link), w), hidden.at); };
        if (hides(up, hidden, placed(own), lane(Real(m.geom[own].radius), w), placed(below),
                  dot(up.normal, goes(below) - goes(on))))
          return true;
      }
    return false;
  };
  for (int i = 1; i < contacts.pairs; ++i)
    for (int j = 0; j < i; ++j) {
      PairContact<L>&a = contacts.pair[i], &b = contacts.pair[j];
      const auto one = (a.geom1 == b.geom1) | (a.geom2 == b.geom2) | (a.geom1 == b.geom2) | (a.geom2 == b.geom1),
                 both = (a.geom1 == b.geom1) & (a.geom2 == b.geom2);
      const Mask<Real> ask =
          a.point.active & b.point.active & one & negate(both) &
          may_hide<Real>(a.point.frame.row[2], b.point.frame.row[2], b.at - a.at, a.point.gap, b.point.gap);
      if (!any(ask)) continue;
      for_each_lane<Real>(ask, [&](int w) {
        if (!lane(a.point.active, w) || !lane(b.point.active, w)) return;
        if (hides_pair(a, b, w)) drop(b.point, w);
        else if (hides_pair(b, a, w)) drop(a.point, w);
      });
    }
}

/// Of one between moving links and one with static geometry, of the same geom.
template <class L, class PoseOf, class WayOf, class Real = typename L::Real>
HD void drop_hidden_beside_static(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                                  PoseOf pose_of, WayOf way_of, Contacts<L>& contacts) {
  using S = Scalar<Real>;
  const Vec3<Real> zero{Real(0), Real(0), Real(0)};
  for (int i = 0; i < contacts.pairs; ++i) {
    PairContact<L>& pair = contacts.pair[i];
    // body(station, slot, its middle, worlds) of this lane's slots that may hide the pair's contact, or be hidden by it.
    auto each_near = [&](auto body) {
      each_limb<L>(g, m, [&](const auto& limb, Place at) {
        const Vec3<Real> shift = limb.on_trunk() ? zero : kin.limb_origin[at.limb] - kin.trunk_origin;
        for (int s = 0; s <= limb.links(); ++s) {
          const int flat = s == 0 ? limb.attach() : L::kLimbsFrom + limb.t.first_link + s - 1;
          const Mask<Real> link =
              pair.point.active & ((pair.link1 == index_of<Real>(flat)) | (pair.link2 == index_of<Real>(flat)));
          if (!any(link)) continue;
          each_station_slot<L>(limb, at, s, contacts, [&](int c) {
            ContactPoint<Real>& x = contacts.point.slot[c];
            if (!any(x.active)) return;
            const Vec3<Real>& n = x.frame.row[2];
            const Vec3<Real> middle = x.p + shift - n * (max(x.gap, Real(0)) * S(0.5));
            const Mask<Real> ask =
                link & x.active & may_hide<Real>(pair.point.frame.row[2], n, middle - pair.at, pair.point.gap, x.gap);
            if (any(ask)) body(limb.station(s), c, middle, ask);
          });
        }
      });
    };
    bool near = false;
    each_near([&](const StationModel&, int, const Vec3<Real>&, const Mask<Real>&) { near = true; });
    if (!g.any(near)) continue;
    const Pose<Real> pose1 = pose_of(pair.link1), pose2 = pose_of(pair.link2);
    const Motion<Real> way1 = way_of(pair.link1), way2 = way_of(pair.link2);
    auto hidden = mask_of<Real>(false);
    each_near([&](const StationModel& st, int c, const Vec3<Real>& middle, const Mask<Real>& ask) {
      ContactPoint<Real>& x = contacts.point.slot[c];
      for_each_lane<Real>(ask, [&](int w) {
        if (!lane(x.active, w) || lane(hidden, w)) return;
        const SlotGeoms geoms = slot_geoms(m, st, static_cast<int>(lane(x.id, w)));
        const int end = geoms.own == lane(pair.geom2, w) ? 2 : 1, own = geom_of(pair, end, w);
        if (geoms.own != own || m.geom[geoms.fixed].type == GeomKind::kPlane) return;
        const auto &mine = end == 2 ? pose2 : pose1, &others = end == 2 ? pose1 : pose2;
        const int other = geom_of(pair, 3 - end, w);
        auto shape = [&](const Pose<Real>& link, int geom) {
          return convex_shape(carried_geom<L>(m, m.geom[geom], link), w);
        };
        const ConvexShape<double, S> body = shape(mine, own);
        const double radius = lane(Real(m.geom[own].radius), w);
        const SeamContact slot{lane(x.gap, w), lane_of<double>(middle, w), lane_of<double>(x.frame.row[2], w)},
            of_pair = seen_by(pair, end, w);
        auto rises = [&](const Vec3<double>& up, const Vec3<double>& at) {  // of the other link
          return dot(up, velocity_at(lane_of<double>(end == 2 ? way1 : way2, w), at));
        };
        if (hides(slot, of_pair, body, radius, shape(others, other), rises(slot.normal, of_pair.at))) {
          set_lane(hidden, w, kWidth<Real> == 1 ? 1 : -1);
        } else if (hides(of_pair, slot, body, radius,
                         convex_shape(static_geom<L>(m, m.geom[geoms.fixed], kin.trunk_origin), w),
                         -rises(of_pair.normal, slot.at))) {
          drop(x, w);
          contacts.live.set(c, any(x.active));
        }
      });
    });
    hidden = g.either(hidden);
    for_each_lane<Real>(hidden, [&](int w) { drop(pair.point, w); });
  }
}

}  // namespace moving_seams

/// Drops contacts that others hide. bound: of the last that found them.
template <class L, class Real = typename L::Real>
HD_ONCE void drop_hidden_contacts(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                                  const StepReach<L>& step, const PerLink<L, LinkBound<Real>>& bound,
                                  Contacts<L>& contacts) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(kin, step, step.free, bound, contacts);
  if constexpr (L::Shape::kPairs > 0) {
    if (contacts.pairs == 0) return;
    auto way = [&](const LinkBound<Real>& of, const Motion<Real>& v) {
      return Motion<Real>{v.w, velocity_at(v, -of.shift)} * Real(step.h);
    };
    auto pose_of = [&](const Index<Real>& link) { return gather<L>(g, m, bound, link).pose; };
    auto way_of = [&](const Index<Real>& link) {
      return way(gather<L>(g, m, bound, link), gather<L>(g, m, step.free, link));
    };
    auto pose_at = [&](int link) { return gather_at<L>(g, m, bound, link).pose; };
    auto way_at = [&](int link) { return way(gather_at<L>(g, m, bound, link), gather_at<L>(g, m, step.free, link)); };
    moving_seams::drop_pairs_hidden_by_pairs<L>(m, pose_at, way_at, contacts);
    moving_seams::drop_hidden_beside_static<L>(g, m, kin, pose_of, way_of, contacts);
  }
}

}  // namespace stiction
