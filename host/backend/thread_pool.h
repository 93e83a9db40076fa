// Threads that share out the packs of a batch: a fixed split, so that a pack meets the same thread every step.
#pragma once
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace stiction {

class ThreadPool {
 public:
  /// size threads, the caller's among them.
  explicit ThreadPool(int size);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_->workers.size()) + 1; }
  /// Calls work(thread, first, last) on every thread with its share of 0 .. count - 1, and returns when all have. Does not
  /// allocate. If several throw, one of the exceptions is passed on. Throws std::runtime_error in a process that was forked after
  /// the pool was made, for a fork takes no threads along; there the destructor lets the threads' memory go.
  template <class Work>
  void run(int count, Work& work) {
    call_ = [](void* w, int thread, int first, int last) { (*static_cast<Work*>(w))(thread, first, last); };
    run_erased(count, &work);
  }

 private:
  void run_erased(int count, void* work);
  void loop(int thread);
  void share(int thread);

  struct Threads {
    std::vector<std::thread> workers;
    std::mutex mutex;
    std::condition_variable start, done;
  };
  std::unique_ptr<Threads> threads_ = std::make_unique<Threads>();
  void (*call_)(void*, int, int, int) = nullptr;
  void* work_ = nullptr;
  std::exception_ptr error_;
  int count_ = 0, pending_ = 0;
  unsigned generation_ = 0;
  int forks_;  // of this process and its ancestors when the pool was made
  bool stop_ = false;
};

}  // namespace stiction
