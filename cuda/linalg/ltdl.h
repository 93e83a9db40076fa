// Tree-sparse H = L' D L ([Featherstone2008] 6.5): eliminating from the tips towards the base creates no fill.
// In the factor, diagonal entries hold 1 / D and the others L.
#pragma once
#include "model/tree.h"

namespace stiction {

template <class L>
HD void factor(const typename L::Group& g, const typename L::Model& m, TreeMatrix<L>& H) {
  using Real = typename L::Real;
  Real share[L::kTrunkDofs][L::kTrunkDofs];  // what eliminating this lane's limbs takes from the trunk
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t)
    UNROLL for (int u = 0; u <= t; ++u) share[t][u] = Real(0);

  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    Real* row = H.limb + at.entry;
    auto* cross = H.cross + at.link;
    limb.each_inward([&](int k) {
      Real inverse = Real(1) / row[entry_of(k, k)];
      UNROLL for (int j = limb.parent(k); j >= 0; j = limb.parent(j)) {
        Real a = row[entry_of(k, j)] * inverse;
        UNROLL for (int n = j; n >= 0; n = limb.parent(n))
          row[entry_of(j, n)] = row[entry_of(j, n)] - a * row[entry_of(k, n)];
        UNROLL for (int t = 0; t < limb.trunk_dofs(); ++t) cross[j][t] = cross[j][t] - a * cross[k][t];
        row[entry_of(k, j)] = a;
      }
      UNROLL for (int t = limb.trunk_dofs() - 1; t >= 0; --t) {
        Real a = cross[k][t] * inverse;
        UNROLL for (int u = 0; u <= t; ++u) share[t][u] = share[t][u] + a * cross[k][u];
        cross[k][t] = a;
      }
      row[entry_of(k, k)] = inverse;
    });
  });

  auto& row = H.trunk;
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t)
    UNROLL for (int u = 0; u <= t; ++u) row[t][u] = row[t][u] - g.sum(share[t][u]);
  UNROLL for (int t = m.trunk_dofs() - 1; t >= 0; --t) {
    Real inverse = Real(1) / row[t][t];
    UNROLL for (int u = t - 1; u >= 0; --u) {
      Real a = row[t][u] * inverse;
      UNROLL for (int n = 0; n <= u; ++n) row[u][n] = row[u][n] - a * row[t][n];
      row[t][u] = a;
    }
    row[t][t] = inverse;
  }
}

/// The first half, x <- L^-T (x + shares), inward. `share` is what this lane's limbs still have to add to the trunk's part.
template <class L>
HD void solve_inward(const typename L::Group& g, const typename L::Model& m, const TreeMatrix<L>& H, TreeVector<L>& x,
                     typename L::Real (&share)[L::kTrunkDofs]) {
  using Real = typename L::Real;
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    const Real* row = H.limb + at.entry;
    limb.each_inward([&](int k) {
      Real xk = x.limb[at.link + k];
      UNROLL for (int j = limb.parent(k); j >= 0; j = limb.parent(j))
        x.limb[at.link + j] = x.limb[at.link + j] - row[entry_of(k, j)] * xk;
      UNROLL for (int t = 0; t < limb.trunk_dofs(); ++t) share[t] = share[t] - H.cross[at.link + k][t] * xk;
    });
  });
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) x.trunk[t] = x.trunk[t] + g.sum(share[t]);
  UNROLL for (int t = m.trunk_dofs() - 1; t >= 0; --t)
    UNROLL for (int u = 0; u < t; ++u) x.trunk[u] = x.trunk[u] - H.trunk[t][u] * x.trunk[t];
}

/// The second half, x <- L^-1 D^-1 x, outward.
template <class L>
HD void solve_outward(const typename L::Group& g, const typename L::Model& m, const TreeMatrix<L>& H, TreeVector<L>& x) {
  using Real = typename L::Real;
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) {
    Real s = x.trunk[t] * H.trunk[t][t];
    UNROLL for (int u = 0; u < t; ++u) s = s - H.trunk[t][u] * x.trunk[u];
    x.trunk[t] = s;
  }
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    const Real* row = H.limb + at.entry;
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      Real s = x.limb[at.link + k] * row[entry_of(k, k)];
      UNROLL for (int j = limb.parent(k); j >= 0; j = limb.parent(j)) s = s - row[entry_of(k, j)] * x.limb[at.link + j];
      UNROLL for (int t = 0; t < limb.trunk_dofs(); ++t) s = s - H.cross[at.link + k][t] * x.trunk[t];
      x.limb[at.link + k] = s;
    }
  });
}

/// x <- H^-1 (x + the shares of all lanes).
template <class L>
HD void solve(const typename L::Group& g, const typename L::Model& m, const TreeMatrix<L>& H, TreeVector<L>& x,
              typename L::Real (&share)[L::kTrunkDofs]) {
  solve_inward<L>(g, m, H, x, share);
  solve_outward<L>(g, m, H, x);
}

