// Claims about the solvers, the certificate and the step of host/reference.
#include "host/reference/solvers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "host/reference/one_contact.h"
#include "host/reference/step.h"
#include "reference_models.h"

namespace stiction::reference {
namespace {

Matrix3d random_spd(std::mt19937& engine) {
  std::normal_distribution<double> normal;
  Matrix3d X;
  for (int i = 0; i < 9; ++i) X(i / 3, i % 3) = normal(engine);
  Matrix3d W = X * X.transpose();
  return 0.5 * (W + W.transpose());
}

Vector3d random_vector(std::mt19937& engine) {
  std::normal_distribution<double> normal;
  return {normal(engine), normal(engine), normal(engine)};
}

/// Natural residual of one contact, in m/s, written independently of certificate.cpp.
double residual(const Matrix3d& W, const Vector3d& c, double mu, const Vector3d& l, bool coulomb) {
  double w = W.trace() / 3;
  Vector3d u = W * l + c;
  if (coulomb) u.z() += mu * std::hypot(u.x(), u.y());
  Vector3d trial = l - u / w, p = trial;
  double r = std::hypot(trial.x(), trial.y());
  if (r > mu * trial.z()) {
    double n = std::max(0.0, (mu * r + trial.z()) / (1 + mu * mu));
    p = {r > 0 ? mu * n * trial.x() / r : 0, r > 0 ? mu * n * trial.y() / r : 0, n};
  }
  return w * (l - p).norm();
}

TEST(OneContact, SolvesRandomContactsExactly) {
  std::mt19937 engine(7);
  for (int i = 0; i < 5000; ++i) {
    Matrix3d W = random_spd(engine);
    Vector3d c = random_vector(engine);
    double mu = std::exp(2 * random_vector(engine).x());
    double size = c.norm();
    EXPECT_LT(residual(W, c, mu, solve_one_coulomb(W, c, mu), true), 1e-9 * size) << i;
    EXPECT_LT(residual(W, c, mu, solve_one_convex(W, c, mu), false), 1e-9 * size) << i;
  }
}

/// (n, t1, t2) of the published numbers to (t1, t2, n).
Vector3d ours(double n, double t1, double t2) { return {t1, t2, n}; }

TEST(OneContact, MatchesPublishedReferences) {
  Matrix3d W1, W2;
  W1 << 14, 1, -1, 1, 16, -2, -1, -2, 15;
  W2 << .1061, 1.733e-4, -9.421e-7, 1.733e-4, .001442, .001486, -9.421e-7, .001486, .01344;
  Vector3d q1 = ours(-1, 2, 3), q2 = ours(-.1458, -.2484, -.1515);
  EXPECT_LT((solve_one_coulomb(W1, q1, .1) - ours(.065695682898, -.003678614907, -.005443070814)).norm(), 1e-11);
  EXPECT_LT((solve_one_convex(W1, q1, .1) - ours(.087179279122, -.004897451945, -.007212297244)).norm(), 1e-11);
  EXPECT_LT((solve_one_coulomb(W2, q2, .6) - ours(10.205876055695, 1.931888367688, 5.810798010421)).norm(), 1e-10);
  EXPECT_LT((solve_one_convex(W2, q2, .6) - ours(15.176884257173, 2.071826962683, 8.867307748619)).norm(), 1e-10);
  Vector3d u = W1 * solve_one_convex(W1, q1, .1) + q1;
  EXPECT_NEAR(u.z(), .327011, 1e-6);  // the convex model takes off
}

/// Random problem with all kinds of rows: contacts of full rank, limit, friction, bilateral and soft rows.
ContactProblem random_problem(unsigned seed, int nv, int contacts) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  auto random = [&](int rows, int cols) {
    Matrix X(rows, cols);
    for (int i = 0; i < X.size(); ++i) X(i / cols, i % cols) = normal(engine);
    return X;
  };
  double inf = std::numeric_limits<double>::infinity();
  ContactProblem p;
  Matrix X = random(nv, nv);
  p.A = X * X.transpose() + 0.1 * Matrix::Identity(nv, nv);
  p.b = random(nv, 1);
  p.J = random(3 * contacts, nv);
  p.e = p.R = Vector::Zero(3 * contacts);
  p.mu = Vector::Constant(contacts, 0.5);
  p.phi = Vector::Constant(contacts, -1e-4);
  p.J_row = random(4, nv);
  p.e_row = 0.1 * random(4, 1);
  p.R_row = Vector::Zero(4);
  p.R_row[3] = 2;
  p.lower.resize(4), p.upper.resize(4);
  p.lower << 0, -0.01, -inf, -inf;
  p.upper << inf, 0.01, inf, inf;
  p.timestep = 0.01, p.gravity = 9.81, p.mean_mass = 1;
  return p;
}

TEST(Solvers, NsgsAndAdmmConvergeOnRandomProblemsWithAllRows) {
  SolverOptions options;
  for (unsigned seed = 0; seed < 30; ++seed) {
    Delassus d = delassus(random_problem(seed, 24, 6));
    Vector zero = Vector::Zero(d.q.size());
    ImpulseSolution a = nsgs(d, options, zero), b = admm(d, options, zero);
    EXPECT_TRUE(a.converged || b.converged) << seed;
    EXPECT_LE(b.score, 1e-8) << seed;
  }
}

TEST(Solvers, ConvexModelHasOneVelocity) {
  SolverOptions options{Law::kConvex, 1e-11, 5000, 10000};
  for (unsigned seed = 0; seed < 10; ++seed) {
    Delassus d = delassus(random_problem(seed, 24, 6));
    Vector zero = Vector::Zero(d.q.size());
    ImpulseSolution a = nsgs(d, options, zero), b = admm(d, options, zero);
    EXPECT_LT((d.W * (a.impulse - b.impulse)).cwiseAbs().maxCoeff(), 1e-7) << seed;
  }
}

TEST(Solvers, VelocityCarriesTheReportedImpulse) {
  ContactProblem p = random_problem(3, 24, 6);
  Solution s = solve(p, {});
  EXPECT_TRUE(s.converged);
  EXPECT_LT(s.certificate.r_dyn, 1e-12);
  EXPECT_LT(s.certificate.r_con, 1e-10 * s.certificate.scale);
  EXPECT_LT(s.certificate.r_row_relative, 1e-10);
  EXPECT_LT(s.certificate.r_cone, 1e-12);
  EXPECT_GT(s.certificate.r_ccp, 1e-3 * s.certificate.scale);  // a sliding contact is not the convex model's
}

TEST(Solvers, AcceptsAnEmptyProblem) {
  ContactProblem p = random_problem(1, 6, 0);
  p.J_row.resize(0, 6), p.e_row.resize(0), p.R_row.resize(0), p.lower.resize(0), p.upper.resize(0);
  Solution s = solve(p, {});
  EXPECT_TRUE(s.converged);
  EXPECT_LT((p.A * s.v - p.b).norm(), 1e-12);
}

TEST(Certificate, RisesWithEveryKindOfError) {
  ContactProblem p = random_problem(3, 24, 6);
  Solution s = solve(p, {});
  auto r_con = [&](const Vector& impulse) {
    Vector v = p.A.llt().solve(p.b + p.J.transpose() * impulse + p.J_row.transpose() * s.row_impulse);
    Certificate c = certify(p, v, impulse, s.row_impulse);
    return c.r_con / c.scale;
  };
  int loaded = 0;
  for (int i = 0; i < p.contacts(); ++i) {
    if (s.impulse[3 * i + 2] < 1e-3) continue;
    ++loaded;
    Vector dropped = s.impulse, swapped = s.impulse, negated = s.impulse;
    dropped.segment<3>(3 * i).setZero();
    std::swap(swapped[3 * i], swapped[3 * i + 1]);
    negated[3 * i + 1] *= -1;
    EXPECT_GT(r_con(dropped), 1e-4);
    EXPECT_GT(r_con(swapped), 1e-4);
    EXPECT_GT(r_con(negated), 1e-4);
  }
  EXPECT_GT(loaded, 0);
  Vector off = s.v;
  off[0] += 1e-3;
  EXPECT_GT(certify(p, off, s.impulse, s.row_impulse).r_dyn, 1e-5);
  EXPECT_GT(certify(p, s.v, s.impulse, s.row_impulse + Vector::Constant(4, 1e-3)).r_row, 1e-5);
}

TEST(Certificate, FlagsAContactThatNothingCanMove) {
  ContactProblem p = random_problem(3, 24, 2);
  p.J.topRows(3).setZero();
  Solution s = solve(p, {});
  EXPECT_TRUE(s.certificate.degenerate);
  EXPECT_TRUE(s.impulse.head<3>().isZero(0));
  Vector pushed = s.impulse;
  pushed[2] = 1;
  EXPECT_TRUE(std::isinf(certify(p, s.v, pushed, s.row_impulse).r_con));
}

std::vector<Contact> corners(const Vector& q) {
  std::vector<Contact> contacts;
  for (double x : {-0.1, 0.1})
    for (double y : {-0.1, 0.1}) {
      Vector3d corner = q.head<3>() + quaternion_at(q, 3) * Vector3d(x, y, -0.1);
      contacts.push_back({0, 1, corner, Matrix3d::Identity(), corner.z()});
    }
  return contacts;
}

TEST(Step, SlidingBoxStopsAfterTheExactDistance) {
  double mu = 0.5, h = 0.01, g = 9.81, heading = 0.7, distance = 0;
  Model model = test::box_on_ground(2, mu);
  Vector q = Eigen::Map<Vector>(model.qpos0.data(), 7), v = Vector::Zero(6);
  v.head<2>() << 5 * std::cos(heading), 5 * std::sin(heading);
  StepOptions bare{h, Integrator::kEuler};
  bare.penetration_allowance = 0;  // the formula is the bare rigid law's
  for (int i = 0; i < 110; ++i) {
    StepResult r = step(model, {q, v, Vector(0)}, corners(q), bare);
    ASSERT_TRUE(r.solution.converged) << i;
    q = r.q, v = r.v;
    double speed = std::max(0.0, 5 - (i + 1) * mu * g * h);
    distance += h * speed;
    ASSERT_NEAR(v.head<2>().norm(), speed, 1e-8) << i;
  }
  EXPECT_NEAR(distance, 25 / (2 * mu * g) - 5 * h / 2, 1e-4);  // the closed form, for a whole number of steps
  EXPECT_NEAR(q[0], distance * std::cos(heading), 1e-7);
  EXPECT_NEAR(q[1], distance * std::sin(heading), 1e-7);
  EXPECT_NEAR(q[2], 0.1, 1e-8);
}

TEST(Step, CompliantContactRestsAtItsStaticDepth) {
  double k = 1e4, h = 0.002;
  Model model = test::box_on_ground(2, 0.5);
  model.geom_stiffness[1] = k;
  model.geom_dissipation[1] = 0.02;
  Vector q = Eigen::Map<Vector>(model.qpos0.data(), 7), v = Vector::Zero(6);
  for (int i = 0; i < 500; ++i) {
    StepResult r = step(model, {q, v, Vector(0)}, corners(q), {h, Integrator::kEuler});
    q = r.q, v = r.v;
  }
  EXPECT_NEAR(q[2] - 0.1, -2 * 9.81 / (4 * k), 1e-7);
  EXPECT_LT(v.norm(), 1e-6);
}

TEST(Step, RecoveryOfPenetrationIsCapped) {
  Model model = test::box_on_ground(2, 0.5);
  model.gravity = {0, 0, 0};
  Vector q = Eigen::Map<Vector>(model.qpos0.data(), 7), v = Vector::Zero(6);
  q[2] -= 0.05;
  // What velocities keep: 9.81 m/s^2 h, or 0.044 m/s.
  EXPECT_NEAR(step(model, {q, v, Vector(0)}, corners(q), {0.002, Integrator::kEuler}).v[2], 0.01962, 1e-9);
  EXPECT_NEAR(step(model, {q, v, Vector(0)}, corners(q), {0.01, Integrator::kEuler}).v[2], 0.044, 1e-9);
  q[2] = 0.1 - 1e-4;
  EXPECT_NEAR(step(model, {q, v, Vector(0)}, corners(q), {0.002, Integrator::kEuler}).v[2], 0.2 * 1e-4 / 0.002, 1e-9);
}

}  // namespace
}  // namespace stiction::reference
