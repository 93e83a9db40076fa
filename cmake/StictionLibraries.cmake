# The libraries: stiction_cpu_<isa> (shared, one per instruction set), stiction_cuda, stiction_host, stiction_envs.

# ---- CPU backend: the same sources once per instruction set -------------------------------------------------------------
# Each is loaded by the host, which calls one extern "C" function in it, chosen by cpuid. The export map keeps everything
# else local, inline functions of the standard library too: otherwise the dynamic linker would merge them across the three,
# and an AVX2 machine could run an AVX-512 instance.
# They run no code when loaded: no dynamic initialisers, no global constructors.
file(GLOB cpu_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/host/backend/cpu/cpu_*.cpp")
set(STICTION_ISAS)
set(STICTION_CPU_LIBRARIES)
set(cpu_isas ${STICTION_CPU_ISAS})
if(STICTION_CPU_ISAS STREQUAL "native")
  set(cpu_isas scalar avx2 avx512)
  if(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
    if(NOT cpu_flags MATCHES " avx512vl( |$)")
      list(REMOVE_ITEM cpu_isas avx512)
    endif()
  endif()
endif()

function(stiction_add_cpu_library isa float32)
  set(target "stiction_cpu_${isa}")
  string(TOUPPER "${isa}" upper)
  add_library(${target} SHARED ${cpu_sources})
  target_link_libraries(${target} PRIVATE stiction_flags Threads::Threads)
  target_compile_definitions(${target} PRIVATE "STICTION_ISA_${upper}=1" "STICTION_ISA_NAME=${isa}"
    "STICTION_FLOAT32=$<BOOL:${float32}>")
  set(optimization -O3)
  if(STICTION_SANITIZE OR STICTION_CUDA_EMULATED)
    set(optimization -O1)
  endif()
  target_compile_options(${target} PRIVATE ${optimization} -fno-tree-slp-vectorize -fno-semantic-interposition ${ARGN})
  # Loops over a few packs stay loops: GCC makes calls of memset and memmove of them, which cost more than they do.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>)
  if(UNIX AND NOT APPLE AND NOT STICTION_SANITIZE)
    set(map "${PROJECT_SOURCE_DIR}/cmake/cpu_exports.map")
    target_link_options(${target} PRIVATE "-Wl,--version-script=${map}")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS "${map}")
  endif()
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${STICTION_PACKAGE_DIR}")
  install(TARGETS ${target} LIBRARY DESTINATION stiction COMPONENT python)
  set(STICTION_ISAS ${STICTION_ISAS} ${isa} PARENT_SCOPE)
  set(STICTION_CPU_LIBRARIES ${STICTION_CPU_LIBRARIES} ${target} PARENT_SCOPE)
endfunction()

if(STICTION_CUDA_EMULATED AND STICTION_CPU_FROM)  # a build with tests: that has float32, too
  set(taken "${STICTION_PACKAGE_DIR}/libstiction_cpu_scalar.so")
  file(MAKE_DIRECTORY "${STICTION_PACKAGE_DIR}")
  file(CREATE_LINK "${STICTION_CPU_FROM}/python/stiction/libstiction_cpu_scalar.so" "${taken}" SYMBOLIC)
  add_library(stiction_cpu_scalar SHARED IMPORTED)
  set_target_properties(stiction_cpu_scalar PROPERTIES IMPORTED_LOCATION "${taken}")
  set(STICTION_ISAS scalar)
  set(STICTION_CPU_LIBRARIES stiction_cpu_scalar)
elseif(cpu_sources)
  # One world at a time serves float64. In float32 an x86-64 machine never runs it but in tests, which compare it with packs.
  set(scalar_float32 ON)
  if(STICTION_X86 AND NOT STICTION_BUILD_TESTS AND NOT STICTION_CUDA_EMULATED)
    set(scalar_float32 OFF)
  endif()
  stiction_add_cpu_library(scalar ${scalar_float32} ${stiction_baseline_arch})
  if(STICTION_X86 AND NOT STICTION_CUDA_EMULATED)
    if("avx2" IN_LIST cpu_isas)
      # GCC copies structs of packs by halves of 16 bytes there, and who loads a pack then waits until both are in the cache.
      # Versions before 12 and other compilers lack the flags.
      include(CheckCXXCompilerFlag)
      check_cxx_compiler_flag("-mmove-max=256 -mstore-max=256" STICTION_COPIES_WHOLE_PACKS)
      stiction_add_cpu_library(avx2 ON -march=x86-64-v3
        $<$<BOOL:${STICTION_COPIES_WHOLE_PACKS}>:-mmove-max=256> $<$<BOOL:${STICTION_COPIES_WHOLE_PACKS}>:-mstore-max=256>)
    endif()
    if("avx512" IN_LIST cpu_isas AND NOT STICTION_SANITIZE)
      stiction_add_cpu_library(avx512 ON -march=x86-64-v4 -mprefer-vector-width=512)
    endif()
  endif()
endif()

# ---- CUDA backend -------------------------------------------------------------------------------------------------------
# No fast-math. ptxas prints registers, stack and spills of every kernel into the build log. A function of the host that a kernel
# calls is an error: nvcc only warns, and makes code of it that runs into whatever comes behind.
set(STICTION_CUDA_LIBRARY)
# Emulated, .cu files are C++ that begins with the emulator's header.
function(stiction_emulate_sources)
  if(STICTION_CUDA_EMULATED AND ARGN)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS
      "-O2;-xc++;-include;cuda_runtime.h;-Wno-unknown-pragmas")  # tests wait for it
  endif()
