// How many contacts between moving links a world has room for.
//
// Limbs of a robot touch rarely, with a face at a time; free bodies rest on each other, and in grippers, with whole faces. Where
// several geoms lie side by side (the pads of a finger, the walls of a cup), a pair of links touches in more places.
#pragma once
#include <algorithm>
#include <map>

namespace stiction {

class PairPlaces {
 public:
  static constexpr int kFace = 4;     // that two geoms need
  static constexpr int kBeside = 60;  // and besides, of all geoms of a pair of links, at most
  // That a free body needs: in a wall or a pyramid of bricks each lies on two to four others, and beside some.
  static constexpr int kFree = 16;

  /// Two links whose geoms may touch in so many places, kFace at most for two geoms; free: whether one is a free body,
  /// link: the other.
  void add(int link, bool free, int places) {
    const int beside = std::clamp(places - kFace, 0, kBeside);
    widest_ = std::max(widest_, beside);
    if (free) at_free_[link] = std::max(at_free_[link], beside);
  }
  int number(int free_bodies) const {
    int beside = 0;
    for (const auto& [link, places] : at_free_) beside += places;
    return 16 + kFree * free_bodies + std::max(widest_, beside);
  }

 private:
  int widest_ = 0;
  std::map<int, int> at_free_;  // link that may touch free bodies -> what it needs besides a face
};

}  // namespace stiction
