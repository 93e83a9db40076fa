// Anderson acceleration of a fixed-point iteration y <- G(y) on the multipliers of a contact problem: of the last
// Depth + 1 passes it takes the affine combination of images G(y) whose residuals G(y) - y cancel best,
//
//   f = G(y) - y,   gamma = argmin |f - dF gamma|,   y' = G(y) - dG gamma
//
// dF, dG: the last Depth differences of f and of G(y). The norm is that of the caller's weight, the normal equations are
// Depth x Depth, with a Tikhonov term relative to each column's square. A world whose residual has just grown takes the plain
// step. Columns that are not yet filled are 0 and get gamma = 0: no lists, no branches on a Real. docs/theory.md,
// section 9; [Anderson1965], [Walker2011].
//
// An Entry is a Vec3 (contact) or a Real (row). Use: sums = begin_sums, then sums.gather every entry, finish_sums, then step every entry of
// the extrapolation(). Sums and coefficients are the loop's own: what it writes to entries cannot change them, so they stay in registers.
#pragma once
#include "math/vec3.h"

namespace stiction {

template <class Real> HD Real inner(Real a, Real b) { return a * b; }
template <class Real> HD Real inner(Vec3<Real> a, Vec3<Real> b) { return dot(a, b); }

template <class Entry, int Depth>
struct History {
  Entry y, f, image;
  Entry df[Depth], dimage[Depth];
};

/// |gamma|_1, at most. Where residuals hardly change, as of impulses that press bodies against each other and move nothing, their
/// differences are rounding and gamma may be anything: such worlds ran out of passes (docs/theory.md, section 9).
inline constexpr float kMostExtrapolated = 3;

template <class Real, int Depth>
struct Anderson {
  Real gram[Depth][Depth], rhs[Depth], gamma[Depth], last;
  int pass;

  /// Of a lane's entries in a pass.
  struct Sums {
    int pass;
    Real row[Depth], fresh, square;

    /// image: G(y). weighted(x): the norm's matrix times x.
    template <class Entry, class Weighted>
    HD void gather(History<Entry, Depth>& h, const Entry& image, Weighted weighted) {
      if (pass == 0) {
        h.y = h.image = image;
        return;
      }
      Entry f = image - h.y;
      if (pass > 1) {
        Entry df = f - h.f, dimage = image - h.image, weight = weighted(df);
        int place = pass % Depth;
      UNROLL for (int j = 0; j < Depth; ++j) {
          if (j == place) h.df[j] = df, h.dimage[j] = dimage;
          row[j] = row[j] + inner(weight, h.df[j]);
        }
        fresh = fresh + inner(weight, f);
      }
      square = square + inner(weighted(f), f);
      h.f = f, h.image = image;
    }
  };
  /// How entries that were gathered in this pass go on.
  struct Extrapolation {
    bool leaps;
    Real gamma[Depth];

    /// The next y of an entry.
    template <class Entry>
    HD Entry step(History<Entry, Depth>& h) const {
      Entry next = h.image;
      if (leaps) UNROLL for (int j = 0; j < Depth; ++j) next = next - h.dimage[j] * gamma[j];
      h.y = next;
      return next;
    }
  };

  HD void clear() {
    pass = 0, last = Real(0);
    UNROLL for (int j = 0; j < Depth; ++j) {
      rhs[j] = Real(0);
      UNROLL for (int k = 0; k < Depth; ++k) gram[j][k] = Real(0);
    }
  }
  /// The state of another, of which take() makes a Real out of each of its Reals.
  template <class Other, class Take>
  HD void assign(const Anderson<Other, Depth>& a, Take take) {
    pass = a.pass, last = take(a.last);
    UNROLL for (int j = 0; j < Depth; ++j) {
      rhs[j] = take(a.rhs[j]);
      UNROLL for (int k = 0; k < Depth; ++k) gram[j][k] = take(a.gram[j][k]);
    }
  }
  template <class Entry>
  HD void clear(History<Entry, Depth>& h, Entry zero) {
    UNROLL for (int j = 0; j < Depth; ++j) h.df[j] = h.dimage[j] = zero;
    h.y = h.f = h.image = zero;
  }

  HD Sums begin_sums() const {
    Sums sums;
    sums.pass = pass, sums.fresh = sums.square = Real(0);
    UNROLL for (int j = 0; j < Depth; ++j) sums.row[j] = Real(0);
    return sums;
  }

  template <class Group>
  HD void finish_sums(const Group& g, const Sums& own, Real tikhonov) {
    int place = pass % Depth;
    Real square = g.sum(own.square);
    if (pass > 1) {
      Real fresh = g.sum(own.fresh), row[Depth];
      UNROLL for (int j = 0; j < Depth; ++j) {
        row[j] = g.sum(own.row[j]);
        rhs[j] = j == place ? fresh : rhs[j] + row[j];  // dF' f, kept up to date: f has changed by the new column
      }
      UNROLL for (int j = 0; j < Depth; ++j)
        if (j == place) UNROLL for (int k = 0; k < Depth; ++k) gram[j][k] = gram[k][j] = row[k];
      least_squares(tikhonov, gamma);
      Real size(0);
      UNROLL for (int j = 0; j < Depth; ++j) size = size + abs(gamma[j]);
      const Real most(kMostExtrapolated), trust = select(square < last, most / max(size, most), Real(0));
      UNROLL for (int j = 0; j < Depth; ++j) gamma[j] = gamma[j] * trust;
    }
    last = square;
    ++pass;
  }

  HD Extrapolation extrapolation() const {
    Extrapolation by;
    by.leaps = pass > 2;
    UNROLL for (int j = 0; j < Depth; ++j) by.gamma[j] = by.leaps ? gamma[j] : Real(0);
    return by;
  }

 private:
  /// (gram + tikhonov diag(gram)) x = rhs by L D L'.
  HD void least_squares(Real tikhonov, Real (&x)[Depth]) const {
    Real l[Depth][Depth], inverse[Depth];
    UNROLL for (int j = 0; j < Depth; ++j) {
      Real least = gram[j][j] * tikhonov, d = gram[j][j] + least;
      x[j] = rhs[j];
      UNROLL for (int k = 0; k < j; ++k) {
        Real a = gram[j][k];
        UNROLL for (int i = 0; i < k; ++i) a = a - l[j][i] * l[k][i];
        l[j][k] = a;  // times D; divided below
      }
      UNROLL for (int k = 0; k < j; ++k) {
        Real a = l[j][k] * inverse[k];
        d = d - a * l[j][k], x[j] = x[j] - a * x[k];
        l[j][k] = a;
      }
      inverse[j] = Real(1) / (max(d, least) + Real(1e-30f));
    }
    UNROLL for (int j = Depth - 1; j >= 0; --j) {
      x[j] = x[j] * inverse[j];
      UNROLL for (int k = j + 1; k < Depth; ++k) x[j] = x[j] - l[k][j] * x[k];
    }
  }
};

}  // namespace stiction
