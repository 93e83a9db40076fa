#include <gtest/gtest.h>

#include <cmath>

#include "math/vec3.h"

namespace stiction {
namespace {

Vec3<double> on_sphere(double z, double turn) {
  const double r = std::sqrt(1 - z * z);
  return {r * std::cos(turn), r * std::sin(turn), z};
}

TEST(FrameOfNormal, IsRightHandedAndOrthonormal) {
  for (double z : {1.0, 0.7, 1e-17, -1e-17, -0.5, -0.58, -1.0})
    for (double turn = 0; turn < 6.2; turn += 0.31) {
      const Vec3<double> n = on_sphere(z, turn);
      const Mat3<double> F = frame_of_normal(n);
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) EXPECT_NEAR(dot(F.row[i], F.row[j]), i == j ? 1 : 0, 1e-14);
      EXPECT_NEAR(norm(cross(F.row[0], F.row[1]) - n), 0, 1e-14);
    }
}

TEST(FrameOfNormal, RoundingOfWhatIsLevelDoesNotTurnIt) {
  for (double turn = 0; turn < 6.2; turn += 0.31) {
    const Mat3<double> above = frame_of_normal(on_sphere(1e-9, turn)), below = frame_of_normal(on_sphere(-1e-9, turn));
    for (int i = 0; i < 3; ++i) EXPECT_LT(norm(above.row[i] - below.row[i]), 1e-8);
  }
}

}  // namespace
}  // namespace stiction
