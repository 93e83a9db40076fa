// What a body on its own has turned by when its contacts push it: half of its turn, as far as they are where that takes them (turning.h).
//
// Across n a contact is then at r, where the middle of the turn has it, and so is the body that it pushes: in that body's own axes the
// torque is exp(-half) (r x d). By r x d alone a stick would take up spin about its axis from what pushes it along n at its end.
// docs/theory.md, (3.1f); what is made of it: step/mid_turn.h.
#pragma once
#include "collision/slots.h"
#include "collision/turning.h"

namespace stiction {

/// Of what is slender the product of the principal moments is less than that times the cube of their mean: a rod has 27/8 I_a / I_t. What is
/// thicker than the second is pushed as it stands: r x n is level, and keeps the angular momentum about n, which exp(-half) (r x n) does not.
inline constexpr float kSlender = 0.2f, kThick = 2 * kSlender;
/// What turns farther in a step, rad, and in part from half of it on, is pushed all around.
inline constexpr float kMostPushed = 0.8f;

/// From 1 of what is slender to 0 of what is thick.
template <class Real, class Number>
HD Real slenderness(const SymMat3<Number>& I) {
  const Real xx(I.xx), yy(I.yy), zz(I.zz), xy(I.xy), xz(I.xz), yz(I.yz);
  const Real per_mean = Real(3) / max(xx + yy + zz, Real(1e-30f));
  const Real a = xx * per_mean, b = yy * per_mean, c = zz * per_mean, f = yz * per_mean, g = xz * per_mean,
             h = xy * per_mean;
  const Real product = a * (b * c - f * f) - h * (h * c - f * g) + g * (h * f - b * g);
  return clamp((Real(kThick) - product) * Real(1 / (kThick - kSlender)), Real(0), Real(1));
}

/// Half of the turn of a body on its own, or the least part of it that moves one of its contacts, as far as it is slender: 0 where `stays`, one
/// does not move, or there is none. least: what moves them.   rad
template <class Real>
HD Vec3<Real> half_turn(const Turning<Real>& body, float least, const Real& rolls, const Mask<Real>& stays, int slots,
                        const ContactPoint<Real>* slot) {
  Real part = min(Real(1) - rolls, body.slender);  // by what it rolls it has bends
  Mask<Real> some = mask_of<Real>(false);
  for (int c = 0; c < slots; ++c) {
    const ContactPoint<Real>& x = slot[c];
    if (!any(x.active)) continue;
    part = select(x.active, min(part, body.part_on(x.frame.row[2], least)), part), some = some | x.active;
  }
  return body.turn * select(some & negate(stays), part * Scalar<Real>(0.5), Real(0));
}

}  // namespace stiction
