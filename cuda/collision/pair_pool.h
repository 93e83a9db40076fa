// The pool of a world's pair slots while it is filled, in the order of geom pairs: contacts that hardly differ are one; when it is full, the one
// that closes last gives way, and `overflow` tells where that one could have closed in the step.
#pragma once
#include "collision/world_slots.h"

namespace stiction {

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

/// A candidate of two geoms on moving links, as a PairContact has it.
template <class Real>
struct PairCandidate {
  Vec3<Real> p, p1, at, ahead, normal;
  Real gap, end_gap, bounce;  // end_gap: see PairPool
};

/// The same for all of a pair's candidates.
template <class Real>
struct MovingGeoms {
  int link1, link2, geom1, geom2;
  Surface<Real> surface;
  Scalar<Real> merge;  // twins are nearer to each other  m
};

/// The slot in use whose contact hardly differs from candidate c (merge_slots); -1: none.
template <class L, class Real = typename L::Real>
HD int twin_of(const PairCandidate<Real>& c, const MovingGeoms<Real>& of, int w, const PairPool<L>& pool,
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
    const Vec3<S> d = one(c.p) - one(x.point.p);
    const S merge = of.merge;
    if (dot(d, d) < merge * merge && dot(one(c.normal), one(x.point.frame.row[2])) > S(0.999)) return s;
  }
  return -1;
}

/// Puts candidate c of world `w`, feature `id`, into a slot.
template <class L, class Real = typename L::Real>
HD_CALL void insert_pair(const PairCandidate<Real>& c, int id, const MovingGeoms<Real>& of, int w, PairPool<L>& pool,
                         Contacts<L>& contacts) {
  lies_in_lane<typename L::Shape>(c, of, pool, contacts);
  using S = Scalar<Real>;
  const S gap = lane(c.gap, w), end_gap = lane(c.end_gap, w);
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
  put(x.point.p, c.p), put(x.p1, c.p1), put(x.at, c.at), put(x.ahead, c.ahead);
  put(x.point.frame.row[2], c.normal);
  copy(pool.end_gap[slot], c.end_gap), copy(x.point.gap, c.gap), copy(x.point.bounce, c.bounce);
  set_lane(x.point.id, w, static_cast<S>(id));
  copy(x.point.mu, of.surface.mu), copy(x.point.stiffness, of.surface.stiffness);
  copy(x.point.dissipation, of.surface.dissipation);
  copy(x.point.torsion, of.surface.torsion), copy(x.point.rolling, of.surface.rolling);
  set_lane(x.point.active, w, kWidth<Real> == 1 ? 1 : -1);
  set_lane(x.link1, w, of.link1), set_lane(x.link2, w, of.link2);
  set_lane(x.geom1, w, of.geom1), set_lane(x.geom2, w, of.geom2);
}

}  // namespace stiction
