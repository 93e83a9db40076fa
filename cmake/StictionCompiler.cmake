# Language level, flags and output places shared by all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Shared libraries lie beside whoever loads them: in the package, and in the build tree's copy of it.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN")
set(STICTION_PACKAGE_DIR "${PROJECT_BINARY_DIR}/python/stiction")

find_package(Threads REQUIRED)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)  # it keeps nothing that is made from them
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(STICTION_X86 ON)
  set(stiction_baseline_arch -march=x86-64-v3)  # AVX2, FMA
else()
  set(STICTION_X86 OFF)
  set(stiction_baseline_arch)
endif()

# stiction_flags: what every C++ file is compiled with. The determinism of the CPU backend rests on -ffp-contract=off; the
# two others only say that nobody reads errno or the floating-point flags. Not -ffast-math.
add_library(stiction_flags INTERFACE)
target_include_directories(stiction_flags INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/cuda")
target_compile_options(stiction_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-psabi;-ffp-contract=off;-fno-math-errno;-fno-trapping-math>")

if(STICTION_CUDA STREQUAL "EMULATED")
  add_compile_options(-O1)  # nobody measures it; kernels and the emulator have -O2
endif()
if(STICTION_SANITIZE)
  add_compile_options(-O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
endif()
