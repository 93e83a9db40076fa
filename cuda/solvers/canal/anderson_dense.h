// Anderson acceleration of a fixed-point iteration p <- F(p) on a plain vector of one world: of the last kDepth + 1 passes it
// takes the affine combination of images whose residuals F(p) - p cancel best,
//
//   f = F(p) - p,   gamma = argmin |f - dF gamma|,   p' = F(p) - dImage gamma.
//
// Normal equations of size kDepth with a ridge relative to each column. No damping. T is float or double.
#pragma once
#include "linalg/small_cholesky.h"

namespace stiction {

template <class T>
struct AndersonDense {
  static constexpr int kDepth = 5;

  int size, passes;
  T *f, *image;    // (size)           of the last pass
  T *df, *dimage;  // (kDepth, size)   differences, a ring

  HD static int workspace_size(int size) { return (2 + 2 * kDepth) * size; }

  HD void start(int n, T* workspace) {
    size = n, passes = 0;
    f = workspace, image = f + n, df = image + n, dimage = df + kDepth * n;
  }
  HD void restart() { passes = 0; }

  /// p: where the pass began; next: its image F(p) on entry, the next point on exit.
  HD void advance(const T* p, T* next) {
    if (passes > 0) {
      int place = (passes - 1) % kDepth;
      T *column = df + place * size, *moved = dimage + place * size;
      for (int i = 0; i < size; ++i) {
        T fresh = next[i] - p[i];
        column[i] = fresh - f[i], moved[i] = next[i] - image[i];
      }
    }
    for (int i = 0; i < size; ++i) f[i] = next[i] - p[i], image[i] = next[i];
    int columns = min(passes, kDepth);
    ++passes;
    if (columns > 0) combine(columns, next);
  }

 private:
  HD void combine(int columns, T* next) {
    T gram[kDepth * kDepth], gamma[kDepth], ridge = kEpsilon<T> * T(100);
    for (int j = 0; j < columns; ++j) {
      for (int k = j; k < columns; ++k) gram[j * columns + k] = product(df + j * size, df + k * size);
      gamma[j] = product(df + j * size, f);
    }
    // Columns scaled to length one: the ridge then means the same for all.
    T scale[kDepth];
    for (int j = 0; j < columns; ++j) {
      T square = gram[j * columns + j];
      scale[j] = square > T(0) ? T(1) / sqrt(square) : T(0);
    }
    for (int j = 0; j < columns; ++j) {
      gamma[j] *= scale[j];
      for (int k = j; k < columns; ++k) gram[j * columns + k] *= scale[j] * scale[k];
      gram[j * columns + j] += ridge;
    }
    cholesky_factor(columns, gram, ridge);
    cholesky_solve(columns, gram, gamma);
    for (int j = 0; j < columns; ++j) {
      T a = gamma[j] * scale[j];
      const T* moved = dimage + j * size;
      for (int i = 0; i < size; ++i) next[i] -= a * moved[i];
    }
  }
  HD T product(const T* a, const T* b) const {
    T sum(0);
    for (int i = 0; i < size; ++i) sum += a[i] * b[i];
    return sum;
  }
};

}  // namespace stiction
