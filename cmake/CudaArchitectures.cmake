# What STICTION_CUDA_ARCHITECTURES may hold: compute capabilities from 8.0 on, as CMake writes them, or native.
#
#   80 A100   86 RTX 30   89 RTX 40, L4, L40   90 H100, H200   100 B200   120 RTX 50
#
# Each takes the compiler minutes. The last of a list is kept as PTX too, which newer GPUs compile when they first load it.
function(stiction_check_cuda_architectures architectures)
  if("${architectures}" STREQUAL "native")
    return()
  endif()
  foreach(entry IN LISTS architectures)
    if(NOT "${entry}" MATCHES "^([0-9]+)(-real|-virtual)?$" OR CMAKE_MATCH_1 LESS 80)
      message(FATAL_ERROR "STICTION_CUDA_ARCHITECTURES names '${entry}', expected native or numbers from 80 on, such as 80;86;89;90;100;120")
    endif()
  endforeach()
  if("${architectures}" STREQUAL "")
    message(FATAL_ERROR "STICTION_CUDA_ARCHITECTURES is empty, expected native or numbers from 80 on, such as 80;86;89;90;100;120")
  endif()
endfunction()

# The list as CMAKE_CUDA_ARCHITECTURES wants it for that: machine code alone but for the last.
function(stiction_cuda_targets architectures result)
  set(targets)
  list(LENGTH architectures left)
  foreach(entry IN LISTS architectures)
    math(EXPR left "${left} - 1")
    if(left GREATER 0 AND "${entry}" MATCHES "^[0-9]+$")
      string(APPEND entry "-real")
    endif()
    list(APPEND targets "${entry}")
  endforeach()
  set(${result} "${targets}" PARENT_SCOPE)
endfunction()
