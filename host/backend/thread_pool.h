// Threads that share out the packs of a batch, each its own part first, so that a pack mostly meets the same thread every step,
// then what others have left: packs differ, and so do cores.
//
// Who waits looks for a while before sleeping: a step of a task is several short calls, and waking a thread takes its time.
#pragma once
#include <atomic>
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
  /// The most of 0 .. count - 1 that a call of work gets at a time.
  int largest_piece(int count) const;
  /// Calls work(thread, first, last) on all threads with pieces of 0 .. count - 1, and returns when all are done. Does not
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

  /// Pieces of a thread's part that somebody has begun.
  struct alignas(64) Begun { std::atomic<int> pieces = 0; };
  struct Threads {
    explicit Threads(int size) : begun(size) {}
    std::vector<Begun> begun;  // (size)
    std::vector<std::thread> workers;
    std::mutex mutex;
    std::condition_variable start, done;
  };
  std::unique_ptr<Threads> threads_;
  void (*call_)(void*, int, int, int) = nullptr;
  void* work_ = nullptr;
  std::exception_ptr error_;
  int count_ = 0;
  std::atomic<int> pending_ = 0;
  std::atomic<unsigned> generation_ = 0;
  int asleep_ = 0;              // workers; under the mutex
  bool caller_asleep_ = false;  // under the mutex
  int forks_;                   // of this process and its ancestors when the pool was made
  std::atomic<bool> stop_ = false;
};

}  // namespace stiction
