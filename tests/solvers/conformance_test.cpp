// What every solver of the list (cuda/step/solvers.h) must do, in double and float: the suite that a new one has to pass.
#include <cstring>
#include <limits>
#include <numeric>

#include "core/scalar.h"
#include "host/reference/solvers.h"
#include "step/solve_rows.h"
#include "tests/solvers/solve_dense.h"

namespace stiction {
namespace {

using problems::Dense;
using testing::Solved;

template <class Solver_, class T_>
struct Case {
  using Solver = Solver_;
  using T = T_;
};
template <class List>
struct CasesOf;
template <class... S>
struct CasesOf<SolverList<S...>> {
  using Type = ::testing::Types<Case<S, double>..., Case<S, float>...>;
};

template <class C>
class Conformance : public ::testing::Test {
 protected:
  using Solver = typename C::Solver;
  using T = typename C::T;
  static constexpr bool kWide = sizeof(T) == 8;
  /// What a solver is asked for, and what is left of it after rounding.
  static constexpr T kTolerance = kWide ? T(1e-9) : T(1e-5);
  static constexpr double kNear = kWide ? 1e-8 : 1e-4;
  /// What it aims at: what is known in closed form depends on it.
  static Law law() { return typename Solver::template Options<T>{}.law(); }

  /// A box on its corners, of which all laws say the same: under maximum dissipation its rotation is locked, since friction at
  /// a corner that turns is deflected by its own W_nt.
  static Dense<double> box(double mass, Eigen::Vector3d free_velocity, double mu, int copies = 1,
                           bool reversed = false) {
    Dense<double> d = problems::box_on_plane(mass, free_velocity, mu, copies, reversed);
    if (law() == Law::kDissipation)
      for (int k = 3; k < 6; ++k) d.A[k * d.nv + k] *= 1e12;
    return d;
  }

