// The border between the host and its internal libraries, one per instruction set: plain data and function pointers. Each
// library compiles the same sources with its own flags and hides everything but one table.
#pragma once
#include <cstddef>

#include "contact/dense.h"
#include "host/backend/cpu/row_batch.h"
#include "step/export.h"
#include "step/step_job.h"

namespace stiction {

template <class T>
struct CpuJob : StepJob<T> {
  bool per_env = false;  // some parameter is per environment
  int four_limbs = 0;    // links of each limb of a model that is FourLimbs, else 0
  int places = 1;        // packs that a thread holds at once, each with a workspace and tables of its own
};

/// What a thread calls for packs first .. last - 1 of a batch. Workspaces (job.places of place_bytes) and memory are per thread,
/// 64-byte aligned.
template <class T>
struct CpuKernels {
  int width;        // worlds per pack
  int most_places;  // more serve nothing
  size_t place_bytes;
  void (*step)(const CpuJob<T>& job, int first, int last, void* workspace, void* tables);
  /// The contacts of the present states; packs of which no world is wanted are left out.
  void (*find)(const CpuJob<T>& job, const FoundContacts<T>& found, int first, int last, void* workspace, void* tables);
  /// A thread's own tables for per-environment parameters; null where there are none.
  void* (*create_tables)(const CpuJob<T>& job);
  void (*destroy_tables)(void* tables);
  void (*kinematics)(const CpuJob<T>& job, int first, int last, void* workspace);
  /// Memory besides the workspace, sized by model and solver; and where it is.
  int64_t (*memory_bytes)(const CpuJob<T>& job);
  void (*bind_memory)(const CpuJob<T>& job, void* workspace, void* memory);
  /// The last step's problem of one world, or the next one's, in double; the views point into `out` (problem_size numbers).
  int64_t (*problem_size)(const CpuJob<T>& job);
  DenseProblem<double> (*problem)(const CpuJob<T>& job, int world, bool next, void* workspace, void* tables,
                                  double* out);
  /// See cuda/step/last_problem.h.
  void (*solved_velocity)(const CpuJob<T>& job, int world, const T* after, void* workspace, void* tables);
  /// Contact problems without a world, `width` to a pack: bytes of memory per thread, and solving packs first .. last - 1.
  int64_t (*solve_bytes)(const SolveJob<T>& job);
  void (*solve)(const SolveJob<T>& job, int first, int last, void* memory);
};

struct CpuLibrary {
  const char* isa;
  const CpuKernels<float>* float32;  // null in the scalar library of an x86-64 build without tests, which never runs it
  const CpuKernels<double>* float64;  // null where the library has none
};

}  // namespace stiction

extern "C" {
__attribute__((visibility("default"))) const stiction::CpuLibrary* stiction_cpu_scalar();
__attribute__((visibility("default"))) const stiction::CpuLibrary* stiction_cpu_avx2();
__attribute__((visibility("default"))) const stiction::CpuLibrary* stiction_cpu_avx512();
}
