#include "host/backend/thread_pool.h"

#include <algorithm>

namespace stiction {

ThreadPool::ThreadPool(int size) {
  for (int t = 1; t < size; ++t) workers_.emplace_back([this, t] { loop(t); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (auto& w : workers_) w.join();
}

void ThreadPool::share(int thread) {
  const int64_t n = count_, threads = size();
  const int first = static_cast<int>(n * thread / threads), last = static_cast<int>(n * (thread + 1) / threads);
  if (first == last) return;
  try {
    call_(work_, thread, first, last);
  } catch (...) {
    std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
}

void ThreadPool::run_erased(int count, void* work) {
  work_ = work, count_ = count, error_ = nullptr;
  const int active = std::min(size(), count);
  if (active > 1) {
    {
      std::lock_guard lock(mutex_);
      pending_ = static_cast<int>(workers_.size());
      ++generation_;
    }
    start_.notify_all();
  }
  if (active > 1) {
    share(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
  } else if (count > 0) {
    call_(work, 0, 0, count);
  }
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::loop(int thread) {
  unsigned seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
    }
    share(thread);
    {
      std::lock_guard lock(mutex_);
      --pending_;
    }
    done_.notify_one();
  }
}

}  // namespace stiction