  static Solved solve(const Dense<double>& d, int iterations = 20000, T tolerance = kTolerance, double least = 1e-4) {
    SolveLimits<T> limits;
    limits.iterations = iterations, limits.tolerance = tolerance;
    return testing::solve_dense<Solver, T>(d, limits, least);
  }
};
struct Names {
  template <class C>
  static std::string GetName(int) {
    return std::string(C::Solver::kName) + (sizeof(typename C::T) == 8 ? "_double" : "_float");
  }
};
using Cases = CasesOf<Solvers>::Type;
TYPED_TEST_SUITE(Conformance, Cases, Names);

TYPED_TEST(Conformance, SolvesNothingAtAll) {
  auto r = this->solve(problems::bodies(Eigen::Matrix3d::Identity(), Eigen::Vector3d(1, 2, 3)));
  EXPECT_EQ(r.v[2], 3);
}

TYPED_TEST(Conformance, MatchesOneContactReferences) {
  for (auto& c : {problems::fclib_1c(), problems::fclib_rr_1c()}) {
    auto r = this->solve(c.problem, 100000, this->kWide ? 1e-13 : 1e-6, c.scale);
    for (int a = 0; a < 3; ++a)
      EXPECT_NEAR(r.d.impulse[a], c.impulse(this->law())[a],
                  (this->kWide ? 1e-9 : 1e-4) * c.impulse(this->law()).norm());
  }
}

TYPED_TEST(Conformance, SticksSlidesAndLiftsOff) {
  const double near = this->kNear;
  auto stick = this->solve(this->box(2, {0.01, 0, -0.1}, 0.5));
  for (double x : stick.v) EXPECT_NEAR(x, 0, near);
  EXPECT_NEAR(stick.sum(2), 0.2, near);
  auto slide = this->solve(this->box(2, {1, 1, -0.1}, 0.5));
  const auto after = problems::sliding_box(this->law(), {std::sqrt(2.0), -0.1}, 0.5);
  for (int a = 0; a < 2; ++a) EXPECT_NEAR(slide.v[a], after.speed / std::sqrt(2.0), near);
  EXPECT_NEAR(slide.v[2], after.up, near);
  auto leave = this->solve(this->box(2, {1, 0, 0.6}, 0.5));
  EXPECT_EQ(leave.sum(2), 0);
  EXPECT_NEAR(leave.v[2], 0.6, 1e-15);
}

TYPED_TEST(Conformance, TakesOffAsItsLawHasIt) {
  // It slides at 1 m/s and rises at 0.3 m/s: Coulomb lets it go, the convex law pushes until v_n = mu |v_t|.
  auto r = this->solve(this->box(2, {1, 0, 0.3}, 0.5));
  const auto after = problems::sliding_box(this->law(), {1, 0.3}, 0.5);
  EXPECT_NEAR(r.v[0], after.speed, this->kNear);
  EXPECT_NEAR(r.v[2], after.up, this->kNear);
  EXPECT_NEAR(r.sum(2), 2 * (after.up - 0.3), 2 * this->kNear);
}

TYPED_TEST(Conformance, DoesNotMindDuplicatesOrOrder) {
  const double speed = std::sqrt(1.04), near = 10 * this->kNear;
  const auto after = problems::sliding_box(this->law(), {speed, -0.1}, 0.5);
  for (int copies : {1, 2, 50})
    for (bool reversed : {false, true}) {
      if (!this->kWide && copies == 50) continue;  // float's floor grows with the sum of many
      auto r = this->solve(this->box(2, {1, 0.2, -0.1}, 0.5, copies, reversed));
      EXPECT_NEAR(r.v[0], after.speed / speed, near) << copies;
      EXPECT_NEAR(r.v[1], 0.2 * after.speed / speed, near) << copies;
      EXPECT_NEAR(r.sum(2), 2 * (after.up + 0.1), near) << copies;
    }
}

TYPED_TEST(Conformance, HandlesNoFriction) {
  auto r = this->solve(problems::box_on_plane(2, {1, 0, -0.1}, 0));
  EXPECT_NEAR(r.v[0], 1, this->kNear);
  EXPECT_NEAR(r.v[2], 0, this->kNear);
}

TYPED_TEST(Conformance, StaysFiniteAtExtremeFriction) {
  auto r = this->solve(problems::box_on_plane(2, {0.01, 0, -0.1}, 1e6), 500);
  for (double x : r.v) EXPECT_TRUE(is_finite(x));
  if (r.converged(10 * double(this->kTolerance))) { EXPECT_NEAR(r.v[0], 0, 10 * this->kNear); }
}

TYPED_TEST(Conformance, CarriesAStackOfEqualBoxes) {
  auto r = this->solve(problems::stack({1, 1, 1}, 0.1, 0.5));
  EXPECT_TRUE(r.converged(10 * double(this->kTolerance)));
  double level = 0;
  for (int i = 0; i < 4; ++i) level += r.d.impulse[3 * i + 2];
  EXPECT_NEAR(level, 0.3, 10 * this->kNear);
}

TYPED_TEST(Conformance, IsHonestAndFiniteAtMassRatiosOfAMillion) {
  for (auto masses : {std::vector<double>{1, 1e6}, std::vector<double>{1e6, 1}}) {
    auto r = this->solve(problems::stack(masses, 0.1, 0.5), 2000);
    for (double x : r.d.impulse) EXPECT_TRUE(is_finite(x));
    if (!r.converged(10 * double(this->kTolerance))) continue;
    for (double x : r.v) EXPECT_NEAR(x, 0, 100 * this->kNear);
  }
}

TYPED_TEST(Conformance, SolvesEveryKindOfRowInClosedForm) {
  Dense<double> d = problems::bodies(2 * Eigen::MatrixXd::Identity(5, 5), Eigen::VectorXd::Constant(5, 1.0));
  auto unit = [](int i) -> Eigen::VectorXd { return Eigen::VectorXd::Unit(5, i); };
  d.add_row(unit(0), -0.5, 0.5);                          // dry friction, overcome: v = 1 - 0.5 / 2
  d.add_row(unit(1), -5, 5);                              // dry friction, holding
  d.add_row(unit(2), -kUnbounded, kUnbounded, 0.25);      // bilateral: v = -0.25
  d.add_row(unit(3), -kUnbounded, kUnbounded, 0.2, 0.5);  // soft: v + 0.2 + 0.5 l = 0, v = 1 + l / 2
  d.add_row(-unit(4), 0, kUnbounded, 0.4);                // limit: v <= 0.4
  auto r = this->solve(d);
  const double expected[] = {0.75, 0, -0.25, 0.4, 0.4};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(r.v[i], expected[i], this->kNear) << i;
}

TYPED_TEST(Conformance, SolvesTwoCoupledLimitsInClosedForm) {
  // A = I, rows (1, 0) and (-0.6, 0.8): W = [1 -0.6; -0.6 1]. Both push: l = -W^-1 q.
  Dense<double> d = problems::bodies(Eigen::Matrix2d::Identity(), Eigen::Vector2d(-1, -1));
  d.add_row(Eigen::Vector2d(1, 0), 0, kUnbounded);
  d.add_row(Eigen::Vector2d(-0.6, 0.8), 0, kUnbounded);
  auto r = this->solve(d);
  EXPECT_NEAR(r.d.row_impulse[0], (1 + 0.6 * 0.2) / 0.64, 10 * this->kNear);
  EXPECT_NEAR(r.d.row_impulse[1], (0.2 + 0.6) / 0.64, 10 * this->kNear);
}

TYPED_TEST(Conformance, SolvesACompliantContactInClosedForm) {
  // Point mass 1 kg falling at 1 m/s on R = 0.5: v + R l = 0, v = -1 + l.
  Dense<double> d = problems::bodies(Eigen::Matrix3d::Identity(), Eigen::Vector3d(0, 0, -1));
  d.add_contact(Eigen::Matrix3d::Identity(), 0.5, {0, 0, 0}, 0.5);
  auto r = this->solve(d);
  EXPECT_NEAR(r.d.impulse[2], 1 / 1.5, this->kNear);
  EXPECT_NEAR(r.v[2], -0.5 / 1.5, this->kNear);
}

TYPED_TEST(Conformance, NormalComplianceSharesAHyperstaticForce) {
  // A box on four corners with a normal compliance and none along the face: each corner bears a quarter.
  Dense<double> d = problems::box_on_plane(2, {0, 0, -0.1}, 0.5);
  for (int i = 0; i < 4; ++i) d.R[3 * i + 2] = 1e-2, d.impulse[3 * i + 2] = i == 0 ? 0.2 : 0;
  auto r = this->solve(d, 20000, this->kWide ? 1e-12 : 1e-6);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(r.d.impulse[3 * i + 2], 0.1 / (2 + 1e-2), this->kWide ? 1e-6 : 2e-2) << i;
}

/// Where rows touch few columns a solver may leave the others out: nothing else changes.
TYPED_TEST(Conformance, SolvesRowsThatAreApartAsAnyOthers) {
  using Solver = typename TypeParam::Solver;
  using T = typename TypeParam::T;
  const Dense<double> tower = problems::stack({1, 2, 1, 3}, 0.1, 0.5);
  ASSERT_EQ(tower.nv, 24);
  SolveLimits<T> limits;
  limits.iterations = 20000, limits.tolerance = this->kTolerance;
  const Solved whole = testing::solve_dense<Solver, T>(tower, limits);
  for (int block : {6, 4, 24}) {  // 4: a body lies across two
    const Solved parts = testing::solve_dense<Solver, T>(tower, limits, 1e-4, {}, block);
    EXPECT_TRUE(parts.converged(10 * double(this->kTolerance))) << block;
    for (size_t i = 0; i < whole.v.size(); ++i) EXPECT_NEAR(parts.v[i], whole.v[i], 100 * this->kNear) << block;
  }
}

TYPED_TEST(Conformance, TakesAnExactGuessAsItIs) {
  auto first = this->solve(problems::random_problem(12, 3, 7, true), 20000, this->kTolerance);
  ASSERT_TRUE(first.converged(10 * double(this->kTolerance)));
  auto again = this->solve(first.d, 20000, 20 * this->kTolerance);
  EXPECT_LE(again.iterations, 1);
  for (size_t i = 0; i < first.v.size(); ++i) EXPECT_NEAR(again.v[i], first.v[i], 100 * this->kNear);
}

TYPED_TEST(Conformance, TakesAWarmStartThatIsNotFiniteAsNone) {
  Dense<double> d = problems::random_problem(6, 2, 1);
  const auto none = this->solve(d, 5);
  d.impulse[1] = std::nan(""), d.impulse[5] = std::numeric_limits<double>::infinity();
  const auto r = this->solve(d, 5);
  EXPECT_EQ(r.d.impulse, none.d.impulse);
  EXPECT_EQ(r.iterations, none.iterations);
}

TYPED_TEST(Conformance, StopsAtTheCap) {
  auto r = this->solve(problems::random_problem(36, 16, 5), 1);
  EXPECT_EQ(r.iterations, 1);
  EXPECT_FALSE(r.converged(double(this->kTolerance)));
}

TYPED_TEST(Conformance, ConvergesOnRandomFullRankProblems) {
  int converged = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto r = this->solve(problems::random_problem(18, 3, seed, true, seed % 2), 5000);
    converged += r.converged(100 * double(this->kTolerance));
    for (double x : r.d.impulse) EXPECT_TRUE(is_finite(x));
  }
  EXPECT_GE(converged, 18);
}

/// The same problem for host/reference, solved under the convex law.
reference::Solution convex_oracle(const Dense<double>& d) {
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto matrix = [&](const std::vector<double>& x, int rows) -> reference::Matrix {
    return Eigen::Map<const Rows>(x.data(), rows, d.nv);
  };
  const auto vector = [](const std::vector<double>& x) -> reference::Vector {
    return Eigen::Map<const Eigen::VectorXd>(x.data(), static_cast<Eigen::Index>(x.size()));
  };
  reference::ContactProblem p;
  p.A = matrix(d.A, d.nv), p.b = vector(d.b), p.J = matrix(d.J, 3 * d.contacts()), p.e = vector(d.e), p.R = vector(d.R);
  p.mu = vector(d.mu), p.phi = p.mu, p.J_row = matrix(d.J_row, d.rows()), p.e_row = vector(d.e_row);
  for (int i = 0; i < d.contacts(); ++i) p.phi[i] = d.e[3 * i + 2];
  p.R_row = vector(d.R_row), p.lower = vector(d.lower), p.upper = vector(d.upper), p.timestep = 1;
  return reference::solve(p, {reference::Law::kConvex, 1e-10, 5000, 10000});
}

TYPED_TEST(Conformance, HasTheOraclesVelocityWhereItIsUnique) {
  if (this->law() != Law::kConvex) GTEST_SKIP() << "only the convex law has one velocity";
  int compared = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto d = problems::random_problem(18, 4, seed, true, seed % 2);
    const auto oracle = convex_oracle(d);
    const auto r = this->solve(d, 5000);
    if (!oracle.converged || !r.converged(100 * double(this->kTolerance))) continue;
    ++compared;
    for (int k = 0; k < d.nv; ++k) EXPECT_NEAR(r.v[k], oracle.v[k], 1000 * this->kNear) << seed;
  }
  EXPECT_GE(compared, 18);
}

