// Some worlds of a pack as a contact problem of their own, with those rows only that one of them uses, in the lanes of To: the same pack,
// or a narrower one, where they are few. Rows of a world keep their order, so that it finds the same.
#pragma once
#include "contact/row_problem.h"

namespace stiction {

/// The pack in which the last worlds of a pack go on; Real itself: none.
template <class Real>
struct NarrowerPack {
  using Type = Real;
};
#ifndef __CUDACC__
template <class T>
struct NarrowerPack<Pack<T, 16>> {
  using Type = Pack<T, 8>;
};
#endif

template <class Real>
HD int lanes_of(const Mask<Real>& is) {
  if constexpr (kWidth<Real> == 1) return is ? 1 : 0;
  else return -folded(is, [](auto a, auto b) { return a + b; });  // a lane of a mask that is set is -1
}
/// The lanes of `is`, then the others.
template <class Real>
HD_CALL Index<Real> in_front(const Mask<Real>& is) {
  Index<Real> lanes{};
  int number = 0;
  for (const bool wanted : {true, false})
    for (int w = 0; w < kWidth<Real>; ++w)
      if ((lane(is, w) != 0) == wanted) set_lane(lanes, number++, w);
  return lanes;
}
/// The first of these lanes.
template <class To, class Real>
HD To narrowed(const Real& x, const Index<Real>& lanes) {
  const Real sorted = permuted(x, lanes);
  To part;
  __builtin_memcpy(&part, &sorted, sizeof(To));
  return part;
}
template <class To, class Real>
HD Mask<To> narrowed_mask(const Mask<Real>& is, const Index<Real>& lanes) {
  return narrowed<To, Real>(select(is, Real(1), Real(0)), lanes) > To(0);
}

template <class To, class Real>
class SomeWorlds {
 public:
  RowArrays<To> rows;

  /// Worlds `which`, from impulses l (n).
  HD SomeWorlds(const RowProblem<Real>& p, const Mask<Real>& which, const Real* l, Arena<To>& arena)
      : p_(p), lanes_(in_front<Real>(which)), number_(lanes_of<Real>(which)) {
    uint32_t* used = arena.take_bits(p.contacts + p.scalars);
    RowCounts counts = p;
    counts.contacts = counts.scalars = 0;
    for (int k = 0; k < p.contacts + p.scalars; ++k) {
      used[k] = any(which & (p.mobility(k) > Real(0)));
      (k < p.contacts ? counts.contacts : counts.scalars) += static_cast<int>(used[k]);
    }
    if (p.spins > 0) counts.spins = counts.contacts;
    used_ = used, rows = RowArrays<To>(counts), rows.near = counts.contacts;
    rows.carve(arena);
    each_place([&](int to, int from) {
      if (rows.by_tree) take(p.scales[from], rows.scale[to]);
      if (to < rows.contacts) take(p.mu[from], rows.mu[to]);
      else
        take(p.lower[from - p.contacts], rows.lower[to - rows.contacts]),
            take(p.upper[from - p.contacts], rows.upper[to - rows.contacts]);
    });
    each_row([&](int i, int from) {
      take(p.free[from], rows.free[i]), take(p.e[from], rows.e[i]), take(p.R[from], rows.R[i]);
      take(p.W[from], rows.W[i]), take(l[from], rows.impulse[i]);
      for (int a = 0; a < p.width; ++a) take(p.row(from)[a], rows.Y[static_cast<int64_t>(i) * p.width + a]);
    });
  }
  HD RowProblem<To> view() const {
    return rows.view(narrowed<To>(p_.least_velocity, lanes_), narrowed<To>(p_.scale, lanes_));
  }
  /// Numbers of memory that it takes at most.
  HD static int64_t size(const RowCounts& most) {
    Arena<To> places;
    places.take_bits(most.contacts + most.scalars);
    return places.used() + RowArrays<To>::size(most);
  }
  /// Lanes that have none of the worlds.
  HD Mask<To> others() const {
    Mask<To> is = mask_of<To>(false);
    for (int w = number_; w < kWidth<To>; ++w) set_lane(is, w, -1);
    return is;
  }
  /// visit(lane there, lane here) for every world.
  template <class Visit>
  HD void each_world(Visit visit) const {
    for (int w = 0; w < number_; ++w) visit(lane(lanes_, w), w);
  }
  /// Impulses back to l, in these worlds.
  HD void put(Real* l) const {
    each_row([&](int i, int to) {
      each_world([&](int there, int here) { set_lane(l[to], there, lane(rows.impulse[i], here)); });
    });
  }

 private:
  HD void take(const Real& from, To& to) const { to = narrowed<To>(from, lanes_); }
  /// visit(place here, place there) for contacts, then other rows behind them.
  template <class Visit>
  HD void each_place(Visit visit) const {
    int to = 0;
    for (int k = 0; k < p_.contacts + p_.scalars; ++k)
      if (used_[k]) visit(to++, k);
  }
  template <class Visit>
  HD void each_row(Visit visit) const {
    each_place([&](int to, int from) {
      if (to >= rows.contacts) return visit(rows.scalar_row(to - rows.contacts), p_.scalar_row(from - p_.contacts));
      for (int d = 0; d < 3; ++d) visit(3 * to + d, 3 * from + d);
      for (int d = 0; d < 3 && rows.spins > 0; ++d) visit(rows.spin_row(to) + d, p_.spin_row(from) + d);
    });
  }

  const RowProblem<Real>& p_;
  const Index<Real> lanes_;
  const int number_;
  const uint32_t* used_;
};

}  // namespace stiction
