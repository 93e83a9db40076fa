// How much memory a world takes besides its workspace, and where each part lies in it.
#pragma once
#include "contact/held.h"
#include "contact/workspace.h"
#include "step/fallback.h"
#include "step/loops.h"
#include "step/records.h"
#include "step/step_options.h"

namespace stiction {

/// Bytes of each part of a WorldMemory.
struct MemorySizes {
  int64_t rows, solver, fallback;
  /// Of `packs` that are solved one after the other.
  HD int64_t total(int packs = 1) const { return packs * rows + solver + fallback; }
};
/// lanes: that solve a world together.
template <class Real, class Model>
HD MemorySizes memory_sizes(const Model& m, const StepOptions<Scalar<Real>>& o, int lanes = 1) {
  RowCounts most = most_rows<Real>(m);
  most.by_island = most.by_island && lanes == 1;
  auto aligned = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  const int64_t real = sizeof(Real);
  const RecordLayout<Model> layout(m);
  const int64_t found = layout.contacts(), loops = LoopRows<Real>::size(m);
  const int64_t pairs = kWidth<Real> == 1 ? PairSearchMemory<Real>::size(m) : 0;  // what a tile looks for them with
  const int64_t rows = max(max(RowArrays<Real>::size(most) + held_size(m, most), max(found, pairs)), loops);
  FallbackPlan plan;
  return {aligned(real * rows), aligned(real * solver_memory<Real>(o.solver, most)),
          plan_fallback(o, plan) ? aligned(fallback_bytes<Real>(plan, most)) : 0};
}
/// That of one of `packs`. `memory`: 64-byte aligned, sizes.total(packs) bytes.
HD WorldMemory world_memory(void* memory, const MemorySizes& sizes, int pack = 0, int packs = 1) {
  auto *at = static_cast<unsigned char*>(memory), *shared = at + packs * sizes.rows;
  WorldMemory w;
  w.rows = at + pack * sizes.rows, w.solver = shared;
  if (sizes.fallback > 0) w.fallback = shared + sizes.solver;
  return w;
}

}  // namespace stiction
