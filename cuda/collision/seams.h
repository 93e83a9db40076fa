// What slides over flush static geoms must not feel the joints between them.
//
// The next tile is a candidate while it is still ahead, and the shortest way to it points sideways into the joint: as a
// contact it would brake or lift what passes. But where another contact of the body has a plane that has all of the body's
// geom above it and all of the static geom below, these two can touch through that plane only: a candidate of theirs with
// any other normal is dropped. Walls, steps and ramps rise above the plane and stay.
#pragma once
#include "collision/separation.h"

namespace stiction {

/// How far a hull may be below the plane of a contact of its own, which may have been turned to another gap, in its radii.
inline constexpr float kTurnedGap = 1e-2f;

/// A geom of the body and a static one.
template <class Real>
struct PlacedPair {
  PlacedGeom<Real> own, fixed;
  bool own_first;  // own is geom 1, and normals of what collide() finds must be turned to point to it
  Real radius;     // of own, about its origin     m

  HD Real noise() const { return radius * Scalar<Real>(3e-5); }  // lengths that count as none    m
};

/// Drops those of the candidates first .. end - 1, which are of `pair`, that a plane of another of the n candidates forbids; normals
/// point to the body. Where own is a hull and the plane's contact is of that hull, too, that may have been turned to another gap
/// than it has now, and the hull be a little below it: is_own(i) tells of which candidates.
template <class Real, class IsOwn>
HD void drop_hidden(const PlacedPair<Real>& pair, int first, int end, int n, const Real& margin, IsOwn is_own,
                    Candidate<Real>* candidate) {
  for (int i = 0; i < n; ++i) {
    if (i >= first && i < end) continue;
    const Candidate<Real> plane = candidate[i];
    const Mask<Real> active = plane.dist < margin;
    if (!any(active)) continue;
    const bool own = is_own(i);
    auto sideways = [&](const Candidate<Real>& c) {
      const Mask<Real> deeper = own ? mask_of<Real>(false) : c.dist < plane.dist;
      return active & (c.dist < margin) & negate(deeper) & (dot(c.normal, plane.normal) < Real(0.9999995f));
    };
    auto wanted = mask_of<Real>(false);
    for (int k = first; k < end; ++k) wanted = wanted | sideways(candidate[k]);
    if (!any(wanted)) continue;
    const Vec3<Real> up = plane.normal;
    const Real middle = dot(up, plane.pos), half = plane.dist * Real(0.5f);
    const Real highest = dot(up, pair.fixed.pose.p) + extent_along(pair.fixed, up);
    Mask<Real> parted = highest <= middle - half + pair.noise();
    if (!any(parted)) continue;
    const Real lowest = dot(up, pair.own.pose.p) - extent_along(pair.own, -up);
    parted = parted & (lowest >= middle - abs(half) - (own ? pair.radius * Real(kTurnedGap) : pair.noise()));
    for (int k = first; k < end; ++k) {
      const Mask<Real> drop = parted & sideways(candidate[k]);
      candidate[k] = select<Real>(drop, absent<Real>(), candidate[k]);
    }
  }
}

}  // namespace stiction
