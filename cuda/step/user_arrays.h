// The arrays of a batch as a step sees them, and how a state is loaded from and stored to them.
//
// Users' arrays are row-major (num_envs, ...) and the only truth; a pack transposes while loading.
#pragma once
#include "contact/residual.h"
#include "core/status.h"
#include "dynamics/free_motion.h"

namespace stiction {

/// What the certificate's arrays hold, in this order; each (num_envs,).
enum CertificateField : int {
  kRDyn,
  kRCon,
  kRSplit,
  kRCcp,
  kRMdp,
  kRRow,
  kRCone,
  kPenetration,
  kScale,
  kNumContacts,
  kIterations,
  kConverged,
  kCertificateFields
};

/// T: float or double. Null pointers: not there.
template <class T>
struct BatchArrays {
  int num_envs = 0;
  T *qpos = nullptr, *qvel = nullptr;                        // (N, nq), (N, nv)
  const T* ctrl = nullptr;                                   // (N, nu)
  double* time = nullptr;                                    // (N,)
  const T *qfrc_applied = nullptr, *xfrc_applied = nullptr;  // (N, nv), (N, nbody, 6) force, torque at the body's com
  const T *mocap_pos = nullptr, *mocap_quat = nullptr;       // (N, nmocap, 3), (N, nmocap, 4)
  int* status = nullptr;                                     // (N,)
  T* certificate[kCertificateFields] = {};                   // (N,) each
  T* records = nullptr;                                      // (packs, record_reals, W)
};

/// Worlds first, first + 1, ... of row-major arrays. Beyond the last world a pack repeats it, and stores nothing there.
template <class Real>
struct Rows {
  using S = Scalar<Real>;
  int first, num_envs;
  HD int world(int w) const { return min(first + w, num_envs - 1); }
  HD int count() const { return min(kWidth<Real>, num_envs - first); }
  HD Real get(const S* array, int stride, int i) const {
    if constexpr (kWidth<Real> == 1) {
      return array[static_cast<int64_t>(first) * stride + i];
    } else {
      Real x;
      for (int w = 0; w < kWidth<Real>; ++w) set_lane(x, w, array[static_cast<int64_t>(world(w)) * stride + i]);
      return x;
    }
  }
  template <class T>
  HD void set(T* array, int stride, int i, const Real& x) const {
    set_others(mask_of<Real>(false), array, stride, i, x);
  }
  /// Leaves the worlds of `kept` as they are.
  template <class T>
  HD void set_others(const Mask<Real>& kept, T* array, int stride, int i, const Real& x) const {
    if constexpr (kWidth<Real> == 1) {
      if (count() > 0 && !kept) array[static_cast<int64_t>(first) * stride + i] = static_cast<T>(x);
    } else {
      for (int w = 0; w < count(); ++w)
        if (!lane(kept, w)) array[static_cast<int64_t>(first + w) * stride + i] = static_cast<T>(lane(x, w));
    }
  }
};

/// Where a mocap body stands; a quaternion of zeros, which a step reports, is no turn.
template <class Real>
HD Pose<Real> mocap_pose(const BatchArrays<Scalar<Real>>& a, const Rows<Real>& rows, int nmocap, int i) {
  const auto p = [&](int k) { return rows.get(a.mocap_pos, 3 * nmocap, 3 * i + k); };
  const auto q = [&](int k) { return rows.get(a.mocap_quat, 4 * nmocap, 4 * i + k); };
  return {rotation(normalized(Quat<Real>{q(0), q(1), q(2), q(3)})), {p(0), p(1), p(2)}};
}

/// x + 0: a skip may turn a zero's sign, which is not to show in the bits of a state.
template <class Real> HD Real without_sign_of_zero(Real x) { return x + Real(0); }

template <class L, class Real = typename L::Real>
HD void load_state(const typename L::Group& g, const typename L::Model& m, const BatchArrays<Scalar<Real>>& a,
                   const Rows<Real>& rows, State<L>& x) {
  auto q = [&](int i) { return rows.get(a.qpos, m.nq, i); };
  auto v = [&](int i) { return rows.get(a.qvel, m.nv, i); };
  Real zero(0);
  x.position = {zero, zero, zero};
  each_dof<L>(g, m, [&](Real& low) { low = zero; }, x.low);
  if (m.free_base()) {
    const auto& base = m.trunk[0];
    int p = base.qpos, d = base.dof;
    x.position = {q(p), q(p + 1), q(p + 2)};
    x.orientation = unit(Quat<Real>{q(p + 3), q(p + 4), q(p + 5), q(p + 6)});
    Vec3<Real> w = rotation(x.orientation) * Vec3<Real>{v(d + 3), v(d + 4), v(d + 5)};
    put(Force<Real>{w, {v(d), v(d + 1), v(d + 2)}}, x.v.trunk);
  }
  for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) {
    const auto& link = m.trunk[m.link_of_dof(t)];
    x.q.trunk[t] = q(link.qpos), x.v.trunk[t] = v(link.dof);
  }
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) {
      const auto& link = limb.link(k);
      const int i = at.link + k;
      x.v.limb[i] = v(link.dof);
      each_coordinate(link, [&](int from, int to) { (to < 0 ? x.qw.limb[i] : x.q.limb[i + to]) = q(from); });
    }
  });
}

/// kept: worlds whose state stays to the bit what it was.
template <class L, class Real = typename L::Real>
HD void store_state(const typename L::Group& g, const typename L::Model& m, const BatchArrays<Scalar<Real>>& a,
                    const Rows<Real>& rows, const State<L>& x, const Mask<Real>& kept) {
  auto q = [&](int i, const Real& value) { rows.set_others(kept, a.qpos, m.nq, i, without_sign_of_zero(value)); };
  auto v = [&](int i, const Real& value) { rows.set_others(kept, a.qvel, m.nv, i, without_sign_of_zero(value)); };
  if (g.rank() == 0) {
    if (m.free_base()) {
      int p = m.trunk[0].qpos, d = m.trunk[0].dof;
      Motion<Real> V = twist(x.v.trunk);
      Vec3<Real> w = transposed_times(rotation(x.orientation), V.w);
      q(p, x.position.x), q(p + 1, x.position.y), q(p + 2, x.position.z);
      q(p + 3, x.orientation.w), q(p + 4, x.orientation.x), q(p + 5, x.orientation.y), q(p + 6, x.orientation.z);
      v(d, V.v.x), v(d + 1, V.v.y), v(d + 2, V.v.z), v(d + 3, w.x), v(d + 4, w.y), v(d + 5, w.z);
    }
    for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) {
      const auto& link = m.trunk[m.link_of_dof(t)];
      q(link.qpos, x.q.trunk[t]), v(link.dof, x.v.trunk[t]);
    }
  }
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) {
      const auto& link = limb.link(k);
      const int i = at.link + k;
      v(link.dof, x.v.limb[i]);
      each_coordinate(link, [&](int to, int from) { q(to, from < 0 ? x.qw.limb[i] : x.q.limb[i + from]); });
    }
  });
}

}  // namespace stiction
