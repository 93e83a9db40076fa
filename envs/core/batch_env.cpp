#include "envs/core/batch_env.h"

#include <algorithm>
#include <cstring>

namespace stiction {

BatchEnv::BatchEnv(World& world, const char* name) : world_(world), name_(name) {
  const int n = num_envs();
  ended_ = memory<uint8_t>(n), began_ = memory<uint8_t>(n), elapsed_ = memory<int>(n), final_status_ = memory<int>(n);
}

bool BatchEnv::any_ended() const {
  const auto rows = ended();
  return std::find(rows.begin(), rows.end(), 1) != rows.end();
}

void* BatchEnv::actions_buffer() {
  if (action_rows_ == nullptr) action_rows_ = memory<char>(real_bytes() * num_envs() * actions());
  return action_rows_->data();
}

const EnvOutputs& BatchEnv::outputs_buffer() {
  if (outputs_buffer_.observations == nullptr) {
    const size_t n = num_envs(), real = real_bytes();
    observation_rows_ = memory<char>(real * n * observations()), reward_rows_ = memory<char>(real * n);
    terminated_ = memory<uint8_t>(n), truncated_ = memory<uint8_t>(n);
    report_rows_ = memory<char>(real * n * report_names_.size()), status_ = memory<int>(n);
    outputs_buffer_ = {observation_rows_->data(), reward_rows_->data(), at<uint8_t>(terminated_),
                       at<uint8_t>(truncated_),   report_rows_->data(), at<int>(status_)};
  }
  return outputs_buffer_;
}

void BatchEnv::send_actions(const void* actions) {
  actions_buffer();
  world_.wait();
  std::memcpy(action_rows_->mirror(), actions, action_rows_->bytes());
  world_.send(*action_rows_);
}

void BatchEnv::read_outputs(const EnvOutputs& to) {
  outputs_buffer();
  world_.fetch({observation_rows_.get(), reward_rows_.get(), terminated_.get(), truncated_.get(), report_rows_.get(),
                status_.get()});
  auto copy = [](void* to, Memory& from) {
    if (to != nullptr) std::memcpy(to, from.mirror(), from.bytes());
  };
  copy(to.observations, *observation_rows_), copy(to.rewards, *reward_rows_), copy(to.terminated, *terminated_);
  copy(to.truncated, *truncated_), copy(to.reports, *report_rows_), copy(to.status, *status_);
}

std::vector<std::pair<std::string, ArrayView>> BatchEnv::buffers() {
  actions_buffer(), outputs_buffer();
  const int64_t n = num_envs(), told = static_cast<int64_t>(report_names_.size());
  const DType real = float64() ? DType::kFloat64 : DType::kFloat32, flag = DType::kBool, whole = DType::kInt32;
  auto view = [](const Rows& rows, DType type, std::vector<int64_t> shape) {
    return ArrayView{rows->data(), type, std::move(shape), true};
  };
  return {{"actions", view(action_rows_, real, {n, actions()})},
          {"observations", view(observation_rows_, real, {n, observations()})},
          {"rewards", view(reward_rows_, real, {n})},
          {"terminated", view(terminated_, flag, {n})},
          {"truncated", view(truncated_, flag, {n})},
          {"reports", view(report_rows_, real, {told, n})},
          {"status", view(status_, whole, {n})},
          {"ended", view(ended_, flag, {n})},
          {"began", view(began_, flag, {n})},
          {"final_observations", view(final_observations_, real, {n, observations()})},
          {"final_reports", view(final_reports_, real, {told, n})},
          {"final_status", view(final_status_, whole, {n})}};
}

}  // namespace stiction
