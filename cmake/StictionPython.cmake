# The Python package: the module _core, the CPU libraries beside it, build facts (_build.py), and the assets of envs/.
# Installed by component `python` into stiction/; the Python files themselves are packed by scikit-build-core.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
if(NOT pybind11_DIR)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir OUTPUT_VARIABLE pybind11_DIR
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 CONFIG REQUIRED)

file(GLOB bind_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/bind/*.cpp")
if(bind_sources)
  pybind11_add_module(_core MODULE NO_EXTRAS ${bind_sources})
  target_compile_options(_core PRIVATE -O1)  # nothing in it is hot
  target_precompile_headers(_core PRIVATE <pybind11/numpy.h> <pybind11/stl.h>)
  target_link_libraries(_core PRIVATE ${STICTION_LINK})
  target_compile_definitions(_core PRIVATE "STICTION_VERSION=\"${PROJECT_VERSION}\"")
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${STICTION_PACKAGE_DIR}")
  install(TARGETS _core LIBRARY DESTINATION stiction COMPONENT python)
endif()

# ---- facts about this build ---------------------------------------------------------------------------------------------
set(commit_fact None)
execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" describe --always --dirty --abbrev=12
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE no_git)
if(no_git EQUAL 0)
  set(commit_fact "\"${commit}\"")
  execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" rev-parse --path-format=absolute --git-path logs/HEAD
                  OUTPUT_VARIABLE git_log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(EXISTS "${git_log}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${git_log}")  # a commit configures anew
  endif()
endif()
if(STICTION_CUDA_LIBRARY)
  set(cuda_fact "\"${CMAKE_CUDA_COMPILER_VERSION}\"")
  string(REPLACE "-real" "" joined "${CMAKE_CUDA_ARCHITECTURES}")
  list(JOIN joined "\", \"" joined)
  set(cuda_architectures_fact "(\"${joined}\",)")
else()
  set(cuda_fact None)
  set(cuda_architectures_fact "()")
endif()
set(isas_fact "()")
if(STICTION_ISAS)
  list(JOIN STICTION_ISAS "\", \"" joined)
  set(isas_fact "(\"${joined}\",)")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/_build.py.in" "${STICTION_PACKAGE_DIR}/_build.py" @ONLY)
install(FILES "${STICTION_PACKAGE_DIR}/_build.py" DESTINATION stiction COMPONENT python)

# ---- assets: envs/<task>/<name>.xml becomes stiction/assets/<name>.xml, envs/props/<name>.xml stiction/assets/props/<name>.xml
file(GLOB assets CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/envs/*/*.xml")
file(GLOB props CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/envs/props/*.xml")
list(REMOVE_ITEM assets ${props})
file(MAKE_DIRECTORY "${STICTION_PACKAGE_DIR}/assets/props")
set(asset_names)
foreach(asset IN LISTS assets)
  get_filename_component(name "${asset}" NAME)
  if(name IN_LIST asset_names)
    message(FATAL_ERROR "Two assets are named ${name}: they share the folder stiction/assets")
  endif()
  list(APPEND asset_names "${name}")
  file(CREATE_LINK "${asset}" "${STICTION_PACKAGE_DIR}/assets/${name}" SYMBOLIC)
endforeach()
foreach(prop IN LISTS props)
  get_filename_component(name "${prop}" NAME)
  file(CREATE_LINK "${prop}" "${STICTION_PACKAGE_DIR}/assets/props/${name}" SYMBOLIC)
endforeach()
install(FILES ${assets} DESTINATION stiction/assets COMPONENT python)
install(FILES ${props} DESTINATION stiction/assets/props COMPONENT python)

# ---- what a model's own kernels are compiled from ------------------------------------------------------------------------
if(STICTION_CUDA_LIBRARY)
  file(CREATE_LINK "${PROJECT_SOURCE_DIR}/cuda" "${STICTION_PACKAGE_DIR}/kernel_sources" SYMBOLIC)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/cuda/" DESTINATION stiction/kernel_sources COMPONENT python
          FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" PATTERN "*.cu")
endif()
if(TARGET stiction_cuda_solvers)  # and linked with
  add_custom_command(TARGET _core POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E make_directory "${STICTION_PACKAGE_DIR}/kernel_objects"
    COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_OBJECTS:stiction_cuda_solvers> "${STICTION_PACKAGE_DIR}/kernel_objects"
    COMMAND_EXPAND_LISTS)
  install(FILES $<TARGET_OBJECTS:stiction_cuda_solvers> DESTINATION stiction/kernel_objects COMPONENT python)
endif()

# ---- the build tree's package: links to the Python sources ---------------------------------------------------------------
file(GLOB package_entries CONFIGURE_DEPENDS LIST_DIRECTORIES true "${PROJECT_SOURCE_DIR}/python/stiction/*")
foreach(entry IN LISTS package_entries)
  get_filename_component(name "${entry}" NAME)
  if(NOT name STREQUAL "__pycache__")
    file(CREATE_LINK "${entry}" "${STICTION_PACKAGE_DIR}/${name}" SYMBOLIC)
  endif()
endforeach()
