// A plane (geom 1, infinite, its z is the normal) against everything: points of the other geometry and their heights.
//
//   sphere     0: its lowest point
//   capsule    0, 1: its ends at -z, +z
//   ellipsoid  0: its lowest point
//   cylinder   0, 1: the lowest points of the rims at -z, +z; 2, 3: with the lower of these a triangle on the lower cap
//   box        0..7: its corners, bit k of the index = the sign of axis k
//   mesh       0..3: the lowest vertex and those that spread most, of vertices that overlap or are within 1 % of the
//              size above the lowest; in the order of the vertices. One world at a time.
// Deviations from MuJoCo: it keeps at most 4 corners of a box and 3 vertices of a mesh; the cylinder's rims are ordered
// by height.
#pragma once
#include "collision/contact.h"

namespace stiction {

/// The contact of the plane's normal n through o with the surface point x.
template <class Real> HD Candidate<Real> plane_point(Vec3<Real> n, Vec3<Real> o, Vec3<Real> x) {
  Real dist = dot(n, x - o);
  return {x - n * (dist * Real(0.5f)), n, dist};
}

template <class Real>
HD void plane_sphere(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> n = column(a.pose.R, 2);
  out[0] = plane_point(n, a.pose.p, b.pose.p - n * b.size.x);
}

template <class Real>
HD void plane_capsule(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> n = column(a.pose.R, 2), h = column(b.pose.R, 2) * b.size.y, lowest = b.pose.p - n * b.size.x;
  out[0] = plane_point(n, a.pose.p, lowest - h);
  out[1] = plane_point(n, a.pose.p, lowest + h);
}

template <class Real>
HD void plane_ellipsoid(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> n = column(a.pose.R, 2), d = transposed_times(b.pose.R, n);
  Vec3<Real> scaled = {d.x * b.size.x, d.y * b.size.y, d.z * b.size.z};
  Real inverse = Real(1) / sqrt(max(dot(scaled, scaled), Real(1e-30f)));
  Vec3<Real> x = {scaled.x * b.size.x, scaled.y * b.size.y, scaled.z * b.size.z};
  out[0] = plane_point(n, a.pose.p, b.pose.p - b.pose.R * (x * inverse));
}

template <class Real>
HD void plane_cylinder(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> n = column(a.pose.R, 2), z = column(b.pose.R, 2);
  Real up = dot(n, z);
  Vec3<Real> down = z * up - n;  // within the caps
  Real square = dot(down, down);
  Mask<Real> upright = square < Real(1e-13f);
  down = select(upright, column(b.pose.R, 0), down * (Real(1) / sqrt(select(upright, Real(1), square)))) * b.size.x;
  Vec3<Real> h = z * b.size.y, aside = cross(z, down) * Real(0.8660254037844386);
  Vec3<Real> back = b.pose.p + h * select(up > Real(0), Real(-1), Real(1)) - down * Real(0.5f);
  out[0] = plane_point(n, a.pose.p, b.pose.p - h + down);
  out[1] = plane_point(n, a.pose.p, b.pose.p + h + down);
  out[2] = plane_point(n, a.pose.p, back - aside);
  out[3] = plane_point(n, a.pose.p, back + aside);
}

template <class Real>
HD void plane_box(const GeomPose<Real>& a, const GeomPose<Real>& b, Candidate<Real>* out) {
  Vec3<Real> n = column(a.pose.R, 2), x = column(b.pose.R, 0) * b.size.x, y = column(b.pose.R, 1) * b.size.y,
             z = column(b.pose.R, 2) * b.size.z;
  UNROLL for (int i = 0; i < 8; ++i) {
    Vec3<Real> p = (i & 1) != 0 ? b.pose.p + x : b.pose.p - x;
    p = (i & 2) != 0 ? p + y : p - y;
    out[i] = plane_point(n, a.pose.p, (i & 4) != 0 ? p + z : p - z);
  }
}

/// One world. T = float or double.
template <class T>
HD_CALL void plane_mesh(const GeomPose<T>& a, const GeomPose<T>& b, const HullView<T>& hull, Candidate<T>* out) {
  Vec3<T> n = column(a.pose.R, 2), d = transposed_times(b.pose.R, n), p[4];
  T base = dot(n, b.pose.p - a.pose.p), lowest = T(kFar), radius2 = 0;
  auto vertex = [&](int i) { return Vec3<T>{hull.vert[3 * i], hull.vert[3 * i + 1], hull.vert[3 * i + 2]}; };
  for (int i = 0; i < hull.count; ++i) {
    lowest = min(lowest, dot(d, vertex(i)));
    radius2 = max(radius2, dot(vertex(i), vertex(i)));
  }
  T radius = sqrt(radius2), skin = max(lowest + radius * T(0.01), -base), tie = radius * T(5e-7);
  int chosen[4] = {-1, -1, -1, -1}, count = 0;
  for (; count < 4; ++count) {  // the lowest; farthest from it; farthest from their line; farthest to its other side
    T best = T(1e-12) * radius2;
    Vec3<T> along = count >= 2 ? cross(p[1] - p[0], d) : Vec3<T>{};
    T side = count == 3 ? dot(along, p[2] - p[0]) : T(0);
    for (int i = 0; i < hull.count; ++i) {
      Vec3<T> x = vertex(i);
      if (dot(d, x) > skin) continue;
      Vec3<T> r = count == 0 ? x : x - p[0];
      T offset = dot(along, r), score;
      if (count == 0) score = dot(d, x) <= lowest + tie && chosen[0] < 0 ? T(1e30) : T(-1);
      else if (count == 1) score = dot(r, r);
      else score = count == 2 ? abs(offset) : side > 0 ? -offset : offset;
      if (score > best * T(1.001)) best = score, chosen[count] = i, p[count] = x;
    }
    if (chosen[count] < 0) break;
  }
  for (int k = 0; k < 4; ++k) out[k] = absent<T>();
  for (int k = 0; k < count; ++k) {
    int rank = 0;
    for (int j = 0; j < count; ++j) rank += chosen[j] < chosen[k];
    out[rank] = plane_point(n, a.pose.p, b.pose * p[k]);
  }
}

}  // namespace stiction
