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

/// q turned by `by`, which is small, about axes of the world.   rad
inline void turn_little(const Vec3<double>& by, double* q) {
  const Quat<double> old{q[0], q[1], q[2], q[3]},
      more = Quat<double>{0, by.x / 2, by.y / 2, by.z / 2} * old,
      next = {old.w + more.w, old.x + more.x, old.y + more.y, old.z + more.z};
  q[0] = next.w, q[1] = next.x, q[2] = next.y, q[3] = next.z;
}

/// record(i) reads number i of one environment's record. qpos (nq; with what rounding took from it), qvel (nv), owed (nv; N s, N m s)
/// in MuJoCo's layout.
template <class Model, class Record>
void state_of_record(const Model& m, Record record, double* qpos, double* qvel, double* owed) {
  RecordLayout<Model> layout(m);
  if (m.free_base()) {
    const int p = m.trunk[0].qpos, d = m.trunk[0].dof, b = layout.base();
    for (int i = 0; i < 7; ++i) qpos[p + i] = record(b + i);
    auto low = [&](int t) { return static_cast<double>(record(layout.began_low(d + t))); };
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
    for (int i = 0; i < 3; ++i) qpos[p + i] += low(3 + i);
    turn_little({low(0), low(1), low(2)}, qpos + p + 3);
  }
  each_jointed_link(m, [&](const auto& link) {
    qvel[link.dof] = record(layout.velocity(link.dof)), owed[link.dof] = record(layout.owed(link.dof));
    each_coordinate(link, [&](int i, int k) { qpos[i] = record(layout.coordinate(link.dof, k)); });
    auto low = [&](int i) { return static_cast<double>(record(layout.began_low(link.dof + i))); };
    if (link.kind == kHingeLink || link.kind == kSlideLink) qpos[link.qpos] += low(0);
    if (link.kind != kBallLink) return;
    double* q = qpos + link.qpos;
    turn_little(rotation(Quat<double>{q[0], q[1], q[2], q[3]}) * Vec3<double>{low(0), low(1), low(2)}, q);
  });
}

}  // namespace stiction
