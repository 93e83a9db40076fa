#include "host/backend/thread_pool.h"

#include <pthread.h>

#include <algorithm>
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

}  // namespace

ThreadPool::ThreadPool(int size) : forks_(forks_so_far()) {
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

void ThreadPool::share(int thread) {
  const int64_t n = count_, threads = size();
  const int first = static_cast<int>(n * thread / threads), last = static_cast<int>(n * (thread + 1) / threads);
  if (first == last) return;
  try {
    call_(work_, thread, first, last);
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
    {
      std::lock_guard lock(threads_->mutex);
      pending_ = static_cast<int>(threads_->workers.size());
      ++generation_;
    }
    threads_->start.notify_all();
  }
  if (active > 1) {
    share(0);
    std::unique_lock lock(threads_->mutex);
    threads_->done.wait(lock, [this] { return pending_ == 0; });
  } else if (count > 0) {
    call_(work, 0, 0, count);
  }
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::loop(int thread) {
  unsigned seen = 0;
  while (true) {
    {
      std::unique_lock lock(threads_->mutex);
      threads_->start.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
    }
    share(thread);
    {
      std::lock_guard lock(threads_->mutex);
      --pending_;
    }
    threads_->done.notify_one();
  }
}

}  // namespace stiction
