// What is pushed while it turns: gyroscopic forces of the half step after the push.
//
// gyroscopic.h turns a body by its spin before the step. What a contact changes of that spin turns with it for half of the step, too: left
// out, a wheel that rolls along a circle lacks the torque h / 2 (D x I w + w x I D) for a push D, and falls over by a part of h. So
// with G(w, h) the torque-free turn of gyroscopic.h, the spin after a step from w, of which the solve is u,
//
//   D = u - G(w, h),     w+ = G(G(w, h / 2) + D, h / 2)                                                docs/theory.md, (2.5a)
//
// and positions move with u, of which contacts know. The step is the same both ways through time, and turns keep their energy, where contacts
// do no work in it: of what rolls with its bend (collision/rolling_rim.h), and as far as it does. Others would be driven by it.
#pragma once
#include "dynamics/centres.h"
#include "dynamics/gyroscopic.h"

namespace stiction {

/// Steps that turn by less (rad), and pushes below that part of the spin, are left as they are.
inline constexpr float kLeastLateTurn = 1e-4f, kLeastPush = 1e-4f;

/// w+ - u of a body of inertia I about its centre of mass; a blow, more than a quarter to half of the spin, gets less of it and none,
/// and so does what turns by 1/2 to 1 rad.
template <class Real, class S>
HD Vec3<Real> late_turn(const SymMat3<Real>& I, const Vec3<Real>& w, const Vec3<Real>& u, S h) {
  const Vec3<Real> none{Real(0), Real(0), Real(0)};
  const Real spin = norm(w), least(S(kLeastLateTurn) / h);
  if (!any(spin > least)) return none;
  const Vec3<Real> push = u - w - midpoint_turn(I, none, w, none, h);
  const Real pushed = norm(push), blow = pushed * S(4) / max(spin, least),
             part = clamp(Real(2) - max(blow, spin * (h * 2)), Real(0), Real(1));
  const Mask<Real> late = (spin > least) & (pushed > spin * S(kLeastPush)) & (part > Real(0));
  if (!any(late)) return none;
  const Vec3<Real> middle = w + midpoint_turn(I, none, w, none, h / 2) + push,
                   end = middle + midpoint_turn(I, none, middle, none, h / 2);
  return select(late, (end - u) * part, none);
}

/// About the centre of mass, of one about the origin.
template <class Real>
HD SymMat3<Real> about_centre(const RigidInertia<Real>& i) {
  const Vec3<Real>&h = i.h, c = h * over_mass(Real(1), i.m);
  return {i.J.xx - h.y * c.y - h.z * c.z, i.J.xy + h.x * c.y, i.J.xz + h.x * c.z,
          i.J.yy - h.x * c.x - h.z * c.z, i.J.yz + h.y * c.z, i.J.zz - h.x * c.x - h.y * c.y};
}
/// Turns by d, world axes, the spin of the lone body of a limb, of inertia i about its origin; the centre of mass keeps its velocity.
template <class Real>
HD void add_spin(const RigidInertia<Real>& i, const Mat3<Real>& R, const Vec3<Real>& d, Real* u) {
  const Vec3<Real> c = i.h * over_mass(Real(1), i.m);
  put(three(u + 3) + transposed_times(R, d), u + 3), put(three(u) - cross(d, c), u);
}

/// change(I, w, u) of the spins w in v and u in u, world axes, into u: of what `rolls`, by part of a lane's limbs. kin, I: before the step.
template <class L, class Change, class Real = typename L::Real>
HD void change_rolling_spins(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                             const PerLink<L, RigidInertia<Real>>& I, const Real* rolls, Change change,
                             const TreeVector<L>& v, TreeVector<L>& u) {
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!is_lone_body<L>(limb) || !any(rolls[at.limb] > Real(0))) return;
      const RigidInertia<Real>& i = I.limb[at.link + 5];
      const Mat3<Real>& R = kin.pose.limb[at.link + 3].R;
      const Vec3<Real> w = R * three(v.limb + at.link + 3), end = R * three(u.limb + at.link + 3);
      add_spin(i, R, change(about_centre(i), w, end, rolls[at.limb]), u.limb + at.link);
    });
}

/// From the solve's velocities u of a step that began with v to those after it.
template <class L, class Real = typename L::Real>
HD void turn_late(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const Kinematics<L>& kin,
                  const PerLink<L, RigidInertia<Real>>& I, const Real* rolls, const TreeVector<L>& v,
                  TreeVector<L>& u) {
  auto late = [h](const SymMat3<Real>& J, const Vec3<Real>& w, const Vec3<Real>& solved, const Real& part) {
    return late_turn(J, w, solved, h) * part;
  };
  change_rolling_spins<L>(g, m, kin, I, rolls, late, v, u);
}
/// From the velocities u after a step that began with v to those of its solve.
template <class L, class Real = typename L::Real>
HD void unturn_late(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const Kinematics<L>& kin,
                    const PerLink<L, RigidInertia<Real>>& I, const Real* rolls, const TreeVector<L>& v,
                    TreeVector<L>& u) {
  auto less = [h](const SymMat3<Real>& J, const Vec3<Real>& w, const Vec3<Real>& end, const Real& part) {
    constexpr int kPasses = 8;
    Vec3<Real> late{Real(0), Real(0), Real(0)};
    for (int pass = 0; pass < kPasses; ++pass) late = late_turn(J, w, end - late, h) * part;
    return -late;
  };
  change_rolling_spins<L>(g, m, kin, I, rolls, less, v, u);
}

}  // namespace stiction