/// x = H^-1 b.
template <class L, class Real = typename L::Real>
HD void solve_for(const typename L::Group& g, const typename L::Model& m, const TreeMatrix<L>& H, const TreeVector<L>& b,
                  TreeVector<L>& x) {
  Real share[L::kTrunkDofs];
  for (int t = 0; t < m.trunk_dofs(); ++t) share[t] = Real(0);
  each_dof<L>(g, m, [](Real bi, Real& xi) { xi = bi; }, b, x);
  solve<L>(g, m, H, x, share);
}

/// For compliance(): nobody wants the half-solved row itself.
struct NoVisit {
  template <class Real>
  HD void operator()(bool, int, Real) const {}
};

/// One dof of a limb on the way inward: x_k is final, its ancestors and the trunk take their parts; w += x_k^2 / D_k.
/// V: a Real, or a Vec3 for the three rows of a contact at once.
template <class L, class V, class Visit>
HD void eliminate_link(const LimbView<L>& limb, Place at, const TreeMatrix<L>& H, int k, V* x, V* y, V& w,
                       Visit visit) {
  const typename L::Real* row = H.limb + at.entry;
  visit(false, at.link + k, x[k]);
  w = w + squares(x[k]) * row[entry_of(k, k)];
  UNROLL for (int j = limb.parent(k); j >= 0; j = limb.parent(j)) x[j] = x[j] - x[k] * row[entry_of(k, j)];
  UNROLL for (int t = 0; t < limb.trunk_dofs(); ++t) y[t] = y[t] - x[k] * H.cross[at.link + k][t];
}
/// The trunk's first `dofs`, last on the way.
template <class L, class V, class Visit>
HD void eliminate_trunk(const TreeMatrix<L>& H, int dofs, V* y, V& w, Visit visit) {
  UNROLL for (int t = dofs - 1; t >= 0; --t) {
    visit(true, t, y[t]);
    w = w + squares(y[t]) * H.trunk[t][t];
    UNROLL for (int u = 0; u < t; ++u) y[u] = y[u] - y[t] * H.trunk[t][u];
  }
}

/// f' J H^-1 J' f for a wrench F on one station of a limb: with y = L^-T J' F it is y' D^-1 y, and y only lives on the way
/// from that station to the root. No lane needs another. visit(on_trunk, dof, y): entries of y, `dof` as in a TreeVector.
/// F: a Force, or AxisForces for three such numbers at once.
template <class L, class Wrench, class Visit = NoVisit>
HD auto compliance(const LimbView<L>& limb, Place at, const TreeMatrix<L>& H,
                   const PerDof<L, Motion<typename L::Real>>& S, int station, const Wrench& F, Visit visit = {}) {
  using V = decltype(dot(S.trunk[0], F));
  const auto& m = limb.m;
  V x[L::kLimbLinks], y[L::kTrunkDofs], w{};
  if (limb.on_trunk()) {
    if (m.free_base()) put(F, y);
    UNROLL for (int t = m.base_dofs(); t < limb.trunk_dofs(); ++t)
      y[t] = dot(S.trunk[t], F);
  }
  UNROLL for (int k = station - 1; k >= 0; k = limb.parent(k)) x[k] = dot(S.limb[at.link + k], F);
  UNROLL for (int k = station - 1; k >= 0; k = limb.parent(k)) eliminate_link<L>(limb, at, H, k, x, y, w, visit);
  eliminate_trunk<L>(H, limb.trunk_dofs(), y, w, visit);
  return w;
}

/// (H^-1)_dd of a limb's dof k, on the way to the root.
template <class L, class Visit = NoVisit>
HD typename L::Real dof_compliance(const LimbView<L>& limb, Place at, const TreeMatrix<L>& H, int k, Visit visit = {}) {
  using Real = typename L::Real;
  Real x[L::kLimbLinks], y[L::kTrunkDofs], w(0);
  UNROLL for (int t = 0; t < limb.trunk_dofs(); ++t) y[t] = Real(0);
  UNROLL for (int j = k; j >= 0; j = limb.parent(j)) x[j] = Real(j == k ? 1 : 0);
  UNROLL for (int n = k; n >= 0; n = limb.parent(n)) eliminate_link<L>(limb, at, H, n, x, y, w, visit);
  eliminate_trunk<L>(H, limb.trunk_dofs(), y, w, visit);
  return w;
}
template <class L, class Visit = NoVisit>
HD typename L::Real trunk_dof_compliance(const TreeMatrix<L>& H, int dof, Visit visit = {}) {
  using Real = typename L::Real;
  Real y[L::kTrunkDofs], w(0);
  UNROLL for (int t = 0; t <= dof; ++t) y[t] = Real(t == dof ? 1 : 0);
  eliminate_trunk<L>(H, dof + 1, y, w, visit);
  return w;
}

}  // namespace stiction
