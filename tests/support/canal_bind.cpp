// stiction_canal: cuda/solvers/canal on dense problems, for the Python tests and benches.
//
// solve(A, b, J, e, mu, least_velocity, tolerance=None, penalty=None, accelerate=True, paper=False, single=False) from cold:
// rows t1, t2, n; A (nv, nv), b (nv), J (3 nc, nv), e (3 nc), mu (nc); rigid contacts, no other rows; None is the default of
// CanalOptions; single: in float. A dictionary: impulse (3 nc), v (nv), r_con, scale, outer, newton, converged, sound.
// Errors: ValueError where sizes disagree.
#include <pybind11/eigen.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include "solvers/canal/canal.h"

namespace py = pybind11;
using namespace stiction;

namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
py::dict run(const Matrix& A, const Vector& b, const Matrix& J, const Vector& e, const Vector& mu,
             double least_velocity, std::optional<double> tolerance, std::optional<double> penalty, bool accelerate,
             bool paper) {
  const int nv = static_cast<int>(b.size()), nc = static_cast<int>(mu.size());
  if (A.rows() != nv || A.cols() != nv || J.rows() != 3 * nc || J.cols() != nv || e.size() != 3 * nc)
    throw std::invalid_argument("solve: the shapes of A, b, J, e and mu disagree");
  auto copy = [](const auto& x) { return std::vector<T>(x.data(), x.data() + x.size()); };
  std::vector<T> a = copy(A), momentum = copy(b), j = copy(J), bias = copy(e), friction = copy(mu);
  std::vector<T> compliance(bias.size()), impulse(bias.size()), v(static_cast<size_t>(nv));
  CanalOptions<T> options = paper ? CanalOptions<T>::paper() : CanalOptions<T>();
  options.least_velocity = static_cast<T>(least_velocity);
  if (tolerance) options.tolerance = static_cast<T>(*tolerance);
  if (penalty) options.penalty = static_cast<T>(*penalty);
  options.accelerate = options.accelerate && accelerate;
  DenseProblem<T> problem = {nv,
                             nc,
                             0,
                             a.data(),
                             momentum.data(),
                             j.data(),
                             bias.data(),
                             compliance.data(),
                             friction.data(),
                             impulse.data(),
                             nullptr,
                             nullptr,
                             nullptr,
                             nullptr,
                             nullptr,
                             nullptr};
  std::vector<T> workspace(static_cast<size_t>(canal_workspace_size(nv, nc, 0)));
  CanalStats<T> stats;
  {
    py::gil_scoped_release release;
    stats = canal(problem, options, workspace.data(), v.data());
  }
  auto array = [](const std::vector<T>& x) {
    Vector out(static_cast<Eigen::Index>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) out[static_cast<Eigen::Index>(i)] = x[i];
    return out;
  };
  py::dict d;
  d["impulse"] = array(impulse), d["v"] = array(v);
  d["r_con"] = double(stats.r_con), d["scale"] = double(stats.scale);
  d["outer"] = stats.outer, d["newton"] = stats.newton;
  d["converged"] = stats.converged, d["sound"] = stats.sound;
  return d;
}

}  // namespace

PYBIND11_MODULE(stiction_canal, m) {
  using namespace py::literals;
  m.doc() = "CANAL on dense contact problems, for tests and benches.";
  m.def(
      "solve",
      [](const Matrix& A, const Vector& b, const Matrix& J, const Vector& e, const Vector& mu, double least_velocity,
         std::optional<double> tolerance, std::optional<double> penalty, bool accelerate, bool paper, bool single) {
        auto solver = single ? &run<float> : &run<double>;
        return solver(A, b, J, e, mu, least_velocity, tolerance, penalty, accelerate, paper);
      },
      "A"_a, "b"_a, "J"_a, "e"_a, "mu"_a, "least_velocity"_a, "tolerance"_a = py::none(), "penalty"_a = py::none(),
      "accelerate"_a = true, "paper"_a = false, "single"_a = false);
}
