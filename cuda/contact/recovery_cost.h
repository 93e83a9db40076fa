// What closing overlaps gives bodies, and what it may.
//
// What carries a load is lifted, which takes energy. Where links are wedged, or locked by friction, the law still has an answer, with
// impulses without bound, and light links fly off: two chains that began through each other went from 200 J to megajoules while each
// step was solved to 1e-4 V. What contacts that recover give bodies is, w = J v + bend, at most what they do along their normals, and
// what all rows do is what the step gains,
//
//   G = min(sum_i l_n max(w_n, 0), (J' l) . (v + v*) / 2 + l . bend)                           J
//
// the first 0 by the law where nothing recovers, the second below 0 where something hits. Recovery at the speed s may cost what it takes
// to stop and lift all there is, and to move it against its loads, some times over:
//
//   B(s) = c s (M (g h + s) + sqrt(M) |D b|),   D = diag(A)^-1/2, M the mass of all that moves  J
//
// What gives more than B(kept_recovery) is jammed; step/jams.h has what is done then.
#pragma once
#include "contact/bias.h"
#include "contact/workspace.h"

namespace stiction {

/// c: what is not jammed takes less, what throws light links takes more.
inline constexpr double kRecoveryCost = 5;

/// l_n max(w_n, 0) of a contact; none of a spring, which gives back what it took, or of what bounces.   J
template <class Real>
HD Real given_by(const ContactPoint<Real>& x, const ContactRow<Real>& row, Vec3<Real> w, Vec3<Real> l) {
  const Real zero(0);
  const Mask<Real> rigid = x.active & (x.stiffness <= zero) & (x.bounce >= zero);
  return select(rigid, l.z * max(w.z + row.bend.z, zero), zero);
}

/// B(speed).   J
template <class L, class Real = typename L::Real>
HD_ONCE Real recovery_cost(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                           Scalar<Real> speed, const Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(w);
  const ContactProblem<L>& problem = w.problem;
  Real mass(0), push(0);
  auto add = [](Real b, Real diagonal, Real& sum) { sum = sum + b * b / diagonal; };
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) {
      const int i = at.link + k;
      if (!L::Shape::kAnyJoint || limb.link(k).has_body) mass = mass + w.I.limb[i].m;
      add(problem.b.limb[i], problem.A.limb[at.entry + entry_of(k, k)], push);
    }
  });
  mass = g.sum(mass), push = g.sum(push);
  for (int t = 0; t < m.trunk_links(); ++t) mass = mass + w.I.trunk[t].m;
  for (int t = 0; t < m.trunk_dofs(); ++t) add(problem.b.trunk[t], problem.A.trunk[t][t], push);
  const Real fall = norm(vec<Real>(m.gravity)) * opt.h;
  return (mass * (fall + speed) + sqrt(mass * push)) * (Scalar<Real>(kRecoveryCost) * speed);
}

}  // namespace stiction
