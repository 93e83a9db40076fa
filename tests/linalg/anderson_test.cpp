#include "linalg/anderson.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/group.h"

namespace stiction {
namespace {

/// How far y <- rate y + (1 - rate) end has come from 0 after so many passes, as a part of the way.
double way(double rate, int passes) {
  constexpr int n = 4;
  History<double, 3> history[n];
  Anderson<double, 3> anderson;
  anderson.clear();
  double y[n] = {}, least = 1;
  for (History<double, 3>& h : history) anderson.clear(h, 0.0);
  for (int pass = 1; pass <= passes; ++pass) {
    double image[n];
    auto sums = anderson.begin_sums();
    for (int i = 0; i < n; ++i) {
      image[i] = rate * y[i] + (1 - rate) * (i + 1);
      sums.gather(history[i], image[i], [](double x) { return x; });
    }
    anderson.finish_sums(Serial{}, sums, 1e-3);
    const auto by = anderson.extrapolation();
    for (int i = 0; i < n; ++i) y[i] = by.step(history[i]);
    double size = 0;
    for (double gamma : anderson.gamma) size += std::abs(gamma);
    if (pass > 2) { EXPECT_LE(size, kMostExtrapolated * (1 + 1e-12)); }
  }
  for (int i = 0; i < n; ++i) least = std::min(least, y[i] / (i + 1));
  return least;
}

TEST(Anderson, EndsSoonWhatConverges) {
  EXPECT_NEAR(way(0.5, 8), 1, 1e-6);   // alone 4e-3 are left
  EXPECT_NEAR(way(0.9, 20), 1, 1e-4);  // alone 0.12
}

TEST(Anderson, DoesNotLeapWhereResidualsHardlyChange) {
  EXPECT_LT(way(1 - 1e-9, 5), 1e-6);  // a leap by a thousand million passes would be there
}

}  // namespace
}  // namespace stiction