TYPED_TEST(Conformance, StaysFiniteOnRankDeficientProblems) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto r = this->solve(problems::random_problem(9, 8, seed, true, seed % 2), 300);
    for (double x : r.d.impulse) EXPECT_TRUE(is_finite(x)) << seed;
  }
}

/// By what solvers go by, from a start that asks for far too much, however early it is cut off. Of V of no impulse: that of an answer
/// grows with what it pushes.
TYPED_TEST(Conformance, IsNeverWorseThanNoImpulse) {
  auto merit = [&](const Solved& s, double V) {
    const DenseResidual& r = s.residual;
    double own = this->law() == Law::kConvex ? r.r_ccp : std::max(r.r_con, 0.1 * r.r_split);
    if (this->law() == Law::kDissipation) own = r.r_mdp;  // its r_split is Coulomb's
    return std::max(own / V, r.row_ratio);
  };
  const double noise = this->kWide ? 1e-6 : 1e-2;
  int pushed = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    Dense<double> d = problems::random_problem(9, 6, seed, seed % 3 == 0, seed % 2);
    Solved none{d, {}, {}, 0, this->law()};
    testing::judge(none, 1e-4);
    for (size_t i = 0; i < d.impulse.size(); ++i) d.impulse[i] = 100 * std::sin(1.0 + 7 * i + seed);
    for (size_t i = 0; i < d.row_impulse.size(); ++i) d.row_impulse[i] = 100 * std::cos(3.0 * i + seed);
    for (int cap : {1, 3, 20, 2000}) {
      const auto r = this->solve(d, cap);
      // Under maximum dissipation an r_split that is less than none's may be paid for by r_mdp.
      const double slack = this->law() == Law::kDissipation ? none.residual.r_split / none.residual.scale : 0;
      const double V = r.converged(double(this->kTolerance)) ? r.residual.scale : none.residual.scale;
      EXPECT_LE(merit(r, V), merit(none, none.residual.scale) * (1 + noise) + slack + double(this->kTolerance))
          << seed << ", " << cap;
      pushed += r.sum(2) > 0;
    }
  }
  EXPECT_GT(pushed, 30);
}

