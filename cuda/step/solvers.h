// THE list of contact solvers. From it follow their numbers and names, their options and sizes, the dispatch of every backend and
// the conformance tests. A new solver is a folder under solvers/, a word here, and its header in step/solve_rows.h.
//
// A step knows solvers by what can be set of them and by solve_rows() alone, which is declared here and compiled once per number
// type (step/solve_rows.h), so that a solver neither multiplies the step nor compiles it again.
#pragma once
#include "solvers/admm/options.h"
#include "solvers/bisection/options.h"
#include "solvers/canal/options.h"
#include "solvers/cond/options.h"
#include "solvers/pgs/options.h"
#include "solvers/sap/options.h"
#include "solvers/subadmm/options.h"

namespace stiction {

template <class... S>
struct SolverList {
  static constexpr int kCount = sizeof...(S);
};
using Solvers = SolverList<SubAdmm, Pgs, Canal, Sap, Admm, Bisection, Cond>;

/// The place of a solver in a list.
template <class Solver, class List>
struct PlaceOf;
template <class Solver, class... Rest>
struct PlaceOf<Solver, SolverList<Solver, Rest...>> {
  static constexpr int value = 0;
};
template <class Solver, class First, class... Rest>
struct PlaceOf<Solver, SolverList<First, Rest...>> {
  static constexpr int value = 1 + PlaceOf<Solver, SolverList<Rest...>>::value;
};

/// The options of all solvers of a list; of the first, and of the rest.
template <class S, class List>
struct OptionsOf {};
template <class S, class First, class... Rest>
struct OptionsOf<S, SolverList<First, Rest...>> {
  typename First::template Options<S> first;
  OptionsOf<S, SolverList<Rest...>> rest;
};

/// Which solver of the list, by its place there, and what is set of each.
template <class S>
struct SolverOptions {
  int solver = 0;
  OptionsOf<S, Solvers> options;
};

/// visit<Solver>(options) for the solver with that number.
template <class First, class... Rest, class Options, class Visit>
HD auto with_solver(SolverList<First, Rest...>, int number, Options& options, Visit visit) {
  if constexpr (sizeof...(Rest) > 0)
    if (number > 0) return with_solver(SolverList<Rest...>{}, number - 1, options.rest, visit);
  return visit(First{}, options.first);
}
template <class S, class Visit>
HD auto with_solver(const SolverOptions<S>& o, Visit visit) {
  return with_solver(Solvers{}, o.solver, o.options, visit);
}

/// visit(solver, options...) for every solver of the list; options: OptionsOf of one or several number types.
template <class... S, class Visit, class... Options>
HD void each_solver(SolverList<S...>, Visit visit, Options&... options) {
  if constexpr (sizeof...(S) > 0)
    [&]<class First, class... Rest>(SolverList<First, Rest...>) {
      visit(First{}, options.first...);
      each_solver(SolverList<Rest...>{}, visit, options.rest...);
    }(SolverList<S...>{});
}
template <class Visit, class... Options>
HD void each_solver(Visit visit, Options&... options) {
  each_solver(Solvers{}, visit, options...);
}

template <class S>
HD Law law_of(const SolverOptions<S>& o) {
  return with_solver(o, [](auto, const auto& options) { return options.law(); });
}

/// Whether the chosen solver carries torsional and rolling friction.
template <class S>
HD bool carries_couples(const SolverOptions<S>& o) {
  return with_solver(o, [](auto solver, const auto&) { return decltype(solver)::kCouples; });
}

/// A solver's defaults, set to a law where it has that one.
template <class S>
HD SolverOptions<S> aimed_at(int solver, Law law) {
  SolverOptions<S> o;
  o.solver = solver;
  with_solver(Solvers{}, solver, o.options, [law](auto, auto& own) { return own.aim(law); });
  return o;
}

/// Reals that the chosen solver needs for problems up to that size. Defined in step/solve_rows.h.
template <class Real>
HD_CALL int64_t solver_memory(const SolverOptions<Scalar<Real>>& o, const RowCounts& most);

/// The chosen solver on a problem, by all lanes of a group; see solvers/solver.h. Defined in step/solve_rows.h.
template <class Real, class Group>
HD_CALL SolveStats<Real> solve_rows(const Group& g, const RowProblem<Real>& problem,
                                    const SolveLimits<Scalar<Real>>& limits, const SolverOptions<Scalar<Real>>& options,
                                    Real* memory, Real* impulse);

}  // namespace stiction
