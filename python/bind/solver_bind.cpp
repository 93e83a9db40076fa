// _core.option_defaults, _core.solve_rows: the solvers of the list, their options, and contact problems without a world.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <vector>

#include "core/options.h"
#include "host/world/solver_run.h"
#include "host/world/world_options.h"
#include "python/bind/options.h"

namespace py = pybind11;
using namespace stiction;

SolverOptions<double> stiction::solver_options_from(const std::string& name, const py::dict& set, bool float64) {
  SolverOptions<double> o = solver_defaults(float64);
  int number = 0, found = -1;
  std::string names;
  each_solver(
      [&](auto solver, auto& own) {
        using Solver = decltype(solver);
        names += std::string(number ? ", '" : "'") + Solver::kName + "'";
        if (name == Solver::kName) {
          found = number;
          set_fields(set, Solver::kName, [&](auto visit) { Solver::template Options<double>::each_field(visit, own); });
        }
        ++number;
      },
      o.options);
  if (found < 0) throw std::invalid_argument("solver is '" + name + "', expected one of " + names);
  o.solver = found;
  return o;
}

namespace {

/// Names of solvers, each with its options and their defaults; "" is the step.
py::dict option_defaults(bool float64) {
  auto dict_of = [](auto fields) {
    py::dict d;
    fields([&](const char* name, auto& value) { d[name] = value; });
    return d;
  };
  py::dict all;
  Options<double> step;
  all[""] = dict_of([&](auto visit) { Options<double>::each_field(visit, step); });
  SolverOptions<double> o = solver_defaults(float64);
  each_solver(
      [&](auto solver, auto& own) {
        using Solver = decltype(solver);
        all[Solver::kName] = dict_of([&](auto visit) { Solver::template Options<double>::each_field(visit, own); });
      },
      o.options);
  return all;
}

using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;

py::tuple solve_batch(const py::dict& rows, const std::string& solver, const py::dict& options, int iterations,
                      double tolerance, bool float64, int num_threads) {
  std::vector<Doubles> held;  // until all are solved
  auto array = [&](const char* name) { return held.emplace_back(rows[name].cast<Doubles>()); };
  auto numbers = [&](const char* name, std::initializer_list<py::ssize_t> shape) {
    const Doubles a = array(name);
    if (!std::equal(shape.begin(), shape.end(), a.shape(), a.shape() + a.ndim()))
      throw std::invalid_argument(std::string(name) + " has the wrong shape");
    return a.data();
  };
  const Doubles Y = array("Y"), mu = array("mu"), lower = array("lower");
  if (Y.ndim() != 3 || mu.ndim() != 2 || lower.ndim() != 2)
    throw std::invalid_argument("Y, mu or lower has the wrong shape");
  const py::ssize_t problems = Y.shape(0), n = Y.shape(1), contacts = mu.shape(1), scalars = lower.shape(1);
  RowBatch batch;
  batch.problems = static_cast<int>(problems), batch.contacts = static_cast<int>(contacts);
  batch.scalars = static_cast<int>(scalars), batch.width = static_cast<int>(Y.shape(2)), batch.Y = Y.data();
  batch.spins = n > 3 * contacts + scalars ? batch.contacts : 0;
  if (batch.rows() != n) throw std::invalid_argument("Y has the wrong shape");
  batch.free = numbers("free", {problems, n}), batch.e = numbers("e", {problems, n});
  batch.R = numbers("R", {problems, n}), batch.mu = numbers("mu", {problems, contacts});
  batch.lower = numbers("lower", {problems, scalars}), batch.upper = numbers("upper", {problems, scalars});
  batch.least_velocity = numbers("least_velocity", {problems});
  const double* start = numbers("guess", {problems, n});
  py::array_t<double> impulse({problems, n}), passes(problems), factorizations(problems);
  std::copy(start, start + problems * n, impulse.mutable_data());
  batch.impulse = impulse.mutable_data(), batch.iterations = passes.mutable_data();
  batch.factorizations = factorizations.mutable_data();

  SolverRun run{solver_options_from(solver, options, float64), {iterations, tolerance}, float64, num_threads};
  if (batch.spins > 0 && !carries_couples(run.solver))
    throw std::invalid_argument("solver '" + solver +
                                "' carries no torsional or rolling friction, which the problem has");
  {
    py::gil_scoped_release release;
    solve_row_batch(run, batch);
  }
  return py::make_tuple(impulse, passes, factorizations, static_cast<int>(law_of(run.solver)));
}

}  // namespace

void bind_solvers(py::module_& m) {
  using namespace py::literals;
  m.attr("FIRST_CHOSEN_FALLBACK") = kFirstChosenFallback;
  m.def("option_defaults", &option_defaults, "float64"_a = true,
        "Options by name with their defaults: of every solver by its name, of a step by ''.");
  m.def("solve_rows", &solve_batch, "rows"_a, py::kw_only(), "solver"_a, "solver_options"_a, "iterations"_a,
        "tolerance"_a, "float64"_a, "num_threads"_a,
        "Contact problems in half-solved rows, arrays by their names in RowBatch and the guess: impulses, iterations,\n"
        "factorizations, the law.");
}
