// Sums of products of floats in double: what cancels in them keeps its digits. Of doubles they are plain sums.
#pragma once
#include "core/scalar.h"

namespace stiction {

/// In Real itself.
template <class Real>
struct PlainSum {
  Real sum;

  HD explicit PlainSum(Real x) : sum(x) {}
  HD void add(Real a, Real b) { sum = sum + a * b; }
  HD Real rounded() const { return sum; }
  /// What rounding leaves of it beside x.
  HD Real rest(Real x) const { return sum - x; }
};

template <class Real>
struct WideSum : PlainSum<Real> {
  using PlainSum<Real>::PlainSum;
};

template <>
struct WideSum<float> {
  double sum;

  HD explicit WideSum(float x) : sum(x) {}
  HD void add(float a, float b) { sum = sum + static_cast<double>(a) * static_cast<double>(b); }
  HD float rounded() const { return static_cast<float>(sum); }
  HD float rest(float x) const { return static_cast<float>(sum - static_cast<double>(x)); }
};

#ifndef __CUDACC__
/// In two halves, each of which fills a register.
template <int W>
struct WideSum<Pack<float, W>> {
  using Real = Pack<float, W>;
  typedef float Half __attribute__((vector_size(2 * W)));
  using Wide = typename Register<double, W / 2>::Vector;
  Wide low, high;

  HD explicit WideSum(const Real& x) { halves(x, low, high); }
  HD void add(const Real& a, const Real& b) {
    Wide al, ah, bl, bh;
    halves(a, al, ah), halves(b, bl, bh);
    low = low + al * bl, high = high + ah * bh;
  }
  HD Real rounded() const { return joined(low, high); }
  HD Real rest(const Real& x) const {
    Wide xl, xh;
    halves(x, xl, xh);
    return joined(low - xl, high - xh);
  }

 private:
  HD static void halves(const Real& x, Wide& l, Wide& h) {
    Half part[2];
    __builtin_memcpy(part, &x.v, sizeof(x.v));
    l = __builtin_convertvector(part[0], Wide), h = __builtin_convertvector(part[1], Wide);
  }
  HD static Real joined(const Wide& l, const Wide& h) {
    const Half part[2] = {__builtin_convertvector(l, Half), __builtin_convertvector(h, Half)};
    Real x;
    __builtin_memcpy(&x.v, part, sizeof(x.v));
    return x;
  }
};
#endif

}  // namespace stiction
