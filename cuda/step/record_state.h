// The state at the beginning of a step out of a record and into it: what a dump replays, and what a problem is assembled from.
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

/// record(i) reads number i of one environment's record. qpos (nq), qvel (nv) in MuJoCo's layout.
template <class Model, class Record>
void state_of_record(const Model& m, Record record, double* qpos, double* qvel) {
  RecordLayout<Model> layout(m);
  if (m.free_base()) {
    const int p = m.trunk[0].qpos, d = m.trunk[0].dof, b = layout.base();
    for (int i = 0; i < 7; ++i) qpos[p + i] = record(b + i);
    const Mat3<double> R = rotation(Quat<double>{qpos[p + 3], qpos[p + 4], qpos[p + 5], qpos[p + 6]});
    auto v = [&](int i) { return static_cast<double>(record(layout.velocity(d + i))); };
    const Vec3<double> w =
        transposed_times(R, Vec3<double>{v(0), v(1), v(2)});  // kept as a twist: angular first, world axes
    qvel[d] = v(3), qvel[d + 1] = v(4), qvel[d + 2] = v(5), qvel[d + 3] = w.x, qvel[d + 4] = w.y, qvel[d + 5] = w.z;
  }
  each_jointed_link(m, [&](const auto& link) {
    qvel[link.dof] = record(layout.velocity(link.dof));
    each_coordinate(link, [&](int i, int k) { qpos[i] = record(layout.coordinate(link.dof, k)); });
  });
}

/// put(i, x) writes number i of one environment's record, from MuJoCo's layout; the other way round.
template <class Model, class Put>
void record_of_state(const Model& m, const double* qpos, const double* qvel, Put put) {
  RecordLayout<Model> layout(m);
  auto unit = [](const double* q) { return normalized(Quat<double>{q[0], q[1], q[2], q[3]}); };
  if (m.free_base()) {
    const int p = m.trunk[0].qpos, d = m.trunk[0].dof, b = layout.base();
    const Quat<double> q = unit(qpos + p + 3);
    const Vec3<double> w = rotation(q) * Vec3<double>{qvel[d + 3], qvel[d + 4], qvel[d + 5]};
    const double pose[] = {qpos[p], qpos[p + 1], qpos[p + 2], q.w, q.x, q.y, q.z};
    const double twist[] = {w.x, w.y, w.z, qvel[d], qvel[d + 1], qvel[d + 2]};
    for (int i = 0; i < 7; ++i) put(b + i, pose[i]);
    for (int i = 0; i < 6; ++i) put(layout.velocity(d + i), twist[i]);
  }
  each_jointed_link(m, [&](const auto& link) {
    put(layout.velocity(link.dof), qvel[link.dof]);
    const bool ball = link.kind == kBallLink;
    const Quat<double> q = ball ? unit(qpos + link.qpos) : Quat<double>{};
    const double turn[] = {q.w, q.x, q.y, q.z};
    each_coordinate(link, [&](int i, int k) { put(layout.coordinate(link.dof, k), ball ? turn[k + 1] : qpos[i]); });
  });
}

}  // namespace stiction
