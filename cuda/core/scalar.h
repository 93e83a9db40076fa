// The value type `Real`: what one variable of the physics is.
//
//   float, double   one world
//   Pack<float, W>  W worlds side by side in SIMD registers (CPU only), W = 8 or 16
//
// All physics is written against this header. Comparing two Reals gives a Mask<Real>; code never branches on one but blends,
// `select(x > y, a, b)`, and loops `while (any(mask))`. What is equal in all worlds (topology, options, flags) has the type
// Scalar<Real> or int and may be branched on. The untaken side of a select is evaluated: guard its divisions and roots.
//
// Determinism: every operation acts lane by lane and rounds once, so a world's bits depend neither on W nor on its place in
// the pack. For this the CPU libraries are built with -ffp-contract=off -fno-tree-slp-vectorize, and sin and cos are our own.
#pragma once
#include "core/platform.h"

namespace stiction {

// ---- one world ----------------------------------------------------------------------------------------------------------

HD float select(bool m, float a, float b) { return m ? a : b; }
HD double select(bool m, double a, double b) { return m ? a : b; }
HD int select(bool m, int a, int b) { return m ? a : b; }
HD bool select(bool m, bool a, bool b) { return m ? a : b; }
HD bool any(bool m) { return m; }
HD bool all(bool m) { return m; }
HD float max(float a, float b) { return a > b ? a : b; }
HD double max(double a, double b) { return a > b ? a : b; }
HD int max(int a, int b) { return a > b ? a : b; }
HD int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
HD float min(float a, float b) { return a < b ? a : b; }
HD double min(double a, double b) { return a < b ? a : b; }
HD int min(int a, int b) { return a < b ? a : b; }
HD float abs(float x) { return x < 0 ? -x : x; }
HD double abs(double x) { return x < 0 ? -x : x; }
HD float sqrt(float x) { return ::sqrtf(x); }
HD double sqrt(double x) { return ::sqrt(x); }
HD float round(float x) { return (x + 12582912.0f) - 12582912.0f; }  // to nearest even, |x| < 2^22
HD double round(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }
HD int to_int(float x) { return static_cast<int>(x); }
HD int64_t to_int(double x) { return static_cast<int64_t>(x); }
/// Neither NaN nor infinite nor so large that a square overflows a float.
HD bool is_finite(float x) { return abs(x) < 1e18f; }
HD bool is_finite(double x) { return abs(x) < 1e150; }

HD float lane(float x, int) { return x; }
HD double lane(double x, int) { return x; }
HD bool lane(bool x, int) { return x; }
HD int lane(int x, int) { return x; }
HD void set_lane(float& x, int, float value) { x = value; }
HD void set_lane(double& x, int, double value) { x = value; }
HD void set_lane(int& x, int, int value) { x = value; }
HD void set_lane(bool& x, int, int value) { x = value != 0; }

template <class Real>
struct RealTraits {
  static constexpr int kWidth = 1;  // worlds in one Real
  using Scalar = Real;              // one world's value
  using Mask = bool;                // of a comparison
  using Index = int;                // a number of something that may differ from world to world
  template <class T, int W>
  using Of = T;  // the numbers T of W worlds, where a Real is a pack
};

// ---- W worlds -----------------------------------------------------------------------------------------------------------

#ifndef __CUDACC__
template <class T, int W>
struct Register;  // a class of its own: g++ 12 forgets a dependent vector_size inside Pack
template <int W>
struct Register<float, W> {
  typedef float Vector __attribute__((vector_size(4 * W)));
  typedef int32_t Integer __attribute__((vector_size(4 * W)));
};
template <int W>
struct Register<double, W> {
  typedef double Vector __attribute__((vector_size(8 * W)));
  typedef int64_t Integer __attribute__((vector_size(8 * W)));
};

template <class T, int W>
struct Pack {
  using Vector = typename Register<T, W>::Vector;
  using Integer = typename Register<T, W>::Integer;

  Vector v;

  Pack() = default;
  HD Pack(Vector x) : v(x) {}
  HD Pack(T x) : v(x - Vector{}) {}  // broadcast; keeps -0 and NaN

