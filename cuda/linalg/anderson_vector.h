// Anderson acceleration of a fixed-point iteration p <- F(p) on a plain vector, of one world or of each world of a pack: of the
// last kDepth + 1 passes it takes the affine combination of images whose residuals F(p) - p cancel best,
//
//   f = F(p) - p,   gamma = argmin |f - dF gamma|,   p' = F(p) - dImage gamma.
//
// Normal equations of size kDepth with a ridge relative to each column. No damping. Columns that are not yet filled, or that a
// world has forgotten, are 0 and get gamma = 0. For few unknowns that a costly F improves; see linalg/anderson.h for many.
//
// Worlds of a pack may be at different passes: each has its own place in the ring.
//
// Safeguard, for an F that is nonexpansive, or nearly (retreat(), which a caller may leave out): where |f| has grown the passes
// before are forgotten, and where that is at an extrapolated point the image of the point before it comes next.
// docs/theory.md, section 11.
#pragma once
#include "linalg/gram.h"
#include "linalg/small_cholesky.h"

namespace stiction {

template <class Real>
struct AndersonVector {
  using S = Scalar<Real>;
  static constexpr int kDepth = 5;

  int size;
  Mask<Real> known;   // worlds with a pass before this one
  Mask<Real> leapt;   // worlds whose point is extrapolated
  Mask<Real> grew;    // worlds whose |f| has grown
  Real place;         // in the ring, of the next column
  Real square;        // |f|^2 of the last pass that was not gone back from
  Real *f, *image;    // (size)           of the last pass
  Real *df, *dimage;  // (kDepth, size)   differences, a ring

  HD void carve(int n, Arena<Real>& arena) {
    size = n, known = leapt = grew = mask_of<Real>(false), square = place = Real(0);
    f = arena.take(n), image = arena.take(n), df = arena.take(kDepth * n), dimage = arena.take(kDepth * n);
  }
  /// Worlds `which` begin anew, whatever they were; all of them first.
  HD void begin(const Mask<Real>& which = mask_of<Real>(true)) {
    forget(which);
    place = select(which, Real(0), place);
  }
  HD void forget(const Mask<Real>& which) {
    if (!any(which)) return;
    known = known & negate(which), leapt = leapt & negate(which);
    for (int i = 0; i < kDepth * size; ++i)
      df[i] = select(which, Real(0), df[i]), dimage[i] = select(which, Real(0), dimage[i]);
  }

  /// Before advance() of all, with the same p and next. Worlds that go back: their next is the image of the pass before.
  HD Mask<Real> retreat(const Real* p, Real* next) {
    Real fresh(0);
    for (int i = 0; i < size; ++i) fresh = fresh + (next[i] - p[i]) * (next[i] - p[i]);
    grew = known & negate(fresh <= square);
    const Mask<Real> back = grew & leapt;
    square = select(back, square, fresh);
    if (any(back))
      for (int i = 0; i < size; ++i) next[i] = select(back, image[i], next[i]);
    return back;
  }

  /// p: where the pass began; next: its image F(p) on entry, the next point on exit. Of worlds `which`: in others nothing changes
  /// but `next`, which is not to be used.
  HD void advance(const Mask<Real>& which, const Real* p, Real* next) {
    const Real zero(0), last(kDepth - 1);
    for (int j = 0; j < kDepth; ++j) {
      const Mask<Real> here = which & (place == Real(j));
      if (!any(here)) continue;
      Real *column = df + j * size, *moved = dimage + j * size;
      for (int i = 0; i < size; ++i) {
        column[i] = select(here, select(known, next[i] - p[i] - f[i], zero), column[i]);
        moved[i] = select(here, select(known, next[i] - image[i], zero), moved[i]);
      }
    }
    for (int i = 0; i < size; ++i)
      f[i] = select(which, next[i] - p[i], f[i]), image[i] = select(which, next[i], image[i]);
    if (any(known)) combine(next);
    place = select(which, select(place < last, place + Real(1), zero), place);
    leapt = select(which, known, leapt), known = known | which;
    if (!any(grew)) return;
    for (int i = 0; i < size; ++i) next[i] = select(grew, image[i], next[i]);
    forget(grew);
    grew = mask_of<Real>(false);
  }
  HD void advance(const Real* p, Real* next) { advance(mask_of<Real>(true), p, next); }

 private:
  HD void combine(Real* next) const {
    Real gram[kDepth * kDepth], gamma[kDepth], scale[kDepth];
    const Real ridge(kEpsilon<S> * S(100)), zero(0), one(1);
    for (int j = 0; j < kDepth; ++j) {
      for (int k = j; k < kDepth; ++k) gram[j * kDepth + k] = dot(size, df + j * size, df + k * size);
      gamma[j] = dot(size, df + j * size, f);
    }
    // Columns scaled to length one: the ridge then means the same for all.
    for (int j = 0; j < kDepth; ++j) {
      const Real square = gram[j * kDepth + j];
      const Mask<Real> filled = square > zero;
      scale[j] = select(filled, one / sqrt(select(filled, square, one)), zero);
    }
    for (int j = 0; j < kDepth; ++j) {
      gamma[j] = gamma[j] * scale[j];
      for (int k = j; k < kDepth; ++k) gram[j * kDepth + k] = gram[j * kDepth + k] * scale[j] * scale[k];
      gram[j * kDepth + j] = gram[j * kDepth + j] + ridge;
    }
    cholesky_factor(kDepth, gram, ridge);
    cholesky_solve(kDepth, gram, gamma);
    for (int j = 0; j < kDepth; ++j) {
      const Real a = gamma[j] * scale[j], *moved = dimage + j * size;
      for (int i = 0; i < size; ++i) next[i] = next[i] - a * moved[i];
    }
  }
};

}  // namespace stiction
