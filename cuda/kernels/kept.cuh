// What a stage leaves the next ones where a lane's workspace is on its stack, part by part: word k of the lanes of a warp lie side
// by side, so that they are moved together, as the hardware lays out stacks. A workspace that lies in memory is kilobytes
// from the next lane's: there every access of a warp is one of 32, and every store goes to L2.
#pragma once
#include "kernels/job.h"
#include "step/step_world.h"

namespace stiction {

/// Of a lane: what stages need of those before them.
enum KeptPart : int {
  kKeepsState = 1,   // from step to step
  kKeepsFound = 2,   // by find
  kKeepsPosed = 4,   // by assemble, but for
  kKeepsAnswer = 8,  // what the solver's answer changes
};

/// Moves numbers from a lane's memory, or to it.
template <bool kTo>
class KeptWords {
 public:
  /// words: of a lane. `lane`: its place among all lanes of slots.
  __device__ KeptWords(void* memory, int64_t lane, int words)
      : first_(static_cast<uint32_t*>(memory) + lane / kLanes * kLanes * words + lane % kLanes), next_(first_) {}
  /// What follows begins at word `place`.
  __device__ void seek(int place) { next_ = first_ + kLanes * place; }
  template <class T>
  __device__ void operator()(T& x) {
    void* bytes = &x;
    if constexpr (alignof(T) >= 4) bytes = __builtin_assume_aligned(bytes, 4);
    auto* own = static_cast<unsigned char*>(bytes);
    constexpr int kWords = sizeof(T) / 4, kRest = sizeof(T) % 4;
    int k = 0;
    for (; k + kTogether <= kWords; k += kTogether) move<kTogether, 4>(own + 4 * k, next_ + kLanes * k);
    if constexpr (kWords % kTogether > 0) move<kWords % kTogether, 4>(own + 4 * k, next_ + kLanes * k);
    if constexpr (kRest > 0) move<1, kRest>(own + 4 * kWords, next_ + kLanes * kWords);
    next_ += kLanes * (kWords + (kRest > 0));
  }
  __device__ int moved_to() const { return static_cast<int>((next_ - first_) / kLanes); }
  /// Of an array those elements that `is` tells to be used; before or behind it.
  template <class T, int kCount, class Is>
  __device__ void some(T (&x)[kCount], Is is) {
    for (int i = 0; i < kCount; ++i)
      if (is(i)) (*this)(x[i]);
  }

 private:
  static constexpr int kLanes = 32, kTogether = 16;

  /// Words of kBytes: all are read before the first is written, for else each would wait for the one before.
  template <int kCount, int kBytes>
  __device__ static void move(unsigned char* own, uint32_t* kept) {
    uint32_t word[kCount];
    UNROLL for (int k = 0; k < kCount; ++k) {
      word[k] = 0;
      if constexpr (kTo) memcpy(word + k, own + 4 * k, kBytes);
      else word[k] = kept[kLanes * k];
    }
    UNROLL for (int k = 0; k < kCount; ++k) {
      if constexpr (kTo) kept[kLanes * k] = word[k];
      else memcpy(own + 4 * k, word + k, kBytes);
    }
  }

  uint32_t *first_, *next_;
};

/// Words of a lane that T takes at most.
template <class... T>
inline constexpr int kept_words = (... + static_cast<int>((sizeof(T) + 3) / 4));

template <class L>
struct KeptParts {
  using Real = typename L::Real;
  using Model = typename L::Model;
  using Work = Workspace<L>;
  using Step = StepState<L>;

  // Everything that is moved of a part, and a flag for each of the arrays of which some is.
  static constexpr int kState = kept_words<State<L>, Certificate<Real>, TreeVector<L>, Loads<L>> + 8;
  static constexpr int kFound = kept_words<Kinematics<L>, PerLink<L, RigidInertia<Real>>, Contacts<L>, TreeMatrix<L>,
                                           TreeMatrix<L>, TreeVector<L>, TreeVector<L>, TreeVector<L>, MeanForces<L>,
                                           PerDof<L, ScalarRow<Real>>, Mask<Real>> + 8;
  static constexpr int kPosed = kept_words<ContactProblem<L>> + 8;
  static constexpr int kAnswer = kept_words<Impulses<L>, TreeVector<L>>;
  static constexpr int kWords = kState + kFound + kPosed + kAnswer;

