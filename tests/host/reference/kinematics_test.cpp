// Claims about host/reference/kinematics.h and dynamics.h that need no other simulator: derivatives against differences,
// momentum and energy balances. Agreement with MuJoCo is in tests/python/test_reference.py.
#include "host/reference/kinematics.h"

#include <gtest/gtest.h>

#include <random>

#include "host/reference/step.h"
#include "reference_models.h"

namespace stiction::reference {
namespace {

struct State { Vector q, v; };

State random_state(const Model& model, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  State s{Eigen::Map<const Vector>(model.qpos0.data(), model.nq), Vector(model.nv)};
  Vector move(model.nv);
  for (int i = 0; i < model.nv; ++i) move[i] = normal(engine), s.v[i] = normal(engine);
  s.q = integrate(model, s.q, move, 1);
  return s;
}

TEST(Kinematics, JacobiansMatchVelocitiesAndFiniteDifferences) {
  Model model = test::mixed_chain();
  for (unsigned seed = 0; seed < 20; ++seed) {
    State s = random_state(model, seed);
    Kinematics k = forward_kinematics(model, s.q);
    auto motions = body_motions(model, k, s.q, s.v);
    double h = 1e-6;
    Kinematics ahead = forward_kinematics(model, integrate(model, s.q, s.v, h));
    Kinematics behind = forward_kinematics(model, integrate(model, s.q, s.v, -h));
    for (int b = 1; b < model.nbody; ++b) {
      Vector3d linear = point_jacobian(model, k, b, k.body_pos[b]) * s.v;
      EXPECT_LT((linear - motions[b].linear).norm(), 1e-12);
      EXPECT_LT((angular_jacobian(model, k, b) * s.v - motions[b].angular).norm(), 1e-12);
      EXPECT_LT((linear - (ahead.body_pos[b] - behind.body_pos[b]) / (2 * h)).norm(), 1e-7);
      Vector3d turn = k.body_rot[b] * rotation_difference(ahead.body_quat[b], behind.body_quat[b]) / (2 * h);
      EXPECT_LT((turn - motions[b].angular).norm(), 1e-7);
    }
  }
}

TEST(Kinematics, VelocityProductAccelerationsMatchFiniteDifferences) {
  Model model = test::mixed_chain();
  for (unsigned seed = 0; seed < 20; ++seed) {
    State s = random_state(model, seed);
    auto motions_at = [&](double t) {
      Vector q = integrate(model, s.q, s.v, t);
      return body_motions(model, forward_kinematics(model, q), q, s.v);
    };
    double h = 1e-5;
    auto now = motions_at(0), ahead = motions_at(h), behind = motions_at(-h);
    for (int b = 1; b < model.nbody; ++b) {
      EXPECT_LT((now[b].linear_acceleration - (ahead[b].linear - behind[b].linear) / (2 * h)).norm(), 1e-6);
      EXPECT_LT((now[b].angular_acceleration - (ahead[b].angular - behind[b].angular) / (2 * h)).norm(), 1e-6);
    }
  }
}

TEST(Dynamics, FreeMotionConservesEnergyToSecondOrder) {
  Model model = test::mixed_chain();
  State s = random_state(model, 3);
  auto energy = [&](const Vector& q, const Vector& v) {
    Kinematics k = forward_kinematics(model, q);
    return kinetic_energy(model, k, v) + potential_energy(model, k);
  };
  // dE/dt along the true acceleration vanishes: central difference over a step of the exact flow to second order.
  Vector acceleration = smooth_acceleration(model, s.q, s.v, Vector(0));
  double h = 1e-5;
  auto at = [&](double t) {
    return energy(integrate(model, s.q, s.v + 0.5 * t * acceleration, t), s.v + t * acceleration);
  };
  EXPECT_LT(std::abs(at(h) - at(-h)) / (2 * h), 1e-6 * (1 + std::abs(energy(s.q, s.v))));
}

TEST(FreeMotion, ImplicitStepSolvesTheLinearisedEquation) {
  Model model = test::mixed_chain();
  for (int dof = 0; dof < model.nv; ++dof) model.dof_damping[dof] = 0.3 + 0.1 * dof;
  for (int joint = 0; joint < model.njnt; ++joint)
    if (model.jnt_type[joint] >= static_cast<int>(JointType::kSlide)) model.jnt_stiffness[joint] = 20;
  State s = random_state(model, 5);
  double h = 0.01;
  Kinematics k = forward_kinematics(model, s.q);
  FreeMotion m = free_motion(model, k, {s.q, s.v, Vector(0)}, Integrator::kImplicit, h);
  Vector u = (s.v + m.v_free) / 2, f = passive_forces(model, k, s.q, s.v).total - bias(model, k, s.q, u);
  // The centre of mass of all goes straight, and the free joint's origin with it.
  Eigen::Vector3d drift = bias(model, k, s.q, u).head<3>() / m.M(0, 0);
  for (int i = 0; i < 3; ++i) drift[i] += model.gravity[i];
  f += m.M.leftCols<3>() * drift;
  Vector end_force = f - h * m.stiffness.cwiseProduct(m.v_free) - m.damping.cwiseProduct(m.v_free - s.v);
  EXPECT_LT((m.M * (m.v_free - s.v) - h * end_force).norm(), 1e-8 * m.b.norm());
  FreeMotion e = free_motion(model, k, {s.q, s.v, Vector(0)}, Integrator::kEuler, h);
  EXPECT_LT((m.A - e.A).cwiseAbs().maxCoeff() - h * h * 20, 1e-14);
}

TEST(FreeMotion, RejectsAStepThatIsNotPositive) {
  Model model = test::mixed_chain();
  State s = random_state(model, 1);
  EXPECT_THROW(free_motion(model, forward_kinematics(model, s.q), {s.q, s.v, Vector(0)}, Integrator::kEuler, 0),
               std::invalid_argument);
  EXPECT_THROW(forward_kinematics(model, Vector(1)), std::invalid_argument);
}

}  // namespace
}  // namespace stiction::reference
