// What SAP does beyond tests/solvers/conformance_test.cpp.
#include "solvers/sap/sap.h"

#include <algorithm>

#include "tests/solvers/solve_dense.h"

namespace stiction {
namespace {

using problems::Dense;

template <class T>
testing::Solved solve(const Dense<double>& d, SolveLimits<T> limits, SapOptions<T> options = {}) {
  return testing::solve_dense<Sap, T>(d, limits, 1e-4, options);
}
/// A point mass of 1 kg at a contact.
Dense<double> point_mass(Eigen::Vector3d free, double mu, double compliance = 0) {
  Dense<double> d = problems::bodies(Eigen::Matrix3d::Identity(), free);
  d.add_contact(Eigen::Matrix3d::Identity(), mu, {0, 0, 0}, compliance);
  return d;
}

TEST(Sap, ConvergesOnRandomProblemsInFewSteps) {
  std::vector<double> steps;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto r = solve<double>(problems::random_problem(18, 4, seed, seed % 2, seed % 3 == 0), {200, 1e-8});
    EXPECT_TRUE(r.converged(1.05e-8)) << seed;
    steps.push_back(r.iterations);
  }
  std::nth_element(steps.begin(), steps.begin() + 30, steps.end());
  EXPECT_LE(steps[30], 20);
}

TEST(Sap, SweepsSaveNewtonSteps) {
  SapOptions<double> alone;
  alone.sweeps = 0;
  double with = 0, without = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const auto d = problems::random_problem(18, 4, seed, seed % 2, seed % 3 == 0);
    const auto swept = solve<double>(d, {200, 1e-10}), newton = solve<double>(d, {200, 1e-10}, alone);
    with += swept.iterations, without += newton.iterations;
    for (int k = 0; k < d.nv; ++k) EXPECT_NEAR(swept.v[k], newton.v[k], 1e-7) << seed;
  }
  EXPECT_LT(with, 0.8 * without);
}

TEST(Sap, SolvesRankDeficientCompliantProblems) {
  for (unsigned seed = 0; seed < 60; ++seed)
    EXPECT_TRUE(solve<double>(problems::random_problem(12, 8, seed, true, true), {200, 1e-8}).converged(1.05e-8))
        << seed;
}

TEST(Sap, SolvesACompliantContactThatSlidesAtOnce) {
  // v + J'l = v*, s = v + R l in the dual cone's border: l_n (1 + mu^2)(1 + R) = -v*_n + mu |v*_t|.
  const double mu = 0.5, R = 0.3, normal = (0.2 + mu * 2) / ((1 + mu * mu) * (1 + R));
  const auto r = solve<double>(point_mass({2, 0, -0.2}, mu, R), {20, 1e-12});
  EXPECT_LE(r.iterations, 3);
  EXPECT_NEAR(r.d.impulse[2], normal, 1e-12);
  EXPECT_NEAR(r.d.impulse[0], -mu * normal, 1e-12);
}

TEST(Sap, EndsAtToleranceZero) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto d = problems::random_problem(18, 4, seed, seed % 2, seed % 3 == 0);
    const auto r = solve<double>(d, {1000, 0});
    EXPECT_LT(r.iterations, 60) << seed;
    EXPECT_TRUE(r.converged(1e-10)) << seed;
    EXPECT_LT(solve<float>(d, {1000, 0}).iterations, 100) << seed;
  }
}

TEST(Sap, FindsTheSameByBacktracking) {
  SapOptions<double> armijo;
  armijo.armijo = 1;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto d = problems::random_problem(18, 4, seed, true, seed % 2);
    const auto exact = solve<double>(d, {200, 1e-10}), back = solve<double>(d, {200, 1e-10}, armijo);
    EXPECT_TRUE(back.converged(1.05e-10)) << seed;
    for (int k = 0; k < d.nv; ++k) EXPECT_NEAR(exact.v[k], back.v[k], 1e-7) << seed;
  }
}

TEST(Sap, TakesNoFrictionAsNormalRows) {
  const auto r = solve<double>(point_mass({0, 0, -1}, 0), {20, 1e-12});
  EXPECT_NEAR(r.d.impulse[2], 1, 1e-11);
  Dense<double> d = problems::random_problem(18, 4, 3, true);
  for (double& mu : d.mu) mu = 0;
  const auto many = solve<double>(d, {200, 1e-10});
  EXPECT_TRUE(many.converged(1.05e-10));
  for (int i = 0; i < 12; ++i) {
    if (i % 3 < 2) { EXPECT_EQ(many.d.impulse[i], 0); }
  }
}

TEST(Sap, RegularisedContactCreepsAndSinksAsThePaperHasIt) {
  // W = 1, so w = |W|_F / 3 = 1 / sqrt(3): R_t = sigma w, R_n = w / (4 pi^2). It sticks: v_t = R_t l_t, v_n = -R_n l_n.
  const double w = 1 / std::sqrt(3.0), R_t = 1e-3 * w, R_n = w / (4 * M_PI * M_PI);
  const auto r = solve<double>(point_mass({0.02, 0, -0.1}, 0.5), {50, 1e-12}, SapOptions<double>::paper());
  EXPECT_NEAR(r.v[0], 0.02 * R_t / (1 + R_t), 1e-10);
  EXPECT_NEAR(r.v[2], -0.1 * R_n / (1 + R_n), 1e-10);
  EXPECT_FALSE(r.converged(1e-3)) << "that is not the rigid problem";
}

TEST(Sap, WideSumsReachFurtherInFloat) {
  std::vector<double> residual[2];
  for (unsigned seed = 0; seed < 100; ++seed)
    for (int wide : {0, 1}) {
      SapOptions<float> options;
      options.wide = wide;
      const auto r = solve<float>(problems::random_problem(18, 4, seed, true, seed % 2), {200, 0}, options);
      residual[wide].push_back(std::max(r.residual.r_ccp / r.residual.scale, r.residual.row_ratio));
    }
  for (auto& each : residual) std::sort(each.begin(), each.end());
  EXPECT_LT(residual[1][50], 0.5 * residual[0][50]);
  EXPECT_LT(residual[1][90], 0.5 * residual[0][90]);
  EXPECT_LT(residual[1][90], 2e-5);
}

TEST(Sap, SaysNothingOfWhatIsNotFinite) {
  Dense<double> d = problems::random_problem(6, 2, 1);
  d.b[2] = std::nan("");
  for (double l : solve<double>(d, {200, 1e-8}).d.impulse) EXPECT_EQ(l, 0);
}

}  // namespace
}  // namespace stiction
