// Rotation vectors and the angle under them against std::atan2 and closed forms.
#include "math/rotation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stiction {
namespace {

using Eight = Pack<float, 8>;

TEST(AngleOf, MatchesTheLibraryFromZeroToARightAngle) {
  double worst_float = 0, worst_double = 0;
  for (int i = 0; i <= 200000; ++i) {
    // Evenly spread, then ever nearer to both ends.
    const double spread = M_PI_2 * i / 200000, small = std::pow(10.0, -12.0 * i / 200000);
    for (double angle : {spread, small, M_PI_2 - small}) {
      const double scale = 0.5 + (i % 7), y = scale * std::sin(angle), x = scale * std::cos(angle);
      const float yf = static_cast<float>(y), xf = static_cast<float>(x);
      const double exact = std::atan2(static_cast<double>(yf), static_cast<double>(xf));
      if (exact > 0) worst_float = std::max(worst_float, std::abs(angle_of(yf, xf) - exact) / exact);
      if (angle > 0) worst_double = std::max(worst_double, std::abs(angle_of(y, x) - angle) / angle);
    }
  }
  EXPECT_LE(worst_float, 2e-7);
  EXPECT_LE(worst_double, 1e-15);  // of which the rounding of x and y is a part
  EXPECT_EQ(angle_of(0.0f, 1.0f), 0.0f);
  EXPECT_EQ(angle_of(1.0f, 0.0f), static_cast<float>(M_PI_2));
  EXPECT_EQ(angle_of(1.0f, 1.0f), static_cast<float>(M_PI_4));
  EXPECT_EQ(angle_of(1e-30f, 1.0f), 1e-30f);
}

TEST(AngleOf, HasTheSameBitsInAPack) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> unit(0, 1);
  for (int i = 0; i < 10000; ++i) {
    Eight y, x;
    for (int w = 0; w < 8; ++w) set_lane(y, w, unit(random)), set_lane(x, w, unit(random));
    const Eight angle = angle_of(y, x);
    for (int w = 0; w < 8; ++w) EXPECT_EQ(lane(angle, w), angle_of(lane(y, w), lane(x, w)));
  }
}

template <class T>
double worst_error(double angle, int sign) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  double worst = 0;
  for (int i = 0; i < 200; ++i) {
    Vec3<double> axis{normal(random), normal(random), normal(random)};
    axis = axis * (1 / norm(axis));
    const double c = sign * std::cos(angle / 2), s = sign * std::sin(angle / 2);
    const Vec3<T> r = rotation_vector(Quat<T>{T(c), T(axis.x * s), T(axis.y * s), T(axis.z * s)});
    const Vec3<double> found{r.x, r.y, r.z}, error = found - axis * angle;
    // Half a turn about an axis or about its opposite are one rotation.
    worst = std::max(worst, angle == M_PI ? std::min(norm(error), norm(found + axis * angle)) : norm(error));
  }
  return worst;
}

TEST(RotationVector, IsAxisTimesAngleFromZeroToHalfATurn) {
  for (double angle : {0.0, 1e-30, 1e-12, 1e-8, 2e-10, 1e-3, 0.5, 1.0, 2.0, 3.0, M_PI - 1e-3, M_PI})
    for (int sign : {1, -1}) {  // q and -q are the same rotation
      EXPECT_LE(worst_error<double>(angle, sign), 1e-15 * angle * 4) << angle;
      EXPECT_LE(worst_error<float>(angle, sign), 4e-7 * angle) << angle;
    }
}

}  // namespace
}  // namespace stiction
