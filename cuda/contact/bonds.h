// Bonds: two frames held together, on two links or on a link and the world, three bilateral rows at a time.
//
//   point   g = x_1 - x_2                                     J = X_1(x_1) - X_2(x_2), world axes
//   turn    g = s v,  (c, v) the quaternion of R_2' R_1       J = s/2 (c 1 - [v]x) R_2' (w_1 - w_2)
//   e = erp g / h, at most max_recovery long; of a turn c times that;  and the bend of step/loops.h
//   R = 1e-5 tr(W) / 3, with mocap_give more where a mocap body pulls
//
// These are MuJoCo's rows of connect (a point) and weld (both; s: torquescale). A planar mechanism moves in fewer directions than
// it is held in: e is cut as a vector, so that it stays in the plane, and R keeps rows that say nothing new from pushing without
// bound. A load of n times the weight of the mass 1 / W that a bond sees opens it by 1e-5 n g h^2 / erp: 2 n nm at 2 ms.
// The rows of a turn see c times a velocity about its axis; with c in e too, what closes it has a bound at any angle.
#pragma once
#include "contact/assemble.h"

namespace stiction {

/// R of a bond as a part of its mean W.
template <class S> inline constexpr S kBondCompliance = S(1e-5);

/// What a mocap body pulls at `speed` (m/s or rad/s, at most max_recovery) gives way, as a part of tr W, the more the faster it is to
/// be: out of reach it would pull without bound in a direction in which a stretched arm hardly moves. A square, so that what
/// follows closely carries loads. Not between links: loops of light ones carry more than that. docs/theory.md, (3.5).
template <class Real, class S>
HD Real mocap_give(const Options<S>& opt, Real speed) {
  const Real part = speed * (S(1) / max(opt.max_recovery, S(1e-30)));
  return part * part * S(0.02 / 3);
}

/// The origin of the tree of a flat link.
template <class L, class Real = typename L::Real>
HD Vec3<Real> tree_origin(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin, int flat) {
  if (flat < L::kLimbsFrom) return kin.trunk_origin;
  Vec3<Real> origin{Real(0), Real(0), Real(0)};
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    const int k = flat - L::kLimbsFrom - limb.t.first_link;
    if (k >= 0 && k < limb.links()) origin = kin.limb_origin[at.limb];
  });
  sum_over(g, origin);
  return origin;
}

/// How the two frames of a bond stand to each other.
template <class Real>
struct BondFrames {
  Vec3<Real> gap;         // g                                                                            m
  Real lever;             // what a turn's rows leave of the velocity about its axis, c; 1 of a point
  AxisForces<Real> F[2];  // of BondRows
};

/// kin: of the poses that are asked about; mocap(i): the pose of a mocap body in the world.
template <class L, class Mocap, class Real = typename L::Real>
HD BondFrames<Real> bond_frames(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                                Mocap mocap, int i) {
  const Real zero(0), one(1);
  const Vec3<Real> none{zero, zero, zero};
  const Mat3<Real> axes{{{one, zero, zero}, {zero, one, zero}, {zero, zero, one}}};
  const auto& bond = m.bond[i];
  BondFrames<Real> at;
  Pose<Real> x[2];  // relative to origin
  Vec3<Real> origin[2];
  for (int end = 0; end < 2; ++end) {
    origin[end] = bond.still[end] ? none : tree_origin<L>(g, m, kin, bond.link[end]);
    const Pose<Real> carrier = bond.mocap[end] >= 0 ? mocap(bond.mocap[end])
                               : bond.still[end]    ? Pose<Real>{axes, none}
                                                    : gather_at<L>(g, m, kin.pose, bond.link[end]);
    x[end] = carrier * bond.frame[end];
  }
  at.lever = one;
  if (bond.kind == kBondPoint) {
    at.gap = x[0].p - x[1].p + (origin[0] - origin[1]);
    at.F[0] = axis_forces(x[0].p, axes), at.F[1] = axis_forces(x[1].p, -axes);
  } else {
    const Quat<Real> q = quat_of(transposed(x[1].R) * x[0].R);
    const Real s(bond.scale), half = s * Real(0.5f);
    at.lever = q.w, at.gap = Vec3<Real>{q.x, q.y, q.z} * s;
    const Vec3<Real> a = column(x[1].R, 0), b = column(x[1].R, 1), c = column(x[1].R, 2);
    const Vec3<Real> torque[3] = {(a * q.w + b * q.z - c * q.y) * half, (b * q.w + c * q.x - a * q.z) * half,
                                  (c * q.w + a * q.y - b * q.x) * half};
    for (int k = 0; k < 3; ++k) at.F[0].axis[k] = {torque[k], none}, at.F[1].axis[k] = {-torque[k], none};
  }
  for (int end = 0; end < 2; ++end)
    if (bond.still[end])
      for (int k = 0; k < 3; ++k) at.F[end].axis[k] = zero_force<Real>();
  return at;
}

