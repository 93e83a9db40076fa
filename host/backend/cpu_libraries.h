// The CPU libraries that were built, one per instruction set, and which of them this processor can run.
#pragma once
#include <string>
#include <vector>

#include "host/backend/cpu/kernels.h"

namespace stiction {

/// Names of the instruction sets that float32 can use here, best first.
std::vector<std::string> available_isas();

/// Of an instruction set, "" the best, for float32; or the one for float64. Throws std::invalid_argument for one that this
/// processor or build does not have, std::runtime_error where there is none.
const CpuLibrary& cpu_library(bool float64, const std::string& isa);

}  // namespace stiction
