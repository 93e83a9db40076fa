// What turning within a step does to what turns.
#pragma once
#include "math/pose.h"

namespace stiction {

/// How a body turns within a step: about `axis`, by an angle of which these are the sine and 1 - cosine. World axes.
template <class Real>
struct RootTurn {
  Vec3<Real> axis;
  Real rate, sine, versed;

  template <class S>
  HD RootTurn(const Vec3<Real>& w, S h) : rate(sqrt(dot(w, w) + Real(1e-20f))) {
    Real s, c;
    sincos(rate * (h / 2), s, c);
    axis = w * (Real(1) / rate), sine = s * c * S(2), versed = s * s * S(2);
  }
  /// What this turn adds to x where y is axis x x.
  HD Vec3<Real> change(const Vec3<Real>& y) const { return y * sine + cross(axis, y) * versed; }
  /// What the velocity of an origin loses, from which that of the centre is u = w x c on: docs/theory.md, (2.5).
  HD Vec3<Real> lost(const Vec3<Real>& u) const { return change(cross(axis, u)); }
  /// The mean of x while it turns in h: at w x that for as long it gets where the turn takes it.
  template <class S>
  HD Vec3<Real> mean(const Vec3<Real>& x, S h) const {
    const Real per_angle = Real(1) / (rate * h);
    const Vec3<Real> y = cross(axis, x);
    return x + y * (versed * per_angle) + cross(axis, y) * (Real(1) - sine * per_angle);
  }
};

}  // namespace stiction
