// Projections of a contact impulse l = (t1, t2, n) on Coulomb's cone |l_t| <= mu l_n.
// docs/theory.md, section 5. Sources: [Lee2025] Fig. 3 and eq. 23; [Lee2022] eq. 26.
#pragma once
#include "math/vec3.h"

namespace stiction {

/// Strict: exactly Signorini and Coulomb for one contact.
///   l_n = max(l*_n, 0),   l_t = l*_t min(1, mu l_n / |l*_t|)
template <class Real>
HD Vec3<Real> project_strict(Vec3<Real> l, Real mu) {
  Real n = max(l.z, Real(0)), limit = n * mu, square = l.x * l.x + l.y * l.y;
  auto sliding = square > limit * limit;
  Real scale = select(sliding, limit * rsqrt(select(sliding, square, Real(1))), Real(1));
  return {l.x * scale, l.y * scale, n};
}

/// Proximal: the nearest impulse in the cone. Convex; exact for Coulomb only with De Saxce's correction in l.
template <class Real>
HD Vec3<Real> project_proximal(Vec3<Real> l, Real mu) {
  Real square = l.x * l.x + l.y * l.y, inverse = rsqrt(max(square, Real(1e-30f))), r = square * inverse;
  Real n = (l.z + r * mu) / (Real(1) + mu * mu), scale = n * mu * inverse;
  auto stick = r <= l.z * mu, open = r * mu <= -l.z;
  Real t = select(open, Real(0), select(stick, Real(1), scale));
  return {l.x * t, l.y * t, select(open, Real(0), select(stick, l.z, n))};
}

/// The nearest where a tangential impulse weighs ratio^2 as much as a normal one.
template <class Real>
HD Vec3<Real> project_weighted(Vec3<Real> l, Real mu, Real ratio) {
  const Vec3<Real> nearest = project_proximal(Vec3<Real>{l.x * ratio, l.y * ratio, l.z}, mu * ratio);
  return {nearest.x / ratio, nearest.y / ratio, nearest.z};
}

/// The derivative of project_proximal, symmetric, eigenvalues in [0, 1]; with t = l_t / r, P = 1 - t t', k = 1 / (1 + mu^2):
///   open 0,   stick 1,   slip k [ mu^2 t t' + (mu^2 + mu l_n / r) P,  mu t;  mu t',  1 ]
template <class Real>
HD SymMat3<Real> projection_derivative(Vec3<Real> l, Real mu) {
  Real square = l.x * l.x + l.y * l.y, inverse = rsqrt(max(square, Real(1e-30f))), r = square * inverse;
  Real one(1), zero(0), k = one / (one + mu * mu), x = l.x * inverse, y = l.y * inverse;
  auto stick = r <= l.z * mu, open = r * mu <= -l.z;
  Real along = k * (mu * mu), across = along + k * mu * l.z * inverse, mixed = k * mu;
  Real on = select(open, zero, one), slip = select(stick, zero, on), keep = select(stick, on, zero);
  return {slip * (along * x * x + across * y * y) + keep,
          slip * ((along - across) * x * y),
          slip * (mixed * x),
          slip * (along * y * y + across * x * x) + keep,
          slip * (mixed * y),
          slip * k + keep};
}

}  // namespace stiction
