// Spatial algebra in world-aligned axes. Every quantity is taken at one point O, the origin of its tree, so numbers stay
// small wherever the robot stands and no transform separates parent from child. [Featherstone2008] ch. 2.
//
//   Motion  (w, v)   angular velocity; velocity of the body point at O           rad/s, m/s
//   Force   (n, f)   moment about O; force                                       N m, N
//   RigidInertia     mass m, first moment h = m c, second moment J about O       kg, kg m, kg m^2
//   SymMat6          [A B; B' C], maps Motion to Force like an inertia
#pragma once
#include "math/pose.h"

namespace stiction {

template <class T> struct Motion { Vec3<T> w, v; };
template <class T> struct Force { Vec3<T> n, f; };
template <class T> struct RigidInertia {
  T m;
  Vec3<T> h;
  SymMat3<T> J;
};
template <class T> struct SymMat6 {
  SymMat3<T> A;
  Mat3<T> B;
  SymMat3<T> C;
};

template <class T> HD Motion<T> operator+(Motion<T> a, Motion<T> b) { return {a.w + b.w, a.v + b.v}; }
template <class T> HD Motion<T> operator-(Motion<T> a, Motion<T> b) { return {a.w - b.w, a.v - b.v}; }
template <class T> HD Motion<T> operator*(Motion<T> a, T s) { return {a.w * s, a.v * s}; }
template <class T> HD Force<T> operator+(Force<T> a, Force<T> b) { return {a.n + b.n, a.f + b.f}; }
template <class T> HD Force<T> operator-(Force<T> a, Force<T> b) { return {a.n - b.n, a.f - b.f}; }
/// Power of a force along a motion.
template <class T> HD T dot(const Motion<T>& a, const Force<T>& b) { return dot(a.w, b.n) + dot(a.v, b.f); }

/// Unit forces along the three axes of a contact's frame: what is computed of them is a Vec3, one number per axis.
template <class T> struct AxisForces { Force<T> axis[3]; };
template <class T> HD Vec3<T> dot(const Motion<T>& a, const AxisForces<T>& b) {
  return {dot(a, b.axis[0]), dot(a, b.axis[1]), dot(a, b.axis[2])};
}
/// The force with those parts along the axes.
template <class T> HD Force<T> combined(const AxisForces<T>& F, Vec3<T> l) {
  const Force<T>&a = F.axis[0], &b = F.axis[1], &c = F.axis[2];
  return {a.n * l.x + b.n * l.y + c.n * l.z, a.f * l.x + b.f * l.y + c.f * l.z};
}
template <class T> HD T squares(T a) { return a * a; }
template <class T> HD Vec3<T> squares(Vec3<T> a) { return {a.x * a.x, a.y * a.y, a.z * a.z}; }
/// V x U: how U changes when it is carried along by V.
template <class T> HD Motion<T> cross(const Motion<T>& V, const Motion<T>& U) {
  return {cross(V.w, U.w), cross(V.w, U.v) + cross(V.v, U.w)};
}
/// V x* F: the same for forces.
template <class T> HD Force<T> cross(const Motion<T>& V, const Force<T>& F) {
  return {cross(V.w, F.n) + cross(V.v, F.f), cross(V.w, F.f)};
}
template <class T> HD Vec3<T> velocity_at(const Motion<T>& V, Vec3<T> p) { return V.v + cross(V.w, p); }
template <class T> HD Force<T> force_at(Vec3<T> p, Vec3<T> f) { return {cross(p, f), f}; }
template <class T> HD AxisForces<T> axis_forces(Vec3<T> p, const Mat3<T>& frame) {
  return {{force_at(p, frame.row[0]), force_at(p, frame.row[1]), force_at(p, frame.row[2])}};
}
/// Couples about the axes of a frame.
template <class T> HD AxisForces<T> axis_couples(const Mat3<T>& frame) {
  const Vec3<T> none{T(0), T(0), T(0)};
  return {{{frame.row[0], none}, {frame.row[1], none}, {frame.row[2], none}}};
}
template <class T> HD Motion<T> zero_motion() { return {{T(0), T(0), T(0)}, {T(0), T(0), T(0)}}; }
template <class T> HD Force<T> zero_force() { return {{T(0), T(0), T(0)}, {T(0), T(0), T(0)}}; }

template <class T> HD RigidInertia<T> operator+(const RigidInertia<T>& a, const RigidInertia<T>& b) {
  return {a.m + b.m, a.h + b.h, a.J + b.J};
}
template <class T> HD SymMat6<T> operator+(const SymMat6<T>& a, const SymMat6<T>& b) {
  return {a.A + b.A, {a.B.row[0] + b.B.row[0], a.B.row[1] + b.B.row[1], a.B.row[2] + b.B.row[2]}, a.C + b.C};
}
/// Momentum I V.
template <class T> HD Force<T> operator*(const RigidInertia<T>& I, const Motion<T>& V) {
  return {I.J * V.w + cross(I.h, V.v), V.v * I.m - cross(I.h, V.w)};
}
template <class T> HD Force<T> operator*(const SymMat6<T>& K, const Motion<T>& V) {
  return {K.A * V.w + K.B * V.v, transposed_times(K.B, V.w) + K.C * V.v};
}

template <class T> HD const SymMat6<T>& full(const SymMat6<T>& K) { return K; }
template <class T> HD SymMat6<T> full(const RigidInertia<T>& I) {
  T o = T(0);
  return {I.J, {{{o, -I.h.z, I.h.y}, {I.h.z, o, -I.h.x}, {-I.h.y, I.h.x, o}}}, {I.m, o, o, I.m, o, I.m}};
}
template <class T> HD SymMat6<T> zero_inertia(SymMat6<T>*) {
  T o(0);
  Vec3<T> z{o, o, o};
  return {{o, o, o, o, o, o}, {{z, z, z}}, {o, o, o, o, o, o}};
}
template <class T> HD RigidInertia<T> zero_inertia(RigidInertia<T>*) {
  T o(0);
  return {o, {o, o, o}, {o, o, o, o, o, o}};
}

/// F' diag(d) F for a frame F (rows t1, t2, n): a diagonal matrix of the contact frame in world axes.
template <class T> HD SymMat3<T> in_world(const Mat3<T>& F, Vec3<T> d) {
  Vec3<T> a = F.row[0] * d.x, b = F.row[1] * d.y, c = F.row[2] * d.z;
  const Vec3<T>&r = F.row[0], &s = F.row[1], &t = F.row[2];
  return {a.x * r.x + b.x * s.x + c.x * t.x, a.x * r.y + b.x * s.y + c.x * t.y, a.x * r.z + b.x * s.z + c.x * t.z,
          a.y * r.y + b.y * s.y + c.y * t.y, a.y * r.z + b.y * s.z + c.y * t.z, a.z * r.z + b.z * s.z + c.z * t.z};
}

/// Inertia about O of a link at pose (R, p): J = R Jc R' + m (|c|^2 1 - c c'), c = p + R com.
template <class T, class S>
HD RigidInertia<T> placed(const Pose<T>& x, S m, Vec3<S> com, const SymMat3<S>& Jc) {
  Vec3<T> c = x.p + x.R * com, h = c * m;
  Vec3<T> t[3];  // rows of R Jc
  UNROLL for (int i = 0; i < 3; ++i) {
    Vec3<T> r = x.R.row[i];
    t[i] = {r.x * Jc.xx + r.y * Jc.xy + r.z * Jc.xz, r.x * Jc.xy + r.y * Jc.yy + r.z * Jc.yz,
            r.x * Jc.xz + r.y * Jc.yz + r.z * Jc.zz};
  }
  T xx = h.x * c.x, yy = h.y * c.y, zz = h.z * c.z;
  return {T(m), h,
          {dot(t[0], x.R.row[0]) + yy + zz, dot(t[0], x.R.row[1]) - h.x * c.y, dot(t[0], x.R.row[2]) - h.x * c.z,
           dot(t[1], x.R.row[1]) + xx + zz, dot(t[1], x.R.row[2]) - h.y * c.z, dot(t[2], x.R.row[2]) + xx + yy}};
}

// ---- sums over a group --------------------------------------------------------------------------------------------------

template <class G, class T> HD void sum_over(const G& g, Vec3<T>& a) { a = {g.sum(a.x), g.sum(a.y), g.sum(a.z)}; }
template <class G, class T> HD void sum_over(const G& g, Force<T>& a) { sum_over(g, a.n), sum_over(g, a.f); }
template <class G, class T> HD void sum_over(const G& g, Motion<T>& a) { sum_over(g, a.w), sum_over(g, a.v); }
template <class G, class T> HD void sum_over(const G& g, SymMat3<T>& a) {
  a = {g.sum(a.xx), g.sum(a.xy), g.sum(a.xz), g.sum(a.yy), g.sum(a.yz), g.sum(a.zz)};
}
template <class G, class T> HD void sum_over(const G& g, RigidInertia<T>& a) {
  a.m = g.sum(a.m);
  sum_over(g, a.h), sum_over(g, a.J);
}
template <class G, class T> HD void sum_over(const G& g, SymMat6<T>& a) {
  sum_over(g, a.A), sum_over(g, a.C);
  UNROLL for (int i = 0; i < 3; ++i) sum_over(g, a.B.row[i]);
}

}  // namespace stiction
