// y = A x for a tree-sparse symmetric matrix (lower half stored).
#pragma once
#include "model/tree.h"

namespace stiction {

template <class L>
HD void multiply(const typename L::Group& g, const typename L::Model& m, const TreeMatrix<L>& A, const TreeVector<L>& x,
                 TreeVector<L>& y) {
  using Real = typename L::Real;
  Real share[L::kTrunkDofs];
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) share[t] = Real(0);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    const Real* row = A.limb + at.entry;
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      Real xk = x.limb[at.link + k], sum = row[entry_of(k, k)] * xk;
      UNROLL for (int j = limb.parent(k); j >= 0; j = limb.parent(j)) {
        sum = sum + row[entry_of(k, j)] * x.limb[at.link + j];
        y.limb[at.link + j] = y.limb[at.link + j] + row[entry_of(k, j)] * xk;
      }
      UNROLL for (int t = 0; t < limb.trunk_dofs(); ++t) {
        sum = sum + A.cross[at.link + k][t] * x.trunk[t];
        share[t] = share[t] + A.cross[at.link + k][t] * xk;
      }
      y.limb[at.link + k] = sum;
    }
  });
  UNROLL for (int t = 0; t < m.trunk_dofs(); ++t) {
    Real sum = g.sum(share[t]);
    UNROLL for (int u = 0; u < m.trunk_dofs(); ++u) sum = sum + (u <= t ? A.trunk[t][u] : A.trunk[u][t]) * x.trunk[u];
    y.trunk[t] = sum;
  }
}

}  // namespace stiction
