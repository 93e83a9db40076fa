// How large a world is, and who knows the trip counts of its loops.
//
//   Capacity     upper bounds; the counts stand in the model's tables       any robot, one compilation
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
  static constexpr int kLimbs = 24;
  static constexpr int kLimbLinks = 26;    // of one limb
  static constexpr int kLinks = 96;        // of all limbs
  static constexpr int kEntries = 640;     // of all limbs' blocks of a tree matrix
  static constexpr int kSlots = 160;       // world slots
  static constexpr int kStationSlots = 8;  // world slots of one body, at most
  static constexpr int kPairs = 96;        // pair slots
  static constexpr int kTies = 24;         // rows over several dofs: joint equalities, tendons
  static constexpr int kTieTerms = 8;      // dofs of one of them
  static constexpr int kBonds = 16;        // three rows between two links each: a connect is one, a weld two
  static constexpr int kActuators = 96;
  static constexpr int kDofs = kTrunkDofs + kLinks;
  // What takes part at all; where false, its code and its registers are gone.
  static constexpr bool kLimits = true, kFriction = true;  // of joints
  static constexpr bool kLoads = true;                     // qfrc_applied, xfrc_applied, weight compensation
  static constexpr bool kCompliance = true;                // contact stiffness
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
  static constexpr bool kLimits = true, kFriction = false, kLoads = false, kCompliance = false;
  HD static constexpr int slot_begin(int station) {
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