/// Wrenches and biases of the bonds.
template <class L, class Mocap, class Real = typename L::Real>
HD_ONCE void bond_rows(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                       const Kinematics<L>& kin, Mocap mocap, ContactProblem<L>& problem) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(kin, problem);
  const Real unbounded(1e30f), limit(opt.max_recovery);
  for (int i = 0; i < m.bonds; ++i) {
    BondRows<Real>& rows = problem.bond[i];
    const BondFrames<Real> at = bond_frames<L>(g, m, kin, mocap, i);
    rows.F[0] = at.F[0], rows.F[1] = at.F[1];
    const Vec3<Real> recovery = at.gap * (opt.erp / opt.h);
    const Real speed = norm(recovery);
    const Vec3<Real> e = recovery * (at.lever * limit / max(speed, limit + Real(1e-30f))) + rows.bend;
    const bool pulled = m.bond[i].mocap[0] >= 0 || m.bond[i].mocap[1] >= 0;
    const Real part[3] = {e.x, e.y, e.z},
               give = Real(kBondCompliance<Scalar<Real>> / 3) + (pulled ? mocap_give(opt, min(speed, limit)) : Real(0));
    for (int k = 0; k < 3; ++k) {
      ScalarRow<Real>& row = rows.row[k];
      row.e = part[k], row.R = give;  // of the sum of W
      row.sign = Real(1), row.lower = -unbounded, row.upper = unbounded, row.active = mask_of<Real>(true);
    }
  }
}

/// Gaps of bonds are those of the pose with its low part: that moves links so. Once biases are there.
template <class L, class Real = typename L::Real>
HD void refine_bonds(const typename L::Group& g, const typename L::Model& m, const Options<Scalar<Real>>& opt,
                     const PerLink<L, Motion<Real>>& low, ContactProblem<L>& problem) {
  if constexpr (!kCompensated<Real>) return;
  for (int i = 0; i < m.bonds; ++i) {
    const Vec3<Real> moved =
        bond_end_velocity<L>(g, m, problem, low, i, 0) + bond_end_velocity<L>(g, m, problem, low, i, 1);
    ScalarRow<Real>(&row)[3] = problem.bond[i].row;
    const Scalar<Real> part = opt.erp / opt.h;
    row[0].e = row[0].e + moved.x * part, row[1].e = row[1].e + moved.y * part, row[2].e = row[2].e + moved.z * part;
  }
}

/// J v* of the bonds, from the twists of the links.
template <class L, class Real = typename L::Real>
HD void free_bonds(const typename L::Group& g, const typename L::Model& m, const PerLink<L, Motion<Real>>& V,
                   ContactProblem<L>& problem) {
  for (int i = 0; i < m.bonds; ++i) {
    const Vec3<Real> w = bond_end_velocity<L>(g, m, problem, V, i, 0) + bond_end_velocity<L>(g, m, problem, V, i, 1);
    ScalarRow<Real>(&row)[3] = problem.bond[i].row;
    row[0].free = w.x, row[1].free = w.y, row[2].free = w.z;
  }
}

/// Rows of the bonds in Y, their W and R. Rows of one bond that nothing moves, or hardly, are held above a part of the others, as
/// those of contacts; where nothing moves at all they get no impulse.
template <class L, class Real = typename L::Real>
HD_ONCE void half_solve_bonds(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                              ContactProblem<L>& problem) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(kin, problem);
  for (int i = 0; i < m.bonds; ++i) {
    const int (&link)[2] = m.bond[i].link;
    BondRows<Real>& rows = problem.bond[i];
    const Places<Real> places = problem.table.bond(i);
    const Vec3<Real> w = pair_compliance<L>(g, m, problem.factor, kin.S, link, rows.F, problem.table, places);
    const Real one(1), zero(0), sum = w.x + w.y + w.z, own[3] = {w.x, w.y, w.z};
    const Real size = m.bond[i].kind == kBondTurn ? Real(m.bond[i].scale) : one;
    const Mask<Real> moves = sum * Real(m.mean_mass) > size * size * Real(1e-10f);
    for (int k = 0; k < 3; ++k) {
      ScalarRow<Real>& row = rows.row[k];
      row.W = select(moves, max(own[k], sum * Real(1e-3f)), one);
      row.R = select(moves, sum * row.R, one);
      row.e = select(moves, row.e, zero);
    }
  }
}

}  // namespace stiction
