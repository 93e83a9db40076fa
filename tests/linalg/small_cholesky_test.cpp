#include "linalg/small_cholesky.h"

#include <gtest/gtest.h>

#include "tests/problems/dense_problems.h"

namespace stiction {
namespace {

TEST(SmallCholesky, SolvesRandomSystems) {
  for (int n : {1, 2, 7, 40}) {
    auto d = problems::random_problem(n, 0, 3u + static_cast<unsigned>(n));
    std::vector<double> U = d.A, x = d.b;
    ASSERT_TRUE(cholesky_factor(n, U.data(), 0.0));
    cholesky_solve(n, U.data(), x.data());
    for (int i = 0; i < n; ++i) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += d.A[i * n + k] * x[k];
      EXPECT_NEAR(sum, d.b[i], 1e-12 * n);
    }
  }
}

TEST(SmallCholesky, RejectsIndefiniteAndNaN) {
  double indefinite[] = {1, 2, 2, 1}, nan[] = {1, 0, 0, std::nan("")};
  EXPECT_FALSE(cholesky_factor(2, indefinite, 0.0));
  EXPECT_FALSE(cholesky_factor(2, nan, 0.0));
  EXPECT_TRUE(indefinite[3] >= 0);
}

}  // namespace
}  // namespace stiction
