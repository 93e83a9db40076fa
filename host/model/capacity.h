// Refusing what a slot world cannot hold, by name.
#pragma once
#include <stdexcept>
#include <string>

#include "model/shape.h"

namespace stiction {

/// How much a slot world may have: the bounds of a shape.
struct Room { int limbs, limb_links, links, entries, slots, station_slots, pairs, ties, tie_terms, bonds, actuators; };
template <class Shape>
constexpr Room room_of() {
  return {Shape::kLimbs, Shape::kLimbLinks, Shape::kLinks,    Shape::kEntries, Shape::kSlots,    Shape::kStationSlots,
          Shape::kPairs, Shape::kTies,      Shape::kTieTerms, Shape::kBonds,   Shape::kActuators};
}

/// Throws std::invalid_argument beyond a bound of `room`, and says where there is more of it.
inline void require_at_most(const std::string& what, int got, const Room& room, int Room::* bound) {
  const int most = room.*bound;
  if (got <= most) return;
  const bool more = most < room_of<Capacity>().*bound;
  throw std::invalid_argument(
      "the model has " + std::to_string(got) + " " + what + "; a slot world holds at most " + std::to_string(most) +
      ". " + (more ? "device='cpu' holds more" : "Larger scenes need list worlds, which are not available yet"));
}

}  // namespace stiction
