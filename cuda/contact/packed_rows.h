// The active rows of a pack of worlds, each world's own one behind the other, in coordinates in which A is the identity:
//
//   A = L' D L,   y_i = D^-1/2 L^-T J_i'   hence   W = J A^-1 J' = Y Y',   Y (n, width)
//
// Every world has other rows active. Each takes the places 0, 1, ... in the fixed order of slots, pairs, limits, dry friction
// and ties, so a pack has as many places as its fullest world, and what a world computes does not depend on its neighbours: a
// place that it does not use holds zeros. For small worlds on the CPU, where a dense row is cheaper than a walk over the tree.
// A world with more than kContacts contacts or kScalars other rows does not fit and is left to solvers that walk.
// Contacts that the free motion does not close come last, behind all other rows: a solver may leave them out at first.
// Serial groups only; elsewhere there is nothing. Filled by contact/pack_rows.h.
#pragma once
#include "collision/slots.h"

namespace stiction {

/// Execution that may pack rows.
template <class L>
inline constexpr bool kPacks = L::Group::kSize == 1 && !L::Shape::kFixed;

template <class L, bool kThere = kPacks<L>>
struct PackedRows {};

template <class L>
struct PackedRows<L, true> {
  using Real = typename L::Real;
  using Shape = typename L::Shape;
  using Model = typename L::Model;
  static constexpr int kContacts = 24, kScalars = 64, kDofs = 48;

  Real* memory = nullptr;              // memory_size(m) Reals and a solver's; null: no packing
  int near, contacts, scalars, width;  // contacts: with those left for later
  Real *Y, *root;            // (n, width), n = 3 contacts + scalars; D^-1/2 (width): the trunk's dofs, then the limbs'
  Real *free, *e, *R, *W;    // (n)        J v*, bias, compliance, W_ii (a contact's: W_t, W_t, W_n)
  Real *mu, *lower, *upper;  // (contacts), (scalars), (scalars)
  Real* rest;                // the solver's part of the memory
  Mask<Real> fits;
  // The place of every live row in each world; -1: not active there, or the world does not fit.
  PerSlot<L, Real> slot;
  Real pair[at_least_one(Shape::kPairs)], tie[at_least_one(Shape::kTies)];
  PerDof<L, Real> limit, friction;

  HD bool there() const { return memory != nullptr; }
  HD int size() const { return 3 * contacts + scalars; }
  HD int near_size() const { return 3 * near + scalars; }
  /// The first of a contact's three rows; the row of a scalar.
  HD int contact_row(int place) const { return place < near ? 3 * place : 3 * place + scalars; }
  HD int scalar_row(int place) const { return 3 * near + place; }

  static int width_of(const Model& m) {
    int links = 0;
    for (int i = 0; i < m.limbs(); ++i) links += m.limb[i].links;
    return m.trunk_dofs() + links;
  }
  static int most_contacts(const Model& m) { return min(m.world_slots + m.pair_slots, kContacts); }
  static int most_scalars(const Model& m) {
    return min(m.nv * ((m.has_limits != 0) + (m.has_friction != 0)) + m.ties, kScalars);
  }
  /// Of a pack: its worlds may differ in which contacts they leave for later.
  static int most_rows(const Model& m) { return 6 * most_contacts(m) + most_scalars(m); }
  static bool possible(const Model& m) { return width_of(m) <= kDofs && most_rows(m) > 0; }
  /// Reals of `memory`, besides those of a solver (`rest`).
  static int64_t memory_size(const Model& m) {
    const int64_t n = most_rows(m), width = width_of(m);
    return n * (width + 4) + 2 * most_contacts(m) + 2 * most_scalars(m) + width;
  }
  /// Room for contacts and scalars, all 0.
  void carve(const Model& m) {
    Real* at = memory;
    auto cleared = [&at](int64_t count) {
      Real* begin = at;
      for (int64_t i = 0; i < count; ++i) at[i] = Real(0);
      at += count;
      return begin;
    };
    const int n = size();
    width = width_of(m);
    Y = cleared(static_cast<int64_t>(n) * width), root = cleared(width);
    free = cleared(n), e = cleared(n), R = cleared(n), W = cleared(n);
    mu = cleared(contacts), lower = cleared(scalars), upper = cleared(scalars);
    rest = at;
  }
};

/// The places that one slot or row has in the worlds of a pack.
template <class Real>
class PackedPlaces {
 public:
  HD explicit PackedPlaces(Real place) : first_(1 << 20), count_(0) {
    if constexpr (kWidth<Real> == 1) {
      if (place >= Real(0)) first_ = static_cast<int>(place), count_ = 1, is_[0] = true;
    } else {
      int last = -1;
      const auto number = to_int(place);
      for (int w = 0; w < kWidth<Real>; ++w) {  // without a branch, which the processor could not foresee
        const int k = lane(number, w);
        first_ = min(first_, k < 0 ? first_ : k), last = max(last, k);
      }
      if (last >= 0) count_ = last - first_ + 1;
      for (int i = 0; i < count_; ++i) is_[i] = place == Real(Scalar<Real>(first_ + i));
    }
  }
  /// body(k, is): place k, which the worlds `is` use.
  template <class Body>
  HD void each(Body body) const {
    for (int i = 0; i < count_; ++i) body(first_ + i, is_[i]);
  }

 private:
  int first_, count_;
  Mask<Real> is_[64];
};

}  // namespace stiction
