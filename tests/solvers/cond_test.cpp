// What COND's nodes do, which the conformance suite does not ask: its bound of 1 / k_v; and its convex law.
#include "solvers/cond/cond.h"

#include "tests/solvers/solve_dense.h"

namespace stiction {
namespace {

using problems::Dense;

CondOptions<double> nodes(double gain) {
  CondOptions<double> o;
  o.multiplier = 0, o.node_gain = gain;
  return o;
}
/// r_con / V of the nodes' answer, converged by their own residual.
double error_of(const Dense<double>& d, double gain, double least = 1e-4, CondOptions<double> o = nodes(0)) {
  o.node_gain = gain;
  const auto r = testing::solve_dense<Cond, double>(d, {200000, 1e-8}, least, o);
  EXPECT_LT(r.iterations, 200000) << gain;
  EXPECT_LE(r.residual.row_ratio, 1e-6);
  return r.residual.r_con / r.residual.scale;
}

TEST(Cond, NodesAreOffByOneOverTheirGain) {
  std::vector<std::pair<Dense<double>, double>> all = {{problems::box_on_plane(2, {1, 1, -0.1}, 0.5), 1e-4},
                                                       {problems::box_on_plane(2, {0.01, 0, -0.1}, 0.5), 1e-4},
                                                       {problems::stack({1, 1, 1}, 0.1, 0.5), 1e-4}};
  for (auto& c : {problems::fclib_1c(), problems::fclib_rr_1c()}) all.push_back({c.problem, c.scale});
  for (auto& [d, least] : all) {
    const double at = error_of(d, 1e4, least), finer = error_of(d, 2e4, least);
    EXPECT_LE(at, 2e-3);
    EXPECT_GT(at, 1e-6);  // it is there
    EXPECT_NEAR(finer / at, 0.5, 0.05);
  }
}

TEST(Cond, NodesAreOffByOneOverTheirGainOnRandomProblems) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    CondOptions<double> o = nodes(0);
    o.chebyshev = seed % 2 == 0;  // beside other rows it may go round in circles
    const auto d = problems::random_problem(18, 3, seed, seed % 2);
    const double at = error_of(d, 1e3, 1e-4, o), finer = error_of(d, 2e3, 1e-4, o);
    EXPECT_LE(at, 2e-2) << seed;
    EXPECT_NEAR(finer / at, 0.5, 0.1) << seed;
  }
}

TEST(Cond, ChebyshevNeedsFewerPasses) {
  CondOptions<double> plain = nodes(1e4);
  plain.chebyshev = 0;
  const auto c = problems::fclib_1c();
  const auto a = testing::solve_dense<Cond, double>(c.problem, {200000, 1e-5}, c.scale, plain);
  const auto b = testing::solve_dense<Cond, double>(c.problem, {200000, 1e-5}, c.scale, nodes(1e4));
  EXPECT_LT(10 * b.iterations, a.iterations) << b.iterations;
  EXPECT_LT(a.iterations, 200000);
}

TEST(Cond, ADiagonalForTheJointsFindsTheSameWithoutAFactor) {
  CondOptions<double> diagonal;
  diagonal.joints = kCondFrobenius;
  int solved = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto d = problems::random_problem(18, 3, seed, seed % 2);
    const auto r = testing::solve_dense<Cond, double>(d, {20000, 1e-9}, 1e-4, diagonal);
    EXPECT_LE(r.residual.r_con, 1e-8 * r.residual.scale) << seed;
    EXPECT_LE(r.residual.row_ratio, 1e-8) << seed;
    solved += r.iterations > 0;  // in one nothing closes
  }
  EXPECT_GE(solved, 8);
}

TEST(Cond, NodesByBarzilaiAndBorweinNeedFewerPasses) {
  CondOptions<double> plain = nodes(100), steps = nodes(100);
  plain.chebyshev = 0, plain.joints = kCondFrobenius, steps.joints = kCondBarzilai;
  double total[2] = {};
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto d = problems::random_problem(18, 3, seed);
    const SolveLimits<double> limits{20000, 1e-6};
    const auto a = testing::solve_dense<Cond, double>(d, limits, 1e-4, plain);
    const auto b = testing::solve_dense<Cond, double>(d, limits, 1e-4, steps);
    ASSERT_LT(max(a.iterations, b.iterations), limits.iterations) << seed;
    for (size_t i = 0; i < a.d.impulse.size(); ++i) EXPECT_NEAR(a.d.impulse[i], b.d.impulse[i], 1e-3) << seed;
    total[0] += a.iterations, total[1] += b.iterations;
  }
  EXPECT_LT(3 * total[1], total[0]) << total[1];
}

TEST(Cond, SolvesTheConvexLawWhereAsked) {
  for (int multiplier : {0, 1}) {
    CondOptions<double> o = nodes(1e4);
    o.multiplier = multiplier, o.convex = 1;
    EXPECT_EQ(o.law(), Law::kConvex);
    const auto r =
        testing::solve_dense<Cond, double>(problems::box_on_plane(2, {1, 0, -0.1}, 0.5), {200000, 1e-9}, 1e-4, o);
    EXPECT_LE(r.residual.r_ccp, (multiplier ? 1e-8 : 1e-3) * r.residual.scale);
    EXPECT_GT(r.residual.r_con, 0.1 * r.residual.scale);
    EXPECT_GT(r.v[2], 0.1);  // what slides lifts off
  }
}

TEST(Cond, HandlesTangentialAndNormalComplianceApart) {
  for (int convex : {0, 1}) {
    Dense<double> d = problems::random_problem(18, 3, 4);
    for (size_t i = 0; i < d.R.size(); ++i) d.R[i] = i % 3 == 2 ? 0.5 : 0.1;
    CondOptions<double> o;
    o.convex = convex;
    const auto r = testing::solve_dense<Cond, double>(d, {20000, 1e-10}, 1e-4, o);
    EXPECT_LE(convex ? r.residual.r_ccp : r.residual.r_con, 1e-9 * r.residual.scale);
  }
}

/// As the conformance suite asks of the default, with the nodes' extrapolation.
TEST(Cond, NodesInLanesAreBitEqualToWorldsAlone) {
  using Wide = Pack<float, 8>;
  std::vector<Dense<double>> worlds;
  for (unsigned i = 0; i < 8; ++i) worlds.push_back(problems::random_problem(18, 4, i, true, i % 2));
  CondOptions<float> o;
  o.multiplier = 0;
  for (auto [tolerance, joints] : {std::pair{0.0f, kCondInverse}, {1e-2f, kCondInverse}, {1e-2f, kCondBarzilai}}) {
    o.joints = joints;
    const SolveLimits<float> limits{100, tolerance};
    const auto together = testing::solve_worlds<Cond, Wide>(worlds, limits, 1e-4, o);
    for (int i = 0; i < 8; ++i) {
      const auto alone = testing::solve_dense<Cond, float>(worlds[i], limits, 1e-4, o);
      EXPECT_EQ(together[i].iterations, alone.iterations) << i;
      EXPECT_EQ(together[i].d.impulse, alone.d.impulse) << i;
    }
  }
}

}  // namespace
}  // namespace stiction
