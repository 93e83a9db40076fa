// What CANAL does beyond tests/solvers/conformance_test.cpp.
#include "solvers/canal/canal.h"

#include <limits>
#include <numeric>

#include "tests/solvers/solve_dense.h"

namespace stiction {
namespace {

using problems::Dense;

template <class T>
struct Improved {
  CanalStats<T> stats;
  testing::Solved solved;
};
/// Solves, and holds the solver to its word: what it calls converged passes the certificate in double.
template <class T>
Improved<T> improve(const Dense<double>& d, SolveLimits<T> limits, CanalOptions<T> options = {}, double least = 1e-4) {
  problems::Whitened<T> w({d}, least);
  const auto view = w.view();
  std::vector<T> memory(static_cast<size_t>(Canal::memory<T>(view)) + 1);
  Improved<T> r{Canal::improve(view, limits, options, true, memory.data(), w.rows.impulse), {d, {}, {}, 0}};
  w.take(r.solved.d);
  testing::judge(r.solved, least);
  if (r.stats.converged) {
    const double slack = sizeof(T) == 8 ? 1.05 : 1.5, tolerance = limits.tolerance;  // float: Y itself was rounded
    EXPECT_LE(r.solved.residual.r_con, slack * tolerance * r.solved.residual.scale);
    EXPECT_LE(r.solved.residual.r_split, 10 * slack * tolerance * r.solved.residual.scale);
    EXPECT_LE(r.solved.residual.row_ratio, slack * tolerance);
  }
  return r;
}
SolveLimits<double> tight() { return {200, 1e-8}; }

TEST(Canal, StandsAtMassRatioOfAMillion) {
  for (auto masses : {std::vector<double>{1, 1e6}, std::vector<double>{1e6, 1}, std::vector<double>{1, 1e3, 1e6}}) {
    const auto r = improve<double>(problems::stack(masses, 0.1, 0.5), tight());
    ASSERT_TRUE(r.stats.converged);
    for (double x : r.solved.v) EXPECT_NEAR(x, 0, 1e-8);
    double level = 0;
    for (int i = 0; i < 4; ++i) level += r.solved.d.impulse[3 * i + 2];
    EXPECT_NEAR(level, 0.1 * std::accumulate(masses.begin(), masses.end(), 0.0), 1e-6 * level);
  }
}

TEST(Canal, ConvergesOnRandomProblems) {
  int converged = 0, total = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const bool rows = seed % 2, compliant = seed % 3 == 0;
    EXPECT_TRUE(improve<double>(problems::random_problem(18, 4, seed, rows, compliant), tight()).stats.converged)
        << seed;
    converged += improve<double>(problems::random_problem(12, 8, seed, rows, compliant), tight()).stats.converged,
        ++total;
  }
  EXPECT_GE(converged, total * 95 / 100);
}

TEST(Canal, ConvergesOnRandomProblemsInFloat) {
  int converged = 0;
  for (unsigned seed = 0; seed < 60; ++seed)
    converged +=
        improve<float>(problems::random_problem(18, 4, seed, seed % 2, seed % 3 == 0), {200, 1e-5f}).stats.converged;
  EXPECT_GE(converged, 50);  // the others stop at float's floor, a few 1e-5 V, and say so
}

TEST(Canal, TakesAnExactGuessWithoutANewtonStep) {
  const auto first = improve<double>(problems::random_problem(12, 4, 7, true), {200, 1e-10});
  ASSERT_TRUE(first.stats.converged);
  const auto again = improve<double>(first.solved.d, tight());
  EXPECT_TRUE(again.stats.converged);
  EXPECT_EQ(again.stats.factorizations, 0);
}

TEST(Canal, SaysWhenTheCapStopsIt) {
  const auto r = improve<double>(problems::random_problem(18, 6, 5), {1, 1e-8});
  EXPECT_EQ(r.stats.iterations, 1);
  EXPECT_FALSE(r.stats.converged);
  EXPECT_GT(r.solved.residual.r_con, 1e-8 * r.solved.residual.scale);
}

TEST(Canal, RejectsWhatIsNotFinite) {
  Dense<double> d = problems::random_problem(6, 2, 1);
  d.b[2] = std::nan("");
  const auto r = improve<double>(d, tight());
  EXPECT_FALSE(r.stats.converged);
  EXPECT_FALSE(r.stats.sound);
  for (double l : r.solved.d.impulse) EXPECT_EQ(l, 0);
}

TEST(Canal, LeavesWorldsThatAreNotAskedForAlone) {
  using Wide = Pack<double, 4>;
  std::vector<Dense<double>> worlds;
  for (unsigned seed = 0; seed < 4; ++seed) worlds.push_back(problems::random_problem(12, 3, seed));
  problems::Whitened<Wide> w(worlds);
  const auto view = w.view();
  std::vector<Wide> memory(static_cast<size_t>(Canal::memory<Wide>(view)));
  Mask<Wide> which{};
  set_lane(which, 2, -1);
  const auto stats = Canal::improve(view, tight(), {}, which, memory.data(), w.rows.impulse);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(lane(stats.factorizations, i) > 0, i == 2);
}

}  // namespace
}  // namespace stiction