  HD friend Pack operator+(Pack a, Pack b) { return a.v + b.v; }
  HD friend Pack operator-(Pack a, Pack b) { return a.v - b.v; }
  HD friend Pack operator*(Pack a, Pack b) { return a.v * b.v; }
  HD friend Pack operator/(Pack a, Pack b) { return a.v / b.v; }
  HD friend Pack operator-(Pack a) { return -a.v; }
  HD friend Integer operator>(Pack a, Pack b) { return a.v > b.v; }
  HD friend Integer operator<(Pack a, Pack b) { return a.v < b.v; }
  HD friend Integer operator>=(Pack a, Pack b) { return a.v >= b.v; }
  HD friend Integer operator<=(Pack a, Pack b) { return a.v <= b.v; }
  HD friend Integer operator==(Pack a, Pack b) { return a.v == b.v; }
  HD friend Pack select(Integer m, Pack a, Pack b) { return m ? a.v : b.v; }
  HD friend Pack max(Pack a, Pack b) { return a.v > b.v ? a.v : b.v; }
  HD friend Pack min(Pack a, Pack b) { return a.v < b.v ? a.v : b.v; }
  HD friend Pack abs(Pack a) { return a.v < Vector{} ? -a.v : a.v; }
  HD friend Pack sqrt(Pack a) {
    // Of the loop below g++ makes a function, across whose calls no register keeps what it has.
#if defined(__AVX512F__) && !defined(__clang__)
    if constexpr (sizeof(Vector) == 64) {
      if constexpr (sizeof(T) == 4) return __builtin_ia32_sqrtps512_mask(a.v, a.v, -1, kRoundAsSet);
      else return __builtin_ia32_sqrtpd512_mask(a.v, a.v, -1, kRoundAsSet);
    }
#endif
#if defined(__AVX__) && !defined(__clang__)
    if constexpr (sizeof(Vector) == 32) {
      if constexpr (sizeof(T) == 4) return __builtin_ia32_sqrtps256(a.v);
      else return __builtin_ia32_sqrtpd256(a.v);
    }
#endif
    for (int i = 0; i < W; ++i) a.v[i] = sizeof(T) == 4 ? __builtin_sqrtf(a.v[i]) : __builtin_sqrt(a.v[i]);
    return a;
  }
  HD friend Pack round(Pack a) { return (a.v + kRound) - kRound; }
  HD friend Integer to_int(Pack a) { return __builtin_convertvector(a.v, Integer); }
  HD friend Integer is_finite(Pack a) { return abs(a).v < (sizeof(T) == 4 ? T(1e18) : T(1e150)) - Vector{}; }
  HD friend T lane(const Pack& a, int i) { return a.v[i]; }
  HD friend void set_lane(Pack& a, int i, T value) { a.v[i] = value; }
  /// Lane i of the result is lane from[i] of a.
  HD friend Pack permuted(Pack a, const Integer& from) {
#ifdef __clang__
    Pack x;
    for (int i = 0; i < W; ++i) x.v[i] = a.v[from[i]];
    return x;
#else
    return __builtin_shuffle(a.v, from);
#endif
  }
  static constexpr T kRound = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);
  static constexpr int kRoundAsSet = 4;  // of the instruction: as the processor is set, to nearest even
};

template <class T, int W>
struct RealTraits<Pack<T, W>> {
  static constexpr int kWidth = W;
  using Scalar = T;
  using Mask = typename Pack<T, W>::Integer;
  using Index = typename Pack<T, W>::Integer;
  template <class U, int V>
  using Of = Pack<U, V>;
};

