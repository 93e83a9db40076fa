// A solver of the list on a dense problem, judged by the certificate in double.
#pragma once
#include <gtest/gtest.h>

#include "contact/residual_dense.h"
#include "solvers/solver.h"
#include "tests/problems/dense_problems.h"
#include "tests/support/tile_emulator.h"

namespace stiction::testing {

struct Solved {
  problems::Dense<double> d;
  std::vector<double> v;
  DenseResidual residual;
  double iterations;
  Law law = Law::kCoulomb;  // by which it is judged
  double factorizations = 0;

  double sum(int axis) const {
    double total = 0;
    for (int i = 0; i < d.contacts(); ++i) total += d.impulse[3 * i + axis];
    return total;
  }
  /// By the solver's law and every row; in the exact law r_split binds where friction is extreme.
  bool converged(double tolerance) const {
    const double most = tolerance * residual.scale;
    if (!(residual.row_ratio <= tolerance)) return false;
    if (law == Law::kConvex) return residual.r_ccp <= most;
    if (law == Law::kDissipation) return residual.r_mdp <= most;
    return residual.r_con <= most && residual.r_split <= 10 * most;
  }
};

/// v = A^-1 (b + J'l) and the certificate of that pair.
inline void judge(Solved& s, double least_velocity) {
  problems::Dense<double>& d = s.d;
  s.v = d.b;
  for (int k = 0; k < d.nv; ++k) {
    for (int i = 0; i < 3 * d.contacts(); ++i) s.v[k] += d.J[i * d.nv + k] * d.impulse[i];
    for (int r = 0; r < d.rows(); ++r) s.v[k] += d.J_row[r * d.nv + k] * d.row_impulse[r];
  }
  std::vector<double> U = d.A, work(static_cast<size_t>(residual_dense_workspace(d.nv)));
  cholesky_factor(d.nv, U.data(), 0.0);
  cholesky_solve(d.nv, U.data(), s.v.data());
  s.residual = residual_dense(d.view(), s.v.data(), {least_velocity, 0}, work.data());
}

/// Runs body(group) in the lanes of a group.
template <class Group, class Body>
void by_lanes(Body body) {
  if constexpr (Group::kSize == 1) body(Group{});
  else Group::run(body);
}

/// By the lanes of a group together. lone: no body has two contacts.
template <class Solver, class Real, class Group = Serial>
std::vector<Solved> solve_worlds(const std::vector<problems::Dense<double>>& worlds,
                                 const SolveLimits<Scalar<Real>>& limits, double least_velocity = 1e-4,
                                 const typename Solver::template Options<Scalar<Real>>& options = {}, int block = 0,
                                 bool lone = false) {
  problems::Whitened<Real> whitened(worlds, least_velocity);
  if (block > 0) whitened.divide(block);
  auto view = whitened.view();
  view.lone = mask_of<Real>(lone);
  std::vector<Real> memory(static_cast<size_t>(Solver::template memory<Real>(view)) + 1);
  auto* bytes = reinterpret_cast<unsigned char*>(memory.data());
  for (size_t i = 0; i < memory.size() * sizeof(Real); ++i)
    bytes[i] = 0xff;  // NaN: nothing is read before it is written
  SolveStats<Real> stats;
  by_lanes<Group>([&](const Group& g) {
    const auto own = Solver::template solve<Real>(g, view, limits, options, memory.data(), whitened.rows.impulse);
    if (g.rank() == 0) stats = own;
  });
  std::vector<Solved> solved;
  for (size_t i = 0; i < worlds.size(); ++i) {
    const int own = static_cast<int>(i);
    solved.push_back({worlds[i], {}, {}, lane(stats.iterations, own), options.law(), lane(stats.factorizations, own)});
    whitened.take(solved.back().d, static_cast<int>(i));
    judge(solved.back(), least_velocity);
  }
  return solved;
}
template <class Solver, class T, class Group = Serial>
Solved solve_dense(const problems::Dense<double>& d, const SolveLimits<T>& limits, double least_velocity = 1e-4,
                   const typename Solver::template Options<T>& options = {}, int block = 0, bool lone = false) {
  return solve_worlds<Solver, T, Group>({d}, limits, least_velocity, options, block, lone)[0];
}

}  // namespace stiction::testing
