#include "host/world/inverse_dynamics.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "contact/law.h"
#include "contact/residual_dense.h"
#include "linalg/anderson_vector.h"

namespace stiction {
namespace {

constexpr int kPasses = 100;
/// Of gravity's speed in a step: slower than that a rigid contact neither opens nor slides. What a solver stops at, 1e-5 V, is
/// below it: what it left of a velocity is no direction for friction.
constexpr double kAtRest = 1e-4;

/// The impulse of a contact at w, J v + e, and of its couple at its spin: Signorini and Coulomb one after the other, the strict
/// projection of -w / R where R > 0 (R_t > 0 has no couples); what a rigid one leaves open is the guess.
SixVec<double> contact_impulse(const SixVec<double>& w, double R_t, double R_n, double mu, const SixVec<double>& guess,
                               double rest) {
  const double slip = tangential(w), n = R_n > 0 ? -w.l.z / R_n : w.l.z <= rest ? guess.l.z : 0;
  if (!(n > 0)) return {};
  if (R_t > 0) return project_strict(with_tangents(w, -1 / R_t, n), mu);
  if (slip <= rest) return project_strict(with_tangents(guess, 1.0, n), mu);
  return with_tangents(w, -mu * n / slip, n);
}
double row_impulse(double s, double R, double lower, double upper, double guess, double rest) {
  if (R > 0) return std::clamp(-s / R, lower, upper);
  if (s > rest && lower > -kUnbounded) return lower;
  if (s < -rest && upper < kUnbounded) return upper;
  return std::clamp(guess, lower, upper);
}

double times(int n, const double* row, const double* v) {
  double sum = 0;
  for (int k = 0; k < n; ++k) sum += row[k] * v[k];
  return sum;
}

size_t impulses_of(const DenseProblem<double>& d) { return 3 * size_t(d.contacts) + d.rows + 3 * size_t(d.spins); }

/// A guess of all impulses, 0 where it is of another number of them.
void put(std::vector<double> all, DenseProblem<double>& d) {
  if (all.size() != impulses_of(d)) all.assign(impulses_of(d), 0);
  const double* next = all.data();
  std::copy_n(next, 3 * d.contacts, d.impulse), next += 3 * d.contacts;
  std::copy_n(next, d.rows, d.row_impulse), next += d.rows;
  std::copy_n(next, 3 * d.spins, d.spin_impulse);
}

/// Impulses of all contacts and rows at velocity v, in the place of the guess.
void set_impulses(DenseProblem<double>& d, const double* v, double least_velocity) {
  const double rest = kAtRest * least_velocity;
  for (int k = 0; k < d.contacts; ++k) {
    double* l = d.impulse + 3 * k;
    const double* J = d.J + 3ll * k * d.nv;
    const double* e = d.e + 3 * k;
    SixVec<double> w{}, guess{{l[0], l[1], l[2]}, {0, 0, 0}};
    w.l = Vec3<double>{times(d.nv, J, v) + e[0], times(d.nv, J + d.nv, v) + e[1], times(d.nv, J + 2 * d.nv, v) + e[2]};
    double* c = d.spin_impulse + 3 * k;
    if (d.spins > 0) {
      const double* turning = d.J_spin + 3ll * k * d.nv;
      w.c = {times(d.nv, turning, v), times(d.nv, turning + d.nv, v), times(d.nv, turning + 2 * d.nv, v)};
      guess.c = {c[0], c[1], c[2]};
    }
    const SixVec<double> f = contact_impulse(w, d.R[3 * k], d.R[3 * k + 2], d.mu[k], guess, rest);
    l[0] = f.l.x, l[1] = f.l.y, l[2] = f.l.z;
    if (d.spins > 0) c[0] = f.c.x, c[1] = f.c.y, c[2] = f.c.z;
  }
  for (int k = 0; k < d.rows; ++k)
    d.row_impulse[k] = row_impulse(times(d.nv, d.J_row + int64_t{k} * d.nv, v) + d.e_row[k], d.R_row[k], d.lower[k],
                                   d.upper[k], d.row_impulse[k], rest);
}

/// One environment's row of an array of reals.
std::vector<double> row_of(World& world, const std::string& name, int env, int length) {
  const ArrayView array = world.array(name);
  std::vector<double> row(length);
  for (int i = 0; i < length; ++i) {
    const int64_t at = int64_t{env} * length + i;
    row[i] =
        array.dtype == DType::kFloat64 ? static_cast<double*>(array.data)[at] : static_cast<float*>(array.data)[at];
  }
  return row;
}

}  // namespace

InverseDynamics inverse_dynamics(World& world, int env, const double* qacc, const ImpulseGuess& guess) {
  if (env < 0 || env >= world.num_envs())
    throw std::invalid_argument("env is " + std::to_string(env) + ", expected 0 to " +
                                std::to_string(world.num_envs() - 1));
  const SolverOptions<double>& solver = world.options().solver;
  if (law_of(solver) != Law::kCoulomb)
    throw std::invalid_argument(
        "inverse_dynamics knows Coulomb's law, at which solver '" +
        with_solver(solver, [](auto s, const auto&) { return std::string(decltype(s)::kName); }) +
        "' does not aim here");
  const Model& m = world.model();
  const double h = world.options().step.h, epsilon = world.options().float64 ? kEpsilon<double> : kEpsilon<float>;
  const double gravity = std::hypot(m.gravity[0], m.gravity[1], m.gravity[2]);
  const double least = least_scale(gravity, h);
  InverseDynamics found;
  found.qfrc.assign(m.nv, 0);
  DenseProblem<double> d = world.next_problem(env, found.qfrc.data());  // refuses before anything is read
  if (guess.given && guess.given->size() != impulses_of(d))
    throw std::invalid_argument("guess has " + std::to_string(guess.given->size()) + " impulses of environment " +
                                std::to_string(env) + ", expected " + std::to_string(impulses_of(d)) +
                                ", those of the contacts and rows that act");
  std::vector<double> end = row_of(world, "qvel", env, m.nv), v;
  for (int i = 0; i < m.nv; ++i) end[i] += h * qacc[i];

  // The free motion, and with it which contacts take part and how stiff they are, depends on the forces, so much where an
  // impact makes contacts stiff that passes run away: they are extrapolated, and the best one is kept.
  Arena<double> measure;
  AndersonVector<double> anderson;
  anderson.carve(m.nv, measure);
  std::vector<double> memory(measure.used()), forces = found.qfrc, next(m.nv);
  Arena<double> arena(memory.data());
  anderson.carve(m.nv, arena);
  anderson.begin();
  auto impulses_follow = [&] {
    v = end;
    if (world.options().step.moves_centres()) world.to_solved_velocity(env, v.data());
    if (!guess.warm) put(guess.given.value_or(std::vector<double>{}), d);
    set_impulses(d, v.data(), least);
  };
  double least_lacking = 0;
  for (int pass = 0;; ++pass) {
    impulses_follow();
    double most = 0, size = 0;
    for (int i = 0; i < m.nv; ++i) {
      double momentum = times(m.nv, d.A + int64_t{i} * m.nv, v.data());
      size = std::max({size, std::abs(momentum), std::abs(d.b[i])});
      momentum -= d.b[i];
      for (int k = 0; k < 3 * d.contacts; ++k) momentum -= d.J[int64_t{k} * m.nv + i] * d.impulse[k];
      for (int k = 0; k < d.rows; ++k) momentum -= d.J_row[int64_t{k} * m.nv + i] * d.row_impulse[k];
      for (int k = 0; k < 3 * d.spins; ++k) momentum -= d.J_spin[int64_t{k} * m.nv + i] * d.spin_impulse[k];
      next[i] = forces[i] + momentum / h, most = std::max(most, std::abs(momentum));
    }
    if (pass == 0 || most < least_lacking) least_lacking = most, found.qfrc = forces;
    if (most <= 4 * epsilon * size || pass == kPasses) break;
    anderson.retreat(forces.data(), next.data());
    anderson.advance(forces.data(), next.data());
    forces = next;
    d = world.next_problem(env, forces.data());
  }
  if (forces != found.qfrc) d = world.next_problem(env, found.qfrc.data()), impulses_follow();
  std::vector<double> work(residual_dense_workspace(m.nv));
  const DenseResidual r = residual_dense(d, v.data(), {least, 0}, work.data());
  found.residual = std::max({r.r_dyn, r.r_con / r.scale, 0.1 * r.r_split / r.scale, r.row_ratio});
  found.impulse.assign(d.impulse, d.impulse + 3 * d.contacts);
  found.row_impulse.assign(d.row_impulse, d.row_impulse + d.rows);
  found.spin_impulse.assign(d.spin_impulse, d.spin_impulse + 3 * d.spins);
  return found;
}

}  // namespace stiction
