// A body on its own is pushed at the middle of its turn: collision/mid_turn.h.
//
// With M = exp(half) contacts see the spin M w, and so they push: v+ = v* + A^-1 J'l is then what the body has in its own axes after the step,
// to which it turns at M w+. In the free motion all is one, M w* = w*. docs/theory.md, (3.1f).
#pragma once
#include "contact/workspace.h"
#include "dynamics/late_turn.h"

namespace stiction {

/// visit(at, worlds) for bodies on their own that are wanted(at): where nothing touches them that moves.
template <class L, class Wanted, class Visit, class Real = typename L::Real>
HD void each_on_statics(const typename L::Group& g, const typename L::Model& m, const Contacts<L>& contacts,
                        Wanted wanted, Visit visit) {
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!is_lone_body<L>(limb) || !wanted(at)) return;
      const Index<Real> link =
          index_of<Real>(L::kLimbsFrom + L::Shape::first_link(limb.t, limb.number) + limb.links() - 1);
      Mask<Real> is = mask_of<Real>(true);
      for (int i = 0; i < contacts.pairs; ++i) {
        const PairContact<L>& x = contacts.pair[i];
        is = is & negate(x.point.active & ((x.link1 == link) | (x.link2 == link)));
      }
      visit(at, is);
    });
}

template <class Real>
HD Mask<Real> is_turned(const Vec3<Real>& half) {
  return dot(half, half) > Real(0);
}

/// Of what a lane's limbs turn by, that of bodies that touch what stands still alone is left; and as contacts see these, kin has their axes.
template <class L, class Real = typename L::Real>
HD void turn_axes(const typename L::Group& g, const typename L::Model& m, const PerLink<L, RigidInertia<Real>>& I,
                  Contacts<L>& contacts, Kinematics<L>& kin) {
  auto turns = [&](Place at) { return any(is_turned(contacts.half_turn[at.limb])); };
  each_on_statics<L>(g, m, contacts, turns, [&](Place at, const Mask<Real>& is) {
    Vec3<Real>& half = contacts.half_turn[at.limb];
    half = select(is, half, Vec3<Real>{});
    if (!any(is_turned(half))) return;
    const RigidInertia<Real>& body = I.limb[at.link + 5];
    const Vec3<Real> c = body.h * over_mass(Real(1), body.m);
    const RootTurn<Real> turn(half, Scalar<Real>(1));
    for (int i = 3; i < 6; ++i) {
      Motion<Real>& S = kin.S.limb[at.link + i];
      const Vec3<Real> change = select(is_turned(half), turn.change(cross(turn.axis, S.w)), Vec3<Real>{});
      S.w = S.w + change, S.v = S.v - cross(change, c);
    }
  });
}

/// Worlds in which some limb of this lane turns so.
template <class L, class Real = typename L::Real>
HD Mask<Real> some_turn(const typename L::Group& g, const typename L::Model& m, const Contacts<L>& contacts) {
  Mask<Real> some = mask_of<Real>(false);
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (is_lone_body<L>(limb)) some = some | is_turned(contacts.half_turn[at.limb]);
    });
  return some;
}

/// From velocities of the solve to those that positions move with. kin, I: before.
template <class L, class Real = typename L::Real>
HD void turn_along(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                   const PerLink<L, RigidInertia<Real>>& I, const Contacts<L>& contacts, TreeVector<L>& along) {
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!is_lone_body<L>(limb)) return;
      const Vec3<Real>& half = contacts.half_turn[at.limb];
      if (!any(is_turned(half))) return;
      const Mat3<Real>& R = kin.pose.limb[at.link + 3].R;
      const RootTurn<Real> turn(half, Scalar<Real>(1));
      const Vec3<Real> w = R * three(along.limb + at.link + 3), change = turn.change(cross(turn.axis, w));
      add_spin(I.limb[at.link + 5], R, select(is_turned(half), change, Vec3<Real>{}), along.limb + at.link);
    });
}

}  // namespace stiction
