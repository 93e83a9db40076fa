// SubADMM's sweeps before its first pass (solvers/subadmm/sweeps.h): what they find, whom they are for, and that they say so of nothing else.
#include <random>

#include "core/scalar.h"
#include "host/reference/solvers.h"
#include "step/solve_rows.h"
#include "tests/solvers/solve_dense.h"

namespace stiction {
namespace {

using problems::Dense;
using testing::Solved;

template <class T>
class Sweeps : public ::testing::Test {
 protected:
  static constexpr double kTolerance = sizeof(T) == 8 ? 1e-9 : 1e-5, kAtMost = (sizeof(T) == 8 ? 20 : 100) * kTolerance;

  static Solved solve(const Dense<double>& d, int sweeps = 16, double tolerance = kTolerance, int iterations = 2000,
                      bool lone = true) {
    SolveLimits<T> limits;
    limits.iterations = iterations, limits.tolerance = T(tolerance);
    SubAdmmOptions<T> options;
    options.sweeps = sweeps;
    return testing::solve_dense<SubAdmm, T>(d, limits, 1e-4, options, 0, lone);
  }

  /// Bodies of three dofs each with a contact, coupled by inertia by `coupling` of their own; two limits besides.
  static Dense<double> feet(int contacts, unsigned seed, double coupling = 0.3, bool rows = true) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0, 1);
    auto matrix = [&](int r, int c) -> Eigen::MatrixXd {
      return Eigen::MatrixXd::NullaryExpr(r, c, [&] { return normal(generator); });
    };
    const int nv = 3 * contacts + 3;
    Eigen::MatrixXd A = 0.1 * Eigen::MatrixXd::Identity(nv, nv);
    for (int k = 0; k < nv; k += 3) {
      const Eigen::MatrixXd B = matrix(3, 3);
      A.block(k, k, 3, 3) += std::exp(normal(generator)) * B * B.transpose();
    }
    const Eigen::MatrixXd C = matrix(nv, 1);
    A += coupling * C * C.transpose();
    Eigen::MatrixXd v = matrix(nv, 1);
    Dense<double> d = problems::bodies(A, v);
    for (int i = 0; i < contacts; ++i) {
      Eigen::MatrixXd J = Eigen::MatrixXd::Zero(3, nv);
      J.block(0, 3 * i, 3, 3) = Eigen::Matrix3d::Identity();
      J.block(0, nv - 3, 3, 3) = 0.2 * matrix(3, 3);
      const double mu = i % 3 == 2 ? 0 : 1.5 * uniform(generator), gap = 0.1 * normal(generator);
      d.add_contact(J, mu, {0, 0, gap}, seed % 3 == 0 ? 0.05 * uniform(generator) : 0.0);
    }
    if (rows) d.add_row(matrix(nv, 1), 0, kUnbounded, 0.1), d.add_row(matrix(nv, 1), 0, kUnbounded, -0.1);
    return d;
  }
};
using Numbers = ::testing::Types<double, float>;
TYPED_TEST_SUITE(Sweeps, Numbers);

/// Nothing is factored where they are enough; what they call solved is, in every world, but for what single precision loses where
/// masses differ by thousands.
TYPED_TEST(Sweeps, SolveFeetWithoutAnOperator) {
  int alone = 0, fewer = 0, far = 0;
  const int count = 2000;
  for (unsigned seed = 0; seed < count; ++seed) {
    const auto d = this->feet(1 + seed % 4, seed);
    const Solved found = this->solve(d), passes = this->solve(d, 0);
    alone += found.factorizations == 0, fewer += found.iterations < passes.iterations;
    if (found.factorizations > 0) continue;
    EXPECT_LE(found.iterations, 16) << seed;
    const double own = std::max(found.residual.r_con, 0.1 * found.residual.r_split) / found.residual.scale;
    far += std::max(own, found.residual.row_ratio) > this->kAtMost;
  }
  EXPECT_LE(far, sizeof(TypeParam) == 8 ? 0 : count / 500);
  EXPECT_GE(alone, 0.7 * count);
  EXPECT_GE(fewer, 0.7 * count);
}

