// What all backends derive from a world's options alike.
#pragma once
#include <type_traits>

#include "step/step_options.h"
#include "step/user_arrays.h"

namespace stiction {

/// The names of the certificate's arrays, in the order of CertificateField.
inline constexpr const char* kCertificateNames[kCertificateFields] = {
    "r_dyn",  "r_con",       "r_split", "r_ccp",        "r_mdp",      "r_row",
    "r_cone", "penetration", "scale",   "num_contacts", "iterations", "converged"};

/// Options of all solvers in another number type.
template <class T, class S>
SolverOptions<T> solver_options_in(const SolverOptions<S>& o) {
  auto cast = [](const char*, auto& to, const auto& from) { to = static_cast<std::decay_t<decltype(to)>>(from); };
  SolverOptions<T> to;
  to.solver = o.solver;
  each_solver(
      [&](auto solver, auto& a, const auto& b) { decltype(solver)::template Options<T>::each_field(cast, a, b); },
      to.options, o.options);
  return to;
}

/// The defaults of a number type, which may differ: rounding bounds some of them.
inline SolverOptions<double> solver_defaults(bool float64) {
  return float64 ? SolverOptions<double>{} : solver_options_in<double>(SolverOptions<float>{});
}

/// Options in the number type of a kernel.
template <class T>
StepOptions<T> options_in(const StepOptions<double>& o) {
  auto cast = [](const char*, auto& to, const auto& from) { to = static_cast<std::decay_t<decltype(to)>>(from); };
  StepOptions<T> to;
  Options<T>::each_field(cast, to.step, o.step);
  to.solver = solver_options_in<T>(o.solver);
  return to;
}

}  // namespace stiction
