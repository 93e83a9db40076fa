#include "core/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace stiction {
namespace {

void expect_words(PhiloxBlock got, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  EXPECT_EQ(got.word[0], a);
  EXPECT_EQ(got.word[1], b);
  EXPECT_EQ(got.word[2], c);
  EXPECT_EQ(got.word[3], d);
}

// The three lines "philox4x32 10" of Random123's kat_vectors.
TEST(Philox, GivesThePublishedKnownAnswers) {
  expect_words(philox4x32({{0, 0, 0, 0}}, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  const uint32_t f = 0xffffffff;
  expect_words(philox4x32({{f, f, f, f}}, f, f), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
  expect_words(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0), 0xd16cfe09,
               0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST(Random, IsAFunctionOfItsKeyAlone) {
  Random a(7, 1, 2, kStreamReset), b(7, 1, 2, kStreamReset);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(a.unit(), b.unit());
  const double first = Random(7, 1, 2, kStreamReset).unit();
  EXPECT_NE(first, Random(8, 1, 2, kStreamReset).unit());
  EXPECT_NE(first, Random(7 + (1ull << 32), 1, 2, kStreamReset).unit());
  EXPECT_NE(first, Random(7, 2, 2, kStreamReset).unit());
  EXPECT_NE(first, Random(7, 1, 3, kStreamReset).unit());
  EXPECT_NE(first, Random(7, 1, 2, kStreamTask).unit());
}

TEST(Random, UsesTheWholeBlock) {
  Random r(0, 0, 0, kStreamReset);
  EXPECT_EQ(r.unit(), static_cast<double>(0xe169c58d6627e8d5ull >> 11) * 0x1p-53);
  EXPECT_EQ(r.unit(), static_cast<double>(0x9b00dbd8bc57ac4cull >> 11) * 0x1p-53);
}

TEST(Random, FloatsAreRoundedDoubles) {
  Random a(3, 0, 0, kStreamTask), b(3, 0, 0, kStreamTask);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(a.uniform<float>(-0.5f, 0.25f), static_cast<float>(b.uniform<double>(-0.5, 0.25)));
    EXPECT_EQ(a.normal<float>(), static_cast<float>(b.normal<double>()));
  }
}

// Means over n = 1e5 draws lie within 5 standard errors.
TEST(Random, HasTheMomentsOfItsDistributions) {
  const int n = 100000;
  double sum = 0, square = 0, fourth = 0, uniform = 0, low = 1, high = -1;
  for (int seed = 0; seed < n; ++seed) {
    Random r(seed, 0, 0, kStreamReset);
    const double u = r.uniform<double>(-0.1, 0.1), z = r.normal<double>();
    uniform += u, low = std::min(low, u), high = std::max(high, u);
    sum += z, square += z * z, fourth += z * z * z * z;
  }
  const double error = 5 / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(uniform / n, 0, error * 0.2 / std::sqrt(12));
  EXPECT_GE(low, -0.1);
  EXPECT_LT(low, -0.0999);
  EXPECT_LT(high, 0.1);
  EXPECT_GT(high, 0.0999);
  EXPECT_NEAR(sum / n, 0, error);
  EXPECT_NEAR(square / n, 1, error * std::sqrt(2.0));
  EXPECT_NEAR(fourth / n, 3, error * std::sqrt(96.0));
}

}  // namespace
}  // namespace stiction
