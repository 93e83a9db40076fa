// What is pushed while it turns: gyroscopic forces of the half step after the push.
//
// gyroscopic.h turns a body by its spin before the step. What a contact changes of that spin turns with it for half of the step, too: left
// out, a wheel that rolls along a circle lacks the torque h / 2 (D x I w + w x I D) for a push D, and falls over by a part of h. So
// with G(w, h) the torque-free turn of gyroscopic.h, the spin after a step from w, of which the solve is u,
//
//   D = u - G(w, h),     w+ = G(G(w, h / 2) + D, h / 2)                                                docs/theory.md, (2.6)
//
// and positions move with u, of which contacts know. The step is the same both ways through time, and turns keep their energy.
#pragma once
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

/// A body on its own: its inertia about the centre of mass c and the axes of its spin, both in world axes, c from its origin. The
/// origin's moving is `moving` entries of a velocity after the spin.
template <class Real>
struct LoneBody {
  SymMat3<Real> I;
  Vec3<Real> c;
  Mat3<Real> R;
  int moving;

  HD LoneBody(const RigidInertia<Real>& i, const Mat3<Real>& R, int moving)
      : c(i.h * over_mass(Real(1), i.m)), R(R), moving(moving) {
    const Vec3<Real>& h = i.h;
    I = {i.J.xx - h.y * c.y - h.z * c.z, i.J.xy + h.x * c.y, i.J.xz + h.x * c.z,
         i.J.yy - h.x * c.x - h.z * c.z, i.J.yz + h.y * c.z, i.J.zz - h.x * c.x - h.y * c.y};
  }
  /// Changes the spin of u by d, world axes; the centre of mass keeps its velocity.
  HD void add_spin(const Vec3<Real>& d, Real* u) const {
    put(three(u) + transposed_times(R, d), u), put(three(u + moving) - cross(d, c), u + moving);
  }
};

/// visit(body, spin in each x...) of bodies on their own.
template <class L, class Visit, class Real = typename L::Real, class... Vectors>
HD void each_lone_body(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                       const PerLink<L, RigidInertia<Real>>& I, Visit visit, Vectors&... x) {
  const Real zero(0), one(1);
  const Mat3<Real> world{{{one, zero, zero}, {zero, one, zero}, {zero, zero, one}}};
  if (m.free_base() && !has_jointed_trunk<L>(m)) visit(LoneBody<Real>(I.trunk[0], world, 3), x.trunk...);
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!is_lone_body<L>(limb)) return;
      visit(LoneBody<Real>(I.limb[at.link + 5], kin.pose.limb[at.link + 3].R, -3), (x.limb + at.link + 3)...);
    });
}

/// Whether some body is on its own, and nothing closes loops, whose forces (2.3b) are those of the whole step.
template <class L>
HD bool turns_late(const typename L::Model& m) {
  if (m.has_loops) return false;
  bool some = m.free_base() && !has_jointed_trunk<L>(m);
  if constexpr (L::Shape::kAnyJoint)
    for (int l = 0; l < m.limbs(); ++l) some = some || m.limb[l].leading == 3;
  return some;
}

/// From the solve's velocities u of a step that began with v to those after it. kin, I: before.
template <class L, class Real = typename L::Real>
HD void turn_late(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const Kinematics<L>& kin,
                  const PerLink<L, RigidInertia<Real>>& I, const TreeVector<L>& v, TreeVector<L>& u) {
  auto turn = [&](const LoneBody<Real>& body, const Real* before, Real* after) {
    body.add_spin(late_turn(body.I, body.R * three(before), body.R * three(after), h), after);
  };
  each_lone_body<L>(g, m, kin, I, turn, v, u);
}

/// From the velocities u after a step that began with v to those of its solve.
template <class L, class Real = typename L::Real>
HD void unturn_late(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const Kinematics<L>& kin,
                    const PerLink<L, RigidInertia<Real>>& I, const TreeVector<L>& v, TreeVector<L>& u) {
  auto turn = [&](const LoneBody<Real>& body, const Real* before, Real* after) {
    constexpr int kPasses = 8;
    const Vec3<Real> w = body.R * three(before), end = body.R * three(after);
    Vec3<Real> late{Real(0), Real(0), Real(0)};
    for (int pass = 0; pass < kPasses; ++pass) late = late_turn(body.I, w, end - late, h);
    body.add_spin(-late, after);
  };
  each_lone_body<L>(g, m, kin, I, turn, v, u);
}

}  // namespace stiction
