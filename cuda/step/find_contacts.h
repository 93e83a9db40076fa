// The contacts of the present state, for who asks without stepping: found as a step finds them, and not solved.
#pragma once
#include "step/export.h"
#include "step/step_world.h"

namespace stiction {

/// Contacts, with impulses and net forces of 0, and the deepest overlap of worlds rows.first, ...; states and records stay as
/// they are. A world on which a step could not begin is flagged, as by that step.
template <class L>
HD void find_batch_contacts(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds,
                            const FoundContacts<Scalar<typename L::Real>>& found, Workspace<L>& w) {
  using Real = typename L::Real;
  const auto& [options, arrays, rows, kept] = worlds;
  State<L> x;
  load_state<L>(g, m, arrays, rows, x);
  load_rest<L>(g, m, kept.real, x);
  each_dof<L>(g, m, [](Real& owed) { owed = Real(0); }, x.owed);
  Mask<Real> bad = load_controls<L>(g, m, arrays, rows, w.applied);
  copy_controls<L>(m, w.applied, w.loads);
  find_contacts<L>(g, m, worlds, x, w, bad);
  refine_gaps<L>(g, m, w.kin, x.low, w.motions, w.contacts);

  bad = bad | negate(finite_worlds<L>(g, m, x, w.problem.free, fresh_outcome<Real>().certificate));

  const Real zero(0);
  const Vec3<Real> nothing{zero, zero, zero};
  auto none = [&](int) { return SixVec<Real>{nothing, nothing}; };
  g.sync();  // all are through with what pairs were looked for with, which lies there, too
  const Records<L> records{static_cast<Real*>(w.memory.rows)};
  records.store_contacts(g, m, w.kin, w.contacts, none, none);
  g.sync();
  if (g.rank() != 0) return;
  const RecordLayout<typename L::Model> layout(m);
  Real overlap(0);
  for (int s = 0; s < layout.slots + layout.pairs; ++s) {
    const Mask<Real> is = records.real[layout.slot_id(s)] >= zero;
    if (any(is)) overlap = max(overlap, select(is, -records.real[layout.slot(s) + kRecordGap], zero));
  }
  Mask<Real> unwanted = mask_of<Real>(false);
  for (int i = 0; i < rows.count(); ++i) {
    if (!found.wants(rows.first + i)) {
      set_lane(unwanted, i, kWidth<Real> == 1 ? 1 : -1);
      continue;
    }
    export_contacts(m, rows.first + i, [&](int k) { return lane(records.real[k], i); }, found.capacity, found.arrays);
    if (lane(bad, i)) arrays.status[rows.world(i)] |= kNonFinite;
  }
  rows.set_others(unwanted, arrays.certificate[kPenetration], 1, 0, overlap);
}

}  // namespace stiction
