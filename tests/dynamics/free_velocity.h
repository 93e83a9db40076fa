// The free motion v* of one state by any Lane: the dynamics that a kernel keeps in registers. Plain enough for NVRTC.
#pragma once
#include "contact/problem.h"
#include "dynamics/crba.h"
#include "dynamics/free_motion.h"
#include "kinematics/fk.h"
#include "linalg/ltdl.h"

namespace stiction::testing {

template <class L>
struct FreeMotionSpace {
  using Real = typename L::Real;
  Kinematics<L> kin;
  PerLink<L, RigidInertia<Real>> I;
  Loads<L> loads;
  TreeMatrix<L> A;
  TreeVector<L> from, b, v, bias;
  PerDof<L, ScalarRow<typename L::Real>> drives;
  TreeVector<L> by_rows;
};

/// q, v, out: (nv) by the links' dofs, hinges and slides behind a free base that stands at the origin.
template <class L, class S>
HD void free_velocity(const typename L::Group& g, const typename L::Model& m, const Options<S>& opt, const S* q,
                      const S* v, FreeMotionSpace<L>& w, S* out) {
  using Real = typename L::Real;
  State<L> x;
  const Real zero(0);
  x.position = {zero, zero, Real(1)};
  x.orientation = {Real(1), zero, zero, zero};
  UNROLL for (int t = 0; t < m.base_dofs(); ++t) x.v.trunk[t] = v[t];
  each_joint<L>(
      g, m,
      [&](const auto& link, Real& qi, Real& vi) {
        qi = Real(q[link.dof]), vi = Real(v[link.dof]);
      },
      x.q, x.v);
  UNROLL for (int i = 0; i < at_least_one(L::kActuators); ++i) w.loads.ctrl[i] = zero;
  w.loads.any_force = w.loads.any_wrench = false;
  forward_kinematics<L>(g, m, x, w.kin);
  link_inertias<L>(g, m, w.kin, w.I);
  const DriveRows<L, ScalarRow<Real>> drives{w.drives, w.by_rows};
  fall<L>(g, m, opt, x, w.from);
  free_motion<L>(g, m, opt, {{x, x, nullptr}, w.from, w.kin, w.I, w.loads}, w.bias, w.A, w.b, drives);
  factor<L>(g, m, w.A);
  Real share[L::kTrunkDofs];
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) share[t] = zero;
  each_dof<L>(g, m, [](Real b, Real& y) { y = b; }, w.b, w.v);
  solve<L>(g, m, w.A, w.v, share);
  each_dof<L>(g, m, [](Real from, Real& y) { y = y + from; }, w.from, w.v);
  if (g.rank() == 0) UNROLL for (int t = 0; t < m.base_dofs(); ++t) out[t] = w.v.trunk[t];
  each_joint<L>(
      g, m,
      [&](const auto& link, Real vi) { out[link.dof] = vi; },
      w.v);
}

}  // namespace stiction::testing
