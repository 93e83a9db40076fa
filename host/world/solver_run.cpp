#include "host/world/solver_run.h"

#include <algorithm>
#include <vector>

#include "host/backend/aligned.h"
#include "host/backend/cpu_libraries.h"
#include "host/backend/thread_pool.h"
#include "host/world/world_options.h"

namespace stiction {
namespace {

template <class T>
void solve_with(const CpuKernels<T>& kernels, const SolverRun& how, const RowBatch& batch) {
  SolveJob<T> job{batch, solver_options_in<T>(how.solver), {}};
  job.limits.iterations = how.limits.iterations, job.limits.tolerance = static_cast<T>(how.limits.tolerance);
  const int packs = (batch.problems + kernels.width - 1) / kernels.width;
  ThreadPool threads(std::max(1, std::min(how.num_threads, packs)));
  std::vector<Aligned> memory;
  for (int i = 0; i < threads.size(); ++i) memory.push_back(aligned(static_cast<size_t>(kernels.solve_bytes(job))));
  auto work = [&](int thread, int first, int last) { kernels.solve(job, first, last, memory[thread].get()); };
  threads.run(packs, work);
}

}  // namespace

void solve_row_batch(const SolverRun& how, const RowBatch& batch) {
  const CpuLibrary& library = cpu_library(how.float64, "");
  if (how.float64) solve_with(*library.float64, how, batch);
  else solve_with(*library.float32, how, batch);
}

}  // namespace stiction
