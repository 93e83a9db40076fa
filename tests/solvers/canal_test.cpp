#include "solvers/canal/canal.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "contact/residual_dense.h"
#include "tests/problems/dense_problems.h"

namespace stiction {
namespace {

using problems::Dense;

template <class T>
struct Result {
  CanalStats<T> stats;
  std::vector<T> v;
  DenseResidual residual;
  T sum(const Dense<T>& d, int axis) const {
    T total = 0;
    for (int i = 0; i < d.contacts(); ++i) total += d.impulse[3 * i + axis];
    return total;
  }
};

/// Solves, and holds the solver to its word: what it calls converged passes the certificate in double.
template <class T>
Result<T> solve(Dense<T>& d, CanalOptions<T> options = {}) {
  std::vector<T> work(static_cast<size_t>(canal_workspace_size(d.nv, d.contacts(), d.rows())));
  Result<T> r{{}, std::vector<T>(static_cast<size_t>(d.nv)), {}};
  auto view = d.view();
  r.stats = canal(view, options, work.data(), r.v.data());
  std::vector<double> more(static_cast<size_t>(residual_dense_workspace(d.nv)));
  r.residual = residual_dense(view, r.v.data(), {double(options.least_velocity), 0}, more.data());
  if (r.stats.converged) {
    EXPECT_LE(r.residual.r_con, 1.05 * double(options.tolerance) * r.residual.scale);
    EXPECT_LE(r.residual.r_split, 10.5 * double(options.tolerance) * r.residual.scale);
    EXPECT_LE(r.residual.row_ratio, 1.05 * double(options.tolerance));
    EXPECT_LE(r.residual.r_dyn, sizeof(T) == 8 ? 1e-10 : 1e-5);
    EXPECT_LE(r.residual.r_cone, sizeof(T) == 8 ? 1e-12 : 1e-6);
  }
  return r;
}

template <class T>
class Canal : public testing::Test {};
using Numbers = testing::Types<float, double>;
TYPED_TEST_SUITE(Canal, Numbers);

TEST(CanalDouble, MatchesOneContactReferences) {
  for (auto& c : {problems::fclib_1c(), problems::fclib_rr_1c()}) {
    Dense<double> d = c.problem;
    CanalOptions<double> options;
    options.tolerance = 1e-13, options.least_velocity = c.scale;
    auto r = solve(d, options);
    for (int a = 0; a < 3; ++a) EXPECT_NEAR(d.impulse[a], c.impulse[a], 1e-9 * c.impulse.norm());
  }
}

TYPED_TEST(Canal, SticksSlidesAndLiftsOff) {
  using T = TypeParam;
  T tight = sizeof(T) == 8 ? T(2e-8) : T(2e-5);
  auto stick = problems::box_on_plane(2, {0.01, 0, -0.1}, 0.5).cast<T>();
  auto r = solve(stick);
  ASSERT_TRUE(r.stats.converged);
  for (T x : r.v) EXPECT_NEAR(x, 0, tight);
  EXPECT_NEAR(r.sum(stick, 2), 0.2, tight);

  auto slide = problems::box_on_plane(2, {1, 1, -0.1}, 0.5).template cast<T>();
  r = solve(slide);
  ASSERT_TRUE(r.stats.converged);
  for (int a = 0; a < 2; ++a) EXPECT_NEAR(r.v[a], 1 - 0.05 / std::sqrt(2.0), tight);
  EXPECT_NEAR(r.v[2], 0, tight);

  auto leave = problems::box_on_plane(2, {1, 0, 0.3}, 0.5).cast<T>();
  r = solve(leave);
  ASSERT_TRUE(r.stats.converged);
  EXPECT_EQ(r.sum(leave, 2), 0);
  EXPECT_EQ(r.stats.newton, 0);
}

TYPED_TEST(Canal, DoesNotMindDuplicatesOrOrder) {
  using T = TypeParam;
  T tight = sizeof(T) == 8 ? T(1e-8) : T(1e-4);
  for (int copies : {1, 2, 50})
    for (bool reversed : {false, true}) {
      if (sizeof(T) == 4 && copies == 50) continue;  // float: see ConvergesOnFiftyCopiesOrSaysNot
      auto d = problems::box_on_plane(2, {1, 0.2, -0.1}, 0.5, copies, reversed).template cast<T>();
      auto r = solve(d);
      ASSERT_TRUE(r.stats.converged) << copies;
      double speed = std::sqrt(1.04);
      EXPECT_NEAR(r.v[0], 1 - 0.05 / speed, tight);
      EXPECT_NEAR(r.v[1], 0.2 - 0.01 / speed, tight);
      EXPECT_NEAR(r.sum(d, 2), 0.2, tight);
    }
}

TYPED_TEST(Canal, HandlesExtremeFriction) {
  using T = TypeParam;
  T tight = sizeof(T) == 8 ? T(1e-8) : T(1e-4);
  auto smooth = problems::box_on_plane(2, {1, 0, -0.1}, 0).cast<T>();
  auto r = solve(smooth);
  ASSERT_TRUE(r.stats.converged);
  EXPECT_NEAR(r.v[0], 1, tight);
  EXPECT_NEAR(r.v[2], 0, tight);
  auto rough = problems::box_on_plane(2, {0.01, 0, -0.1}, 1e6).cast<T>();
  r = solve(rough);
  if (sizeof(T) == 8) { EXPECT_TRUE(r.stats.converged); }
  if (r.stats.converged) { EXPECT_NEAR(r.v[0], 0, tight); }
  EXPECT_TRUE(is_finite(r.v[0]));  // float may fail at mu = 1e6, and says so
}

TEST(CanalDouble, StandsAtMassRatioOfAMillion) {
  for (auto masses : {std::vector<double>{1, 1e6}, std::vector<double>{1e6, 1}, std::vector<double>{1, 1e3, 1e6}}) {
    auto d = problems::stack(masses, 0.1, 0.5);
    auto r = solve(d);
    ASSERT_TRUE(r.stats.converged);
    for (double x : r.v) EXPECT_NEAR(x, 0, 1e-8);
    double level = 0;
    for (int i = 0; i < 4; ++i) level += d.impulse[3 * i + 2];
    EXPECT_NEAR(level, 0.1 * std::accumulate(masses.begin(), masses.end(), 0.0), 1e-6 * level);
  }
}

TEST(CanalDouble, SolvesTwoLimitsInClosedForm) {
  // A = I, rows (1, 0) and (-0.6, 0.8): W = [1 -0.6; -0.6 1]. Both push: l = -W^-1 q.
  Dense<double> d = problems::bodies(Eigen::Matrix2d::Identity(), Eigen::Vector2d(-1, -1));
  d.add_row(Eigen::Vector2d(1, 0), 0, kUnbounded);
  d.add_row(Eigen::Vector2d(-0.6, 0.8), 0, kUnbounded);
  auto r = solve(d);
  ASSERT_TRUE(r.stats.converged);
  EXPECT_NEAR(d.row_impulse[0], (1 + 0.6 * 0.2) / 0.64, 1e-8);
  EXPECT_NEAR(d.row_impulse[1], (0.2 + 0.6) / 0.64, 1e-8);
}

TEST(CanalDouble, SolvesEveryKindOfRowInClosedForm) {
  Dense<double> d = problems::bodies(2 * Eigen::MatrixXd::Identity(5, 5), Eigen::VectorXd::Constant(5, 1.0));
  auto unit = [](int i) -> Eigen::VectorXd { return Eigen::VectorXd::Unit(5, i); };
  d.add_row(unit(0), -0.5, 0.5);                          // dry friction, overcome: v = 1 - 0.5 / 2
  d.add_row(unit(1), -5, 5);                              // dry friction, holding
  d.add_row(unit(2), -kUnbounded, kUnbounded, 0.25);      // bilateral: v = -0.25
  d.add_row(unit(3), -kUnbounded, kUnbounded, 0.2, 0.5);  // soft: v + 0.2 + 0.5 l = 0, v = 1 + l / 2
  d.add_row(-unit(4), 0, kUnbounded, 0.4);                // limit: v <= 0.4
  auto r = solve(d);
  ASSERT_TRUE(r.stats.converged);
  double expected[] = {0.75, 0, -0.25, 0.4, 0.4};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(r.v[i], expected[i], 1e-8) << i;
}

TEST(CanalDouble, SolvesACompliantContactInClosedForm) {
  // Point mass 1 kg falling at 1 m/s on R = 0.5: v + R l = 0, v = -1 + l.
  Dense<double> d = problems::bodies(Eigen::Matrix3d::Identity(), Eigen::Vector3d(0, 0, -1));
  d.add_contact(Eigen::Matrix3d::Identity(), 0.5, {0, 0, 0}, 0.5);
  auto r = solve(d);
  ASSERT_TRUE(r.stats.converged);
  EXPECT_NEAR(d.impulse[2], 1 / 1.5, 1e-8);
  EXPECT_NEAR(r.v[2], -0.5 / 1.5, 1e-8);
}

TEST(CanalDouble, ConvergesOnRandomProblems) {
  int converged = 0, total = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    bool rows = seed % 2, compliant = seed % 3 == 0;
    auto full = problems::random_problem(18, 4, seed, rows, compliant);
    EXPECT_TRUE(solve(full).stats.converged) << seed;
    auto deficient = problems::random_problem(12, 8, seed, rows, compliant);
    converged += solve(deficient).stats.converged, ++total;
  }
  EXPECT_GE(converged, total * 95 / 100);
}

TEST(CanalFloat, ConvergesOnRandomProblems) {
  int converged = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    auto d = problems::random_problem(18, 4, seed, seed % 2, seed % 3 == 0).cast<float>();
    converged += solve(d).stats.converged;
  }
  EXPECT_GE(converged, 50);  // the others stop at float's floor, a few 1e-5 V, and say so
}

