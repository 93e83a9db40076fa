// Sphere-box and sphere-cylinder: the signed distance of a point to a solid, minus the radius. One candidate.
//
// Outside, the closest point comes from clamping; inside (or within rounding of the surface), the nearest face decides,
// ties by order (x, y, z; side before caps). A centre on the cylinder's axis leaves through x. Same contacts as
// MuJoCo's.
#pragma once
#include "collision/contact.h"

namespace stiction {

/// The signed distance of x to a box with half sizes h about the origin, and its gradient n (unit, outward).
template <class Real> HD Real box_distance(Vec3<Real> x, Vec3<Real> h, Vec3<Real>& n) {
  Real zero(0), one(1);
  Vec3<Real> d = {x.x - clamp(x.x, -h.x, h.x), x.y - clamp(x.y, -h.y, h.y), x.z - clamp(x.z, -h.z, h.z)};
  Real square = dot(d, d), tiny = (h.x + h.y + h.z) * Real(kLengthNoise<Real>);
  Mask<Real> inside = square <= tiny * tiny + Real(1e-30f);
  Real length = sqrt(select(inside, one, square));

  Real fx = abs(x.x) - h.x, fy = abs(x.y) - h.y, fz = abs(x.z) - h.z;
  Mask<Real> use_x = (fx >= fy) & (fx >= fz), use_y = negate(use_x) & (fy >= fz);
  Real sx = select(x.x < zero, -one, one), sy = select(x.y < zero, -one, one), sz = select(x.z < zero, -one, one);
  Vec3<Real> face = {select(use_x, sx, zero), select(use_y, sy, zero), select(use_x, zero, select(use_y, zero, sz))};
  n = select(inside, face, d * (one / length));
  return select(inside, max(fx, max(fy, fz)), length);
}

/// The same for a cylinder along z with radius r and half length h.
template <class Real> HD Real cylinder_distance(Vec3<Real> x, Real r, Real h, Vec3<Real>& n) {
  Real zero(0), one(1), square = x.x * x.x + x.y * x.y, noise(kLengthNoise<Real>), tiny = (r + h) * noise;
  Mask<Real> axial = square <= tiny * tiny + Real(1e-30f);
  Real rho = sqrt(select(axial, one, square)), inverse = one / rho;
  Real cx = select(axial, one, x.x * inverse), cy = select(axial, zero, x.y * inverse);
  rho = select(axial, zero, rho);

  Real side = rho - r, cap = abs(x.z) - h, up = select(x.z < zero, -one, one);
  Real dr = max(side, zero), dz = max(cap, zero), far2 = dr * dr + dz * dz;
  Mask<Real> inside = far2 <= tiny * tiny + Real(1e-30f);
  Real length = sqrt(select(inside, one, far2)), per = one / length;
  Mask<Real> radial = side >= cap;
  Real nr = select(inside, select(radial, one, zero), dr * per),
       nz = select(inside, select(radial, zero, one), dz * per);
  n = {cx * nr, cy * nr, up * nz};
  return select(inside, max(side, cap), length);
}

/// The contact of a ball about x (radius r, geom 1) with a solid (geom 2), both in the frame `solid`; n and core are
/// the outward normal and signed distance of x.
template <class Real>
HD Candidate<Real> ball_solid_contact(const Pose<Real>& solid, Vec3<Real> x, Real r, Vec3<Real> n, Real core) {
  return {solid * (x - n * ((core + r) * Real(0.5f))), -(solid.R * n), core - r};
}

template <class Real>
HD void sphere_box(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> x = transposed_times(b.pose.R, a.pose.p - b.pose.p), n;
  Real core = box_distance(x, b.size, n);
  out[0] = ball_solid_contact(b.pose, x, a.size.x, n, core);
}

template <class Real>
HD void sphere_cylinder(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> x = transposed_times(b.pose.R, a.pose.p - b.pose.p), n;
  Real core = cylinder_distance(x, b.size.x, b.size.y, n);
  out[0] = ball_solid_contact(b.pose, x, a.size.x, n, core);
}

}  // namespace stiction
