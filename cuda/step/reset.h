// What a reset writes of one environment: the state of qpos0 or of a keyframe, no forces, no warm start, no status, time 0.
//
// The same on the host and on a device; the beginnings are rows of one table, qpos0 first.
#pragma once
#include "step/records.h"

namespace stiction {

template <class T>
struct ResetRows {
  int nq, nv, nu, nbody, nmocap;
  const T* begin;  // (1 + keyframes, nq + nv + nu + 7 nmocap)
  T *qpos, *qvel, *ctrl, *qfrc_applied, *xfrc_applied, *mocap_pos, *mocap_quat;
  double* time;
  int* status;

  HD void state(int64_t e, int keyframe) const {
    const T* from = begin + static_cast<int64_t>(keyframe + 1) * (nq + nv + nu + 7 * nmocap);
    for (int i = 0; i < nq; ++i) qpos[e * nq + i] = from[i];
    for (int i = 0; i < nv; ++i) qvel[e * nv + i] = from[nq + i], qfrc_applied[e * nv + i] = T(0);
    for (int i = 0; i < nu; ++i) ctrl[e * nu + i] = from[nq + nv + i];
    for (int i = 0; i < 6 * nbody; ++i) xfrc_applied[6 * e * nbody + i] = T(0);
    from += nq + nv + nu;
    for (int i = 0; i < 3 * nmocap; ++i) mocap_pos[3 * e * nmocap + i] = from[i];
    for (int i = 0; i < 4 * nmocap; ++i) mocap_quat[4 * e * nmocap + i] = from[3 * nmocap + i];
    time[e] = 0, status[e] = 0;
  }
  /// set(i, x) writes number i of the environment's record.
  template <class Layout, class Set>
  HD void record(const Layout& layout, Set set) const {
    for (int i = 0; i < layout.reals(); ++i) set(i, T(0));
    for (int s = 0; s < layout.slots + layout.pairs; ++s) set(layout.slot_id(s), T(-1));
  }
};

}  // namespace stiction
