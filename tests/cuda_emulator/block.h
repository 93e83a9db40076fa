// The lanes of a block as fibers of the calling thread, from collective to collective.
#pragma once
#include <cuda_runtime.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <exception>
#include <new>
#include <random>

namespace cuda_emulator {

constexpr int kWarp = 32;
constexpr unsigned kMaxThreads = 1024;

struct Lane {
  enum State { kReady, kWaiting, kDone };
  ucontext_t beginning;
  jmp_buf place;  // later switches, which need no system call
  bool begun = false;
  void* stack = nullptr;
  State state = kDone;
  Collective kind{};
  unsigned mask = 0;
  uint64_t brought = 0, taken = 0;
  int from = 0;
};

inline const char* name(Collective kind) {
  return kind == Collective::kShuffle  ? "__shfl_xor_sync"
         : kind == Collective::kBallot ? "__ballot_sync"
                                       : "__syncwarp";
}

/// Runs blocks one after the other; the fibers' stacks are kept.
class Block {
 public:
  /// False if lanes missed each other; `report` says how.
  bool run(const std::function<void()>& lane, int threads, std::mt19937& random) {
    body_ = &lane, error_.clear();
    threads_ = threads;
    ready_.clear();
    for (int i = 0; i < threads; ++i) start(i), ready_.push_back(i);
    while (!ready_.empty() && error_.empty()) {
      std::swap(ready_[random() % ready_.size()], ready_.back());
      const int i = ready_.back();
      ready_.pop_back();
      current_ = i, threadIdx = dim3(i);
      resume(lanes_[i]);
      if (lanes_[i].state == Lane::kWaiting) release(i);
    }
    for (int i = 0; i < threads && error_.empty(); ++i)
      if (lanes_[i].state == Lane::kWaiting) error_ = missed(i);
    return error_.empty();
  }
  const std::string& error() const { return error_; }
  int current() const { return current_; }
  /// Whether the lane that runs has it on its stack.
  bool on_stack(const void* address) const {
    const auto offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(lanes_[current_].stack);
    return offset < kStack;
  }

  uint64_t meet(Collective kind, unsigned mask, uint64_t bits, int from) {
    Lane& lane = lanes_[current_];
    lane.kind = kind, lane.mask = mask, lane.brought = bits, lane.from = from, lane.state = Lane::kWaiting;
    if (_setjmp(lane.place) == 0) _longjmp(scheduler_, 1);
    return lanes_[current_].taken;
  }

 private:
  static constexpr size_t kStack = size_t{4} << 20;

  void start(int i) {
    Lane& lane = lanes_[i];
    if (lane.stack == nullptr) {
      lane.stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (lane.stack == MAP_FAILED) throw std::bad_alloc();
    }
    lane.state = Lane::kReady, lane.begun = false;
    getcontext(&lane.beginning);
    lane.beginning.uc_stack.ss_sp = lane.stack, lane.beginning.uc_stack.ss_size = kStack;
    lane.beginning.uc_link = nullptr;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&lane.beginning, reinterpret_cast<void (*)()>(&Block::main), 2, static_cast<unsigned>(self),
                static_cast<unsigned>(self >> 32));
  }
  /// Returns when the lane meets others or has returned.
  void resume(Lane& lane) {
    if (_setjmp(scheduler_) != 0) return;
    if (lane.begun) _longjmp(lane.place, 1);
    lane.begun = true;
    setcontext(&lane.beginning);
  }
  static void main(unsigned low, unsigned high) {
    auto* self = reinterpret_cast<Block*>(static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high) << 32);
    const int lane = self->current_;
    try {
      (*self->body_)();
    } catch (const std::exception& e) { self->error_ = "lane " + std::to_string(lane) + " threw: " + e.what(); }
    self->lanes_[lane].state = Lane::kDone;
    _longjmp(self->scheduler_, 1);
  }

  /// Lets the lanes go on that lane i's mask names, if all of them stand at the same collective.
  void release(int i) {
    const Lane& lane = lanes_[i];
    const int warp = i / kWarp * kWarp;
    if (!(lane.mask >> (i - warp) & 1)) {
      error_ = "lane " + std::to_string(i) + " is not in the mask of its own " + name(lane.kind);
      return;
    }
    uint64_t ballot = 0;
    for (int k = 0; k < kWarp; ++k) {
      if (!(lane.mask >> k & 1)) continue;
      if (warp + k >= threads_) {
        error_ = std::string(name(lane.kind)) + " names lane " + std::to_string(k) + ", which the block has not";
        return;
      }
      const Lane& other = lanes_[warp + k];
      if (other.state != Lane::kWaiting || other.kind != lane.kind || other.mask != lane.mask) return;
      ballot |= other.brought << k;
    }
    for (int k = 0; k < kWarp; ++k) {
      if (!(lane.mask >> k & 1)) continue;
      Lane& other = lanes_[warp + k];
      if (other.kind == Collective::kBallot) other.taken = ballot;
      if (other.kind == Collective::kShuffle) {
        if (other.from < 0 || other.from >= kWarp || !(other.mask >> other.from & 1)) {
          error_ = "lane " + std::to_string(warp + k) + " shuffles with lane " + std::to_string(other.from) +
                   " outside its mask";
          return;
        }
        other.taken = lanes_[warp + other.from].brought;
      }
      other.state = Lane::kReady;
      ready_.push_back(warp + k);
    }
  }

  std::string missed(int i) const {
    const int warp = i / kWarp * kWarp;
    std::string text = "lane " + std::to_string(i) + " waits in " + name(lanes_[i].kind) + " for";
    for (int k = 0; k < kWarp; ++k)
      if (lanes_[i].mask >> k & 1) {
        const Lane& other = lanes_[warp + k];
        if (other.state == Lane::kDone) text += " lane " + std::to_string(warp + k) + ", which has returned;";
        else if (other.kind != lanes_[i].kind || other.mask != lanes_[i].mask)
          text += " lane " + std::to_string(warp + k) + ", which is in " + name(other.kind) + ";";
      }
    return text;
  }

  std::vector<Lane> lanes_ = std::vector<Lane>(kMaxThreads);  // contexts must not move
  std::vector<int> ready_;
  const std::function<void()>* body_ = nullptr;
  std::string error_;
  jmp_buf scheduler_;
  int threads_ = 0, current_ = 0;
};

}  // namespace cuda_emulator
