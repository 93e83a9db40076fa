#include "contact/residual_dense.h"

#include <gtest/gtest.h>

#include "tests/problems/dense_problems.h"

namespace stiction {
namespace {

using problems::Dense;

template <class T>
DenseResidual judge(Dense<T>& d, const std::vector<T>& v, double floor = 1e-4) {
  std::vector<double> work(residual_dense_workspace(d.nv));
  return residual_dense(d.view(), v.data(), {floor, 0}, work.data());
}

/// A 2 kg box sliding at 1 m/s while it would fall at 0.1 m/s: impulses and velocity known.
struct Sliding {
  Dense<double> problem = problems::box_on_plane(2, {1, 0, -0.1}, 0.5);
  std::vector<double> v = {0.95, 0, 0, 0, 0, 0};
  Sliding() {
    // Friction's moment about the centre, 0.05 N s m, is balanced by unequal normal impulses over 1 m.
    for (int i = 0; i < 4; ++i) {
      double n = 0.05 + (i & 1 ? 0.025 : -0.025);
      problem.impulse[3 * i] = -0.5 * n, problem.impulse[3 * i + 2] = n;
    }
  }
};

TEST(ResidualDense, IsZeroAtTheClosedForm) {
  Sliding s;
  DenseResidual r = judge(s.problem, s.v);
  EXPECT_LT(r.r_dyn, 1e-14);
  EXPECT_LT(r.r_con, 1e-14);
  EXPECT_LT(r.r_split, 1e-14);
  EXPECT_LT(r.r_cone, 1e-14);
  EXPECT_DOUBLE_EQ(r.scale, 1.0);
  EXPECT_GT(r.r_ccp, 0.1);  // the convex model would lift the box off
}

TEST(ResidualDense, RisesWithEveryKindOfError) {
  auto con = [](auto change) {
    Sliding s;
    change(s);
    DenseResidual r = judge(s.problem, s.v);
    return max(r.r_con, r.r_dyn);
  };
  EXPECT_GT(con([](Sliding& s) { s.v[2] += 1e-3; }), 1e-4);
  EXPECT_GT(con([](Sliding& s) { s.problem.impulse[2] *= 1.01; }), 1e-4);
  EXPECT_GT(con([](Sliding& s) { s.problem.impulse[0] *= -1; }), 1e-3);
  EXPECT_GT(con([](Sliding& s) { std::swap(s.problem.impulse[0], s.problem.impulse[1]); }), 1e-3);
  EXPECT_GT(con([](Sliding& s) { s.problem.impulse[3] = s.problem.impulse[5] = 0; }), 1e-3);
  EXPECT_GT(con([](Sliding& s) { s.v[0] = std::nan(""); }), 1e100);
}

TEST(ResidualDense, SplitSeesWhatLargeFrictionHides) {
  auto d = problems::box_on_plane(2, {0.01, 0, -0.1}, 1e6);
  DenseResidual r = judge(d, {0.01, 0, -0.1, 0, 0, 0});  // no impulse at all: the box falls into the plane
  EXPECT_LT(r.r_con, 1e-5);
  EXPECT_NEAR(r.r_split, 0.1, 1e-12);
}

TEST(ResidualDense, CountsWhatNothingCanMove) {
  Sliding s;
  s.problem.add_contact(Eigen::MatrixXd::Zero(3, 6), 0.5);
  DenseResidual r = judge(s.problem, s.v);
  EXPECT_EQ(r.immovable, 1);
  EXPECT_LT(r.r_con, 1e-14);
  s.problem.impulse[14] = 1;
  EXPECT_GT(judge(s.problem, s.v).r_con, 1e100);
}

TEST(ResidualDense, RejectsIndefiniteMatrices) {
  Sliding s;
  s.problem.A[0] = -1;
  DenseResidual r = judge(s.problem, s.v);
  EXPECT_FALSE(r.factored);
  EXPECT_GT(r.r_con, 1e100);
}

}  // namespace
}  // namespace stiction
