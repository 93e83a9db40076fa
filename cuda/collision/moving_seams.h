// What slides over flush geoms that can move must not feel the joints between them: seams.h of pairs of moving links.
//
// A contact that touches is a plane. Where it has all of one geom above it and all of another below, these two can touch through it
// only: a contact of theirs with another normal is dropped, unless the geom below rises against what the plane's contact stands on.
// Tests: tests/python/test_moving_seams.py.
#pragma once
#include "collision/slots.h"
#include "collision/static_pairs.h"

namespace stiction {

/// By how much flush geoms may differ in height: a part of the radius of what is on them; what contacts sink by.      m
inline constexpr double kSeamPart = 1e-4, kSeamSunk = 3e-6;
/// A contact with no larger gap touches.   m
inline constexpr float kSeamTouches = 1e-4f;
/// The cosine of two normals that are one: what two things press a jaw with that are turned by a little is not hidden.
inline constexpr float kSeamSame = 0.99999f;

namespace moving_seams {

/// The end of a contact that is of geom `own` in world w, 1 or 2; 0: none.
template <class L>
HD int end_of(const PairContact<L>& c, int own, int w) {
  return lane(c.geom2, w) == own ? 2 : lane(c.geom1, w) == own ? 1 : 0;
}
template <class L>
HD int geom_at(const PairContact<L>& c, int end, int w) {
  return end == 2 ? lane(c.geom2, w) : lane(c.geom1, w);
}
/// Towards that end.
template <class L>
HD Vec3<double> normal_to(const PairContact<L>& c, int end, int w) {
  return lane_of<double>(c.point.frame.row[2], w) * (end == 2 ? 1 : -1);
}

/// Whether contact `plane` hides `c` in world w. placed(geom), way(geom, x): a geom of a moving link as a ConvexShape, and how far the
/// free motion takes a point x of its link.
template <class L, class Placed, class Way>
HD bool hides(const typename L::Model& m, const PairContact<L>& plane, const PairContact<L>& c, int w, Placed placed,
              Way way) {
  const double gap = lane(plane.point.gap, w);
  if (!(gap < kSeamTouches)) return false;
  for (int end = 1; end <= 2; ++end) {
    const int own = geom_at(plane, end, w), at_c = end_of(c, own, w);
    if (at_c == 0) continue;
    const int below = geom_at(c, 3 - at_c, w), support = geom_at(plane, 3 - end, w);
    const double lip = lane(typename L::Real(m.geom[own].radius), w) * kSeamPart + kSeamSunk;
    const Vec3<double> up = normal_to(plane, end, w), at = lane_of<double>(plane.at, w);
    if (lane(c.point.gap, w) < gap - lip || dot(normal_to(c, at_c, w), up) >= kSeamSame) continue;
    const double middle = dot(up, at);
    auto upper = placed(own), lower = placed(below);
    if (dot(up, stiction::support(lower, up)) + radius(lower) > middle - gap / 2 + lip) continue;
    if (dot(up, stiction::support(upper, -up)) - radius(upper) < middle - abs(gap) / 2 - lip) continue;
    const Vec3<double> x = lane_of<double>(c.at, w);
    if (dot(up, way(below, x) - way(support, x)) <= lip) return true;
  }
  return false;
}

}  // namespace moving_seams

/// Drops contacts of moving links that others hide. bound_of(link), way_of(link): their poses about the common point, and twists of the free
/// motion there, times the step.
template <class L, class BoundOf, class WayOf, class Real = typename L::Real>
HD void drop_hidden_pairs(const typename L::Model& m, const Mask<Real>& looks, BoundOf bound_of, WayOf way_of,
                          Contacts<L>& contacts) {
  using S = Scalar<Real>;
  auto look_at = [&](PairContact<L>& a, PairContact<L>& b, int w) {
    auto placed = [&](int geom) {
      return convex_shape(carried_geom<L>(m, m.geom[geom], bound_of(m.geom[geom].link).pose), w);
    };
    auto way = [&](int geom, Vec3<double> x) { return velocity_at(lane_of<double>(way_of(m.geom[geom].link), w), x); };
    PairContact<L>* hidden = moving_seams::hides(m, a, b, w, placed, way)   ? &b
                             : moving_seams::hides(m, b, a, w, placed, way) ? &a
                                                                            : nullptr;
    if (hidden == nullptr) return;
    set_lane(hidden->point.active, w, 0);
    set_lane(hidden->point.gap, w, S(kFar)), set_lane(hidden->point.id, w, S(-1));
  };
  for (int i = 1; i < contacts.pairs; ++i)
    for (int j = 0; j < i; ++j) {
      PairContact<L>&a = contacts.pair[i], &b = contacts.pair[j];
      const auto one = (a.geom1 == b.geom1) | (a.geom2 == b.geom2) | (a.geom1 == b.geom2) | (a.geom2 == b.geom1),
                 both = (a.geom1 == b.geom1) & (a.geom2 == b.geom2);
      Mask<Real> ask = looks & a.point.active & b.point.active & one & negate(both) &
                       (min(a.point.gap, b.point.gap) < Real(kSeamTouches));
      if (!any(ask)) continue;
      const Vec3<Real>&na = a.point.frame.row[2], &nb = b.point.frame.row[2], d = b.at - a.at;
      const Real same = abs(dot(na, nb)), ga = abs(a.point.gap), gb = abs(b.point.gap);
      // Both surfaces of what is hidden are at the plane.
      ask = ask & (same < Real(kSeamSame)) &
            (min(abs(dot(na, d)), abs(dot(nb, d))) < max(ga, gb) * same + min(ga, gb) + Real(2 * kSeamTouches));
      if (any(ask))
        for_each_lane<Real>(ask, [&](int w) {
          if (lane(a.point.active, w) && lane(b.point.active, w)) look_at(a, b, w);
        });
    }
}

}  // namespace stiction
