// What is done where closing overlaps would give bodies more than it may (contact/recovery_cost.h).
//
// A step does without recovery: what overlaps stays as it is, and the certificate, which knows the problem as it was, says that it is not
// solved. Positions that recover alone go by a part of the way that costs no more.
#pragma once
#include "contact/residual.h"

namespace stiction {

/// No recovery of overlaps in the rows of some worlds, as solvers read them.
template <class L, class Real = typename L::Real>
HD_ONCE void keep_overlaps(const typename L::Group& g, const typename L::Model& m, const Mask<Real>& worlds,
                           Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(w);
  const ContactProblem<L>& problem = w.problem;
  const RowArrays<Real>& rows = problem.table.rows;
  const Real zero(0);
  auto keep = [&](const ContactPoint<Real>& x, const ContactRow<Real>& row, Real place) {
    const Mask<Real> rigid = worlds & x.active & (x.stiffness <= zero) & (x.bounce >= zero);
    const Real e = max(row.e, row.bend.z);
    Places<Real>(place).each([&](int k, const Mask<Real>& is) { blend(is & rigid, e, rows.e[3 * k + 2]); });
  };
  each_slot<L>(g, m, w.contacts, [&](const auto&, Place, int, int c) {
    keep(w.contacts.point.slot[c], problem.row.slot[c], problem.table.slot.slot[c]);
  });
  if (g.rank() == 0)
    for (int i = 0; i < w.contacts.pairs; ++i)
      keep(w.contacts.pair[i].point, problem.pair_row[i], problem.table.pair[i]);
  g.sync();
}

/// w.v of a recovery, as near to the step's velocity v as it has to be to cost no more than it may.
template <class L, class Real = typename L::Real>
HD_ONCE void slow_recovery(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                           const TreeVector<L>& v, Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(v, w);
  TreeVector<L> change, gained;
  each_dof<L>(g, m, [](Real from, Real to, Real& by) { by = to - from; }, v, w.v, change);
  multiply<L>(g, m, w.problem.A, change, gained);
  Real own(0), twice(0);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int k = 0; k < limb.links(); ++k) own = own + change.limb[at.link + k] * gained.limb[at.link + k];
  });
  for (int t = 0; t < m.trunk_dofs(); ++t) twice = twice + change.trunk[t] * gained.trunk[t];
  twice = twice + g.sum(own);
  const Real most = recovery_cost<L>(g, m, opt, opt.max_recovery, w) * Scalar<Real>(2);
  const Real part = sqrt(min(most / max(twice, Real(1e-30f)), Real(1)));
  each_dof<L>(
      g, m, [&](Real from, Real by, Real& to) { to = select(part < Real(1), from + by * part, to); }, v, change, w.v);
}

/// No impulses at all, in some worlds.
template <class L, class Real = typename L::Real>
HD_ONCE void drop_impulses(const typename L::Group& g, const typename L::Model& m, const Mask<Real>& worlds,
                           Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(w);
  const Real zero(0);
  each_row<L>(g, m, w.contacts, w.problem, w.impulses,
              [&](const Mask<Real>& is, int, Real& f) { blend(is & worlds, zero, f); });
  velocity_of<L>(g, m, w);
}

}  // namespace stiction
