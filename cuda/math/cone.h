// Projections of a contact impulse l = (t1, t2, n) on Coulomb's cone |l_t| <= mu l_n.
// docs/theory.md, section 5. Sources: [Lee2025] Fig. 3 and eq. 23; [Lee2022] eq. 26.
//
// With torsional or rolling friction a contact has a couple c besides, in units of a force, and the cone |(l_t, c)| <= mu l_n:
// five tangential directions in place of two.
#pragma once
#include "math/vec3.h"

namespace stiction {

/// An impulse with its couple, or a slip with its spin.
template <class Real>
struct SixVec {
  Vec3<Real> l, c;
};
template <class Real> HD SixVec<Real> operator-(const SixVec<Real>& a, const SixVec<Real>& b) {
  return {a.l - b.l, a.c - b.c};
}
template <class Real> HD SixVec<Real> operator+(const SixVec<Real>& a, const SixVec<Real>& b) {
  return {a.l + b.l, a.c + b.c};
}
template <class Real> HD SixVec<Real> operator*(const SixVec<Real>& a, Real s) { return {a.l * s, a.c * s}; }
template <class Real> HD Real dot(const SixVec<Real>& a, const SixVec<Real>& b) {
  return dot(a.l, b.l) + dot(a.c, b.c);
}
template <class Real> HD Real norm(const SixVec<Real>& a) { return sqrt(dot(a, a)); }
template <class M, class Real>
HD SixVec<Real> select(const M& is, const SixVec<Real>& a, const SixVec<Real>& b) {
  return {select(is, a.l, b.l), select(is, a.c, b.c)};
}
/// The largest entry.
template <class Real> HD Real largest(Vec3<Real> a) { return max(max(abs(a.x), abs(a.y)), abs(a.z)); }
template <class Real> HD Real largest(const SixVec<Real>& a) { return max(largest(a.l), largest(a.c)); }
/// The size of what is tangential.
template <class Real> HD Real tangential(const SixVec<Real>& a) {
  return sqrt(a.l.x * a.l.x + a.l.y * a.l.y + dot(a.c, a.c));
}
template <class Real> HD SixVec<Real> with_tangents(const SixVec<Real>& a, Real times, Real normal) {
  return {{a.l.x * times, a.l.y * times, normal}, a.c * times};
}

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

template <class Real>
HD SixVec<Real> project_strict(const SixVec<Real>& l, Real mu) {
  const Real n = max(l.l.z, Real(0)), limit = n * mu, r = tangential(l);
  const auto sliding = r > limit;
  return with_tangents(l, select(sliding, limit / select(sliding, r, Real(1)), Real(1)), n);
}
template <class Real>
HD SixVec<Real> project_proximal(const SixVec<Real>& l, Real mu) {
  const Real r = tangential(l), zero(0);
  const Vec3<Real> p = project_proximal(Vec3<Real>{r, zero, l.l.z}, mu);
  const auto some = r > zero;
  return with_tangents(l, select(some, p.x / select(some, r, Real(1)), zero), p.z);
}

/// The nearest x_j / (1 + nu a_j) with sum a_j x_j^2 <= limit^2: factors of the couple's three, which weigh a, and of the
/// tangents, of square `square`, which weigh 1. Newton's method on 1 / sqrt(sum), which is concave in nu: from below.
template <class Real>
struct EllipsoidFactors {
  Real tangent;
  Vec3<Real> couple;
};
template <class Real>
HD_ONCE EllipsoidFactors<Real> project_ellipsoid(Real square, Vec3<Real> x, Vec3<Real> a, Real limit) {
  using S = Scalar<Real>;
  const Real zero(0), one(1);
  const Vec3<Real> x2{x.x * x.x * a.x, x.y * x.y * a.y, x.z * x.z * a.z};
  auto factor = [&](Real nu) -> EllipsoidFactors<Real> {
    return {one / (one + nu), {one / (one + nu * a.x), one / (one + nu * a.y), one / (one + nu * a.z)}};
  };
  auto size = [&](const EllipsoidFactors<Real>& k) {
    return sqrt(square * k.tangent * k.tangent + x2.x * k.couple.x * k.couple.x + x2.y * k.couple.y * k.couple.y +
                x2.z * k.couple.z * k.couple.z);
  };
  Real nu(0);
  EllipsoidFactors<Real> k = factor(nu);
  Real now = size(k);
  const Mask<Real> none = limit <= now * S(1e-6), sliding = (now > limit) & negate(none);
  const Real goal = select(sliding, limit, one);
  for (int pass = 0; pass < 20; ++pass) {
    const Mask<Real> going = sliding & (now > goal * (one + Real(kEpsilon<S> * S(8))));
    if (!any(going)) break;
    const Real slope = square * k.tangent * k.tangent * k.tangent + x2.x * a.x * k.couple.x * k.couple.x * k.couple.x +
                       x2.y * a.y * k.couple.y * k.couple.y * k.couple.y +
                       x2.z * a.z * k.couple.z * k.couple.z * k.couple.z;
    nu = select(going, nu + (now / goal - one) * (now * now / select(going, slope, one)), nu);
    k = factor(nu), now = size(k);
  }
  const Real rest = select(none, zero, select(now > limit, limit / select(now > limit, now, one), one));
  return {k.tangent * rest, k.couple * rest};
}

/// The nearest where a tangential impulse weighs ratio^2 as much as a normal one.
template <class Real>
HD Vec3<Real> project_weighted(Vec3<Real> l, Real mu, Real ratio) {
  const Vec3<Real> nearest = project_proximal(Vec3<Real>{l.x * ratio, l.y * ratio, l.z}, mu * ratio);
  return {nearest.x / ratio, nearest.y / ratio, nearest.z};
}

template <class Real>
HD SixVec<Real> project_weighted(const SixVec<Real>& l, Real mu, Real ratio) {
  const SixVec<Real> nearest = project_proximal(with_tangents(l, ratio, l.l.z), mu * ratio);
  return with_tangents(nearest, Real(1) / ratio, nearest.l.z);
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

/// The derivative of project_proximal of a SixVec: across 1 + (t; 0) along (t; 0)' + mixed and normal parts, t = tangents over
/// their size.
template <class Real>
struct SixDerivative {
  SixVec<Real> t;                     // its normal part is 0
  Real across, along, mixed, normal;  // along: less `across`
};
template <class Real>
HD SixDerivative<Real> projection_derivative(const SixVec<Real>& l, Real mu) {
  const Real r = tangential(l), zero(0), one(1);
  const auto some = r > zero;
  const Real inverse = select(some, one / select(some, r, one), zero);
  const SymMat3<Real> d = projection_derivative(Vec3<Real>{r, zero, l.l.z}, mu);
  const Real along = select(some, d.xx, d.yy);
  return {with_tangents(l, inverse, zero), d.yy, along - d.yy, d.xz, d.zz};
}

}  // namespace stiction
