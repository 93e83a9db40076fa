// The contact problem of one step where it is assembled and audited, on the trees:
//
//   A v = b + J' l,   (J v, l) in the law (contact/law.h)
//
// A is tree-sparse; J is never formed: a row is a place on a link (or a dof) and a direction. Slots and rows that take no
// part have active = false: every formula then does nothing, without lists or branches on a Real. Solvers read the list of
// its active rows, half-solved (contact/row_problem.h).
//
//   world slots   contacts of moving links with static geometry                                J = F X(p)
//   pair slots    contacts between two moving links                                            J = F (X_2(p2) - X_1(p1))
//   limits        one per joint with a range: l >= 0, at the end that v* leaves nearer         J = sign
//   friction      one per joint with dry friction: |l| <= h f                                  J = 1
//   ties          rows over several dofs: joint equalities, limits of ball joints; limits,
//                 friction and springs of tendons                                              J = coef
//   bonds         three rows that hold two frames together                                     J = F_1 X_1 + F_2 X_2
//
// F: rows t1, t2, n. e and R as in docs/theory.md, section 3: the solver looks for complementarity of l with J v + e + R l.
#pragma once
#include "contact/row_table.h"
#include "kinematics/jacobian.h"

namespace stiction {

/// What a solver needs of a contact besides its ContactPoint.
template <class Real>
struct ContactRow {
  Real e;             // bias of the normal velocity                                        m/s
  Real R_t, R_n;      // compliance                                                         1/kg
  Real W_t, W_n;      // (W_11 + W_22) / 2 and W_33 of J A^-1 J'; 1 where inactive           1/kg
  Mask<Real> closes;  // active, and an impulse moves it along its normal
  Vec3<Real> free;    // J v*                                                               m/s
  Vec3<Real> bend;    // what paths part by besides: part of e in all directions            m/s
  // Of its couple, see spin_arms: W's diagonal, 0 where there is no such friction (1/kg), and the free motion (m/s).
  Vec3<Real> spin_W, spin_free;
};

/// A couple about (t1, t2, n) is that many times an impulse of the contact's cone, a spin as many times less a slip: MuJoCo's
/// elliptic cone, |(l_t, couple / arms)| <= mu l_n, where mu arms are the rolling and torsional friction.   m
template <class Real>
HD Vec3<Real> spin_arms(const ContactPoint<Real>& x) {
  const Real per_mu = Real(1) / max(x.mu, Real(1e-5f)), rolling = x.rolling * per_mu;
  return {rolling, rolling, x.torsion * per_mu};
}
template <class Real>
HD Vec3<Real> times(Vec3<Real> a, Vec3<Real> b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z};
}

/// Any other row: l in [lower, upper].
template <class Real>
struct ScalarRow {
  Real sign;  // of a limit: +1 at the lower end, -1 at the upper
  Real e, R, lower, upper, W, free;
  Mask<Real> active;
};

/// Three rows between two links: wrenches on them, each about the origin of its link's tree; zero on an end that stands still.
template <class Real>
struct BondRows {
  AxisForces<Real> F[2];
  ScalarRow<Real> row[3];
  Vec3<Real> bend;  // how J v changes in the step while v does not: part of e                                m/s
};

/// The limits, or the dry friction, of all joints.
template <class L>
struct DofRows {
  PerDof<L, ScalarRow<typename L::Real>> row;
  PerDof<L, int> live;  // some world has it active
};

template <class L>
struct ContactProblem {
  using Real = typename L::Real;
  using Shape = typename L::Shape;
  static constexpr int kPairs = at_least_one(Shape::kPairs), kTies = at_least_one(Shape::kTies),
                       kBonds = at_least_one(Shape::kBonds);

  TreeMatrix<L> A;        // as it is
  TreeMatrix<L> factor;   // of A
  TreeVector<L> from;     // what b changes: velocities of the step's beginning, of free roots after falling for h
  TreeVector<L> b, free;  // free: v* = from + A^-1 b
  TreeVector<L> by_rows;  // of DriveRows

  PerSlot<L, ContactRow<Real>> row;
  ContactRow<Real> pair_row[kPairs];
  DofRows<L> dof[kDofRows];
  ScalarRow<Real> tie[kTies];
  Real tie_coef[kTies][Shape::kTieTerms];
  Real tie_bend[kTies];   // of an equality as that of a bond
  Real tie_ahead[kTies];  // of joints that an actuator's row has left: J (v* - v)                     m/s
  int tie_live[kTies];
  BondRows<Real> bond[kBonds];

  bool any_row;           // some world has something to solve
  Mask<Real> free_found;  // v* solves the equations of the free motion
  // On this lane's limbs or between links is
  Mask<Real> immovable;  // a contact that nothing can move; it gets no impulse
  Mask<Real> deep;       // an overlap that velocities do not close as fast as they may
  RowTable<L> table;
};

}  // namespace stiction
