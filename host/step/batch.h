// The arrays of a batch as a step sees them, and how a world is loaded from and stored to them.
//
// Users' arrays are row-major (num_envs, ...) and the only truth; a pack transposes while loading. Records (warm start and
// the contacts of the last step) are internal: pack by pack, field by field, so that they move as whole registers.
#pragma once
#include "contact/residual.h"
#include "core/status.h"
#include "dynamics/free_motion.h"

namespace stiction {

/// What the certificate's arrays hold, in this order; each (num_envs,).
enum CertificateField : int {
  kRDyn,
  kRCon,
  kRCcp,
  kRRow,
  kRCone,
  kPenetration,
  kScale,
  kNumContacts,
  kIterations,
  kConverged,
  kCertificateFields
};

/// Fields of a contact slot in the records.
enum RecordField : int {
  kRecordId,
  kRecordT1,
  kRecordT2,
  kRecordN,
  kRecordGap,
  kRecordX,
  kRecordY,
  kRecordZ,
  kRecordNx,
  kRecordNy,
  kRecordNz,
  kRecordMu,
  kRecordGeom1,
  kRecordGeom2,
  kRecordFields
};

/// T: float or double. Null pointers: not there.
template <class T>
struct BatchArrays {
  int num_envs = 0;
  T *qpos = nullptr, *qvel = nullptr;                        // (N, nq), (N, nv)
  const T* ctrl = nullptr;                                   // (N, nu)
  double* time = nullptr;                                    // (N,)
  const T *qfrc_applied = nullptr, *xfrc_applied = nullptr;  // (N, nv), (N, nbody, 6) force, torque at the body's com
  int* status = nullptr;                                     // (N,)
  T* certificate[kCertificateFields] = {};                   // (N,) each
  T* records = nullptr;                                      // (packs, record_reals, W)
};

/// How the records of a world are laid out: slots, then limits and dry friction per dof, then ties.
template <class Model>
struct RecordLayout {
  int slots, pairs, dofs, ties;
  HD explicit RecordLayout(const Model& m) : slots(m.world_slots), pairs(m.pair_slots), dofs(m.nv), ties(m.ties) {}
  HD int slot(int c) const { return c * kRecordFields; }
  HD int pair(int s) const { return (slots + s) * kRecordFields; }
  HD int limit(int dof) const { return (slots + pairs) * kRecordFields + dof; }
  HD int friction(int dof) const { return (slots + pairs) * kRecordFields + dofs + dof; }
  HD int tie(int i) const { return (slots + pairs) * kRecordFields + 2 * dofs + i; }
  /// The state at the beginning of the last step, for whoever asks for its contact problem: pose of a free base (7), then v, q
  /// and qw per dof.
  HD int base() const { return (slots + pairs) * kRecordFields + 2 * dofs + ties; }
  HD int velocity(int dof) const { return base() + 7 + dof; }
  HD int position(int dof) const { return base() + 7 + dofs + dof; }
  HD int quaternion(int dof) const { return base() + 7 + 2 * dofs + dof; }
  HD int reals() const { return base() + 7 + 3 * dofs; }
};

/// x; a GPU's compiler does not see that it is.
HD int recomputed(int x) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(x));
#endif
  return x;
}

