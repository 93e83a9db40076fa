// What a contact solver is: the contract of all folders beside this file.
//
//   struct Name {
//     static constexpr const char* kName;                                  what users call it
//     static constexpr bool kCouples;                                      carries torsional and rolling friction
//     template <class S> struct Options;                                   its own knobs, with defaults; S a plain number
//       template <class Visit, class... O> static void each_field(Visit, O&...);   visit("name", o.name...) for each knob
//       Law law() const;                                                   what it converges to, and is judged by
//       bool aim(Law);                                                     from now on at that one; false: it cannot
//     template <class Real> static int64_t memory(RowCounts most);         Reals of scratch for problems up to that size
//     template <class Real, class Group> static SolveStats<Real> solve(g, problem, limits, options, memory, impulse);
//   };
//
// IterativeSolver makes all of it but the name from a class that iterates, of which one lane of a group has one and the others wait;
// SharedSolver from one whose lanes iterate together (parallel_for). What it stops on: solvers/score.h.
//
// solve: all lanes of a group call it and get the same; memory and impulse are theirs together. `problem` is read only;
// `impulse` (n) is the warm start on entry, 0 for what is not finite, and the answer on exit, in each world of a pack by that
// world's numbers alone. A world is frozen as soon as its own residual is below limits.tolerance V; tolerance 0:
// limits.iterations, or until rounding is all that changes. Rows with W = 0 get 0. No allocation, no error: what is not finite,
// or not solved, the certificate shows.
// What a solver cannot carry is refused where a world is made.
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
  S tolerance = S(1e-5);  // times V, m/s; 0: until nothing changes any more
};

template <class Real>
struct SolveStats {
  Real iterations = Real(0);      // that changed each world
  Real factorizations = Real(0);  // of matrices, for each world
};

/// No impulses in those of `worlds` whose answer l (n) is worse than none, or not finite, by what solvers go by; by all lanes. none (n),
/// u (width): scratch. Defined in solvers/score.h.
template <class Real, class Group>
HD_ONCE void drop_harmful(const Group& g, const RowProblem<Real>& p, Law law, const Mask<Real>& worlds, Real* l,
                          Real* none, Real* u);

/// Of Iteration<Real>(problem, limits, options, impulse), with carve(arena) and solve(), which tells SolveStats<Real>. What runs into
/// the limit of iterations is never worse than no impulse.
template <template <class> class Iteration, template <class> class Knobs>
struct IterativeSolver {
  template <class S>
  using Options = Knobs<S>;
  template <class Real>
  HD static int64_t memory(const RowCounts& most) {
    RowProblem<Real> largest;
    static_cast<RowCounts&>(largest) = most;
    Arena<Real> arena;
    Iteration<Real>(largest, {}, {}, nullptr).carve(arena);
    return max(arena.used(), int64_t{most.rows()} + most.width);
  }
  /// Before its first pass.
  template <class Real>
  HD static Iteration<Real> iteration(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                      const Options<Scalar<Real>>& options, Real* memory, Real* impulse) {
    for (int i = 0; i < problem.rows(); ++i) impulse[i] = select(is_finite(impulse[i]), impulse[i], Real(0));
    Iteration<Real> made(problem, limits, options, impulse);
    Arena<Real> arena(memory);
    made.carve(arena);
    return made;
  }
  template <class Real, class Group>
  HD static SolveStats<Real> solve(const Group& g, const RowProblem<Real>& problem,
                                   const SolveLimits<Scalar<Real>>& limits, const Options<Scalar<Real>>& options,
                                   Real* memory, Real* impulse) {
    SolveStats<Real> stats;
    if (g.rank() == 0) {
      stats = iteration(problem, limits, options, memory, impulse).solve();
      const Mask<Real> left = stats.iterations >= Real(static_cast<Scalar<Real>>(limits.iterations));
      if (limits.tolerance > 0 && limits.iterations > 0 && any(left))
        drop_harmful(Serial{}, problem, options.law(), left, impulse, memory, memory + problem.rows());
    }
    g.sync();
    return {g.sum(stats.iterations), g.sum(stats.factorizations)};
  }
};

/// Of Iteration<Real, Group>(g, problem, limits, options, impulse), with carve(arena) and solve().
template <template <class, class> class Iteration, template <class> class Knobs>
struct SharedSolver {
  template <class S>
  using Options = Knobs<S>;
  template <class Real>
  HD static int64_t memory(const RowCounts& most) {
    RowProblem<Real> largest;
    static_cast<RowCounts&>(largest) = most;
    Arena<Real> arena;
    const Serial alone;
    Iteration<Real, Serial>(alone, largest, {}, {}, nullptr).carve(arena);
    return arena.used();
  }
  template <class Real, class Group>
  HD static SolveStats<Real> solve(const Group& g, const RowProblem<Real>& problem,
                                   const SolveLimits<Scalar<Real>>& limits, const Options<Scalar<Real>>& options,
                                   Real* memory, Real* impulse) {
    parallel_for(g, problem.rows(), [&](int i) { impulse[i] = select(is_finite(impulse[i]), impulse[i], Real(0)); });
    Iteration<Real, Group> made(g, problem, limits, options, impulse);
    Arena<Real> arena(memory);
    made.carve(arena);
    return made.solve();
  }
};

template <class Solver, class Real>
concept ContactSolver = requires(const RowProblem<Real>& problem, const SolveLimits<Scalar<Real>>& limits,
                                 const typename Solver::template Options<Scalar<Real>>& options, Real* memory,
                                 Real* impulse, typename Solver::template Options<Scalar<Real>>& own, const char* name,
                                 bool carries, Law law, int64_t size, SolveStats<Real> stats) {
  name = Solver::kName;
  carries = Solver::kCouples;
  law = options.law();
  carries = own.aim(law);
  size = Solver::template memory<Real>(RowCounts{});
  stats = Solver::template solve<Real>(Serial{}, problem, limits, options, memory, impulse);
};

}  // namespace stiction