  template <class Move>
  __device__ static void visit(const Model& m, int parts, Work& w, Step& s, Move move) {
    int place = 0;
    auto part = [&](int which, int words, auto visit_part) {
      if (parts & which) {
        move.seek(place), visit_part();
#ifndef __CUDA_ARCH__
        if (move.moved_to() > place + words) __builtin_trap();  // emulated: what is moved has to fit
#endif
      }
      place += words;
    };
    part(kKeepsState, kState, [&] { state(w, s, move); });
    part(kKeepsFound, kFound, [&] { found(m, w, move); });
    part(kKeepsPosed, kPosed, [&] { posed(m, w, move); });
    part(kKeepsAnswer, kAnswer, [&] { answer(m, w, move); });
  }

 private:
  template <class Move>
  __device__ static void state(Work& w, Step& s, Move& move) {
    move(s.x), move(s.frozen), move(s.c), move(s.moving), move(s.deep), move(s.v), move(s.step);
    move(w.loads.ctrl), move(w.loads.tie_ctrl);
    move(w.applied.any_force), move(w.applied.any_wrench);
    if (w.applied.any_force) move(w.applied.force);
  }
  template <class Move>
  __device__ static void found(const Model& m, Work& w, Move& move) {
    Contacts<L>& contacts = w.contacts;
    ContactProblem<L>& problem = w.problem;
    move(w.kin), move(w.I), move(w.mean), move(w.v);
    move(problem.A), move(problem.factor), move(problem.b), move(problem.free), move(problem.free_found);
    if (has_rows(m, kDriveRow)) move(problem.dof[kDriveRow].row);
    move(contacts.live), move(contacts.overflow), move(contacts.turned), move(contacts.thrown);
    move.some(contacts.point.slot, [&](int i) { return contacts.live[i]; });
    if constexpr (L::Shape::kPairs > 0) {
      move(contacts.pairs);
      move.some(contacts.pair, [&](int i) { return i < contacts.pairs; });
    }
  }
  template <class Move>
  __device__ static void posed(const Model& m, Work& w, Move& move) {
    ContactProblem<L>& problem = w.problem;
    RowTable<L>& table = problem.table;
    auto live = [&](int i) { return w.contacts.live[i]; };
    auto paired = [&](int i) { return i < w.contacts.pairs; };
    auto tied = [&](int i) { return i < m.ties; };
    auto bonded = [&](int i) { return i < m.bonds; };
    move(problem.any_row), move(problem.immovable), move(problem.deep);
    move.some(problem.row.slot, live), move.some(problem.pair_row, paired);
    for (int kind = 0; kind < kDofRows; ++kind) {
      if (!has_rows(m, kind)) continue;
      DofRows<L>& of = problem.dof[kind];
      move(of.live), move(table.dof[kind]);
      move.some(of.row.trunk, [&](int i) { return of.live.trunk[i] != 0; });
      move.some(of.row.limb, [&](int i) { return of.live.limb[i] != 0; });
    }
    move.some(problem.tie, tied), move.some(problem.tie_coef, tied), move.some(problem.tie_bend, tied);
    move.some(problem.tie_live, tied), move.some(problem.bond, bonded);
    move(table.rows), move(table.root), move(table.trunk);
    move.some(table.slot.slot, live), move.some(table.pair, paired), move.some(table.tie, tied);
  }
  template <class Move>
  __device__ static void answer(const Model& m, Work& w, Move& move) {
    Impulses<L>& l = w.impulses;
    auto live = [&](int i) { return w.contacts.live[i]; };
    auto paired = [&](int i) { return i < w.contacts.pairs; };
    move(w.v);
    move.some(l.slot.slot, live), move.some(l.pair, paired);
    if (m.has_spin) move.some(l.spin.slot, live), move.some(l.pair_spin, paired);
    for (int kind = 0; kind < kDofRows; ++kind)
      if (has_rows(m, kind)) move(l.dof[kind]);
    move.some(l.tie, [&](int i) { return i < m.ties; });
    move.some(l.bond, [&](int i) { return i < m.bonds; });
  }
};

}  // namespace stiction