TYPED_TEST(Conformance, GivesNothingToPlacesThatAreNotUsed) {
  using Solver = typename TypeParam::Solver;
  using T = typename TypeParam::T;
  problems::Whitened<T> w({problems::box_on_plane(2, {0, 0, -0.1}, 0.5)});
  for (int i = 3; i < 6; ++i) {  // the second contact
    w.rows.W[i] = w.rows.e[i] = w.rows.free[i] = w.rows.R[i] = T(0);
    for (int k = 0; k < 6; ++k) w.rows.Y[6 * i + k] = T(0);
  }
  w.rows.mu[1] = T(0);
  const auto view = w.view();
  std::vector<T> memory(static_cast<size_t>(Solver::template memory<T>(view)));
  Solver::template solve<T>(Serial{}, view, {}, {}, memory.data(), w.rows.impulse);
  for (int i = 3; i < 6; ++i) EXPECT_EQ(w.rows.impulse[i], 0);
  EXPECT_GT(w.rows.impulse[2] + w.rows.impulse[8], 0);
}

/// Lanes that share a world give the bits of one alone, but for what Anderson sums, and for SubADMM's with all rows in registers.
TYPED_TEST(Conformance, LanesOfATileAreBitEqualToOneAlone) {
  using Solver = typename TypeParam::Solver;
  using T = typename TypeParam::T;
  typename Solver::template Options<T> options;
  if constexpr (requires { options.anderson; }) options.anderson = 0;
  SolveLimits<T> limits;
  limits.tolerance = T(1e-4);
  std::vector<Dense<double>> worlds{problems::stack({1, 2, 1, 3}, 0.1, 0.5)};  // more columns than rows, and fewer
  for (unsigned seed = 0; seed < 4; ++seed) worlds.push_back(problems::random_problem(18, 2 + 3 * seed, seed, true, 1));
  worlds.push_back(problems::random_problem(18, 9, 43, true, true));  // SubADMM's first pass does worse than none
  for (const Dense<double>& d : worlds)
    for (auto [block, most] : {std::pair{0, 60}, {6, 60}, {0, 1}, {6, 1}}) {
      limits.iterations = most;
      const auto one = testing::solve_dense<Solver, T>(d, limits, 1e-4, options, block);
      auto equal = [&]<int kLanes>(std::integral_constant<int, kLanes>) {
        if (std::is_same_v<Solver, SubAdmm> && d.impulse.size() + d.row_impulse.size() <= 3 * kLanes) return;
        const auto tile = testing::solve_dense<Solver, T, TileEmulator<kLanes>>(d, limits, 1e-4, options, block);
        EXPECT_EQ(tile.iterations, one.iterations) << kLanes << " lanes, blocks of " << block;
        EXPECT_EQ(tile.d.impulse, one.d.impulse) << kLanes << " lanes, blocks of " << block;
        EXPECT_EQ(tile.d.row_impulse, one.d.row_impulse) << kLanes << " lanes, blocks of " << block;
      };
      equal(std::integral_constant<int, 2>{}), equal(std::integral_constant<int, 8>{});
    }
}

