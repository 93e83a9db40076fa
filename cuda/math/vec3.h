// Vectors and 3x3 matrices. T is the value of a world, S may be the plain number of a model (equal in all worlds).
#pragma once
#include "core/scalar.h"

namespace stiction {

template <class T> struct Vec2 { T x, y; };
template <class T> struct Vec3 { T x, y, z; };
template <class T> struct Mat3 { Vec3<T> row[3]; };
template <class T> struct SymMat3 { T xx, xy, xz, yy, yz, zz; };

template <class T> HD Vec3<T> operator+(Vec3<T> a, Vec3<T> b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
template <class T> HD Vec3<T> operator-(Vec3<T> a, Vec3<T> b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
template <class T> HD Vec3<T> operator-(Vec3<T> a) { return {-a.x, -a.y, -a.z}; }
template <class T, class S> HD Vec3<T> operator*(Vec3<T> a, S s) { return {a.x * s, a.y * s, a.z * s}; }
template <class T, class S> HD T dot(Vec3<T> a, Vec3<S> b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
template <class T, class S> HD Vec3<T> cross(Vec3<T> a, Vec3<S> b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class T> HD T norm(Vec3<T> a) { return sqrt(dot(a, a)); }
template <class T, class M> HD Vec2<T> select(M m, Vec2<T> a, Vec2<T> b) {
  return {select(m, a.x, b.x), select(m, a.y, b.y)};
}
template <class T, class M> HD Vec3<T> select(M m, Vec3<T> a, Vec3<T> b) {
  return {select(m, a.x, b.x), select(m, a.y, b.y), select(m, a.z, b.z)};
}
template <class T, class S> HD Vec3<T> vec(Vec3<S> a) { return {T(a.x), T(a.y), T(a.z)}; }
template <class T, class S> HD Mat3<T> mat(const Mat3<S>& M) {
  return {{vec<T>(M.row[0]), vec<T>(M.row[1]), vec<T>(M.row[2])}};
}

template <class T, class S> HD Vec3<T> operator*(const Mat3<T>& M, Vec3<S> a) {
  return {dot(M.row[0], a), dot(M.row[1], a), dot(M.row[2], a)};
}
/// M' a.
template <class T, class S> HD Vec3<T> transposed_times(const Mat3<T>& M, Vec3<S> a) {
  return M.row[0] * a.x + M.row[1] * a.y + M.row[2] * a.z;
}
/// A B, where B may be a model's.
template <class T, class S> HD Mat3<T> operator*(const Mat3<T>& A, const Mat3<S>& B) {
  Mat3<T> C;
  UNROLL for (int i = 0; i < 3; ++i) {
    Vec3<T> a = A.row[i];
    C.row[i] = {a.x * B.row[0].x + a.y * B.row[1].x + a.z * B.row[2].x,
                a.x * B.row[0].y + a.y * B.row[1].y + a.z * B.row[2].y,
                a.x * B.row[0].z + a.y * B.row[1].z + a.z * B.row[2].z};
  }
  return C;
}
template <class T> HD Vec3<T> column(const Mat3<T>& M, int i) {
  auto pick = [i](const Vec3<T>& r) { return i == 0 ? r.x : i == 1 ? r.y : r.z; };
  return {pick(M.row[0]), pick(M.row[1]), pick(M.row[2])};
}
template <class T> HD Mat3<T> operator-(const Mat3<T>& M) { return {{-M.row[0], -M.row[1], -M.row[2]}}; }
template <class T> HD Mat3<T> transposed(const Mat3<T>& M) { return {{column(M, 0), column(M, 1), column(M, 2)}}; }

template <class T> HD SymMat3<T> operator+(const SymMat3<T>& a, const SymMat3<T>& b) {
  return {a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yy + b.yy, a.yz + b.yz, a.zz + b.zz};
}
template <class T, class S> HD SymMat3<T> operator*(const SymMat3<T>& M, S s) {
  return {M.xx * s, M.xy * s, M.xz * s, M.yy * s, M.yz * s, M.zz * s};
}
/// M^-1 a.   pre: M is regular
template <class T> HD Vec3<T> solved(const SymMat3<T>& M, Vec3<T> a) {
  const Vec3<T> x{M.xx, M.xy, M.xz}, y{M.xy, M.yy, M.yz}, z{M.xz, M.yz, M.zz}, yz = cross(y, z);
  return (yz * a.x + cross(z, x) * a.y + cross(x, y) * a.z) * (T(1) / dot(x, yz));
}
template <class T> HD Vec3<T> operator*(const SymMat3<T>& M, Vec3<T> a) {
  return {M.xx * a.x + M.xy * a.y + M.xz * a.z, M.xy * a.x + M.yy * a.y + M.yz * a.z,
          M.xz * a.x + M.yz * a.y + M.zz * a.z};
}

/// Normals with less z have frames turned otherwise: no face's, as a rule. At 0, where [Duff2017] has it, are those of all walls and of what
/// jaws hold, and rounding would turn them.
inline constexpr float kFrameTurns = -0.57f;
/// Two unit vectors that complete n (a unit vector) to a right-handed frame; rows t1, t2, n. The branch-free rule of
/// [Duff2017]. n = (0, 0, 1) gives the world's axes.
template <class T> HD Mat3<T> frame_of_normal(Vec3<T> n) {
  T sign = select(n.z < T(kFrameTurns), T(-1), T(1));
  T a = T(-1) / (sign + n.z), b = n.x * n.y * a;
  return {{{T(1) + sign * n.x * n.x * a, sign * b, -(sign * n.x)}, {b, sign + n.y * n.y * a, -n.y}, n}};
}

}  // namespace stiction
