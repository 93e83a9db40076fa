// Random numbers from counters: Philox4x32-10 [Salmon2011].
//
// A number is a function of (seed, episode, step, stream, place in the stream) and of nothing else: neither the batch, nor the
// environment's place in it, nor the order in which threads draw can change it. Uniform and normal numbers are made in double
// and rounded, so that float and double see the same draws. Lanes of a pack draw one by one: each has its own seed.
// Tests: tests/core/philox_test.cpp (known answers of the authors' Random123 1.14, kat_vectors).
#pragma once
#include "core/scalar.h"

namespace stiction {

struct PhiloxBlock { uint32_t word[4]; };

/// The bijection of 128-bit counters under a 64-bit key, ten rounds.
HD PhiloxBlock philox4x32(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
  auto& c = counter.word;
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * c[0], b = static_cast<uint64_t>(0xCD9E8D57u) * c[2];
    const uint32_t c1 = c[1], c3 = c[3];
    c[0] = static_cast<uint32_t>(b >> 32) ^ c1 ^ key0, c[1] = static_cast<uint32_t>(b);
    c[2] = static_cast<uint32_t>(a >> 32) ^ c3 ^ key1, c[3] = static_cast<uint32_t>(a);
    key0 += 0x9E3779B9u, key1 += 0xBB67AE85u;
  }
  return counter;
}

/// What numbers are drawn for; each has a stream of its own, so that one can be added without disturbing another.
enum RandomStream : uint32_t { kStreamReset = 0, kStreamTask = 1, kStreamRandomisation = 2, kStreamNoise = 3 };

/// The numbers of one stream, one after the other. At most 2^33 per (seed, episode, step, stream).
class Random {
 public:
  HD Random(uint64_t seed, uint32_t episode, uint32_t step, RandomStream stream)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        episode_(episode),
        step_(step),
        stream_(stream) {}

  /// In [0, 1), multiples of 2^-53.
  HD double unit() {
    if (half_ == 0)
      block_ = philox4x32({{place_++, step_, episode_, static_cast<uint32_t>(stream_)}}, key_[0], key_[1]);
    const uint64_t bits = static_cast<uint64_t>(block_.word[half_ + 1]) << 32 | block_.word[half_];
    half_ ^= 2;
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }
  /// In [low, high], high only by rounding.
  template <class S>
  HD S uniform(S low, S high) {
    const double l = static_cast<double>(low), h = static_cast<double>(high);
    return static_cast<S>(l + (h - l) * unit());
  }
  /// Mean 0, variance 1 (Box and Muller; the sine's number is not used).
  template <class S>
  HD S normal() {
    const double u = 1 - unit(), angle = 6.283185307179586 * unit();
    return static_cast<S>(::sqrt(-2 * ::log(u)) * ::cos(angle));
  }

 private:
  uint32_t key_[2], episode_, step_, stream_, place_ = 0;
  int half_ = 0;  // 0: a new block is due; 2: its second number is left
  PhiloxBlock block_{};
};

}  // namespace stiction
