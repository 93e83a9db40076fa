#include "envs/core/batch_env.h"

#include <algorithm>

namespace stiction {

BatchEnv::BatchEnv(World& world, const char* name) : world_(world), name_(name) {
  const int n = num_envs();
  ended_ = memory<uint8_t>(n), began_ = memory<uint8_t>(n), elapsed_ = memory<int>(n), final_status_ = memory<int>(n);
}

bool BatchEnv::any_ended() const {
  world_.wait();
  return std::find(ended_, ended_ + num_envs(), 1) != ended_ + num_envs();
}

void* BatchEnv::actions_buffer() {
  if (actions_buffer_ == nullptr) actions_buffer_ = memory<char>((float64() ? 8 : 4) * int64_t{num_envs()} * actions_);
  return actions_buffer_;
}

const EnvOutputs& BatchEnv::outputs_buffer() {
  if (outputs_buffer_.observations == nullptr) {
    const int64_t n = num_envs(), real = float64() ? 8 : 4;
    outputs_buffer_ = {
        memory<char>(real * n * observations_),        memory<char>(real * n), memory<uint8_t>(n), memory<uint8_t>(n),
        memory<char>(real * n * report_names_.size()), memory<int>(n)};
  }
  return outputs_buffer_;
}

}  // namespace stiction
