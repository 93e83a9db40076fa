// What users read of a configuration: poses and velocities of bodies and sites. From qpos and qvel alone.
#pragma once
#include "kinematics/jacobian.h"
#include "model/parameters.h"
#include "step/user_arrays.h"

namespace stiction {

/// Row-major, world axes. Null pointers are skipped.
template <class T>
struct KinematicArrays {
  T *xpos = nullptr, *xquat = nullptr;               // (N, nbody, 3), (N, nbody, 4)      m, 1
  T *body_linvel = nullptr, *body_angvel = nullptr;  // (N, nbody, 3) of the body's frame  m/s, rad/s
  T* site_xpos = nullptr;                            // (N, nsite, 3)                      m
  ParameterArrays<T> parameters;                     // read: where bodies and sites are, of each environment
};

template <class L>
struct OutputWorkspace {
  Kinematics<L> kin;
  PerLink<L, Motion<typename L::Real>> V;
};

/// Serial groups only: bodies are visited one by one. `m` is shared; of what differs only places count here.
template <class L>
HD void write_kinematics(const typename L::Model& m, const BatchArrays<Scalar<typename L::Real>>& arrays,
                         const KinematicArrays<Scalar<typename L::Real>>& out, const Rows<typename L::Real>& rows,
                         OutputWorkspace<L>& w) {
  using Real = typename L::Real;
  typename L::Group g;
  State<L> x;
  load_state<L>(g, m, arrays, rows, x);
  const ParameterArrays<Scalar<Real>>& own = out.parameters;
  auto get = [&](const Scalar<Real>* array, int stride, int i) { return rows.get(array, stride, i); };
  forward_kinematics<L>(g, m, x, w.kin, [&](const auto& link) {
    const Vec3<Real> offset = vec<Real>(link.offset);
    return own.body_pos && link.hung >= 0 ? offset + seat_of<Real>(m, own, link.hung, get) : offset;
  });
  link_motions<L>(g, m, w.kin, x.v, w.V);

  const Real zero(0);
  int limb_of_link[L::kLinks] = {};
  for (int l = 0; l < m.limbs(); ++l)
    for (int k = 0; k < m.limb[l].links; ++k) limb_of_link[m.limb[l].first_link + k] = l;
  auto origin = [&](int flat) {
    return flat < L::kLimbsFrom ? w.kin.trunk_origin : w.kin.limb_origin[limb_of_link[flat - L::kLimbsFrom]];
  };
  auto put = [&](auto* array, int count, int i, Vec3<Real> a) {
    if (array == nullptr) return;
    rows.set(array, 3 * count, 3 * i, a.x), rows.set(array, 3 * count, 3 * i + 1, a.y),
        rows.set(array, 3 * count, 3 * i + 2, a.z);
  };
  for (int b = 0; b < m.nbody; ++b) {
    const auto& body = m.body[b];
    Pose<Real> pose{mat<Real>(body.pose.R), vec<Real>(body.pose.p)};
    if (own.body_pos) pose.p = pose.p + shift_of<Real>(m, own, b, get);
    Vec3<Real> p = pose.p, none{zero, zero, zero}, linear = none, angular = none;
    Quat<Real> q = quat_cast<Real>(body.quat);
    if (body.mocap >= 0) {
      const Pose<Real> at = mocap_pose(arrays, rows, m.nmocap, body.mocap) * pose;
      p = at.p, q = quat_of(at.R);
    }
    if (body.link >= 0) {
      const Pose<Real>& link = at_flat<L>(w.kin.pose, body.link);
      const Motion<Real>& V = at_flat<L>(w.V, body.link);
      Vec3<Real> local = link * pose.p;
      p = local + origin(body.link), linear = velocity_at(V, local), angular = V.w;
      q = quat_of(link.R * pose.R);
    }
    put(out.xpos, m.nbody, b, p), put(out.body_linvel, m.nbody, b, linear), put(out.body_angvel, m.nbody, b, angular);
    if (out.xquat == nullptr) continue;
    const Real wxyz[4] = {q.w, q.x, q.y, q.z};
    for (int i = 0; i < 4; ++i) rows.set(out.xquat, 4 * m.nbody, 4 * b + i, wxyz[i]);
  }
  for (int s = 0; s < m.nsite; ++s) {
    const auto& site = m.site[s];
    Vec3<Real> pos = vec<Real>(site.pos);
    if (own.body_pos || own.site_pos) pos = pos + site_shift_of<Real>(m, own, s, get);
    Vec3<Real> p = pos;
    if (site.mocap >= 0) p = mocap_pose(arrays, rows, m.nmocap, site.mocap) * pos;
    if (site.link >= 0) p = at_flat<L>(w.kin.pose, site.link) * pos + origin(site.link);
    put(out.site_xpos, m.nsite, s, p);
  }
}

}  // namespace stiction
