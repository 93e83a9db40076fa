// Options as dictionaries.
#pragma once
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>
#include <type_traits>

#include "step/solvers.h"

namespace stiction {

/// Sets the fields that the dictionary names; throws std::invalid_argument for a name that is no field.
template <class Fields>
void set_fields(const pybind11::dict& d, const char* of, Fields fields) {
  size_t used = 0;
  fields([&](const char* name, auto& to) {
    if (!d.contains(name)) return;
    to = pybind11::cast<std::decay_t<decltype(to)>>(d[name]), ++used;
  });
  if (used == d.size()) return;
  for (const auto& [key, value] : d) {
    const std::string wanted = pybind11::cast<std::string>(key);
    bool known = false;
    fields([&](const char* name, auto&) { known |= wanted == name; });
    if (!known) throw std::invalid_argument(std::string(of) + " has no option '" + wanted + "'");
  }
}

/// A solver and what is set of it, the rest as it is by default for float64 or float32. Throws std::invalid_argument for a solver
/// or an option that is none.
SolverOptions<double> solver_options_from(const std::string& name, const pybind11::dict& set, bool float64);

}  // namespace stiction
