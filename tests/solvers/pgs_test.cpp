#include "solvers/pgs/pgs.h"

#include <gtest/gtest.h>

#include <cstring>

#include "contact/residual_dense.h"
#include "tests/problems/dense_problems.h"

namespace stiction {
namespace {

using problems::Delassus;
using problems::Dense;

/// PGS on one world; the certificate in double from A, J and v = A^-1 (b + J'l).
template <class T>
struct Solved {
  PgsStats<T> stats;
  std::vector<double> v;
  DenseResidual residual;
  Dense<double> d;

  Solved(Dense<double> problem, PgsOptions<T> options = {}) : d(std::move(problem)) {
    Delassus<T> data({d});
    auto view = data.view();
    stats = pgs(view, options);
    int c = 3 * d.contacts();
    for (int i = 0; i < c; ++i) d.impulse[i] = data.impulse[i];
    for (int r = 0; r < d.rows(); ++r) d.row_impulse[r] = data.impulse[c + r];
    v = d.b;
    for (int k = 0; k < d.nv; ++k) {
      for (int i = 0; i < c; ++i) v[k] += d.J[i * d.nv + k] * d.impulse[i];
      for (int r = 0; r < d.rows(); ++r) v[k] += d.J_row[r * d.nv + k] * d.row_impulse[r];
    }
    std::vector<double> U = d.A, work(static_cast<size_t>(residual_dense_workspace(d.nv)));
    cholesky_factor(d.nv, U.data(), 0.0);
    cholesky_solve(d.nv, U.data(), v.data());
    residual = residual_dense(d.view(), v.data(), {double(options.least_velocity), 0}, work.data());
    if (stats.converged) {
      double slack = sizeof(T) == 8 ? 1.05 : 1.5;  // float: W itself was rounded
      EXPECT_LE(residual.r_con, slack * double(options.tolerance) * residual.scale);
      EXPECT_LE(residual.row_ratio, slack * double(options.tolerance));
    }
  }
};

TEST(Pgs, MatchesOneContactReferences) {
  for (auto& c : {problems::fclib_1c(), problems::fclib_rr_1c()}) {
    PgsOptions<double> options;
    options.sweeps = 100000, options.tolerance = 1e-13, options.least_velocity = c.scale;
    Solved<double> r(c.problem, options);
    ASSERT_TRUE(r.stats.converged);
    for (int a = 0; a < 3; ++a) EXPECT_NEAR(r.d.impulse[a], c.impulse[a], 1e-9 * c.impulse.norm());
  }
}

TEST(Pgs, SticksSlidesAndLiftsOff) {
  PgsOptions<double> options;
  options.sweeps = 2000;
  Solved<double> stick(problems::box_on_plane(2, {0.01, 0, -0.1}, 0.5), options);
  ASSERT_TRUE(stick.stats.converged);
  for (double x : stick.v) EXPECT_NEAR(x, 0, 1e-8);
  Solved<double> slide(problems::box_on_plane(2, {1, 1, -0.1}, 0.5), options);
  ASSERT_TRUE(slide.stats.converged);
  EXPECT_NEAR(slide.v[0], 1 - 0.05 / std::sqrt(2.0), 1e-7);
  EXPECT_NEAR(slide.v[1], slide.v[0], 1e-7);
  Solved<double> leave(problems::box_on_plane(2, {1, 0, 0.3}, 0.5), options);
  EXPECT_TRUE(leave.stats.converged);
  EXPECT_EQ(leave.stats.iterations, 0);
}

TEST(Pgs, HandlesExtremeFrictionAndDuplicates) {
  PgsOptions<double> options;
  options.sweeps = 5000;
  Solved<double> smooth(problems::box_on_plane(2, {1, 0, -0.1}, 0), options);
  ASSERT_TRUE(smooth.stats.converged);
  EXPECT_NEAR(smooth.v[0], 1, 1e-12);
  Solved<double> rough(problems::box_on_plane(2, {0.01, 0, -0.1}, 1e6), options);
  ASSERT_TRUE(rough.stats.converged);
  EXPECT_NEAR(rough.v[0], 0, 1e-7);
  for (int copies : {2, 50}) {
    Solved<double> many(problems::box_on_plane(2, {1, 0, -0.1}, 0.5, copies), options);
    ASSERT_TRUE(many.stats.converged) << copies;
    EXPECT_NEAR(many.v[0], 0.95, 1e-7);
  }
}

TEST(Pgs, SolvesEveryKindOfRow) {
  PgsOptions<double> options;
  options.sweeps = 20000;
  int converged = 0;
  for (unsigned seed = 0; seed < 20; ++seed)
    converged += Solved<double>(problems::random_problem(18, 3, seed, true, seed % 2), options).stats.converged;
  EXPECT_GE(converged, 18);
}

TEST(Pgs, SaysWhenTheCapStopsIt) {
  PgsOptions<double> options;
  options.sweeps = 3;
  Solved<double> r(problems::random_problem(18, 5, 4), options);
  EXPECT_FALSE(r.stats.converged);
  EXPECT_EQ(r.stats.iterations, 3);
  EXPECT_NEAR(r.stats.r_con, r.residual.r_con, 1e-12);
  EXPECT_NEAR(r.stats.scale, r.residual.scale, 1e-12);
  options.tolerance = 0;  // fixed mode reports all the same
  Solved<double> fixed(problems::box_on_plane(2, {1, 0, 0.3}, 0.5), options);
  EXPECT_EQ(fixed.stats.iterations, 3);
}

TEST(Pgs, LeavesInactiveImmovableAndNaNWorldsAlone) {
  Delassus<double> data({problems::box_on_plane(2, {0, 0, -0.1}, 0.5)});
  data.active[1] = false, data.impulse[5] = 7;
  for (int j = 0; j < 12; ++j)
    for (int k = 9; k < 12; ++k) data.W[j * 12 + k] = data.W[k * 12 + j] = 0;
  auto view = data.view();
  pgs(view, PgsOptions<double>{});
  for (int k : {3, 4, 5, 9, 10, 11}) EXPECT_EQ(data.impulse[k], 0) << k;
  EXPECT_GT(data.impulse[2], 0);
  data.q[2] = std::nan("");
  EXPECT_FALSE(pgs(view, PgsOptions<double>{}).converged);
}

/// Every lane of a pack gives the bits of its world alone, in residual-stop mode too, whatever its neighbours do.
TEST(Pgs, LanesAreBitEqualToScalars) {
  using Wide = Pack<float, 8>;
  std::vector<Dense<double>> worlds;
  for (unsigned seed = 0; seed < 8; ++seed) worlds.push_back(problems::random_problem(18, 4, seed, true, seed % 2));
  for (float tolerance : {0.0f, 1e-4f}) {
    PgsOptions<float> options;
    PgsOptions<Wide> all;
    options.tolerance = all.tolerance = tolerance, options.sweeps = all.sweeps = 150;
    for (int i = 0; i < 8; ++i) set_lane(all.least_velocity, i, 1e-4f * static_cast<float>(1 << 2 * i));
    Delassus<Wide> wide(worlds);
    set_lane(wide.active[1], 3, 0);
    auto view = wide.view();
    auto together = pgs(view, all);
    bool differ = false;
    for (int i = 0; i < 8; ++i) {
      Delassus<float> one({worlds[i]});
      if (i == 3) one.active[1] = false;
      auto alone = one.view();
      options.least_velocity = lane(all.least_velocity, i);
      auto stats = pgs(alone, options);
      for (size_t k = 0; k < one.impulse.size(); ++k) {
        float a = lane(wide.impulse[k], i), b = one.impulse[k];
        EXPECT_EQ(std::memcmp(&a, &b, 4), 0) << i << ' ' << k;
      }
      EXPECT_EQ(lane(together.iterations, i), stats.iterations);
      EXPECT_EQ(lane(together.r_con, i), stats.r_con);
      differ |= stats.iterations != lane(together.iterations, 0);
    }
    EXPECT_EQ(differ, tolerance > 0);
  }
}

}  // namespace
}  // namespace stiction
