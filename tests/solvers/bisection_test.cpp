// Bisection's solution of one contact, against brute force; what its options do.
#include "solvers/bisection/bisection.h"

#include <cmath>
#include <numbers>

#include "host/reference/one_contact.h"
#include "tests/solvers/solve_dense.h"

namespace stiction {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;

struct Contact {
  Matrix3d W;
  Vector3d c;
  double mu;
};
/// W with a condition up to 1e6; the contact closes.
Contact random_contact(std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  Matrix3d X;
  for (int i = 0; i < 9; ++i) X(i / 3, i % 3) = normal(random);
  const Matrix3d Q = Eigen::HouseholderQR<Matrix3d>(X).householderQ();
  const double spread = 6 * uniform(random);
  Vector3d values;
  for (int i = 0; i < 3; ++i) values[i] = std::pow(10, spread * (uniform(random) - 1));
  const Matrix3d W = Q * values.asDiagonal() * Q.transpose();
  Vector3d c(normal(random), normal(random), -std::abs(normal(random)));
  return {0.5 * (W + W.transpose()), c, 2 * uniform(random)};
}

template <class T>
Vector3d solve(const Contact& x, const SlipSearch<T>& search = {}) {
  const Matrix3d& W = x.W;
  auto in = [](double a) { return static_cast<T>(a); };
  const ContactBlock<T> b = contact_block<T>(
      {in(W(0, 0)), in(W(0, 1)), in(W(0, 2)), in(W(1, 1)), in(W(1, 2)), in(W(2, 2))}, T(0), T(0), T(0));
  const Vec3<T> c{in(x.c[0]), in(x.c[1]), in(x.c[2])};
  const Vec3<T> l =
      solve_contact<T>(b, c.z, {c.x - b.coupling.x * c.z, c.y - b.coupling.y * c.z}, in(x.mu), true, search);
  return {l.x, l.y, l.z};
}

/// The impulse of least energy: stick, or the best of the angles of the conic, scanned and then refined by golden section.
struct BruteForce {
  const Contact& x;
  Matrix3d inverse = x.W.inverse();

  Vector3d impulse(double angle) const {
    const Matrix3d& W = x.W;
    const double depth = W(2, 2) + x.mu * (W(2, 0) * std::cos(angle) + W(2, 1) * std::sin(angle)), n = -x.c[2] / depth;
    return {x.mu * n * std::cos(angle), x.mu * n * std::sin(angle), n};
  }
  double energy(const Vector3d& l) const {
    const Vector3d v = x.W * l + x.c;
    return l[2] >= 0 ? v.dot(inverse * v) : 1e300;
  }
  Vector3d solve() const {
    const Vector3d stick = -(inverse * x.c);
    if (stick.head<2>().norm() <= x.mu * stick[2]) return stick;
    constexpr int kScan = 1000;
    const double step = 2 * std::numbers::pi / kScan;
    double best = 0;
    for (int i = 0; i < kScan; ++i)
      if (energy(impulse(i * step)) < energy(impulse(best))) best = i * step;
    double low = best - step, high = best + step;
    for (int i = 0; i < 80; ++i) {
      const double a = low + 0.381966 * (high - low), b = high - 0.381966 * (high - low);
      if (energy(impulse(a)) < energy(impulse(b))) high = b;
      else low = a;
    }
    return impulse(0.5 * (low + high));
  }
};

TEST(OneContact, DissipatesAsMuchAsBruteForceFinds) {
  std::mt19937 random(1);
  for (int stepping : {0, 1}) {
    int slides = 0;
    for (int i = 0; i < 5000; ++i) {
      const Contact x = random_contact(random);
      const BruteForce oracle{x};
      const Vector3d l = solve<double>(x, {0, stepping, 64}), best = oracle.solve(), u = x.W * l + x.c;
      const double size = x.c.dot(oracle.inverse * x.c);
      ASSERT_LE(oracle.energy(l), oracle.energy(best) + 1e-9 * size) << i;
      ASSERT_LE(l.head<2>().norm(), x.mu * l[2] * (1 + 1e-12)) << i;
      ASSERT_LE(std::abs(u[2]), 1e-9 * x.c.norm()) << i;
      slides += l.head<2>().norm() > x.mu * l[2] * (1 - 1e-9);
    }
    EXPECT_GT(slides, 2500);
  }
}

/// Natural residual of exact Coulomb, m/s.
double coulomb_residual(const Contact& x, const Vector3d& l) {
  const Vector3d u = x.W * l + x.c;
  const double g = x.W.trace() / 3;
  return contact_residual(Vec3<double>{l[0], l[1], l[2]}, Vec3<double>{u[0], u[1], u[2]}, x.mu, g).con;
}

TEST(OneContact, IsExactUnderCoulombsLawWithoutAFallback) {
  std::mt19937 random(2);
  for (int stepping : {0, 1})
    for (int i = 0; i < 20000; ++i) {
      const Contact x = random_contact(random);
      const Vector3d l = solve<double>(x, {1, stepping, 64});
      const double pushed = x.W.trace() / 3 * l.norm();  // up to 1e6 times what is left
      ASSERT_LE(coulomb_residual(x, l), 1e-10 * (x.c.norm() + pushed)) << i;
    }
}

TEST(OneContact, AgreesWithTheReferenceWhereCoulombsLawHasOneAnswer) {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    Contact x = random_contact(random);
    x.W = x.W + Matrix3d::Identity(), x.mu *= 0.2;  // mu |W_nt| / W_nn below 1
    const Vector3d l = solve<double>(x, {1, 0, 64}), r = reference::solve_one_coulomb(x.W, x.c, x.mu);
    ASSERT_LE((l - r).norm(), 1e-9 * r.norm()) << i;
  }
}

