// PGS behind the contact problem: builds W = J A^-1 J' over the live rows of a pack by half solves, X_k = L^-T J_k',
// W = X D^-1 X', and runs pgs.h on it. The plain baseline, and the seam's second solver. Serial groups only.
#pragma once
#include "contact/assemble.h"
#include "contact/rows.h"
#include "solvers/pgs/pgs.h"

namespace stiction {

template <class L>
struct Pgs {
  using Real = typename L::Real;
  using Group = typename L::Group;
  using Model = typename L::Model;

  struct Workspace {
    PerLink<L, Force<Real>> extra;
    PerLink<L, Motion<Real>> V;
    RowList<L> list;
    TreeVector<L> x;
    Mask<Real> active[RowList<L>::kContacts + RowList<L>::kRows];
    Real* memory = nullptr;  // memory_size(m) Reals
  };

  /// Reals that a model's problems need at most.
  static int64_t memory_size(const Model& m) {
    const int64_t contacts = m.world_slots + m.pair_slots, n = 3 * contacts + 2 * m.nv + m.ties;
    return n * n + n * (m.nv + 6) + 8 * n;
  }

  HD static Real solve_world(const Group& g, const Model& m, const Options<Scalar<Real>>& opt, const Kinematics<L>& kin,
                             const Contacts<L>& contacts, const ContactProblem<L>& problem, Workspace& w,
                             Impulses<L>& l, TreeVector<L>& v, Real) {
    RowList<L>& list = w.list;
    list.build(m, contacts, problem, l);
    const int n = list.size(), nc = list.contacts;
    Real* at = w.memory;
    auto take = [&at](int64_t count) {
      Real* begin = at;
      at += count;
      return begin;
    };
    const int width = m.trunk_dofs() + links_of(m);
    Real *W = take(static_cast<int64_t>(n) * n), *X = take(static_cast<int64_t>(n) * width), *inverse = take(width);
    Real *q = take(n), *e = take(n), *R = take(n), *mu = take(nc), *lower = take(list.rows), *upper = take(list.rows);
    Real* impulse = take(n);
    half_solves(g, m, kin, contacts, problem, w, n, width, X, inverse);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j <= i; ++j) {
        Real sum(0);
        for (int d = 0; d < width; ++d) sum = sum + X[i * width + d] * X[j * width + d] * inverse[d];
        W[i * n + j] = W[j * n + i] = sum;
      }
    gather(list, q, e, R, mu, lower, upper, impulse, w.active);
    DelassusProblem<Real> P{nc, list.rows, W, q, e, R, mu, w.active, lower, upper, impulse};
    PgsOptions<Real> options;
    options.sweeps = opt.iterations, options.tolerance = opt.tolerance;
    options.least_velocity = max(norm(vec<Real>(m.gravity)) * opt.h, Real(1e-4f));
    PgsStats<Real> stats = pgs(P, options);
    for (int i = 0; i < nc; ++i) *list.contact_impulse[i] = {impulse[3 * i], impulse[3 * i + 1], impulse[3 * i + 2]};
    for (int i = 0; i < list.rows; ++i) *list.row_impulse[i] = impulse[3 * nc + i];
    velocity_of<L>(g, m, kin, contacts, problem, l, w.extra, v);
    return stats.iterations;
  }

 private:
  HD static int links_of(const Model& m) {
    int links = 0;
    for (int i = 0; i < m.limbs(); ++i) links += m.limb[i].links;
    return links;
  }

  /// Rows of X, and 1 / D.
  HD static void half_solves(const Group& g, const Model& m, const Kinematics<L>& kin, const Contacts<L>& contacts,
                             const ContactProblem<L>& problem, Workspace& w, int n, int width, Real* X, Real* inverse) {
    const int trunk = m.trunk_dofs();
    for (int t = 0; t < trunk; ++t) inverse[t] = problem.factor.trunk[t][t];
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      for (int k = 0; k < limb.links(); ++k)
        inverse[trunk + at.link + k] = problem.factor.limb[at.entry + entry_of(k, k)];
    });
    Real share[L::kTrunkDofs];
    for (int i = 0; i < n; ++i) {
      jacobian_row<L>(m, kin, contacts, problem, w.list, i, w.extra, w.x);
      for (int t = 0; t < trunk; ++t) share[t] = Real(0);
      solve_inward<L>(g, m, problem.factor, w.x, share);
      for (int t = 0; t < trunk; ++t) X[i * width + t] = w.x.trunk[t];
      for (int k = trunk; k < width; ++k) X[i * width + k] = w.x.limb[k - trunk];
    }
  }

  HD static void gather(const RowList<L>& list, Real* q, Real* e, Real* R, Real* mu, Real* lower, Real* upper,
                        Real* impulse, Mask<Real>* active) {
    const int nc = list.contacts;
    for (int i = 0; i < nc; ++i) {
      const ContactRow<Real>& r = *list.contact[i];
      const Vec3<Real>& l = *list.contact_impulse[i];
      q[3 * i] = r.free.x, q[3 * i + 1] = r.free.y, q[3 * i + 2] = r.free.z;
      e[3 * i] = e[3 * i + 1] = Real(0), e[3 * i + 2] = r.e;
      R[3 * i] = R[3 * i + 1] = r.R_t, R[3 * i + 2] = r.R_n;
      impulse[3 * i] = l.x, impulse[3 * i + 1] = l.y, impulse[3 * i + 2] = l.z;
      mu[i] = list.point[i]->mu, active[i] = list.point[i]->active;
    }
    for (int i = 0; i < list.rows; ++i) {
      const ScalarRow<Real>& r = *list.row[i];
      q[3 * nc + i] = r.free, e[3 * nc + i] = r.e, R[3 * nc + i] = r.R, impulse[3 * nc + i] = *list.row_impulse[i];
      lower[i] = r.lower, upper[i] = r.upper, active[nc + i] = r.active;
    }
  }
};

}  // namespace stiction
