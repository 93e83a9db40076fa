// What the user applies: controls, joint forces, wrenches on bodies; and gravity compensation.
#pragma once
#include "contact/impulses.h"
#include "step/user_arrays.h"

namespace stiction {

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
    for (int j = 0; j < link.actuators; ++j) to[j] = take(m.actuator[link.actuator_begin + j].ctrl);
  };
  int act = 0;
  for (int t = m.base_links(); t < m.trunk_links(); ++t) {
    of_link(m.trunk[t], loads.ctrl + act);
    act += m.trunk[t].actuators;
  }
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    int own = act + at.actuator;
    for (int k = 0; k < limb.links(); ++k) {
      of_link(limb.link(k), loads.ctrl + own);
      own += limb.link(k).actuators;
    }
  });
  for (int i = 0; i < m.ties; ++i)
    if (m.tie[i].kind == kTieActuator) loads.tie_ctrl[i] = take(m.tie[i].actuator.ctrl);

  // Applied forces are mostly absent: one look decides, and a look at rows that lie in memory side by side is cheap.
  auto present = [&](const Scalar<Real>* array, int stride) {
    if (array == nullptr) return false;
    int found = 0;  // no bool, whose width keeps compilers from looking at several
    const Scalar<Real>* row = array + static_cast<int64_t>(rows.first) * stride;
    for (int i = 0, n = rows.count() * stride; i < n; ++i) found |= row[i] != 0;
    return found != 0;
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
    for (int i = 0; i < 3; ++i) loads.force.trunk[i] = f(d + 3 + i), loads.force.trunk[3 + i] = f(d + i);
  }
  for (int t = m.base_dofs(); t < m.trunk_dofs(); ++t) loads.force.trunk[t] = f(m.trunk[m.link_of_dof(t)].dof);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) loads.force.limb[at.link + k] = f(limb.link(k).dof);
  });
}

/// The worlds where the quaternion of a free base or of a ball joint is zero: no orientation, which is no state.
template <class L, class Real = typename L::Real>
HD Mask<Real> without_orientation(const typename L::Group& g, const typename L::Model& m,
                                  const BatchArrays<Scalar<Real>>& a, const Rows<Real>& rows) {
  auto found = mask_of<Real>(false);
  auto look = [&](int i) {
    auto q = [&](int k) { return rows.get(a.qpos, m.nq, i + k); };
    found = found | vanishes(Quat<Real>{q(0), q(1), q(2), q(3)});
  };
  if (m.free_base()) look(m.trunk[0].qpos + 3);
  each_limb<L>(g, m, [&](const auto& limb, Place) {
    for (int k = 0; k < limb.links(); ++k)
      if (limb.link(k).kind == kBallLink) look(limb.link(k).qpos);
  });
  return found;
}

/// Controls and applied forces; the worlds where one of them is not finite, or that have no orientation. Every lane reads what
/// its limbs need.
template <class L, class Real = typename L::Real>
HD Mask<Real> load_controls(const typename L::Group& g, const typename L::Model& m, const BatchArrays<Scalar<Real>>& a,
                            const Rows<Real>& rows, Loads<L>& loads) {
  auto bad = without_orientation<L>(g, m, a, rows);
  load_loads<L>(g, m, a, rows, loads, bad);
  return g.either(bad);
}

template <class L>
HD void copy_controls(const typename L::Model& m, const Loads<L>& from, Loads<L>& to) {
  for (int i = 0; i < at_least_one(L::kActuators); ++i) to.ctrl[i] = from.ctrl[i];
  for (int i = 0; i < m.ties; ++i) to.tie_ctrl[i] = from.tie_ctrl[i];
}

/// Wrenches of xfrc_applied (N, nbody, 6) and of gravity compensation on the links; turns the base's applied torque. Looks at
/// where mocap bodies are, too: `bad` if it is nowhere.
template <class L, class Real = typename L::Real>
HD void place_loads(const typename L::Group& g, const typename L::Model& m, const BatchArrays<Scalar<Real>>& a,
                    const Rows<Real>& rows, const Kinematics<L>& kin, Loads<L>& applied, Loads<L>& loads,
                    Mask<Real>& bad) {
  for (int i = 0; i < 3 * m.nmocap; ++i) bad = bad | negate(is_finite(rows.get(a.mocap_pos, 3 * m.nmocap, i)));
  for (int i = 0; i < m.nmocap; ++i) {
    auto q = [&](int k) { return rows.get(a.mocap_quat, 4 * m.nmocap, 4 * i + k); };
    const Quat<Real> turn{q(0), q(1), q(2), q(3)};
    bad = bad | negate(is_finite(norm_squared(turn))) | vanishes(turn);
  }
  loads.any_force = applied.any_force, loads.any_wrench = applied.any_wrench;
  if (applied.any_force) {
    each_dof<L>(g, m, [](Real f, Real& to) { to = f; }, applied.force, loads.force);
    if (m.free_base()) {
      const Real* f = applied.force.trunk;
      Vec3<Real> torque = kin.pose.trunk[0].R * Vec3<Real>{f[0], f[1], f[2]};
      loads.force.trunk[0] = torque.x, loads.force.trunk[1] = torque.y, loads.force.trunk[2] = torque.z;
    }
  }
  if (!applied.any_wrench) return;
  clear_forces<L>(g, m, loads.wrench);
  if (m.has_buoyancy) {
    auto lift = [&](const auto& link, const Pose<Real>& pose, Force<Real>& F) {
      F = F + force_at(pose * link.buoyant_com, vec<Real>(m.gravity) * (-Real(link.buoyant_mass)));
    };
    if (g.rank() == 0)
      for (int t = 0; t < m.trunk_links(); ++t) lift(m.trunk[t], kin.pose.trunk[t], loads.wrench.trunk[t]);
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int k = 0; k < limb.links(); ++k)
        lift(limb.link(k), kin.pose.limb[at.link + k], loads.wrench.limb[at.link + k]);
    });
  }
  if (a.xfrc_applied == nullptr) return;
  for (int b = 1; b < m.nbody; ++b) {
    const auto& body = m.body[b];
    if (body.link < 0) continue;
    Real x[6];
    for (int i = 0; i < 6; ++i)
      x[i] = rows.get(a.xfrc_applied, 6 * m.nbody, 6 * b + i), bad = bad | negate(is_finite(x[i]));
    auto add = [&](const Pose<Real>& pose, Force<Real>& F) {
      F = F + force_at(pose * body.com, Vec3<Real>{x[0], x[1], x[2]});
      F.n = F.n + Vec3<Real>{x[3], x[4], x[5]};
    };
    if (body.link < L::kLimbsFrom) {
      if (g.rank() == 0) add(kin.pose.trunk[body.link], loads.wrench.trunk[body.link]);
    } else {
      each_limb<L>(g, m, [&](const auto& limb, Place at) {
        int k = body.link - L::kLimbsFrom - limb.t.first_link;
        if (k >= 0 && k < limb.links()) add(kin.pose.limb[at.link + k], loads.wrench.limb[at.link + k]);
      });
    }
  }
}

}  // namespace stiction
