#include "host/backend/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace stiction {

namespace {

/// Forks between the first pool's process and this one.
int forks = 0;

int forks_so_far() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)registered;
  return forks;
}

/// Looks until done() or for that long; returns done().
template <class Done>
bool look(std::chrono::microseconds most, Done done) {
  const auto end = std::chrono::steady_clock::now() + most;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

/// A worker looks for the next call of the same step, the caller for workers that have as much to do as it had.
constexpr std::chrono::microseconds kWorkerLooks{50}, kCallerLooks{200};
/// Of a thread's part.
constexpr int kPieces = 4;

}  // namespace

ThreadPool::ThreadPool(int size) : threads_(std::make_unique<Threads>(size)), forks_(forks_so_far()) {
  for (int t = 1; t < size; ++t) threads_->workers.emplace_back([this, t] { loop(t); });
}

ThreadPool::~ThreadPool() {
  if (forks_ != forks) {
    // Nobody to stop, the threads are the parent's; to destroy what they wait for would wait for them.
    (void)threads_.release();
    return;
  }
  {
    std::lock_guard lock(threads_->mutex);
    stop_ = true;
  }
  threads_->start.notify_all();
  for (auto& w : threads_->workers) w.join();
}

int ThreadPool::largest_piece(int count) const {
  const int parts = size() > 1 && count > 1 ? size() * kPieces : 1;
  return (count + parts - 1) / parts;
}

void ThreadPool::share(int thread) {
  const int threads = size();
  const int64_t n = count_, parts = int64_t{threads} * kPieces;
  try {
    for (int k = 0; k < threads; ++k) {
      const int of = (thread + k) % threads;
      for (int piece; (piece = threads_->begun[of].pieces++) < kPieces;) {
        const int64_t part = int64_t{of} * kPieces + piece;
        const int first = static_cast<int>(n * part / parts), last = static_cast<int>(n * (part + 1) / parts);
        if (first < last) call_(work_, thread, first, last);
      }
    }
  } catch (...) {
    std::lock_guard lock(threads_->mutex);
    error_ = std::current_exception();
  }
}

void ThreadPool::run_erased(int count, void* work) {
  work_ = work, count_ = count, error_ = nullptr;
  const int active = std::min(size(), count);
  if (active > 1 && forks_ != forks)
    throw std::runtime_error(
        "this simulation was made before the process forked, and its threads are the parent's: make "
        "simulations in the process that steps them, with num_threads=1, or by multiprocessing's 'spawn'");
  if (active > 1) {
    for (auto& begun : threads_->begun) begun.pieces = 0;
    pending_ = static_cast<int>(threads_->workers.size());
    bool wake;
    {
      std::lock_guard lock(threads_->mutex);
      ++generation_;
      wake = asleep_ > 0;
    }
    if (wake) threads_->start.notify_all();
    share(0);
    const auto all_done = [this] { return pending_ == 0; };
    if (!look(kCallerLooks, all_done)) {
      std::unique_lock lock(threads_->mutex);
      caller_asleep_ = true;
      threads_->done.wait(lock, all_done);
      caller_asleep_ = false;
    }
  } else if (count > 0) {
    call_(work, 0, 0, count);
  }
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::loop(int thread) {
  unsigned seen = 0;
  const auto called = [&] { return stop_ || generation_ != seen; };
  while (true) {
    if (!look(kWorkerLooks, called)) {
      std::unique_lock lock(threads_->mutex);
      ++asleep_;
      threads_->start.wait(lock, called);
      --asleep_;
    }
    if (stop_) return;
    seen = generation_;
    share(thread);
    if (--pending_ > 0) continue;
    std::lock_guard lock(threads_->mutex);
    if (caller_asleep_) threads_->done.notify_one();
  }
}

}  // namespace stiction