/// So do lanes that have a row each, or three, as many as a problem has or more, but for rounding: SubADMM has other forms for them.
TYPED_TEST(Conformance, LanesWithARowEachAnswerAsOneAlone) {
  using Solver = typename TypeParam::Solver;
  using T = typename TypeParam::T;
  const typename Solver::template Options<T> options;
  for (int contacts = 1; contacts <= 4; ++contacts)
    for (auto [tolerance, most] : {std::pair{0.0, 5}, {0.0, 40}, {1e-4, 60}}) {
      const Dense<double> d = problems::random_problem(18, contacts, contacts, true, contacts % 2);  // up to 16 rows
      SolveLimits<T> limits;
      limits.tolerance = T(tolerance), limits.iterations = most;
      const auto one = testing::solve_dense<Solver, T>(d, limits, 1e-4, options);
      auto near = [&]<int kLanes>(std::integral_constant<int, kLanes>) {
        const auto tile = testing::solve_dense<Solver, T, TileEmulator<kLanes>>(d, limits, 1e-4, options);
        EXPECT_NEAR(tile.iterations, one.iterations, sizeof(T) == 8 ? 0 : 2) << kLanes << " lanes";
        const double digits = sizeof(T) == 8 ? 1e-9 : 1e-3;
        for (size_t i = 0; i < one.d.impulse.size(); ++i)
          EXPECT_NEAR(tile.d.impulse[i], one.d.impulse[i], digits) << kLanes << " lanes";
        for (size_t i = 0; i < one.d.row_impulse.size(); ++i)
          EXPECT_NEAR(tile.d.row_impulse[i], one.d.row_impulse[i], digits) << kLanes << " lanes";
      };
      near(std::integral_constant<int, 4>{}), near(std::integral_constant<int, 8>{});
      near(std::integral_constant<int, 16>{});
    }
}

/// Every lane of a pack gives the bits of its world alone, whatever its neighbours do.
TYPED_TEST(Conformance, LanesAreBitEqualToWorldsAlone) {
  using Solver = typename TypeParam::Solver;
  using T = typename TypeParam::T;
  using Wide = Pack<T, 32 / sizeof(T)>;
  std::vector<Dense<double>> worlds;
  for (int i = 0; i < kWidth<Wide>; ++i)
    worlds.push_back(problems::random_problem(18, 4, static_cast<unsigned>(i), true, i % 2));
  for (T tolerance : {T(0), T(1e-4)}) {
    SolveLimits<T> limits;
    limits.tolerance = tolerance, limits.iterations = 60;
    const auto together = testing::solve_worlds<Solver, Wide>(worlds, limits);
    for (int i = 0; i < kWidth<Wide>; ++i) {
      const auto alone = testing::solve_dense<Solver, T>(worlds[i], limits);
      EXPECT_EQ(together[i].iterations, alone.iterations) << i;
      EXPECT_EQ(together[i].d.impulse, alone.d.impulse) << i;
      EXPECT_EQ(together[i].d.row_impulse, alone.d.row_impulse) << i;
    }
  }
}

}  // namespace
}  // namespace stiction
