// Rotations and poses. Quaternions are (w, x, y, z), as in MuJoCo.
#pragma once
#include "math/vec3.h"

namespace stiction {

template <class T> struct Quat { T w, x, y, z; };
/// x_parent = R x + p.
template <class T> struct Pose {
  Mat3<T> R;
  Vec3<T> p;
};

template <class T> HD Mat3<T> rotation(const Quat<T>& q) {
  T xx = q.x * q.x, yy = q.y * q.y, zz = q.z * q.z, xy = q.x * q.y, xz = q.x * q.z, yz = q.y * q.z;
  T wx = q.w * q.x, wy = q.w * q.y, wz = q.w * q.z, one = T(1), two = T(2);
  return {{{one - two * (yy + zz), two * (xy - wz), two * (xz + wy)},
           {two * (xy + wz), one - two * (xx + zz), two * (yz - wx)},
           {two * (xz - wy), two * (yz + wx), one - two * (xx + yy)}}};
}

/// The rotation next to a matrix that rounding took off one: the square of what it was off by is left.
template <class T> HD Mat3<T> straightened(const Mat3<T>& R) {
  Mat3<T> out;
  for (int i = 0; i < 3; ++i) {
    out.row[i] = R.row[i] * T(1.5);
    for (int j = 0; j < 3; ++j) out.row[i] = out.row[i] - R.row[j] * (dot(R.row[i], R.row[j]) * T(0.5));
  }
  return out;
}

template <class T> HD Quat<T> operator*(const Quat<T>& a, const Quat<T>& b) {
  return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
          a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}
template <class T, class S>
HD Quat<T> quat_cast(const Quat<S>& q) {
  return {T(q.w), T(q.x), T(q.y), T(q.z)};
}
template <class T> HD T norm_squared(const Quat<T>& q) { return q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z; }
/// Where no direction is left of a quaternion.
template <class T> HD auto vanishes(const Quat<T>& q) { return norm_squared(q) < T(1e-24f); }
/// q / |q|; the identity where it vanishes.
template <class T> HD Quat<T> normalized(const Quat<T>& q) {
  T n = norm_squared(q);
  auto zero = n < T(1e-24f);
  T s = rsqrt(select(zero, T(1), n));
  return {select(zero, T(1), q.w * s), q.x * s, q.y * s, q.z * s};
}
/// The same, but q itself where it is that to rounding: what is done again changes nothing.
template <class T> HD Quat<T> unit(const Quat<T>& q) {
  const auto is = abs(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z - T(1)) <= T(8 * kEpsilon<Scalar<T>>);
  const Quat<T> n = normalized(q);
  return {select(is, q.w, n.w), select(is, q.x, n.x), select(is, q.y, n.y), select(is, q.z, n.z)};
}

/// R Rot(a, angle), with a in the frame of R and u = R a already known. Row by row, Rodrigues' formula reads
///   r' = cos r + sin (r x a) + (1 - cos) u_r a.
template <class T, class S> HD Mat3<T> rotated(const Mat3<T>& R, Vec3<S> a, Vec3<T> u, T angle) {
  T s, c;
  sincos(angle, s, c);
  Vec3<T> ax = vec<T>(a), v = u * (T(1) - c);
  return {{R.row[0] * c + cross(R.row[0], a) * s + ax * v.x, R.row[1] * c + cross(R.row[1], a) * s + ax * v.y,
           R.row[2] * c + cross(R.row[2], a) * s + ax * v.z}};
}

/// q exp(w h): the body with orientation q turns for h seconds at the body-frame velocity w. Normalised.
template <class T, class S> HD Quat<T> integrated(const Quat<T>& q, Vec3<T> w, S h) {
  T rate = sqrt(dot(w, w) + T(1e-20f)), s, c;
  sincos(rate * (h / 2), s, c);
  Vec3<T> v = w * (s / rate);
  return normalized(q * Quat<T>{c, v.x, v.y, v.z});
}

/// The quaternion of a rotation matrix with w >= 0, without branches on values: the four square roots of Shepperd's method,
/// blended by which is the largest.
template <class T> HD Quat<T> quat_of(const Mat3<T>& R) {
  T xx = R.row[0].x, yy = R.row[1].y, zz = R.row[2].z, one(1), zero(0);
  T w2 = one + xx + yy + zz, x2 = one + xx - yy - zz, y2 = one - xx + yy - zz, z2 = one - xx - yy + zz;
  T yz = R.row[2].y - R.row[1].z, zx = R.row[0].z - R.row[2].x, xy = R.row[1].x - R.row[0].y;
  T pyz = R.row[2].y + R.row[1].z, pzx = R.row[0].z + R.row[2].x, pxy = R.row[1].x + R.row[0].y;
  auto use_x = (x2 > w2) & (x2 >= y2) & (x2 >= z2);
  auto use_y = (y2 > w2) & (y2 > x2) & (y2 >= z2);
  auto use_z = (z2 > w2) & (z2 > x2) & (z2 > y2);
  T square = select(use_x, x2, select(use_y, y2, select(use_z, z2, w2)));
  T root = sqrt(max(square, T(1e-12f))), f = T(0.5f) / root, big = root * T(0.5f);
  Quat<T> q = {select(use_x, yz * f, select(use_y, zx * f, select(use_z, xy * f, big))),
               select(use_x, big, select(use_y, pxy * f, select(use_z, pzx * f, yz * f))),
               select(use_x, pxy * f, select(use_y, big, select(use_z, pyz * f, zx * f))),
               select(use_x, pzx * f, select(use_y, pyz * f, select(use_z, big, xy * f)))};
  T sign = select(q.w < zero, T(-1), one);
  return {q.w * sign, q.x * sign, q.y * sign, q.z * sign};
}

template <class T, class S> HD Vec3<T> operator*(const Pose<T>& x, Vec3<S> a) { return x.p + x.R * a; }
/// The pose of something at `b` (a model's) in the frame `a`.
template <class T, class S> HD Pose<T> operator*(const Pose<T>& a, const Pose<S>& b) {
  return {a.R * b.R, a.p + a.R * b.p};
}

}  // namespace stiction