endfunction()
if(STICTION_WITH_CUDA)
  add_library(stiction_cuda_flags INTERFACE)
  if(STICTION_CUDA_EMULATED)
    target_include_directories(stiction_cuda_flags INTERFACE "${PROJECT_SOURCE_DIR}/tests/cuda_emulator")
  else()
    target_include_directories(stiction_cuda_flags SYSTEM INTERFACE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  endif()
  target_compile_options(stiction_cuda_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-prec-div=false;-prec-sqrt=false;--Werror=cross-execution-space-call;-Xptxas=-v;-Xcompiler=-ffp-contract=off,-Wno-psabi>")
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cuda/*.cu")
  if(STICTION_CUDA_EMULATED)
    stiction_emulate_sources(${cuda_sources})
    list(APPEND cuda_sources "${PROJECT_SOURCE_DIR}/tests/cuda_emulator/emulator.cpp")
    set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/cuda_emulator/emulator.cpp" PROPERTIES COMPILE_OPTIONS
      "-O2;-U_FORTIFY_SOURCE")  # it jumps between stacks
  endif()
  if(STICTION_CUDA_EMULATED)
    add_library(stiction_cuda STATIC ${cuda_sources})
  else()
    # Solvers are compiled apart and linked with every kernel that steps worlds, so that registers are bounded for all of them; what
    # links a model's own kernels (python/stiction/model_kernels.py) takes their objects.
    set(solver_sources ${cuda_sources})
    list(FILTER solver_sources INCLUDE REGEX "kernels/(solve|improve)\\.cu$")
    list(REMOVE_ITEM cuda_sources ${solver_sources})
    add_library(stiction_cuda_solvers OBJECT ${solver_sources})
    add_library(stiction_cuda STATIC ${cuda_sources} $<TARGET_OBJECTS:stiction_cuda_solvers>)
    target_link_libraries(stiction_cuda_solvers PRIVATE stiction_flags stiction_cuda_flags)
    foreach(target stiction_cuda_solvers stiction_cuda)
      set_target_properties(${target} PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
      target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-maxrregcount=128>")
    endforeach()
    set_target_properties(stiction_cuda PROPERTIES CUDA_RESOLVE_DEVICE_SYMBOLS ON)
  endif()
  target_link_libraries(stiction_cuda PUBLIC stiction_flags PRIVATE stiction_cuda_flags)
  set(STICTION_CUDA_LIBRARY stiction_cuda)
endif()

# ---- host and envs ------------------------------------------------------------------------------------------------------
file(GLOB host_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/host/model/*.cpp" "${PROJECT_SOURCE_DIR}/host/world/*.cpp"
     "${PROJECT_SOURCE_DIR}/host/backend/*.cpp")
set(STICTION_LINK stiction_flags)  # what tests and the Python module link: everything that exists
if(host_sources)
  add_library(stiction_host STATIC ${host_sources})
  target_link_libraries(stiction_host PUBLIC stiction_flags Threads::Threads PRIVATE ${STICTION_CPU_LIBRARIES} ${CMAKE_DL_LIBS})
  foreach(isa IN LISTS STICTION_ISAS)
    string(TOUPPER "${isa}" upper)
    target_compile_definitions(stiction_host PRIVATE "STICTION_WITH_${upper}=1")
  endforeach()
  if(STICTION_CUDA_LIBRARY)
    target_link_libraries(stiction_host PRIVATE ${STICTION_CUDA_LIBRARY})
    target_compile_definitions(stiction_host PUBLIC STICTION_WITH_CUDA=1)
  endif()
  list(APPEND STICTION_LINK stiction_host)
endif()

file(GLOB_RECURSE env_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/envs/*.cpp")
if(STICTION_WITH_CUDA)
  file(GLOB_RECURSE env_cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/envs/*.cu")
  stiction_emulate_sources(${env_cuda_sources})
endif()
if(env_sources)
  add_library(stiction_envs STATIC ${env_sources} ${env_cuda_sources})
  target_link_libraries(stiction_envs PUBLIC ${STICTION_LINK})
  if(STICTION_WITH_CUDA)
    target_link_libraries(stiction_envs PRIVATE stiction_cuda_flags ${STICTION_CUDA_LIBRARY})
  endif()
  list(APPEND STICTION_LINK stiction_envs)
endif()
