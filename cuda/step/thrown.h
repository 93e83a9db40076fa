// Where limits of joints throw links in a step, off the way of their free motion: for the search for contacts.
#pragma once
#include "contact/workspace.h"

namespace stiction {

/// How far limits of joints may throw links in the step, off the way of their free motion: into w.margin, 0 where none is reached.
/// Returns the farthest.   m
template <class L, class Real = typename L::Real>
HD Real thrown_by_limits(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                         const State<L>& x, Workspace<L>& w) {
  const Real zero(0);
  each_link<L>(g, m, [&](Real& to) { to = zero; }, w.margin);
  if (!m.has_limits) return zero;
  Mask<Real> some = mask_of<Real>(false);
  TreeVector<L> held;    // how far joints are held back
  TreeVector<L> thrown;  // what impulses that hold each of them alone, or larger ones, do to all
  each_dof<L>(g, m, [&](Real& to) { to = zero; }, held);
  each_joint<L>(
      g, m,
      [&](const auto& link, const Real& q, const Real& free, Real& to) {
        if (!link.limited) return;
        const Real way = free * opt.h, end = q + way;
        to = min(max(Real(link.lower) - end, zero), max(-way, zero)) -
             min(max(end - Real(link.upper), zero), max(way, zero));
        const Mask<Real> far = abs(to) > Real(opt.margin);  // for less there is the reserve; an angle counts at 1 m
        to = select(far, to, zero), some = some | far;
      },
      x.q, w.problem.free, held);
  if (!g.any(some)) return zero;
  const TreeMatrix<L>& A = w.problem.A;
  for (int t = 0; t < m.trunk_dofs(); ++t) thrown.trunk[t] = held.trunk[t] * A.trunk[t][t];
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k)
      thrown.limb[at.link + k] = held.limb[at.link + k] * A.limb[at.entry + entry_of(k, k)];
  });
  Real share[L::kTrunkDofs], part(0), most(0);
  for (int t = 0; t < m.trunk_dofs(); ++t) share[t] = zero;
  solve<L>(g, m, w.problem.factor, thrown, share);
  each_dof<L>(
      g, m,
      [&](const Real& back, const Real& done) {
        const Real size = abs(back);
        part = max(part, select(size > zero, size / max(size, abs(done)), zero));
      },
      held, thrown);
  part = g.max(part);
  link_motions<L>(g, m, w.kin, thrown, w.motions);
  travels<L>(g, m, w.kin, Scalar<Real>(1), w.motions, w.margin);
  each_link<L>(g, m, [&](Real& own) { own = own * part, most = max(most, own); }, w.margin);
  return g.max(most);
}

}  // namespace stiction
