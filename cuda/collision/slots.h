// Where collision leaves what it finds: slots that exist in every step, under a mask, so there are no lists and nothing
// diverges.
//
//   world slots   up to kStationSlots per link, against static geometry, owned by the link
//   pair slots    a pool per world, filled in the fixed order of geom pairs, for contacts between moving links
#pragma once
#include "kinematics/fk.h"
#include "model/gather.h"

namespace stiction {

template <class Real>
struct ContactPoint {
  Vec3<Real> p;      // relative to the origin of the link's tree                         m
  Mat3<Real> frame;  // rows t1, t2, n; n from body 1 (or the static one) to body 2
  Real gap;          // phi                                                                m
  Real mu, stiffness, dissipation;
  Real torsion, rolling;  // 0: none                                                          m
  Vec3<Real> bend;        // of what rolls, world axes: see rolling_rim.h                 m/s
  Real bounce;            // bias of the normal velocity after a hit, at most 0               m/s
  Real id;                // which candidate of its station (or of all pairs) it is; -1: none
  Mask<Real> active;
};

/// a in worlds `is`, b in the others.
template <class Real>
HD ContactPoint<Real> select_point(const Mask<Real>& is, const ContactPoint<Real>& a, const ContactPoint<Real>& b) {
  ContactPoint<Real> x;
  x.p = select(is, a.p, b.p), x.bend = select(is, a.bend, b.bend);
  for (int i = 0; i < 3; ++i) x.frame.row[i] = select(is, a.frame.row[i], b.frame.row[i]);
  x.gap = select(is, a.gap, b.gap), x.mu = select(is, a.mu, b.mu), x.stiffness = select(is, a.stiffness, b.stiffness);
  x.dissipation = select(is, a.dissipation, b.dissipation), x.torsion = select(is, a.torsion, b.torsion);
  x.rolling = select(is, a.rolling, b.rolling), x.bounce = select(is, a.bounce, b.bounce);
  x.id = select(is, a.id, b.id), x.active = (is & a.active) | (negate(is) & b.active);
  return x;
}

template <class L>
struct PairContact {
  using Real = typename L::Real;
  ContactPoint<Real> point;  // p: on link 2
  Vec3<Real> p1;             // on link 1, relative to the origin of its tree
  // For who reads contacts: relative to the trunk's origin; and from where geom 1 touches the other to where geom 2 does, now, across
  // the normal.   m
  Vec3<Real> at, ahead;
  Index<Real> link1, link2;  // flat
  Index<Real> geom1, geom2;
};

/// Pair slots that some world uses; none where the shape has no pair slots.
template <class Shape, bool = (Shape::kPairs > 0)>
struct PairCount {
  int pairs;
};
template <class Shape>
struct PairCount<Shape, false> {
  static constexpr int pairs = 0;
};

/// A bit per world slot, so that a pass comes to those that are set alone.
template <int kSlots>
class SlotBits {
 public:
  HD void set(int slot, bool is) {
    const uint32_t bit = uint32_t{1} << (slot % kBits);
    uint32_t& word = word_[slot / kBits];
    word = is ? word | bit : word & ~bit;
  }
  HD void clear() {
    for (uint32_t& word : word_) word = 0;
  }
  /// visit(slot) for those from `begin` up to `end`, which it may clear.
  template <class Visit>
  HD void each(int begin, int end, Visit visit) const {
    for (int w = kWords == 1 ? 0 : begin / kBits; w < kWords && w * kBits < end; ++w) {
      const int from = begin - w * kBits, to = end - w * kBits;
      uint32_t bits = word_[w];
      if (from > 0) bits = bits >> from << from;
      if (to < kBits) bits &= (uint32_t{1} << to) - 1;
      for (; bits != 0; bits &= bits - 1) visit(w * kBits + lowest_bit(bits));
    }
  }

 private:
  static constexpr int kBits = 32, kWords = (kSlots + kBits - 1) / kBits;
  uint32_t word_[kWords];
};

template <class L>
struct Contacts : PairCount<typename L::Shape> {
  using Real = typename L::Real;
  using Shape = typename L::Shape;
  PerSlot<L, ContactPoint<Real>> point;
  SlotBits<L::kSlots> live;  // some world of the pack has the slot active
  // Of limbs that are a body on its own: by which part it rolls with bends, rolling_rim.h; what it has turned by when contacts push it,
  // mid_turn.h (rad).
  Real rolls[L::kLimbs];
  Vec3<Real> half_turn[L::kLimbs];
  PairContact<L> pair[at_least_one(Shape::kPairs)];
  Mask<Real> overflow;
  Mask<Real> held;  // some overlap of this lane's limbs, or between links, is one that loops hold: contact/held.h
  // How far what closes in the free motion would go in, twice that where something bounces: by as much contacts may turn the
  // ways of bodies in the world elsewhere. Of all of the world's contacts, the greatest.   m
  Real turned;
  Mask<Real> passed;  // worlds in which this lane dropped something that passes by
  Real thrown;        // how far limits of joints may throw links aside, at most; of each it is in its margin         m
};

/// visit(c) for every live world slot of one station.
template <class L, class Visit>
HD void each_station_slot(const LimbView<L>& limb, Place at, int s, const Contacts<L>& contacts, Visit visit) {
  contacts.live.each(at.slot + limb.slot_begin(s), at.slot + limb.slot_end(s), visit);
}
/// visit(limb, at, station, c) for those of this lane.
template <class L, class Visit>
HD void each_slot(const typename L::Group& g, const typename L::Model& m, const Contacts<L>& contacts, Visit visit) {
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
  UNROLL for (int s = 0; s <= limb.links(); ++s)
      each_station_slot<L>(limb, at, s, contacts, [&](int c) { visit(limb, at, s, c); });
  });
}

/// The geoms of a world slot's contact by its ContactPoint::id: the static one, and that of the station's link.
struct SlotGeoms { int fixed, own; };
template <class Model>
HD SlotGeoms slot_geoms(const Model& m, const StationModel& st, int id) {
  if (id < st.probes) {
    const auto& probe = m.probe[st.probe_begin + id];
    return {probe.geom1, probe.geom2};
  }
  int i = st.static_begin;
  while (i + 1 < st.static_begin + st.statics && m.pair[i + 1].id <= id) ++i;
  const auto& pair = m.pair[i];
  return m.geom[pair.geom2].link < 0 ? SlotGeoms{pair.geom2, pair.geom1} : SlotGeoms{pair.geom1, pair.geom2};
}

}  // namespace stiction
