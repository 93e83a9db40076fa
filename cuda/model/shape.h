// How large a world is, and what of it is known where the step is compiled.
//
//   Capacity      upper bounds; the counts stand in the model's tables       any robot, one compilation
//   TileCapacity  the same with bounds that suit the memory of a GPU's lane
//   FourLimbs     robots on four legs that are alike, a compilation for each number of links of a leg
//   ModelShape    one model's own bounds, the counts that it can tell, and what of the source it needs at all
//                 (host/model/model_shape.h writes it, a GPU's kernels are compiled for it)
//
// Every function is written once for all. They change no number: what a shape leaves out is what its model never comes to.
#pragma once
#include "core/platform.h"

namespace stiction {

/// An array length of at least 1.
HD constexpr int at_least_one(int n) { return n > 0 ? n : 1; }

/// The runtime shape. One limb may be a tree; all counts are per world.
struct Capacity {
  using Tables =
      Capacity;  // whose bounds the tables of a ModelView have: shapes of the same tables read the same bytes
  static constexpr int kTrunkLinks = 13;  // the base, and hinges or slides below it
  static constexpr int kTrunkDofs = 18;   // 6 of a floating base + 12
  static constexpr int kLimbs = 40;
  static constexpr int kLimbLinks = 40;     // of one limb
  static constexpr int kLinks = 240;        // of all limbs
  static constexpr int kEntries = 1600;     // of all limbs' blocks of a tree matrix
  static constexpr int kSlots = 320;        // world slots
  static constexpr int kStationSlots = 32;  // world slots of one body, at most
  static constexpr int kCandidates =
      192;  // of one body with static geometry that are near at a time, in any world of a pack
  static constexpr int kPairs = 256;   // pair slots
  static constexpr int kTies = 48;     // rows over several dofs: joint equalities, tendons
  static constexpr int kTieTerms = 8;  // dofs of one of them
  static constexpr int kBonds = 32;    // three rows between two links each: a connect is one, a weld two
  static constexpr int kActuators = 128;
  static constexpr int kDofs = kTrunkDofs + kLinks;
  // What one lane of a tile holds of limbs, at most.
  static constexpr int kLaneLimbs = kLimbs, kLaneLinks = kLinks, kLaneEntries = kEntries, kLaneSlots = kSlots;
  // What takes part at all; where false, its code and its registers are gone.
  static constexpr bool kAnyJoint =
      true;  // ball joints, joints of several links, several actuators of one, springs of a base
  static constexpr bool kRanges = true;       // joints' servos with bounds of their force
  static constexpr bool kPulls = true;        // joints' force ranges that bound actuators on tendons, too
  static constexpr bool kWalls = true;        // static geoms besides planes
  static constexpr bool kLoops = true;        // has_loops of ModelCounts
  static constexpr bool kOnlyProbes = false;  // no station has other candidates, or more of them than slots
  /// What a lane of a GPU steps a world with lies on its stack.
  static constexpr bool kOnStack = false;
  /// All limbs are chains of kLimbLinks links with as many actuators each, so that it is known where they begin.
  static constexpr bool kAlike = false;
  /// Whether geoms of two GeomKinds may meet, type1 <= type2.
  HD static constexpr bool has_pair(int, int) { return true; }

  // What stands in the model, or is known.
  HD static int trunk_links(int in_model) { return in_model; }
  HD static int limbs(int in_model) { return in_model; }
  HD static bool free_base(int in_model) { return in_model != 0; }
  HD static int attach(int in_model) { return in_model; }
  template <class Limb> HD static int links(const Limb& t) { return t.links; }
  template <class Limb> HD static int first_link(const Limb& t, int) { return t.first_link; }
  template <class Link> HD static int parent(const Link& link, int) { return link.parent; }
  template <class Link> HD static int actuators(const Link& link) { return link.actuators; }
};

/// A floating base of one link with four chains of so many hinges or slides, an actuator each or none; no loops, ties or tendons. Their counts are
/// known, so that loops over them are no loops: an Ant and a quadruped step a quarter faster so on a CPU.
template <int links_of_each>
struct FourLimbs : Capacity {
  static constexpr int kTrunkLinks = 1, kTrunkDofs = 6, kLimbs = 4, kLimbLinks = links_of_each, kLinks = 4 * kLimbLinks,
                       kEntries = 2 * kLimbLinks * (kLimbLinks + 1), kTies = 0, kTieTerms = 1, kBonds = 0,
                       kActuators = kLinks, kDofs = kTrunkDofs + kLinks;
  static constexpr int kLaneLimbs = kLimbs, kLaneLinks = kLinks, kLaneEntries = kEntries;
  static constexpr bool kAnyJoint = false, kPulls = false, kLoops = false, kAlike = true;
  HD static constexpr int trunk_links(int) { return 1; }
  HD static constexpr int limbs(int) { return kLimbs; }
  HD static constexpr bool free_base(int) { return true; }
  HD static constexpr int attach(int) { return 0; }
  template <class Limb> HD static constexpr int links(const Limb&) { return kLimbLinks; }
  template <class Limb> HD static constexpr int first_link(const Limb&, int limb) { return kLimbLinks * limb; }
  template <class Link> HD static constexpr int parent(const Link&, int k) { return k - 1; }
};

/// Of worlds on a GPU, where every lane has arrays of its own.
struct TileCapacity : Capacity {
  using Tables = TileCapacity;
  static constexpr int kLimbs = 24, kLimbLinks = 26, kLinks = 96, kEntries = 640, kSlots = 160, kStationSlots = 16,
                       kPairs = 96, kTies = 24, kBonds = 16, kActuators = 96, kDofs = kTrunkDofs + kLinks;
  static constexpr int kLaneLimbs = kLimbs, kLaneLinks = kLinks, kLaneEntries = kEntries, kLaneSlots = kSlots;
};

}  // namespace stiction
