// Arrays of a World or a batch for Python.
#pragma once
#include <pybind11/numpy.h>

#include "host/world/world.h"

namespace stiction {

/// A NumPy array of that memory, which `owner` keeps; None: nobody does. Of a device's memory only the address is of use.
pybind11::array array_of(const pybind11::object& owner, const ArrayView& view);

}  // namespace stiction
