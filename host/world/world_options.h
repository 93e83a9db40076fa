// What all backends derive from a world's options alike.
#pragma once
#include <type_traits>

#include "step/step_options.h"
#include "step/user_arrays.h"

namespace stiction {

/// The names of the certificate's arrays, in the order of CertificateField.
inline constexpr const char* kCertificateNames[kCertificateFields] = {
    "r_dyn",       "r_con", "r_ccp",        "r_mdp",      "r_row",    "r_cone",
    "penetration", "scale", "num_contacts", "iterations", "converged"};

/// Options in the number type of a kernel.
template <class T>
StepOptions<T> options_in(const StepOptions<double>& o) {
  auto cast = [](const char*, auto& to, const auto& from) { to = static_cast<std::decay_t<decltype(to)>>(from); };
  StepOptions<T> to;
  Options<T>::each_field(cast, to.step, o.step);
  to.solver.solver = o.solver.solver;
  each_solver(
      [&](auto solver, auto& a, const auto& b) { decltype(solver)::template Options<T>::each_field(cast, a, b); },
      to.solver.options, o.solver.options);
  return to;
}

}  // namespace stiction
