// Cholesky A = U'U of a symmetric positive definite matrix in blocks, of which most are 0, of one world or of each world of a pack.
//
// A has `width` numbers a row; what the pattern of the factor names of its upper triangle is read and written. Right-looking: the inner
// loops run along rows.
#pragma once
#include "core/scalar.h"
#include "linalg/column_blocks.h"

namespace stiction {

/// Overwrites A with U; 1 / U_kk on the diagonal. A pivot that is not above `floor` is replaced by it and makes the result false.
template <class Real>
HD Mask<Real> block_factor(const ColumnBlocks& blocks, const BlockPattern& pattern, int width, Real* A,
                           Real floor = Real(0)) {
  Mask<Real> sound = mask_of<Real>(true);
  for (int b = 0; b < blocks.count; ++b) {
    const ColumnBlocks::Runs runs = blocks.runs(pattern.upper[b]);
    const int end = blocks.begin[b + 1];
    for (int k = blocks.begin[b]; k < end; ++k) {
      Real* row = A + k * width;
      const Mask<Real> positive = row[k] > floor;
      const Real inverse = Real(1) / sqrt(select(positive, row[k], floor));
      sound = sound & positive, row[k] = inverse;
      for (int j = k + 1; j < end; ++j) row[j] = row[j] * inverse;
      for (int r = 0; r < runs.count; ++r)
        for (int j = runs.begin[r]; j < runs.end[r]; ++j) row[j] = row[j] * inverse;
      for (int i = k + 1; i < end; ++i) {
        Real *below = A + i * width, a = row[i];
        for (int j = i; j < end; ++j) below[j] = below[j] - a * row[j];
        for (int r = 0; r < runs.count; ++r)
          for (int j = runs.begin[r]; j < runs.end[r]; ++j) below[j] = below[j] - a * row[j];
      }
      for (int r = 0; r < runs.count; ++r)
        for (int i = runs.begin[r]; i < runs.end[r]; ++i) {
          Real *below = A + i * width, a = row[i];
          for (int s = r; s < runs.count; ++s)
            for (int j = s == r ? i : runs.begin[s]; j < runs.end[s]; ++j) below[j] = below[j] - a * row[j];
        }
    }
  }
  return sound;
}

/// x <- U^-T x for R vectors side by side, x[R k + d], which touch a set that the pattern closes (BlockPattern::reached).
template <int R, class Real>
HD void block_solve(const ColumnBlocks& blocks, const BlockPattern& pattern, int width, const Real* U, uint32_t set,
                    Real* x) {
  ColumnBlocks::each(set, [&](int b) {
    const ColumnBlocks::Runs runs = blocks.runs(pattern.upper[b]);
    const int end = blocks.begin[b + 1];
    for (int k = blocks.begin[b]; k < end; ++k) {
      const Real* row = U + k * width;
      Real z[R];
      for (int d = 0; d < R; ++d) z[d] = x[R * k + d] = x[R * k + d] * row[k];
      auto take = [&](int from, int to) {
        for (int j = from; j < to; ++j)
          for (int d = 0; d < R; ++d) x[R * j + d] = x[R * j + d] - row[j] * z[d];
      };
      take(k + 1, end);
      for (int r = 0; r < runs.count; ++r) take(runs.begin[r], runs.end[r]);
    }
  });
}

/// x <- U^-1 x.
template <class Real>
HD void block_solve_back(const ColumnBlocks& blocks, const BlockPattern& pattern, int width, const Real* U, Real* x) {
  for (int b = blocks.count - 1; b >= 0; --b) {
    const ColumnBlocks::Runs runs = blocks.runs(pattern.upper[b]);
    const int end = blocks.begin[b + 1];
    for (int k = end - 1; k >= blocks.begin[b]; --k) {
      const Real* row = U + k * width;
      Real sum = x[k];
      for (int j = k + 1; j < end; ++j) sum = sum - row[j] * x[j];
      for (int r = 0; r < runs.count; ++r)
        for (int j = runs.begin[r]; j < runs.end[r]; ++j) sum = sum - row[j] * x[j];
      x[k] = sum * row[k];
    }
  }
}

}  // namespace stiction
