// stiction_solvers: the solvers of the list on dense problems, for the Python tests and benches.
//
// names(): what there is. solve(solver, A, b, J, e, mu, least_velocity, tolerance, iterations, single=False, **options) from cold:
// rows t1, t2, n; A (nv, nv), b (nv), J (3 nc, nv), e (3 nc), mu (nc); rigid contacts, no other rows; options: the solver's own by
// name; single: in float. A dictionary: impulse (3 nc), v (nv), iterations, factorizations. Errors: ValueError where sizes disagree or a name is none.
#include <pybind11/eigen.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include "step/solvers.h"
#include "tests/problems/dense_problems.h"

namespace py = pybind11;
using namespace stiction;

namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Solver, class T>
SolveStats<double> run(problems::Whitened<T>& w, const SolveLimits<T>& limits, const py::dict& given) {
  typename Solver::template Options<T> options;
  size_t used = 0;
  std::decay_t<decltype(options)>::each_field(
      [&](const char* name, auto& to) {
        if (given.contains(name)) to = py::cast<std::decay_t<decltype(to)>>(given[name]), ++used;
      },
      options);
  if (used != given.size()) throw std::invalid_argument("solve: an option that the solver does not have");
  const auto view = w.view();
  std::vector<T> memory(static_cast<size_t>(Solver::template memory<T>(view)) + 1);
  py::gil_scoped_release release;
  const auto stats = Solver::template solve<T>(view, limits, options, memory.data(), w.rows.impulse);
  return {double(stats.iterations), double(stats.factorizations)};
}

template <class T>
SolveStats<double> run_named(const std::string& solver, problems::Whitened<T>& w, const SolveLimits<T>& limits,
                             const py::dict& options) {
  std::optional<SolveStats<double>> stats;
  OptionsOf<T, Solvers> all;
  each_solver(
      [&](auto kind, auto&) {
        using Solver = decltype(kind);
        if (solver == Solver::kName) stats = run<Solver, T>(w, limits, options);
      },
      all);
  if (!stats) throw std::invalid_argument("solve: there is no solver '" + solver + "'");
  return *stats;
}

py::dict solve(const std::string& solver, const Matrix& A, const Vector& b, const Matrix& J, const Vector& e,
               const Vector& mu, double least_velocity, double tolerance, int iterations, bool single,
               const py::kwargs& options) {
  const auto nv = b.size(), nc = mu.size();
  if (A.rows() != nv || A.cols() != nv || J.rows() != 3 * nc || J.cols() != nv || e.size() != 3 * nc)
    throw std::invalid_argument("solve: the shapes of A, b, J, e and mu disagree");
  problems::Dense<double> d;
  d.nv = static_cast<int>(nv);
  auto copy = [](const auto& x) { return std::vector<double>(x.data(), x.data() + x.size()); };
  d.A = copy(A), d.b = copy(b), d.J = copy(J), d.e = copy(e), d.mu = copy(mu);
  d.R.assign(d.e.size(), 0), d.impulse.assign(d.e.size(), 0);
  SolveStats<double> used;
  auto solve_in = [&](auto zero) {
    using T = decltype(zero);
    problems::Whitened<T> w({d}, least_velocity);
    SolveLimits<T> limits;
    limits.tolerance = static_cast<T>(tolerance), limits.iterations = iterations;
    used = run_named<T>(solver, w, limits, options);
    w.take(d);
  };
  if (single) solve_in(0.0f);
  else solve_in(0.0);
  const Vector impulse = Eigen::Map<const Vector>(d.impulse.data(), 3 * nc);
  py::dict out;
  out["impulse"] = impulse, out["v"] = Vector(A.llt().solve(b + J.transpose() * impulse)),
  out["iterations"] = used.iterations;
  out["factorizations"] = used.factorizations;
  return out;
}

}  // namespace

PYBIND11_MODULE(stiction_solvers, m) {
  using namespace py::literals;
  m.doc() = "The solvers of the list on dense contact problems, for tests and benches.";
  m.def("solve", &solve, "solver"_a, "A"_a, "b"_a, "J"_a, "e"_a, "mu"_a, "least_velocity"_a, "tolerance"_a,
        "iterations"_a, "single"_a = false);
  m.def("names", [] {
    std::vector<std::string> names;
    OptionsOf<double, Solvers> all;
    each_solver([&](auto kind, auto&) { names.push_back(decltype(kind)::kName); }, all);
    return names;
  });
}
