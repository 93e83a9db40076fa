// Newton for worlds that SubADMM left above `certify`: one by one, dense, in double. Solvers never include each other; the solve
// stage calls them both.
//
// A problem need not have a solution: a body wedged between two walls it overlaps cannot leave both, and impulses that try
// grow without bound. Where both solvers stay far from one, the step asks for no recovery of overlaps, and where that fails
// too there are no impulses; what this does is the certificate's to tell, of the problem as it was.
//
// Tiles have no Newton. There SubADMM itself is asked again, without recovery, where its impulses are worse than none.
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

/// r_con over V beyond which an answer is given up, if `certify` is no larger.
inline constexpr double kHopeless = 0.01;
/// W_nn |l| over V beyond which it is no answer either: its last digits are then more than a hundredth of V (in double a
/// thousand times what a mass ratio of ten thousand takes).
template <class S> inline constexpr double kLargestPush = sizeof(S) == 8 ? 1e7 : 1e5;

/// r_con over V beyond which a tile's impulses are given up: far worse than what no impulses leave, which is about V.
inline constexpr double kWorthless = 10;
/// W_nn |l| over V beyond which a tile gives up impulses that miss by more than kHopeless: a load of a hundred times
/// a body's own is still carried.
inline constexpr double kLargestMiss = 100;
/// What a tile's step has given up.
enum class GivenUp { kNothing, kRecovery, kSolving };
template <class L> inline constexpr bool kGivesUp = L::Group::kSize > 1 && !L::Shape::kFixed;

/// Whether a tile makes its impulses. The same in every lane.
template <class L, class Real = typename L::Real>
HD bool is_worth_it(const typename L::Group& g, const typename L::Model& m, const Contacts<L>& contacts,
                    const ContactProblem<L>& problem, const Impulses<L>& l, const Certificate<Real>& c) {
  Real most(0);
  auto see = [&](const Vec3<Real>& f, Real W) { most = max(most, max(max(abs(f.x), abs(f.y)), abs(f.z)) * W); };
  each_slot<L>(g, m, contacts, [&](const auto&, Place, int, int i) {
    if (contacts.point.slot[i].active) see(l.slot.slot[i], problem.row.slot[i].W_n);
  });
  for (int s = 0; s < contacts.pairs; ++s)
    if (contacts.pair[s].point.active) see(l.pair[s], problem.pair_row[s].W_n);
  most = g.max(most);
  return c.r_con <= Real(kWorthless) * c.scale && most <= Real(kLargestPush<Real>) * c.scale &&
         (c.r_con <= Real(kHopeless) * c.scale || most <= Real(kLargestMiss) * c.scale);
}

/// The largest W_nn |l| of the contacts, m/s.
template <class L>
HD double largest_push(const RowList<L>& list, int w, const DenseProblem<double>& d) {
  double most = 0;
  for (int i = 0, k = 0; i < list.contacts; ++i) {
    if (!lane(list.point[i]->active, w)) continue;
    for (int at = 3 * k; at < 3 * k + 3; ++at) most = max(most, abs(d.impulse[at]) * lane(list.contact[i]->W_n, w));
    ++k;
  }
  return most;
}

/// Overlaps, limits that are passed and joints that drifted apart need not close any more. Starts from no impulses.
HD void give_up_recovery(DenseProblem<double>& d) {
  for (int i = 0; i < 3 * d.contacts; ++i) d.e[i] = max(d.e[i], 0.0), d.impulse[i] = 0;
  for (int i = 0; i < d.rows; ++i) {
    d.row_impulse[i] = 0;
    if (d.R_row[i] == 0) d.e_row[i] = d.lower[i] == 0 ? max(d.e_row[i], 0.0) : 0;
  }
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
  const Real least_velocity = least_scale(norm(vec<Real>(m.gravity)), Real(opt.h));
  canal_options.outer = 30, canal_options.inner = 10;
  for_each_lane<Real>(flagged, [&](int w) {
    canal_options.least_velocity = lane(least_velocity, w);
    DenseProblem<double> d = dense_problem<L>(m, kin, problem, list, w, memory.memory + m.nv);
    CanalStats<double> stats = canal(d, canal_options, workspace + m.nv, v);
    const double r_con = lane(before.r_con, w), scale = lane(before.scale, w),
                 hopeless = max(kHopeless, double(opt.certify));
    auto bounded = [&] {
      return stats.sound && largest_push<L>(list, w, d) <= kLargestPush<Scalar<Real>> * stats.scale;
    };
    auto answers = [&] { return bounded() && stats.r_con <= hopeless * stats.scale; };
    if (bounded() && (stats.converged || stats.r_con * scale <= r_con * stats.scale)) take_impulses<L>(list, w, d);
    if (answers() || r_con <= hopeless * scale) return;
    give_up_recovery(d);
    stats = canal(d, canal_options, workspace + m.nv, v);
    if (!answers()) give_up_recovery(d);  // no impulses: nothing is pushed by what is not understood
    take_impulses<L>(list, w, d);
  });
}

}  // namespace stiction
