// Threads that share out work: every piece once, whoever is late, and errors passed on.
#include "host/backend/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

namespace stiction {
namespace {

TEST(ThreadPool, EveryNumberIsMetOnce) {
  for (int size : {1, 2, 3, 8}) {
    ThreadPool pool(size);
    EXPECT_EQ(pool.size(), size);
    for (int count : {0, 1, 2, 3, 7, 8, 31, 32, 33, 1000}) {
      std::vector<std::atomic<int>> met(static_cast<size_t>(count));
      for (int again = 0; again < 50; ++again) {
        auto work = [&](int thread, int first, int last) {
          ASSERT_TRUE(thread >= 0 && thread < size && first < last);
          for (int i = first; i < last; ++i) ++met[static_cast<size_t>(i)];
        };
        pool.run(count, work);
      }
      for (const auto& times : met) EXPECT_EQ(times, 50) << "of " << count << " in " << size << " threads";
    }
  }
}

TEST(ThreadPool, CallsAfterASleepAreHeard) {
  ThreadPool pool(3);
  std::atomic<int> met = 0;
  auto work = [&](int, int first, int last) { met += last - first; };
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 2));
    pool.run(100, work);
  }
  EXPECT_EQ(met, 2000);
}

/// The thread that takes the first number waits until all others are done, of its own part too.
TEST(ThreadPool, WhoIsDoneTakesWhatALateThreadHasLeft) {
  constexpr int kCount = 64;
  ThreadPool pool(2);
  std::atomic<int> done = 0;
  bool all = false;
  auto work = [&](int, int first, int last) {
    if (first == 0) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (done < kCount - last && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      all = done == kCount - last;
    }
    done += last - first;
  };
  pool.run(kCount, work);
  EXPECT_TRUE(all);
  EXPECT_EQ(done, kCount);
}

TEST(ThreadPool, AnErrorIsPassedOnAndTheNextCallWorks) {
  ThreadPool pool(2);
  auto fails = [](int, int first, int) {
    if (first > 0) throw std::runtime_error("no");
  };
  auto works = [](int, int, int) {};
  for (int i = 0; i < 10; ++i) {
    EXPECT_THROW(pool.run(100, fails), std::runtime_error);
    pool.run(100, works);
  }
}

}  // namespace
}  // namespace stiction