TEST(CanalFloat, ConvergesOnFiftyCopiesOrSaysNot) {
  auto d = problems::box_on_plane(2, {1, 0.2, -0.1}, 0.5, 50).cast<float>();
  auto r = solve(d);
  EXPECT_LT(r.residual.r_con, 1e-3);
  EXPECT_EQ(r.stats.converged, r.residual.r_con <= 1e-5 * r.residual.scale);
}

TEST(CanalDouble, TakesAnExactGuessAsItIs) {
  auto d = problems::random_problem(12, 4, 7, true);
  CanalOptions<double> tight;
  tight.tolerance = 1e-10;
  ASSERT_TRUE(solve(d, tight).stats.converged);
  auto again = solve(d);
  EXPECT_TRUE(again.stats.converged);
  EXPECT_EQ(again.stats.newton, 0);
}

TEST(CanalDouble, SaysWhenTheCapStopsIt) {
  auto d = problems::random_problem(18, 6, 5);
  CanalOptions<double> options;
  options.outer = 1;
  auto r = solve(d, options);
  EXPECT_EQ(r.stats.outer, 1);
  EXPECT_FALSE(r.stats.converged);
  EXPECT_GT(r.residual.r_con, 1e-8 * r.residual.scale);
  EXPECT_NEAR(r.stats.r_con, r.residual.r_con, 1e-9);
}

