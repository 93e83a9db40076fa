// Tile code without a GPU: T lanes as T fibers of one thread, in lockstep from collective to collective.
//
// Each round resumes every lane once, in an order drawn anew from `seed`; a lane runs to its next collective (sum, max,
// either, any, sync), leaves its value and yields. After a round all lanes must stand at a collective of the same kind and
// number, or all have finished: a lane that skips one, which hangs or corrupts a GPU, throws std::logic_error here, and so
// does one that got another kind. Values meet in the butterfly order of Tile<T>, so a sum has a tile's bits. As lanes run in
// random order in between, code that reads what another lane has written without a sync gives other results for other seeds.
//
// CPU tests only (POSIX ucontext); T = 1, 2, 4 ... 32. The body must not throw; what it holds is not destroyed when the
// lanes disagree.
#pragma once
#include <ucontext.h>

#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/scalar.h"

namespace stiction {

template <int T>
class TileEmulator {
 public:
  static constexpr int kSize = T;

  int rank() const { return rank_; }

  template <class Real>
  Real sum(Real x) const {
    return butterfly(kSum, x, [](Real low, Real high) { return low + high; });
  }
  template <class Real>
  Real max(Real x) const {
    return butterfly(kMax, x, [](Real low, Real high) { return maximum(low, high); });
  }
  template <class Real>
  Real from(Real x, int lane) const {
    exchange(kFrom, x);
    return static_cast<Real>(shared_->exchanged[lane]);
  }
  bool either(bool m) const {
    return butterfly(kEither, m ? 1.0 : 0.0, [](double low, double high) { return low + high; }) > 0;
  }
  bool any(bool m) const { return either(m); }
  void sync() const {
    butterfly(kSync, 0.0, [](double low, double) { return low; });
  }

  /// Runs body(group) in all lanes to its end. Returns the number of collectives.
  template <class Body>
  static long run(Body body, unsigned seed = 1) {
    Shared shared;
    auto fibers = std::make_unique<Fiber<Body>[]>(T);
    int order[T];
    for (int i = 0; i < T; ++i) {
      fibers[i].start(body, i, shared);
      order[i] = i;
    }
    std::mt19937 random(seed);
    while (true) {
      for (int i = T - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
      for (int i : order) swapcontext(&shared.scheduler, shared.lane[i]);
      for (int i = 1; i < T; ++i)
        if (fibers[i].done != fibers[0].done || shared.count[i] != shared.count[0] || shared.kind[i] != shared.kind[0])
          throw std::logic_error("tile: lane " + std::to_string(i) + " is at collective " +
                                 describe(shared, i, fibers[i].done) + ", lane 0 at " +
                                 describe(shared, 0, fibers[0].done));
      if (fibers[0].done) return shared.count[0];
      for (int i = 0; i < T; ++i) shared.exchanged[i] = shared.deposited[i];
    }
  }

 private:
  enum Kind : int { kNone, kSum, kMax, kEither, kSync, kFrom };
  struct Shared {
    double deposited[T] = {}, exchanged[T] = {};  // a float fits into a double
    long count[T] = {};
    Kind kind[T] = {};
    ucontext_t scheduler = {}, *lane[T] = {};  // zeros: the address sanitizer reads a context's stack
  };
  template <class Body>
  struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(4 << 20);
    TileEmulator group;
    Body* body = nullptr;
    bool done = false;

    void start(Body& what, int rank, Shared& shared) {
      body = &what, group.rank_ = rank, group.shared_ = &shared, shared.lane[rank] = &context;
      getcontext(&context);
      context.uc_stack.ss_sp = stack.data(), context.uc_stack.ss_size = stack.size(), context.uc_link = nullptr;
      const auto self = reinterpret_cast<uintptr_t>(this);
      makecontext(&context, reinterpret_cast<void (*)()>(&Fiber::main), 2, static_cast<unsigned>(self),
                  static_cast<unsigned>(self >> 32));
    }
    static void main(unsigned low, unsigned high) {
      auto* self = reinterpret_cast<Fiber*>(static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high) << 32);
      (*self->body)(self->group);
      self->done = true;
      while (true) self->group.yield();
    }
  };

  static std::string describe(const Shared& shared, int lane, bool done) {
    static const char* kNames[] = {"(none)", "sum", "max", "either", "sync", "from"};
    return std::to_string(shared.count[lane]) + " (" + kNames[shared.kind[lane]] + (done ? ", finished)" : ")");
  }
  template <class Real>
  void exchange(Kind kind, Real x) const {
    shared_->deposited[rank_] = x;
    shared_->kind[rank_] = kind;
    ++shared_->count[rank_];
    yield();
  }
  template <class Real, class Combine>
  Real butterfly(Kind kind, Real x, Combine combine) const {
    exchange(kind, x);
    Real a[T], b[T];
    for (int i = 0; i < T; ++i) a[i] = static_cast<Real>(shared_->exchanged[i]);
    for (int bit = 1; bit < T; bit *= 2) {
      for (int i = 0; i < T; ++i) b[i] = i & bit ? combine(a[i ^ bit], a[i]) : combine(a[i], a[i ^ bit]);
      for (int i = 0; i < T; ++i) a[i] = b[i];
    }
    return a[rank_];
  }
  void yield() const { swapcontext(shared_->lane[rank_], &shared_->scheduler); }

  int rank_ = 0;
  Shared* shared_ = nullptr;
};

}  // namespace stiction
