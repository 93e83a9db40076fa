// What a contact solver is: the contract of all folders beside this file.
//
//   struct Name {
//     static constexpr const char* kName;                                  what users call it
//     template <class S> struct Options;                                   its own knobs, with defaults; S a plain number
//       template <class Visit, class... O> static void each_field(Visit, O&...);   visit("name", o.name...) for each knob
//     template <class S> static Law law(const Options<S>&);                what it converges to, and is judged by
//     template <class Real> static int64_t memory(RowCounts most);         Reals of scratch for problems up to that size
//     template <class Real> static SolveStats<Real> solve(problem, limits, options, memory, impulse);
//   };
//
// solve: `problem` is read only; `impulse` (n) is the warm start on entry, finite, and the answer on exit, in each world of a
// pack by that world's numbers alone. A world is frozen as soon as its own residual is below limits.tolerance V; tolerance 0: always
// limits.iterations. Rows with W = 0 get 0. No allocation, no error: what is not finite, or not solved, the certificate shows.
// A solver that cannot carry some kind of row says so where a world is made (none today).
//
// Real: float, double or a pack of them. Written once for the CPU and for a lane of a GPU.
#pragma once
#include "contact/law.h"
#include "contact/row_problem.h"

namespace stiction {

/// How long a solver may take, and how near it must come. S: plain number.
template <class S>
struct SolveLimits {
  int iterations = 100;
  S tolerance = S(1e-5);  // times V, m/s; 0: always so many iterations
};

/// Reals that carve(problem, arena) takes for problems of that size: what `memory` of a solver tells.
template <class Real, class Carve>
HD int64_t measured(const RowCounts& most, Carve carve) {
  RowProblem<Real> largest;
  static_cast<RowCounts&>(largest) = most;
  Arena<Real> arena;
  carve(largest, arena);
  return arena.used();
}

template <class Real>
struct SolveStats {
  Real iterations = Real(0);      // that changed each world
  Real factorizations = Real(0);  // of a matrix, in solvers that make as many as a world asks for (ADMM, CANAL)
};

template <class Solver, class Real>
concept ContactSolver = requires(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                 const typename Solver::template Options<Scalar<Real>>& options, Real* memory,
                                 Real* impulse, const char* name, Law law, int64_t size, SolveStats<Real> stats) {
  name = Solver::kName;
  law = Solver::law(options);
  size = Solver::template memory<Real>(RowCounts{});
  stats = Solver::template solve<Real>(problem, limits, options, memory, impulse);
};

}  // namespace stiction
