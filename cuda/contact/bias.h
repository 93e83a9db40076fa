// Biases and normal compliances of contacts, whose mobilities are known.
//
//   e = phi / h                                  phi > 0: what the gap allows (speculative)
//   e = max(erp phi / h, -max_recovery)          phi < 0: part of the overlap is removed; faster than kept_recovery of positions only
//   e = min(e, restitution n'J v0), R_n = 0      what hits in the step                         contact.bounce
//   e + bend                                     of contacts of bodies that turn together         step/carried.h
//   R_n = W min(1/150, r a / (g h^2)) / stiffer  near-rigid contact; e = r phi / h for phi < 0     near_rigid() of contact/law.h
//   R_n = 1 / (h k (h + tau_d))                  compliant contact; e = phi / (h + tau_d) for phi < 0   [Castro2023]
//
// W is the mean W_nn of what bears with a contact: those of the same two bodies that touch, by how far their normals agree. A line or a
// face so has alike springs all over and bears its load evenly, wherever on the body it lies.
//
// docs/theory.md, section 3.
#pragma once
#include "contact/impulses.h"
#include "contact/law.h"

namespace stiction {

/// The bias of a contact that positions may follow.
template <class Real, class S>
HD Real recovery_bias(const Options<S>& opt, const ContactPoint<Real>& x, const ContactRow<Real>& row) {
  const Real zero(0), bias = normal_bias(opt, x.gap);
  const Mask<Real> faster =
      x.active & (x.stiffness <= zero) & (row.e < row.bend.z) & (bias < Real(-kept_recovery(opt)));
  return select(faster, min(bias + row.bend.z, row.e), row.e);
}

/// How far a contact of two bodies is from the farther one's origin of its tree.   m
template <class L>
HD typename L::Real far_of(const PairContact<L>& c) {
  return sqrt(max(dot(c.p1, c.p1), dot(c.point.p, c.point.p)));
}

/// The mean W_nn of contacts that bear together.
template <class Real>
struct SharedMobility {
  Vec3<Real> normal;
  Real sum, weight = Real(1);

  HD SharedMobility(const ContactPoint<Real>& x, const ContactRow<Real>& row) : normal(x.frame.row[2]), sum(row.W_n) {}
  /// Another contact of the same bodies, in worlds `same`.
  HD void add(const Mask<Real>& same, const ContactPoint<Real>& x, const ContactRow<Real>& row) {
    const Real zero(0), along = max(dot(normal, x.frame.row[2]), zero);
    const Real part = select(same & row.closes & (x.gap <= zero), along * along, zero);
    sum = sum + part * row.W_n, weight = weight + part;
  }
  HD Real mean() const { return sum / weight; }
};

/// Bias and normal compliance of a contact, so `far` (m) from the origin of its tree, whose R_n is the mobility that it shares. Where
/// nothing moves along the normal, no overlap is closed.
template <class L, class Real, class S>
HD void bias_row(const Options<S>& opt, const ContactPoint<Real>& x, Real far, ContactRow<Real>& row,
                 ContactProblem<L>& problem) {
  const Real one(1), zero(0), h(opt.h), slow = h + x.dissipation;
  const Mask<Real> soft = x.stiffness > zero, hits = x.bounce < zero;
  const NearRigid<Real> near = near_rigid(opt, x.gap, row.free.z, row.R_n, far);
  row.e = select(soft, x.gap / select(x.gap > zero, h, slow), near.e);
  row.e = select(hits, min(row.e, x.bounce), row.e);
  row.e = select(row.closes, row.e, max(row.e, zero));
  row.e = row.e + row.bend.z;
  row.R_n = select(soft, one / (h * max(x.stiffness, Real(1e-6f)) * slow), select(hits, zero, near.R_n));
  problem.deep = problem.deep | (recovery_bias(opt, x, row) < row.e);
}

/// Biases and normal compliances of all contacts.
template <class L, class Real = typename L::Real>
HD_ONCE void contact_biases(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                            const Contacts<L>& contacts, ContactProblem<L>& problem) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(contacts, problem);
  const auto& point = contacts.point.slot;
  auto& row = problem.row.slot;
  const Mask<Real> all = mask_of<Real>(true);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    for (int s = 0; s <= limb.links(); ++s) {
      each_station_slot<L>(limb, at, s, contacts, [&](int i) {
        SharedMobility<Real> shared(point[i], row[i]);
        each_station_slot<L>(limb, at, s, contacts, [&](int j) {
          if (j != i) shared.add(all, point[j], row[j]);
        });
        row[i].R_n = shared.mean();
      });
      each_station_slot<L>(limb, at, s, contacts,
                           [&](int i) { bias_row(opt, point[i], norm(point[i].p), row[i], problem); });
    }
  });
  // Contacts of the same two links follow each other.
  for (int i = 0; i < contacts.pairs; ++i) {
    const PairContact<L>& c = contacts.pair[i];
    SharedMobility<Real> shared(c.point, problem.pair_row[i]);
    for (int step = -1; step <= 1; step += 2) {
      Mask<Real> same = c.point.active;
      for (int j = i + step; j >= 0 && j < contacts.pairs; j += step) {
        const PairContact<L>& other = contacts.pair[j];
        same = same & other.point.active & (c.link1 == other.link1) & (c.link2 == other.link2);
        if (!any(same)) break;
        shared.add(same, other.point, problem.pair_row[j]);
      }
    }
    problem.pair_row[i].R_n = shared.mean();
  }
  for (int i = 0; i < contacts.pairs; ++i)
    bias_row(opt, contacts.pair[i].point, far_of(contacts.pair[i]), problem.pair_row[i], problem);
}

}  // namespace stiction