TEST(OneContact, BothLawsAgreeWhereTheNormalImpulseDoesNotMoveTheTangents) {
  std::mt19937 random(4);
  for (int i = 0; i < 2000; ++i) {
    Contact x = random_contact(random);
    x.W(0, 2) = x.W(2, 0) = x.W(1, 2) = x.W(2, 1) = 0;
    const Vector3d l = solve<double>(x), r = solve<double>(x, {1, 0, 64});
    ASSERT_LE((l - r).norm(), 1e-9 * r.norm()) << i;
  }
}

TEST(OneContact, OpensAndSlidesWithoutFriction) {
  std::mt19937 random(5);
  for (int i = 0; i < 1000; ++i) {
    Contact x = random_contact(random);
    x.mu = 0;
    const Vector3d l = solve<double>(x);
    EXPECT_NEAR(l[2], -x.c[2] / x.W(2, 2), 1e-12 * l[2]);
    EXPECT_EQ(l.head<2>().norm(), 0);
    x.c[2] = -x.c[2], x.mu = 1;
    EXPECT_EQ(solve<double>(x).norm(), 0);
  }
}

TEST(OneContact, FloatLeavesRoundingOnly) {
  std::mt19937 random(6);
  int near = 0, total = 0;
  for (int i = 0; i < 4000; ++i) {
    Contact x = random_contact(random);
    x.W = x.W + 1e-2 * Matrix3d::Identity();  // condition 100
    const BruteForce oracle{x};
    const Vector3d l = solve<float>(x), best = oracle.solve();
    ASSERT_TRUE(l.allFinite());
    near += oracle.energy(l) <= oracle.energy(best) + 1e-4 * x.c.dot(oracle.inverse * x.c), ++total;
  }
  EXPECT_EQ(near, total);
}

TEST(OneContact, FalsePositionNeedsFewEvaluations) {
  // Where it is stopped there, it must have arrived.
  for (auto [evaluations, share] : {std::pair(11, 0.75), std::pair(20, 0.98), std::pair(28, 0.999)}) {
    std::mt19937 random(7);
    int arrived = 0, slides = 0;
    for (int i = 0; i < 4000; ++i) {
      const Contact x = random_contact(random);
      const Vector3d capped = solve<double>(x, {0, 0, evaluations}), l = solve<double>(x);
      if (l.head<2>().norm() < x.mu * l[2] * (1 - 1e-9)) continue;
      ++slides, arrived += (capped - l).norm() <= 1e-6 * l.norm();
    }
    EXPECT_GE(arrived, share * slides) << evaluations;
  }
}

TEST(Bisection, SaysWhichLawItSolves) {
  BisectionOptions<double> coulomb;
  coulomb.coulomb = 1;
  EXPECT_EQ(BisectionOptions<double>{}.law(), Law::kDissipation);
  EXPECT_EQ(coulomb.law(), Law::kCoulomb);
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto d = problems::random_problem(18, 3, seed, true, seed % 2);
    const auto own = testing::solve_dense<Bisection, double>(d, {5000, 1e-9});
    const auto exact = testing::solve_dense<Bisection, double>(d, {5000, 1e-9}, 1e-4, coulomb);
    EXPECT_LE(own.residual.r_mdp, 1e-8 * own.residual.scale) << seed;
    EXPECT_LE(exact.residual.r_con, 1e-8 * exact.residual.scale) << seed;
  }
}

TEST(Bisection, SteppingFindsTheSameImpulses) {
  BisectionOptions<double> stepping;
  stepping.stepping = 1;
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto d = problems::random_problem(18, 3, seed, true);
    const auto a = testing::solve_dense<Bisection, double>(d, {5000, 1e-11});
    const auto b = testing::solve_dense<Bisection, double>(d, {5000, 1e-11}, 1e-4, stepping);
    for (size_t i = 0; i < a.d.impulse.size(); ++i) EXPECT_NEAR(a.d.impulse[i], b.d.impulse[i], 1e-7) << seed;
  }
}

}  // namespace
}  // namespace stiction
