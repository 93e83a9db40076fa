// Columns of a matrix in blocks that are zero together, and sets of blocks: a bit a block.
#pragma once
#include "core/platform.h"

namespace stiction {

struct ColumnBlocks {
  static constexpr int kMost = 32;
  int count = 1;
  int begin[kMost + 1] = {};  // and the number of columns, behind the last

  HD explicit ColumnBlocks(int columns = 0) { begin[1] = columns; }
  HD int columns() const { return begin[count]; }
  HD int size(int block) const { return begin[block + 1] - begin[block]; }

  /// All blocks.
  HD uint32_t all() const { return ~uint32_t(0) >> (kMost - count); }
  /// The blocks behind one.
  HD static constexpr uint32_t behind(int block) { return ~uint32_t(0) << block << 1; }
  /// visit(block) for every block of a set, in order.
  template <class Visit>
  HD static void each(uint32_t set, Visit visit) {
    for (; set != 0; set &= set - 1) visit(lowest_bit(set));
  }
  /// visit(begin, end) for the columns of a set, as few ranges as there are.
  template <class Visit>
  HD void each_run(uint32_t set, Visit visit) const {
    while (set != 0) {
      const int first = lowest_bit(set);
      const uint32_t others = ~(set >> first);
      const int last = others == 0 ? kMost : first + lowest_bit(others);
      visit(begin[first], begin[last]);
      set &= behind(last - 1);
    }
  }
  /// The same ranges as a list.
  struct Runs {
    int count = 0;
    int begin[(kMost + 1) / 2], end[(kMost + 1) / 2];
  };
  HD Runs runs(uint32_t set) const {
    Runs r;
    each_run(set, [&](int from, int to) { r.begin[r.count] = from, r.end[r.count++] = to; });
    return r;
  }
  /// How many columns a set has.
  HD int width(uint32_t set) const {
    int sum = 0;
    each_run(set, [&](int from, int to) { sum += to - from; });
    return sum;
  }
};

/// Which blocks of a symmetric positive definite matrix are not zero, above the diagonal, and then of its Cholesky factor.
struct BlockPattern {
  uint32_t upper[ColumnBlocks::kMost] = {};

  /// The matrix gets x x' of a row that touches a set.
  HD void couple(uint32_t set) {
    ColumnBlocks::each(set, [&](int b) { upper[b] |= set & ColumnBlocks::behind(b); });
  }
  /// From the matrix to its factor U, A = U'U: what is eliminated couples all that it was coupled with, and it is enough to tell the
  /// first of them.
  HD void fill(int count) {
    for (int b = 0; b < count; ++b)
      if (upper[b] != 0) {
        const int next = lowest_bit(upper[b]);
        upper[next] |= upper[b] & ColumnBlocks::behind(next);
      }
  }
  /// What U^-T x touches where x touches a set.
  HD uint32_t reached(uint32_t set) const {
    uint32_t all = set;
    for (uint32_t left = set; left != 0;) {
      const int b = lowest_bit(left);
      all |= upper[b], left = (left | upper[b]) & ColumnBlocks::behind(b);
    }
    return all;
  }
};

}  // namespace stiction