/// A foot that all but sticks slides in a direction that follows the smallest errors.
TYPED_TEST(Sweeps, FindTheDirectionOfSlowSlip) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    auto d = this->feet(2 + seed % 3, seed, 0.3, false);
    const Solved once = this->solve(d);
    for (int i = 0; i < d.contacts(); ++i) {  // friction that is just not enough
      const double* l = &once.d.impulse[3 * i];
      if (l[2] > 0) d.mu[i] = std::hypot(l[0], l[1]) / l[2] * 0.999;
    }
    const Solved found = this->solve(d);
    if (found.factorizations > 0) continue;
    EXPECT_LE(found.residual.r_con / found.residual.scale, this->kAtMost) << seed;
  }
}

TYPED_TEST(Sweeps, AgreeWithThePasses) {
  int compared = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const auto d = this->feet(1 + seed % 4, seed, 0.1);
    const Solved found = this->solve(d), passes = this->solve(d, 0);
    if (found.factorizations > 0 || !passes.converged(100 * this->kTolerance)) continue;
    ++compared;
    for (int k = 0; k < d.nv; ++k) EXPECT_NEAR(found.v[k], passes.v[k], 1e4 * this->kTolerance) << seed;
  }
  EXPECT_GE(compared, 130);
}

/// More contacts, more rows than dofs, of which friction would hold one against another, and rows that push both ways begin with passes, and
/// so does what may have several contacts on a link.
TYPED_TEST(Sweeps, LeaveTheOthersToPasses) {
  auto loop = this->feet(2, 1), rubs = loop;
  loop.add_row(Eigen::MatrixXd::Ones(loop.nv, 1), -kUnbounded, kUnbounded);
  rubs.add_row(Eigen::MatrixXd::Ones(rubs.nv, 1), -0.2, 0.2);
  const auto box = problems::box_on_plane(1, {0.1, 0, -1}, 0.5);
  for (const Dense<double>& d : {this->feet(5, 1), loop, rubs, box}) {
    const Solved found = this->solve(d, 16, this->kTolerance, 2000), passes = this->solve(d, 0);
    EXPECT_EQ(found.factorizations, 1);
    EXPECT_EQ(found.iterations, passes.iterations);
    EXPECT_EQ(found.d.impulse, passes.d.impulse);
  }
  EXPECT_EQ(this->solve(this->feet(2, 1)).factorizations, 0);
  EXPECT_EQ(this->solve(this->feet(2, 1), 16, this->kTolerance, 2000, false).factorizations, 1);
}

TYPED_TEST(Sweeps, GoOnByPassesAndAreNotMadeWhereIterationsAreFixed) {
  const auto d = this->feet(4, 7);
  const Solved some = this->solve(d, 2);
  EXPECT_EQ(some.factorizations, 1);
  EXPECT_TRUE(some.converged(100 * this->kTolerance));
  EXPECT_EQ(this->solve(d, 16, 0, 10).d.impulse, this->solve(d, 0, 0, 10).d.impulse);
}

/// Those that begin with sweeps and those that do not, side by side.
TYPED_TEST(Sweeps, GiveInPacksTheBitsOfWorldsAlone) {
  using Wide = Pack<TypeParam, 32 / sizeof(TypeParam)>;
  SolveLimits<TypeParam> limits;
  limits.tolerance = TypeParam(this->kTolerance);
  SubAdmmOptions<TypeParam> options;
  options.sweeps = 16;
  for (unsigned round = 0; round < 20; ++round) {
    std::vector<Dense<double>> worlds;
    for (int i = 0; i < kWidth<Wide>; ++i) {
      worlds.push_back(this->feet(4, kWidth<Wide> * round + i, 0.3, false));
      worlds.back().add_row(Eigen::MatrixXd::Ones(worlds.back().nv, 1), i % 3 == 1 ? -0.2 : 0, 0.2);
    }
    const auto together = testing::solve_worlds<SubAdmm, Wide>(worlds, limits, 1e-4, options, 0, true);
    for (int i = 0; i < kWidth<Wide>; ++i) {
      const auto alone = testing::solve_dense<SubAdmm, TypeParam>(worlds[i], limits, 1e-4, options, 0, true);
      EXPECT_EQ(together[i].iterations, alone.iterations) << i;
      EXPECT_EQ(together[i].d.impulse, alone.d.impulse) << i;
      EXPECT_EQ(together[i].d.row_impulse, alone.d.row_impulse) << i;
    }
  }
}

}  // namespace
}  // namespace stiction
