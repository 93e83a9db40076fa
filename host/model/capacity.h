// Refusing what a slot world cannot hold, by name.
#pragma once
#include <stdexcept>
#include <string>

#include "model/shape.h"

namespace stiction {

/// How much a slot world may have: the bounds of a shape. `hint`: what to do beyond.
struct Room {
  int limbs, limb_links, links, entries, slots, pairs, ties, bonds, actuators;
  const char* hint = "Larger scenes need list worlds, which are not available yet";
};
template <class Shape>
constexpr Room room_of() {
  Room room{Shape::kLimbs, Shape::kLimbLinks, Shape::kLinks, Shape::kEntries,  Shape::kSlots,
            Shape::kPairs, Shape::kTies,      Shape::kBonds, Shape::kActuators};
  if (Shape::kLinks < Capacity::kLinks) room.hint = "device='cpu' holds more";
  return room;
}

inline void require_at_most(const std::string& what, int got, int most, const Room& room) {
  if (got > most)
    throw std::invalid_argument("the model has " + std::to_string(got) + " " + what + "; a slot world holds at most " +
                                std::to_string(most) + ". " + room.hint);
}

}  // namespace stiction