// Masks and indices of packs are vectors, no classes: argument-dependent lookup does not find these, keep the namespace.
template <class V>
concept LaneVector = !__is_class(V) && requires(V v) { v[0] & v[0]; } && sizeof(V) > 8;
// AVX asks 32 bytes at once; a loop over lanes takes three times as long.
#ifdef __AVX__
typedef long long HalfMask __attribute__((vector_size(32)));
typedef long long FullMask __attribute__((vector_size(64)));
template <bool kUpper>
HD HalfMask half_of(FullMask m) {
  if constexpr (kUpper) return __builtin_shufflevector(m, m, 4, 5, 6, 7);
  else return __builtin_shufflevector(m, m, 0, 1, 2, 3);
}
#endif
template <LaneVector V>
HD bool any(const V& m) {
#ifdef __AVX__
  if constexpr (sizeof(V) == 64) {
    const HalfMask both = half_of<false>((FullMask)m) | half_of<true>((FullMask)m);
    return !__builtin_ia32_ptestz256(both, both);
  } else if constexpr (sizeof(V) == 32) {
    return !__builtin_ia32_ptestz256((HalfMask)m, (HalfMask)m);
  }
#endif
  int64_t hits = 0;
  for (unsigned i = 0; i < sizeof(V) / sizeof(m[0]); ++i) hits |= m[i];
  return hits != 0;
}
template <LaneVector V>
HD bool all(const V& m) {
#ifdef __AVX__
  if constexpr (sizeof(V) == 64) {
    const HalfMask both = half_of<false>((FullMask)m) & half_of<true>((FullMask)m);
    return __builtin_ia32_ptestc256(both, ~HalfMask{});
  } else if constexpr (sizeof(V) == 32) {
    return __builtin_ia32_ptestc256((HalfMask)m, ~HalfMask{});
  }
#endif
  int64_t hits = -1;
  for (unsigned i = 0; i < sizeof(V) / sizeof(m[0]); ++i) hits &= m[i];
  return hits != 0;
}
template <LaneVector V>
HD int lane(const V& m, int i) {
  return static_cast<int>(m[i]);
}
template <LaneVector V>
HD void set_lane(V& m, int i, int value) {
  m[i] = value;
}
template <LaneVector V>
HD V select(const V& m, const V& a, const V& b) {
  return m ? a : b;
}
/// take(a, b) of all lanes, which are integers, by halves: lane by lane takes five times as long.
template <LaneVector V, class Take>
HD int folded(const V& m, Take take) {
#ifdef __AVX__
  if constexpr (sizeof(m[0]) == 4 && (sizeof(V) == 64 || sizeof(V) == 32)) {
    typedef int32_t Half __attribute__((vector_size(32)));
    typedef int32_t Quarter __attribute__((vector_size(16)));
    Half half;
    if constexpr (sizeof(V) == 64) half = take((Half)half_of<false>((FullMask)m), (Half)half_of<true>((FullMask)m));
    else half = (Half)m;
    Quarter x = take(Quarter(__builtin_shufflevector(half, half, 0, 1, 2, 3)),
                     Quarter(__builtin_shufflevector(half, half, 4, 5, 6, 7)));
    x = take(x, Quarter(__builtin_shufflevector(x, x, 2, 3, 0, 1)));
    x = take(x, Quarter(__builtin_shufflevector(x, x, 1, 0, 3, 2)));
    return x[0];
  }
#endif
  auto x = m[0];
  for (unsigned i = 1; i < sizeof(V) / sizeof(m[0]); ++i) x = take(x, m[i]);
  return static_cast<int>(x);
}
template <LaneVector V>
HD int least_lane(const V& m) {
  return folded(m, [](auto a, auto b) { return a < b ? a : b; });
}
template <LaneVector V>
HD int greatest_lane(const V& m) {
  return folded(m, [](auto a, auto b) { return a > b ? a : b; });
}
#endif

// ---- for every Real -----------------------------------------------------------------------------------------------------

template <class Real> using Scalar = typename RealTraits<Real>::Scalar;
template <class Real> using Mask = typename RealTraits<Real>::Mask;
template <class Real> using Index = typename RealTraits<Real>::Index;
template <class Real> inline constexpr int kWidth = RealTraits<Real>::kWidth;
/// 1 + kEpsilon is the next number after 1.
template <class T> inline constexpr T kEpsilon = T(2.22044604925031308e-16);
template <> inline constexpr float kEpsilon<float> = 1.1920929e-7f;

