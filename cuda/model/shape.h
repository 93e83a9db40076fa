// How large a world is, and who knows the trip counts of its loops.
//
//   Capacity     upper bounds; the counts stand in the model's tables       any robot, one compilation
//   TileCapacity the same with bounds that suit the memory of a GPU's lane
//   FixedShape   the counts are template arguments                          loops unroll, indices become constants
//
// Every function is written once for both. A robot smaller than its FixedShape is padded with ghosts: links with neither
// mass nor axis, contacts that never touch.
#pragma once
#include "core/platform.h"

namespace stiction {

/// An array length of at least 1.
HD constexpr int at_least_one(int n) { return n > 0 ? n : 1; }

/// The runtime shape. One limb may be a tree; all counts are per world (a lane of a tile holds at most as much).
struct Capacity {
  static constexpr bool kFixed = false;
  static constexpr int kTrunkLinks = 13;  // the base, and hinges or slides below it
  static constexpr int kTrunkDofs = 18;   // 6 of a floating base + 12
  static constexpr int kLimbs = 40;
  static constexpr int kLimbLinks = 28;    // of one limb
  static constexpr int kLinks = 240;       // of all limbs
  static constexpr int kEntries = 1600;    // of all limbs' blocks of a tree matrix
  static constexpr int kSlots = 320;       // world slots
  static constexpr int kStationSlots = 8;  // world slots of one body, at most
  static constexpr int kPairs = 256;       // pair slots
  static constexpr int kTies = 48;         // rows over several dofs: joint equalities, tendons
  static constexpr int kTieTerms = 8;      // dofs of one of them
  static constexpr int kBonds = 32;        // three rows between two links each: a connect is one, a weld two
  static constexpr int kActuators = 128;
  static constexpr int kDofs = kTrunkDofs + kLinks;
  // What takes part at all; where false, its code and its registers are gone.
  static constexpr bool kAnyJoint =
      true;  // ball joints, joints of several links, several actuators of one, springs of a base
  static constexpr bool kLimits = true, kFriction = true;  // of joints
  static constexpr bool kLoads = true;                     // qfrc_applied, xfrc_applied, weight compensation
  static constexpr bool kCompliance = true;                // contact stiffness

  /// How much of what belongs to limbs one of so many lanes may have to hold.
  static constexpr int of_lane(int all, int) { return all; }
  // What stands in the model; a FixedShape knows it.
  HD static int trunk_links(int in_model) { return in_model; }
  HD static int limbs(int in_model) { return in_model; }
  HD static bool free_base(int in_model) { return in_model != 0; }
  HD static bool on_trunk(int attach) { return attach >= 0; }
  /// Leading dofs of the trunk that may move a limb, of `own` that do.
  HD static int trunk_dofs(int own) { return own; }
  HD static bool moved_by(int, int) { return true; }
  template <class Limb> HD static int links(const Limb& t) { return t.links; }
  template <class Limb> HD static int first_link(const Limb& t, int) { return t.first_link; }
  template <class Limb> HD static int first_slot(const Limb& t, int) { return t.first_slot; }
  template <class Limb> HD static int slots(const Limb& t) { return t.slots; }
  template <class Link> HD static int parent(const Link& link, int) { return link.parent; }
  template <class Link> HD static int actuators(const Link& link) { return link.actuators; }
  template <class Station> HD static int slot_begin(const Station& s, int) { return s.slot_begin; }
  template <class Station> HD static int slot_end(const Station& s, int) { return s.slot_begin + s.slots; }
};

/// Of worlds on a GPU, where every lane has arrays of its own.
struct TileCapacity : Capacity {
  static constexpr int kLimbs = 24, kLimbLinks = 26, kLinks = 96, kEntries = 640, kSlots = 160, kPairs = 96, kTies = 24,
                       kBonds = 16, kActuators = 96, kDofs = kTrunkDofs + kLinks;
};

/// `Slots...`: world slots on the stations of a limb. Station 0 is the limb's share of the trunk link it hangs from; station
/// k + 1 is link k. Limbs are chains of hinges and slides, at most one actuator a dof; probes against planes only, one slot
/// each; no ties. What a robot needs besides is switched on by a derived shape.
template <bool FreeBase, int TrunkLinks, int Limbs, int Links, int... Slots>
struct FixedShape {
  static_assert(sizeof...(Slots) == Links + 1);
  static constexpr bool kFixed = true, kFreeBase = FreeBase;
  static constexpr int kTrunkLinks = TrunkLinks, kTrunkDofs = TrunkLinks + (FreeBase ? 5 : 0);
  static constexpr int kLimbs = Limbs, kLimbLinks = Links, kLinks = Limbs * Links;
  static constexpr int kLimbEntries = Links * (Links + 1) / 2, kEntries = Limbs * kLimbEntries;
  static constexpr int kLimbSlots = (Slots + ...), kSlots = Limbs * kLimbSlots, kStationSlots = 4;
  static constexpr int kPairs = 0, kTies = 0, kTieTerms = 1, kBonds = 0, kActuators = kTrunkDofs + kLinks;
  static constexpr int kDofs = kTrunkDofs + kLinks;
  static constexpr bool kAnyJoint = false, kLimits = true, kFriction = false, kLoads = false, kCompliance = false;

  static constexpr int of_lane(int all, int lanes) { return (Limbs + lanes - 1) / lanes * (all / Limbs); }
  HD static constexpr int trunk_links(int) { return TrunkLinks; }
  HD static constexpr int limbs(int) { return Limbs; }
  HD static constexpr bool free_base(int) { return FreeBase; }
  HD static constexpr bool on_trunk(int) { return true; }
  HD static constexpr int trunk_dofs(int) { return kTrunkDofs; }
  HD static bool moved_by(int dof, int own) { return dof < own; }
  template <class Limb> HD static constexpr int links(const Limb&) { return Links; }
  template <class Limb> HD static constexpr int first_link(const Limb&, int limb) { return limb * Links; }
  template <class Limb> HD static constexpr int first_slot(const Limb&, int limb) { return limb * kLimbSlots; }
  template <class Limb> HD static constexpr int slots(const Limb&) { return kLimbSlots; }
  template <class Link> HD static constexpr int parent(const Link&, int k) { return k - 1; }
  template <class Link> HD static constexpr int actuators(const Link&) { return 1; }
  template <class Station> HD static constexpr int slot_begin(const Station&, int s) { return begin_of(s); }
  template <class Station> HD static constexpr int slot_end(const Station&, int s) { return begin_of(s + 1); }
  HD static constexpr int begin_of(int station) {
    int s = 0, begin = 0;
    ((begin += s++ < station ? Slots : 0), ...);  // no loop and no array: the compiler must see a constant
    return begin;
  }
};

/// The Ant: legs of two hinges with limits; the torso's share (0), hip, knee with one slot each on the tip.
using AntShape = FixedShape<true, 1, 4, 2, 0, 0, 1>;
/// A quadruped on four feet: legs of three hinges, whose ranges are left to the controller.
struct QuadrupedShape : FixedShape<true, 1, 4, 3, 0, 0, 0, 1> { static constexpr bool kLimits = false; };

}  // namespace stiction
