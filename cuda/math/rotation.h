// Differences of rotations, their angles and vectors, and random ones. Quaternions are (w, x, y, z), unit.
#pragma once
#include "core/philox.h"
#include "math/pose.h"

namespace stiction {

/// The inverse of a unit quaternion.
template <class T> HD Quat<T> conjugate(const Quat<T>& q) { return {q.w, -q.x, -q.y, -q.z}; }

/// The rotation, in world axes, that takes `from` to `to`; with w >= 0, so that equal rotations are equal numbers.
template <class T> HD Quat<T> difference(const Quat<T>& to, const Quat<T>& from) {
  const Quat<T> q = to * conjugate(from);
  const T sign = select(q.w < T(0), T(-1), T(1));
  return {q.w * sign, q.x * sign, q.y * sign, q.z * sign};
}

/// By how much q turns, from 0 to pi, rad: 2 atan2(|v|, |w|), accurate for small angles too. Of each lane by itself.
template <class T> HD T rotation_angle(const Quat<T>& q) {
  const T sine = sqrt(q.x * q.x + q.y * q.y + q.z * q.z), cosine = abs(q.w);
  T angle = sine;
  for (int i = 0; i < kWidth<T>; ++i) {
    const double s = static_cast<double>(lane(sine, i)), c = static_cast<double>(lane(cosine, i));
    set_lane(angle, i, static_cast<Scalar<T>>(2 * ::atan2(s, c)));
  }
  return angle;
}

/// The axis of a unit quaternion times its angle, which is at most pi; rad. The axis is the same in both frames.
template <class T> HD Vec3<T> rotation_vector(const Quat<T>& q) {
  const T square = q.x * q.x + q.y * q.y + q.z * q.z, sine = sqrt(square);
  const Mask<T> still = square < T(1e-20f);  // angle / sine is 2 to rounding
  const T angle = T(2) * angle_of(sine, abs(q.w));
  const T ratio = select(still, T(2), angle / select(still, T(1), sine));
  return Vec3<T>{q.x, q.y, q.z} * select(q.w < T(0), -ratio, ratio);
}

/// About the vertical, rad.
template <class T> HD Quat<T> yaw(T angle) {
  T s, c;
  sincos(angle * T(0.5), s, c);
  return {c, T(0), T(0), s};
}

/// A turn by `angle`, either way, about an axis that is uniform among those within `tilt` of the vertical, pi / 2: all there are. rad
template <class S> HD Quat<S> turn_about_some(S angle, S tilt, Random& random) {
  const double z = 1 - random.unit() * (1 - ::cos(static_cast<double>(tilt))), across = ::sqrt(1 - z * z);
  const double around = 6.283185307179586 * random.unit(), way = random.unit() < 0.5 ? -0.5 : 0.5;
  const double c = ::cos(0.5 * angle), s = ::sin(way * angle);
  return {S(c), S(s * across * ::cos(around)), S(s * across * ::sin(around)), S(s * z)};
}

/// One of the 24 rotations that take a cube to itself, each as likely.
template <class S> HD Quat<S> cube_symmetry(Random& random) {
  const int face = static_cast<int>(random.unit() * 6), turn = static_cast<int>(random.unit() * 4);
  constexpr double kCos[] = {1, 0.7071067811865476, 0, -0.7071067811865476};  // of half of `turn` quarter turns
  constexpr double kSin[] = {0, 0.7071067811865476, 1, 0.7071067811865476};
  const int about_x = face < 4 ? face : 0, about_y = face < 4 ? 0 : face == 4 ? 1 : 3;
  const Quat<S> x = {S(kCos[about_x]), S(kSin[about_x]), S(0), S(0)},
                y = {S(kCos[about_y]), S(0), S(kSin[about_y]), S(0)};
  return Quat<S>{S(kCos[turn]), S(0), S(0), S(kSin[turn])} * x * y;
}

}  // namespace stiction
