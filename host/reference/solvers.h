// Independent solvers of the dense contact problem with interval rows.
//
// nsgs   nonsmooth Gauss-Seidel on the Delassus operator: sweeps over contacts (one_contact.h) and rows, relaxation 1,
//        lowered to 0.7 when it stalls (exact local solvers can cycle).
// admm   proximal ADMM with the De Saxce cascade ([Carpentier2024] Alg. 1; docs/theory.md, section 13): contacts scaled by
//        1 / sqrt(w_i), rho 0.1 balanced every 25 iterations, kicked when it stalls, stopped on r_con, best impulse kept.
//        Deviation: no Anderson acceleration. Without the cascade (Law::kConvex) it solves the convex model.
// solve  nsgs, then admm from there if need be; the better of the two by the certificate.
//
// The score of an impulse is max(r_con / V, r_row_relative), with r_ccp for r_con under Law::kConvex; converged means
// score <= tolerance. The impulse of a contact or row with w_i = 0 is 0. Nothing throws for want of convergence: the caller
// reads `converged` and the certificate.
#pragma once
#include <string>

#include "host/reference/certificate.h"

namespace stiction::reference {

enum class Law { kCoulomb, kConvex };

struct SolverOptions {
  Law law = Law::kCoulomb;
  double tolerance = 1e-10;  // of V
  int sweeps = 2000;         // nsgs
  int iterations = 10000;    // admm
};

struct ImpulseSolution {
  Vector impulse;  // (n)  of the Delassus form
  double score = 0;
  int iterations = 0;
  bool converged = false;
  std::string solver;
};

ImpulseSolution nsgs(const Delassus& problem, const SolverOptions& options, const Vector& start);
ImpulseSolution admm(const Delassus& problem, const SolverOptions& options, const Vector& start);
ImpulseSolution solve(const Delassus& problem, const SolverOptions& options);

/// max(r_con | r_ccp over V, r_row_relative).
double score(const Delassus& problem, const Vector& impulse, Law law);

struct Solution {
  Vector v, impulse, row_impulse;  // v = A^-1 (b + J' impulse + J_row' row_impulse)
  Certificate certificate;
  int iterations = 0;
  bool converged = false;
  std::string solver;
};
Solution solve(const ContactProblem& problem, const SolverOptions& options);

}  // namespace stiction::reference
