// One block of memory, handed out piece by piece: the same code that carves it measures it, so sizes and pieces cannot drift
// apart.
//
//   Arena<Real> measure;                 nothing there: pieces are null, used() is what they take
//   Arena<Real> arena(memory);           pieces of `memory`, which has measure.used() numbers
#pragma once
#include "core/platform.h"

namespace stiction {

template <class T>
class Arena {
 public:
  HD explicit Arena(T* memory = nullptr) : memory_(memory), used_(0) {}

  /// n numbers, not initialised.
  HD T* take(int64_t n) {
    T* piece = rest();
    used_ += n;
    return piece;
  }
  /// n things that consist of numbers.
  template <class Thing>
  HD Thing* take_as(int64_t n) {
    static_assert(sizeof(Thing) % sizeof(T) == 0);
    return reinterpret_cast<Thing*>(take(n * static_cast<int64_t>(sizeof(Thing) / sizeof(T))));
  }
  /// n words of 32 bits.
  HD uint32_t* take_bits(int64_t n) {
    constexpr int64_t kBytes = sizeof(T);
    return reinterpret_cast<uint32_t*>(take((n * 4 + kBytes - 1) / kBytes));
  }
  /// Where the next piece would begin.
  HD T* rest() const { return memory_ == nullptr ? nullptr : memory_ + used_; }
  HD int64_t used() const { return used_; }

 private:
  T* memory_;
  int64_t used_;
};

}  // namespace stiction
