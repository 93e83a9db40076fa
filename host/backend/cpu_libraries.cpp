#include "host/backend/cpu_libraries.h"

#include <algorithm>
#include <stdexcept>

namespace stiction {
namespace {

/// Of those that are built: STICTION_WITH_<ISA>.
const CpuLibrary* library(const std::string& isa) {
#if STICTION_WITH_AVX512
  if (isa == "avx512") return stiction_cpu_avx512();
#endif
#if STICTION_WITH_AVX2
  if (isa == "avx2") return stiction_cpu_avx2();
#endif
  return isa == "scalar" ? stiction_cpu_scalar() : nullptr;
}

}  // namespace

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    names = {"avx512", "avx2", "scalar"};
  else if (v3) names = {"avx2", "scalar"};
#else
  names.push_back("scalar");
#endif
  std::erase_if(names,
                [](const std::string& isa) { return library(isa) == nullptr || library(isa)->float32 == nullptr; });
  return names;
}

const CpuLibrary& cpu_library(bool float64, const std::string& isa) {
  const std::vector<std::string> isas = available_isas();
  if (isas.empty())
    throw std::runtime_error("this processor lacks AVX2 and FMA (x86-64-v3), which stiction's CPU backend needs");
  if (float64) return *library("scalar");
  const std::string& wanted = isa.empty() ? isas[0] : isa;
  if (std::find(isas.begin(), isas.end(), wanted) == isas.end())
    throw std::invalid_argument("isa is '" + wanted +
                                "', which this processor or build does not have; best here: " + isas[0]);
  return *library(wanted);
}

}  // namespace stiction
