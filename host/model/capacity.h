// Refusing what a slot world cannot hold, by name.
#pragma once
#include <stdexcept>
#include <string>

namespace stiction {

inline void require_at_most(const std::string& what, int got, int most) {
  if (got > most)
    throw std::invalid_argument("the model has " + std::to_string(got) + " " + what + "; a slot world holds at most " +
                                std::to_string(most) + ". Larger scenes need list worlds, which are not available yet");
}

}  // namespace stiction
