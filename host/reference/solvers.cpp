#include "host/reference/solvers.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "host/reference/one_contact.h"

namespace stiction::reference {
namespace {

constexpr int kStallSweeps = 100;
constexpr double kLowRelaxation = 0.7;

/// Gauss-Seidel state: l and u = W l + q + e, kept together.
struct Sweeper {
  const Delassus& d;
  Law law;
  Vector l, u;

  Sweeper(const Delassus& problem, Law law_, const Vector& start) : d(problem), law(law_), l(start) {
    u = d.W * l + d.q + d.e;
  }
  void change(int at, const Vector& by) {
    l.segment(at, by.size()) += by;
    u += d.W.middleCols(at, by.size()) * by;
  }
  void contact(int i, double relaxation) {
    if (!(d.mean_inverse_mass(i) > 0)) return;
    Matrix3d W = d.W.block<3, 3>(3 * i, 3 * i);
    Vector3d old = l.segment<3>(3 * i), c = u.segment<3>(3 * i) - W * old;
    W.diagonal() += d.R.segment<3>(3 * i);
    Vector3d next = law == Law::kConvex ? solve_one_convex(W, c, d.mu[i]) : solve_one_coulomb(W, c, d.mu[i]);
    change(3 * i, relaxation * (next - old));
  }
  void row(int r, double relaxation) {
    int i = 3 * d.contacts() + r;
    if (!(d.W(i, i) > 0)) return;
    double next = std::clamp(l[i] - (u[i] + d.R[i] * l[i]) / (d.W(i, i) + d.R[i]), d.lower[r], d.upper[r]);
    change(i, Vector::Constant(1, relaxation * (next - l[i])));
  }
};

}  // namespace

double score(const Delassus& problem, const Vector& impulse, Law law) {
  Certificate c = certify(problem, impulse);
  double residual = law == Law::kConvex ? c.r_ccp : c.r_con;
  return std::max(residual > 0 ? residual / c.scale : 0, c.r_row_relative);
}

ImpulseSolution nsgs(const Delassus& d, const SolverOptions& o, const Vector& start) {
  Sweeper s(d, o.law, start);
  ImpulseSolution best{start, score(d, start, o.law), 0, false, "nsgs"};
  double relaxation = 1, mark = best.score;
  for (int sweep = 1; sweep <= o.sweeps && best.score > o.tolerance; ++sweep) {
    for (int i = 0; i < d.contacts(); ++i) s.contact(i, relaxation);
    for (int r = 0; r < d.rows(); ++r) s.row(r, relaxation);
    best.iterations = sweep;
    if (sweep % 10 == 0) s.u = d.W * s.l + d.q + d.e;  // forget the rounding of the updates
    double now = score(d, s.l, o.law);
    if (now < best.score) best.score = now, best.impulse = s.l;
    if (sweep % kStallSweeps == 0) {
      if (best.score > 0.5 * mark) relaxation = kLowRelaxation;
      mark = best.score;
    }
  }
  best.converged = best.score <= o.tolerance;
  return best;
}

ImpulseSolution solve(const Delassus& d, const SolverOptions& o) {
  ImpulseSolution first = nsgs(d, o, Vector::Zero(d.q.size()));
  if (first.converged) return first;
  ImpulseSolution second = admm(d, o, first.impulse);
  return second.score < first.score ? second : first;
}

Solution solve(const ContactProblem& p, const SolverOptions& o) {
  ImpulseSolution s = solve(delassus(p), o);
  Solution solution;
  solution.impulse = s.impulse.head(p.J.rows());
  solution.row_impulse = s.impulse.tail(p.rows());
  solution.v = p.A.llt().solve(p.b + p.J.transpose() * solution.impulse + p.J_row.transpose() * solution.row_impulse);
  solution.certificate = certify(p, solution.v, solution.impulse, solution.row_impulse);
  solution.iterations = s.iterations;
  solution.converged = s.converged;
  solution.solver = s.solver;
  return solution;
}

}  // namespace stiction::reference
