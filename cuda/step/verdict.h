// What a certificate says of a step: whether it is solved, and whether what rests is solved well enough not to creep.
#pragma once
#include "contact/residual.h"
#include "step/solvers.h"
#include "step/step_options.h"

namespace stiction {

/// Whether the residuals of contacts are within `certify` of the velocity V, and those of rows within `certify`.
template <class Real, class S>
HD Mask<Real> solves(const StepOptions<S>& opt, const Certificate<Real>& c, Real V) {
  const Law law = law_of(opt.solver);
  const Real residual = law == Law::kConvex ? c.r_ccp : law == Law::kDissipation ? c.r_mdp : c.r_con;
  const Real split = law == Law::kConvex ? Real(0) : c.r_split * Scalar<Real>(0.1);
  return (maximum(residual, split) <= V * opt.step.certify) & (c.r_row <= Real(opt.step.certify));
}
/// Whether the impulses solve the contact problem.
template <class Real, class S>
HD Mask<Real> solves(const StepOptions<S>& opt, const Certificate<Real>& c) {
  return solves(opt, c, c.scale);
}

/// What rests may be pressed by motors, whose V is far above all speeds there are, and an error that is a part of V shows as creep:
/// where no link was as fast as a residual may be, and V is more than four times what gravity gives in a step, residuals count by
/// this part of V.
inline constexpr double kStillPart = 0.01;

/// r_dyn beyond which v is no longer what the impulses make: A is then too badly conditioned for the number type, which no
/// solver mends. Robots in float stay below 5e-6.
inline constexpr float kLooseDynamics = 1e-4f;

template <class Real, class S>
HD Mask<Real> converges(const StepOptions<S>& opt, const Certificate<Real>& c) {
  return solves(opt, c) & (c.r_dyn <= Real(kLooseDynamics));
}

/// The worlds that rested so before the step, velocity v, of those told; V: the world's.
template <class L, class Real = typename L::Real>
HD_ONCE Mask<Real> rested_worlds(const typename L::Group& g, const typename L::Model& m,
                                 const Options<Scalar<Real>>& opt, const Mask<Real>& of, const Real& V,
                                 const TreeVector<L>& v, Workspace<L>& w) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(v, w);
  using S = Scalar<Real>;
  const Real fast = V * opt.certify, fall = least_scale(norm(vec<Real>(m.gravity)), Real(opt.h));
  Mask<Real> rested = of & (V > fall * S(4));
  if (!any(rested)) return rested;
  Real fastest(0);
  each_dof<L>(g, m, [&](const Real& vi) { fastest = max(fastest, abs(vi)); }, v);
  rested = rested & (g.max(fastest) * S(0.01) < fast);  // else it moves at 1 cm from its axis
  if (!any(rested)) return rested;
  fastest = Real(0);
  link_motions<L>(g, m, w.kin, v, w.motions);
  travels<L>(g, m, w.kin, S(1), w.motions, w.travel);
  each_link<L>(g, m, [&](const Real& speed) { fastest = max(fastest, speed); }, w.travel);
  return rested & (g.max(fastest) < fast);
}
/// Those with impulses that do not solve the problem by that measure.
template <class L, class Real = typename L::Real>
HD Mask<Real> creeping_worlds(const typename L::Group& g, const typename L::Model& m,
                              const StepOptions<Scalar<Real>>& options, const Certificate<Real>& c,
                              const TreeVector<L>& v, Workspace<L>& w) {
  const Real V = c.scale * Scalar<Real>(kStillPart);
  return rested_worlds<L>(g, m, options.step, negate(solves(options, c, V)), c.scale, v, w);
}
/// In worlds that rested so solvers are to stop by a smaller part of V: by changes of `tolerance` V they leave up to three times that.
template <class L, class Real = typename L::Real>
HD void tighten_rested(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                       const TreeVector<L>& v, Workspace<L>& w, RowProblem<Real>& rows) {
  using S = Scalar<Real>;
  if (!(opt.tolerance > 0)) return;
  const Mask<Real> rested = rested_worlds<L>(g, m, opt, mask_of<Real>(true), rows.scale, v, w);
  if (!any(rested)) return;
  const S left = static_cast<S>(kStillPart) * opt.certify / (4 * opt.tolerance);
  const Real part = select(rested, Real(min(left, S(1))), Real(1));
  rows.scale = rows.scale * part;
  if (rows.scales == nullptr) return;
  Real* scale = w.problem.table.rows.scale;
  parallel_for(g, rows.contacts + rows.scalars, [&](int k) { scale[k] = scale[k] * part; });
  g.sync();
}

}  // namespace stiction
