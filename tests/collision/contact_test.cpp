// Covers cuda/collision/contact.h: the choice of K candidates.
#include "collision/contact.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace stiction {
namespace {

Candidate<double> at(double x, double y, double dist) { return {{x, y, 0}, {0, 0, 1}, dist}; }

/// The rule of the header, written with sets.
std::vector<int> chosen(const std::vector<Candidate<double>>& in, double margin, int room) {
  std::vector<int> picked;
  std::vector<bool> used(in.size());
  while (static_cast<int>(picked.size()) < room) {
    int best = -1;
    double score = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      if (used[i] || in[i].dist >= margin) continue;
      double worth = 1e30;
      for (int j : picked)
        worth = std::min(worth, std::pow(in[i].pos.x - in[j].pos.x, 2) + std::pow(in[i].pos.y - in[j].pos.y, 2));
      bool better =
          picked.empty() ? best < 0 || in[i].dist < score - 0.01f * margin : best < 0 || worth > score * 1.01f;
      if (better) best = static_cast<int>(i), score = picked.empty() ? in[i].dist : worth;
    }
    if (best < 0) break;
    used[best] = true;
    picked.push_back(best);
  }
  std::sort(picked.begin(), picked.end());
  return picked;
}

TEST(SelectSpread, MatchesTheRuleOnRandomCandidates) {
  std::mt19937 rng(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Candidate<double>> in(1 + round % 20);
    for (auto& c : in) c = at(uniform(rng), uniform(rng), uniform(rng));
    Candidate<double> out[4];
    double feature[4];
    select_spread<double, 4>(in.data(), static_cast<int>(in.size()), 0.5, out, feature);
    auto want = chosen(in, 0.5, 4);
    for (int k = 0; k < 4; ++k) {
      if (k < static_cast<int>(want.size())) {
        EXPECT_EQ(feature[k], want[k]);
        EXPECT_EQ(std::memcmp(&out[k], &in[want[k]], sizeof(out[k])), 0);
      } else {
        EXPECT_EQ(feature[k], -1);
        EXPECT_EQ(out[k].dist, kFar);
      }
    }
  }
}

TEST(SelectSpread, KeepsTheOrderOfFewCandidates) {
  std::vector<Candidate<double>> in = {at(0, 0, kFar), at(1, 0, -0.1), at(2, 0, 0.3), at(3, 0, -0.2), at(1, 0, -0.1)};
  Candidate<double> out[4];
  double feature[4];
  select_spread<double, 4>(in.data(), 5, 0.01, out, feature);
  EXPECT_EQ(feature[0], 1);
  EXPECT_EQ(feature[1], 3);
  EXPECT_EQ(feature[2], 4);
  EXPECT_EQ(feature[3], -1);
}

TEST(SelectSpread, DoesNotFlickerUnderNoise) {
  std::mt19937 rng(4);
  std::uniform_real_distribution<double> noise(-1e-6, 1e-6);
  double first[4];
  for (int round = 0; round < 200; ++round) {
    std::vector<Candidate<double>> in;
    for (int i = 0; i < 12; ++i)
      in.push_back(at(std::cos(i * 0.5236) + noise(rng), std::sin(i * 0.5236) + noise(rng), -1e-3 + noise(rng)));
    Candidate<double> out[4];
    double feature[4];
    select_spread<double, 4>(in.data(), 12, 1e-3, out, feature);
    if (round == 0) std::copy(feature, feature + 4, first);
    for (int k = 0; k < 4; ++k) EXPECT_EQ(feature[k], first[k]);
  }
}

TEST(SelectSpread, IsBatchInvariant) {
  using Wide = Pack<float, 8>;
  std::mt19937 rng(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Candidate<Wide> in[10], out[3];
  Candidate<float> one[8][10], single[3];
  Wide feature[3];
  for (int k = 0; k < 10; ++k)
    for (int i = 0; i < 8; ++i) {
      float x[3] = {uniform(rng), uniform(rng), uniform(rng)};
      one[i][k] = {{x[0], x[1], 0}, {0, 0, 1}, x[2]};
      set_lane(in[k].pos.x, i, x[0]), set_lane(in[k].pos.y, i, x[1]), set_lane(in[k].pos.z, i, 0.0f);
      set_lane(in[k].normal.x, i, 0.0f), set_lane(in[k].normal.y, i, 0.0f), set_lane(in[k].normal.z, i, 1.0f),
          set_lane(in[k].dist, i, x[2]);
    }
  select_spread<Wide, 3>(in, 10, Wide(0.1f), out, feature);
  for (int i = 0; i < 8; ++i) {
    float f[3];
    select_spread<float, 3>(one[i], 10, 0.1f, single, f);
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(lane(feature[k], i), f[k]);
      EXPECT_EQ(lane(out[k].dist, i), single[k].dist);
      EXPECT_EQ(lane(out[k].pos.x, i), single[k].pos.x);
    }
  }
}

}  // namespace
}  // namespace stiction
