// Newton for worlds that SubADMM left above `certify`: one by one, dense, in double. Solvers never include each other; the solve
// stage calls them both.
#pragma once
#include "contact/residual.h"
#include "contact/rows.h"
#include "solvers/canal/canal.h"

namespace stiction {

/// Scratch of a thread, in double: Newton's velocity, the dense problem, Newton's workspace. Nothing on tiles and fixed shapes.
template <class L, bool kDense = (L::Group::kSize == 1 && !L::Shape::kFixed)>
struct FallbackMemory {};
template <class L>
struct FallbackMemory<L, true> {
  double* memory = nullptr;  // null: no fallback
  RowList<L> list;
};
template <class Model>
HD int64_t fallback_size(const Model& m) {
  const int contacts = m.world_slots + m.pair_slots, rows = 2 * m.nv + m.ties;
  return dense_problem_size(m.nv, contacts, rows) + canal_workspace_size(m.nv, contacts, rows) + m.nv;
}

/// Improves the impulses of the flagged worlds where Newton does better by the certificate. before: SubADMM's.
template <class L, class Real = typename L::Real>
HD_CALL void fall_back(const typename L::Model& m, const Options<Scalar<Real>>& opt, const Kinematics<L>& kin,
                       const Contacts<L>& contacts, const ContactProblem<L>& problem, const Mask<Real>& flagged,
                       const Certificate<Real>& before, FallbackMemory<L>& memory, Impulses<L>& l) {
  RowList<L>& list = memory.list;
  list.build(m, contacts, problem, l);
  const int64_t dense_size = dense_problem_size(m.nv, m.world_slots + m.pair_slots, 2 * m.nv + m.ties);
  double *workspace = memory.memory + dense_size, *v = memory.memory;
  CanalOptions<double> canal_options;
  canal_options.tolerance = 0.1 * opt.certify;
  canal_options.least_velocity = lane(least_scale(norm(vec<Real>(m.gravity)), Real(opt.h)), 0);
  canal_options.outer = 30, canal_options.inner = 10;
  for_each_lane<Real>(flagged, [&](int w) {
    DenseProblem<double> d = dense_problem<L>(m, kin, problem, list, w, memory.memory + m.nv);
    CanalStats<double> stats = canal(d, canal_options, workspace + m.nv, v);
    const bool better = stats.r_con * lane(before.scale, w) <= lane(before.r_con, w) * stats.scale;
    if (stats.sound && (stats.converged || better)) take_impulses<L>(list, w, d);
  });
}

}  // namespace stiction