template <class Real>
HD Mask<Real> mask_of(bool m) {
  if constexpr (kWidth<Real> == 1) return m;
  else return Mask<Real>{} - (m ? 1 : 0);
}
template <class Real>
HD Index<Real> index_of(int i) {
  if constexpr (kWidth<Real> == 1) return i;
  else return Index<Real>{} + i;
}
/// !m. On packs ~m, which is not what ~ means for a bool (or for the int that bool & bool is).
HD bool negate(bool m) { return !m; }
HD bool negate(int m) { return m == 0; }
#ifndef __CUDACC__
template <LaneVector V>
HD V negate(const V& m) {
  return ~m;
}
#endif
/// Calls body(i) for every lane whose mask is set, in order: the way irregular work is done in packs.
template <class Real, class Body>
HD void for_each_lane(const Mask<Real>& m, Body body) {
  for (int i = 0; i < kWidth<Real>; ++i)
    if (lane(m, i)) body(i);
}

/// The largest of a number's lanes, which are counts.
template <class Real>
HD int largest_lane(const Real& count) {
  if constexpr (kWidth<Real> == 1) return static_cast<int>(count);
  else return greatest_lane(to_int(count));
}

template <class Real> HD Real clamp(Real x, Real low, Real high) { return max(low, min(x, high)); }
/// to = from in worlds `is`.
template <class Real> HD void blend(const Mask<Real>& is, Real from, Real& to) { to = select(is, from, to); }
/// As IEEE 754 has it: NaN where one of them is, which max() forgets.
template <class Real> HD Real maximum(Real a, Real b) { return select((b > a) | negate(b == b), b, a); }

/// 1 / sqrt(x), x > 0.
template <class Real> HD Real rsqrt(Real x) { return Real(1) / sqrt(x); }
#ifdef __CUDA_ARCH__
HD float rsqrt(float x) { return ::rsqrtf(x); }
#endif

/// s = sin x, c = cos x. Floats and packs share one polynomial (error 1e-7 for |x| < 1e4), so that a world's bits do not
/// depend on the width of its pack. Cephes' minimax coefficients on a quarter turn, Cody-Waite reduction in two steps.
template <class Real>
HD void sincos(Real x, Real& s, Real& c) {
  Real k = round(x * 0.636619772f);  // x = k pi/2 + r
  Real r = (x - k * 1.5707962513f) - k * 7.5497899549e-8f;
  Real r2 = r * r;
  Real sr = r + r * r2 * (r2 * (r2 * -1.9515296e-4f + 8.3321609e-3f) + -1.6666655e-1f);
  Real cr = r2 * r2 * (r2 * (r2 * 2.443316e-5f + -1.3887316e-3f) + 4.1666457e-2f) - r2 * 0.5f + 1.0f;
  auto quadrant = to_int(k);
  auto odd = (quadrant & 1) != 0;
  Real a = select(odd, cr, sr), b = select(odd, sr, cr);
  s = select((quadrant & 2) != 0, -a, a);
  c = select(((quadrant + 1) & 2) != 0, -b, b);
}
HD void sincos(double x, double& s, double& c) {
  s = ::sin(x);
  c = ::cos(x);
}

/// The angle in [0, pi/2] with tan = y / x, for x, y >= 0, one of them > 0; relative error 2e-7. Cephes' minimax coefficients
/// up to tan pi/8, to which tan pi/4 and the quotient's inverse lead.
template <class Real>
HD Real angle_of(Real y, Real x) {
  const Real low = min(x, y), high = max(x, y);
  const Mask<Real> far = low > high * 0.41421356f;
  const Real t = select(far, low - high, low) / select(far, low + high, high), t2 = t * t;
  const Real p = ((t2 * 8.05374449538e-2f - 1.38776856032e-1f) * t2 + 1.99777106478e-1f) * t2 - 3.33329491539e-1f;
  const Real angle = select(far, Real(0.785398163f), Real(0)) + (p * t2 * t + t);
  return select(y > x, Real(1.570796327f) - angle, angle);
}
HD double angle_of(double y, double x) { return ::atan2(y, x); }

}  // namespace stiction
