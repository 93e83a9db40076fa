// StepOf, to be instantiated.
#pragma once
#include "host/backend/cpu/executor.h"

namespace stiction {

template <class L>
void StepOf<L>::step(const CpuJob<S>& job, int first, int last, void* workspace, void* tables) {
  auto& w = *static_cast<Workspace<L>*>(workspace);
  for (int p = first; p < last; ++p) {
    const Rows<Real> rows = pack_rows<Real>(job, p);
    const SteppedWorlds<L> worlds{job.options, job.arrays, rows, {pack_record<Real>(job, p)}};
    step_batch<L>(Serial{}, model(job, rows, tables), worlds, job.steps, w);
  }
}

template <class L>
void StepOf<L>::find(const CpuJob<S>& job, const FoundContacts<S>& found, int first, int last, void* workspace,
                     void* tables) {
  auto& w = *static_cast<Workspace<L>*>(workspace);
  for (int p = first; p < last; ++p) {
    const Rows<Real> rows = pack_rows<Real>(job, p);
    bool wanted = false;
    for (int i = 0; i < rows.count(); ++i) wanted = wanted || found.wants(rows.first + i);
    if (wanted) find_batch_contacts<L>(Serial{}, model(job, rows, tables), job.options, job.arrays, rows, found, w);
  }
}

template <class L>
DenseProblem<double> StepOf<L>::problem(const CpuJob<S>& job, int world, void* workspace, void* tables, double* out) {
  constexpr int W = kWidth<Real>;
  auto& w = *static_cast<Workspace<L>*>(workspace);
  const Rows<Real> rows = pack_rows<Real>(job, world / W);
  return last_problem<L>(model(job, rows, tables), job.options, job.arrays, rows, pack_record<Real>(job, world / W),
                         world % W, w, out);
}

}  // namespace stiction