TYPED_TEST(Canal, RejectsWhatCannotBeSolved) {
  using T = TypeParam;
  auto d = problems::random_problem(6, 2, 1).cast<T>();
  auto indefinite = d, poisoned = d, huge = d, guess = d;
  indefinite.A[0] = T(-1), poisoned.b[2] = T(std::nan("")), huge.J[4] = std::numeric_limits<T>::max(),
  guess.impulse[1] = T(std::nan(""));
  for (auto* bad : {&indefinite, &poisoned, &huge}) {
    auto r = solve(*bad);
    EXPECT_FALSE(r.stats.converged);
    for (T l : bad->impulse) EXPECT_TRUE(is_finite(l));
  }
  EXPECT_FALSE(solve(indefinite).stats.sound);
  EXPECT_FALSE(solve(poisoned).stats.sound);
  EXPECT_TRUE(solve(guess).stats.converged);  // a warm start is a guess only
}

TYPED_TEST(Canal, LeavesTheImmovableAlone) {
  using T = TypeParam;
  auto d = problems::box_on_plane(2, {1, 0, -0.1}, 0.5);
  d.add_contact(Eigen::MatrixXd::Zero(3, 6), 0.5, {0, 0, -1});
  d.add_row(Eigen::VectorXd::Zero(6), 0, kUnbounded, -1);
  auto t = d.cast<T>();
  t.impulse[14] = 3;
  auto r = solve(t);
  EXPECT_TRUE(r.stats.converged);
  EXPECT_EQ(r.stats.immovable, 2);
  EXPECT_EQ(t.impulse[14], 0);
  EXPECT_EQ(t.row_impulse[0], 0);
}

TYPED_TEST(Canal, SolvesNothingAtAll) {
  auto d = problems::bodies(Eigen::Matrix3d::Identity(), Eigen::Vector3d(1, 2, 3)).cast<TypeParam>();
  auto r = solve(d);
  EXPECT_TRUE(r.stats.converged);
  EXPECT_EQ(r.v[2], 3);
}

}  // namespace
}  // namespace stiction