/// Worlds first, first + 1, ... of row-major arrays. Beyond the last world a pack repeats it, and stores nothing there.
template <class Real>
struct Rows {
  using S = Scalar<Real>;
  int first, num_envs;
  bool real = true;  // false: a surplus tile of a warp, which computes along and stores nothing
  HD int world(int w) const { return min(first + w, num_envs - 1); }
  HD int count() const { return real ? min(kWidth<Real>, num_envs - first) : 0; }
  /// The same rows, their addresses computed anew: none is kept in registers during the steps.
  HD Rows again() const { return {recomputed(first), num_envs, real}; }
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

/// x + 0: a skip may turn a zero's sign, which is not to show in the bits of a state.
template <class Real> HD Real without_sign_of_zero(Real x) { return x + Real(0); }

template <class L, class Real = typename L::Real>
HD void load_state(const typename L::Group& g, const typename L::Model& m, const BatchArrays<Scalar<Real>>& a,
                   const Rows<Real>& rows, State<L>& x) {
  auto q = [&](int i) { return rows.get(a.qpos, m.nq, i); };
  auto v = [&](int i) { return rows.get(a.qvel, m.nv, i); };
  Real zero(0);
  x.position = {zero, zero, zero};
  if (m.free_base()) {
    const auto& base = m.trunk[0];
    int p = base.qpos, d = base.dof;
    x.position = {q(p), q(p + 1), q(p + 2)};
    x.orientation = normalized(Quat<Real>{q(p + 3), q(p + 4), q(p + 5), q(p + 6)});
    Vec3<Real> w = rotation(x.orientation) * Vec3<Real>{v(d + 3), v(d + 4), v(d + 5)};
    put(Force<Real>{w, {v(d), v(d + 1), v(d + 2)}}, x.v.trunk);
  }
  UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) {
    const auto& link = m.trunk[m.link_of_dof(t)];
    x.q.trunk[t] = q(link.qpos), x.v.trunk[t] = v(link.dof);
  }
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      const auto& link = limb.link(k);
      int i = at.link + k;
      x.v.limb[i] = link.dof < 0 ? zero : v(link.dof);
      if (!L::Shape::kFixed && link.kind == kBallNextLink) continue;
      if (!L::Shape::kFixed && link.kind == kBallLink) {
        x.qw.limb[i] = q(link.qpos);
        UNROLL for (int j = 0; j < 3; ++j) x.q.limb[i + j] = q(link.qpos + 1 + j);
      } else {
        x.q.limb[i] = link.dof < 0 ? zero : q(link.qpos);
      }
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
    UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) {
      const auto& link = m.trunk[m.link_of_dof(t)];
      q(link.qpos, x.q.trunk[t]), v(link.dof, x.v.trunk[t]);
    }
  }
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      const auto& link = limb.link(k);
      int i = at.link + k;
      if (link.dof < 0) continue;
      v(link.dof, x.v.limb[i]);
      if (!L::Shape::kFixed && link.kind == kBallNextLink) continue;
      if (!L::Shape::kFixed && link.kind == kBallLink) {
        q(link.qpos, x.qw.limb[i]);
        UNROLL for (int j = 0; j < 3; ++j) q(link.qpos + 1 + j, x.q.limb[i + j]);
      } else {
        q(link.qpos, x.q.limb[i]);
      }
    }
  });
}

/// Controls and applied forces. `bad`: worlds with an input that is not finite.
template <class L, class Real = typename L::Real>
HD void load_loads(const typename L::Group& g, const typename L::Model& m, const BatchArrays<Scalar<Real>>& a,
                   const Rows<Real>& rows, Loads<L>& loads, Mask<Real>& bad) {
  auto take = [&](int i) {
    Real u = rows.get(a.ctrl, m.nu, i);
    bad = bad | negate(is_finite(u));
    return u;
  };
  auto of_link = [&](const auto& link, Real* to) {
    if constexpr (L::Shape::kFixed) {
      if (link.actuators) to[0] = take(m.actuator[link.actuator_begin].ctrl);
    } else {
      for (int j = 0; j < link.actuators; ++j) to[j] = take(m.actuator[link.actuator_begin + j].ctrl);
    }
  };
  int act = 0;
  UNROLL for (int t = m.base_links(); t < m.trunk_links(); ++t) {
    of_link(m.trunk[t], loads.ctrl + act);
    act += L::Shape::kFixed ? 1 : m.trunk[t].actuators;
  }
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    int own = act + at.actuator;
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      of_link(limb.link(k), loads.ctrl + own);
      own += L::Shape::kFixed ? 1 : limb.link(k).actuators;
    }
  });
  for (int i = 0; i < m.ties; ++i)
    if (m.tie[i].kind == kTieActuator) loads.tie_ctrl[i] = take(m.tie[i].actuator.ctrl);

  if constexpr (!L::Shape::kLoads) return;
  // Applied forces are mostly absent: one look decides, and a look at rows that lie in memory side by side is cheap.
  auto present = [&](const Scalar<Real>* array, int stride) {
    if (array == nullptr) return false;
    bool any_nonzero = false;
    const Scalar<Real>* row = array + static_cast<int64_t>(rows.first) * stride;
    for (int i = 0; i < rows.count() * stride; ++i) any_nonzero |= !(row[i] == 0);
    return any_nonzero;
  };
  loads.any_force = g.any(present(a.qfrc_applied, m.nv));
  loads.any_wrench = g.any(present(a.xfrc_applied, 6 * m.nbody)) || m.has_buoyancy;
  if (!loads.any_force) return;
  auto f = [&](int i) {
    Real x = rows.get(a.qfrc_applied, m.nv, i);
    bad = bad | negate(is_finite(x));
    return x;
  };
  if (m.free_base()) {
    int d = m.trunk[0].dof;
    // MuJoCo's last three are torques about the body's axes; joint_loads() turns them once the pose is known.
    UNROLL for (int i = 0; i < 3; ++i) loads.force.trunk[i] = f(d + 3 + i), loads.force.trunk[3 + i] = f(d + i);
  }
  UNROLL for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) loads.force.trunk[t] = f(m.trunk[m.link_of_dof(t)].dof);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k)
      loads.force.limb[at.link + k] = limb.link(k).dof < 0 ? Real(0) : f(limb.link(k).dof);
  });
}

}  // namespace stiction
