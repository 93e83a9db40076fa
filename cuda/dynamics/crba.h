// The mass matrix, and any sum of J' K J over links, by composite inertias; [Featherstone2008] ch. 6.
#pragma once
#include "kinematics/fk.h"

namespace stiction {

template <class T> HD void add(const Force<T>& F, T* x) {
  T f[6];
  put(F, f);
  UNROLL for (int i = 0; i < 6; ++i) x[i] = x[i] + f[i];
}
template <class T, int N> HD void add_lower(const SymMat6<T>& K, T (&H)[N][N]) {
  const SymMat3<T>&A = K.A, &C = K.C;
  const Vec3<T>* B = K.B.row;
  T lower[6][6] = {{A.xx},
                   {A.xy, A.yy},
                   {A.xz, A.yz, A.zz},
                   {B[0].x, B[1].x, B[2].x, C.xx},
                   {B[0].y, B[1].y, B[2].y, C.xy, C.yy},
                   {B[0].z, B[1].z, B[2].z, C.xz, C.yz, C.zz}};
  UNROLL for (int i = 0; i < 6; ++i)
    UNROLL for (int j = 0; j <= i; ++j) H[i][j] = H[i][j] + lower[i][j];
}

/// H += sum over links of J' K J, where K is the inertia of a link, or any other SymMat6 that lives on it:
///   C = K + all K beyond,   F = C S,   H[k][j] = S_j . F  for j = k and all its ancestors;   for the free base, F itself.
/// limb_inertia(limb, at, k) and trunk_inertia(t) return K; root(limb, at) what a limb adds to the trunk link it hangs from.
template <class L, class Inertia, class LimbInertia, class RootInertia, class TrunkInertia>
HD void add_composite(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                      LimbInertia limb_inertia, RootInertia root, TrunkInertia trunk_inertia, TreeMatrix<L>& H) {
  using Real = typename L::Real;
  const Inertia none = zero_inertia(static_cast<Inertia*>(nullptr));
  Inertia share[L::kTrunkLinks];
  UNROLL for (int t = 0; t < m.trunk_links(); ++t) share[t] = none;

  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    Inertia C[L::kLimbLinks], base = limb.on_trunk() ? root(limb, at) : none;
    UNROLL for (int k = 0; k < limb.links(); ++k) C[k] = limb_inertia(limb, at, k);
    limb.each_inward([&](int k) {
      int up = limb.parent(k);
      Force<Real> F = C[k] * kin.S.limb[at.link + k];
      UNROLL for (int j = k; j >= 0; j = limb.parent(j)) {
        Real& h = H.limb[at.entry + entry_of(k, j)];
        h = h + dot(kin.S.limb[at.link + j], F);
      }
      if (limb.on_trunk()) {
        if (m.free_base()) add(F, H.cross[at.link + k]);
        UNROLL for (int t = m.base_dofs(); t < limb.trunk_dofs(); ++t)
          H.cross[at.link + k][t] = H.cross[at.link + k][t] + dot(kin.S.trunk[t], F);
      }
      if (up < 0) base = base + C[k];
      else C[up] = C[up] + C[k];
    });
    if (limb.on_trunk()) share[limb.attach()] = share[limb.attach()] + base;
  });

  Inertia C = none;
  UNROLL for (int t = m.trunk_links() - 1; t >= 0; --t) {
    sum_over(g, share[t]);
    C = C + share[t] + trunk_inertia(t);
    if (t < m.base_links()) break;
    int dof = t + m.base_dofs() - m.base_links();
    Force<Real> F = C * kin.S.trunk[dof];
    if (m.free_base()) add(F, H.trunk[dof]);
    UNROLL for (int u = m.base_dofs(); u <= dof; ++u) H.trunk[dof][u] = H.trunk[dof][u] + dot(kin.S.trunk[u], F);
  }
  if (m.free_base()) add_lower(full(C), H.trunk);
}

/// M without armature.
template <class L>
HD void mass_matrix(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                    const PerLink<L, RigidInertia<typename L::Real>>& I, TreeMatrix<L>& H) {
  using Inertia = RigidInertia<typename L::Real>;
  const Inertia none = zero_inertia(static_cast<Inertia*>(nullptr));
  each_entry<L>(g, m, [](auto& a) { a = typename L::Real(0); }, H);
  add_composite<L, Inertia>(
      g, m, kin,
      [&](const auto& limb, Place at, int k) {
        return !L::Shape::kAnyJoint || limb.link(k).has_body ? I.limb[at.link + k] : none;
      },
      [&](const auto&, Place) { return none; }, [&](int t) { return I.trunk[t]; }, H);
}

}  // namespace stiction
