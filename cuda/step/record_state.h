// The state at the beginning of a step out of a record: what a dump replays.
#pragma once
#include "step/records.h"

namespace stiction {

/// visit(link) for every link but a free base.
template <class Model, class Visit>
void each_jointed_link(const Model& m, Visit visit) {
  for (int t = m.base_links(); t < m.trunk_links(); ++t) visit(m.trunk[t]);
  for (int l = 0; l < m.limbs(); ++l)
    for (int k = 0; k < m.limb[l].links; ++k) visit(m.link[m.limb[l].first_link + k]);
}

/// record(i) reads number i of one environment's record. qpos (nq), qvel (nv), owed (nv; N s, N m s) in MuJoCo's layout.
template <class Model, class Record>
void state_of_record(const Model& m, Record record, double* qpos, double* qvel, double* owed) {
  RecordLayout<Model> layout(m);
  if (m.free_base()) {
    const int p = m.trunk[0].qpos, d = m.trunk[0].dof, b = layout.base();
    for (int i = 0; i < 7; ++i) qpos[p + i] = record(b + i);
    const Mat3<double> R = rotation(Quat<double>{qpos[p + 3], qpos[p + 4], qpos[p + 5], qpos[p + 6]});
    // Kept as a twist and a wrench: angular first, world axes.
    auto put = [&](auto kept, double* to) {
      auto x = [&](int i) { return static_cast<double>(record(kept(d + i))); };
      const Vec3<double> turning = transposed_times(R, Vec3<double>{x(0), x(1), x(2)});
      to[d] = x(3), to[d + 1] = x(4), to[d + 2] = x(5);
      to[d + 3] = turning.x, to[d + 4] = turning.y, to[d + 5] = turning.z;
    };
    put([&](int dof) { return layout.velocity(dof); }, qvel);
    put([&](int dof) { return layout.owed(dof); }, owed);
  }
  each_jointed_link(m, [&](const auto& link) {
    qvel[link.dof] = record(layout.velocity(link.dof)), owed[link.dof] = record(layout.owed(link.dof));
    each_coordinate(link, [&](int i, int k) { qpos[i] = record(layout.coordinate(link.dof, k)); });
  });
}

}  // namespace stiction
