// Covers cuda/collision/contact.h: the choice of K candidates.
#include "collision/contact.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace stiction {
namespace {

Candidate<double> at(double x, double y, double dist) { return {{x, y, 0}, {0, 0, 1}, dist}; }

const Closing<double> kStill = zero_motion<double>();

/// The rule of the header, written with sets; nothing closes.
std::vector<int> chosen(const std::vector<Candidate<double>>& in, double margin, int room) {
  std::vector<int> picked;
  std::vector<bool> used(in.size());
  double deepest = 1e30, size2 = 0;
  for (auto& c : in) deepest = std::min(deepest, c.dist);
  while (static_cast<int>(picked.size()) < room) {
    int best = -1;
    double score = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      if (used[i] || in[i].dist >= margin) continue;
      double far = in[i].pos.x + in[i].pos.y * 0.31f + in[i].pos.z * 0.17f;
      if (!picked.empty()) {
        double near = 1e30;
        for (int j : picked) {
          auto d = in[i].pos - in[j].pos, turn = in[i].normal - in[j].normal;
          near = std::min(near, dot(d, d) + dot(turn, turn) * size2);
        }
        far = std::sqrt(near);
      }
      const double level = picked.empty() ? deepest : std::max(deepest, 0.0);
      const double worth = far - std::max(0.0, in[i].dist - level) / kTilt;
      if (best < 0 || worth > score + std::sqrt(size2) * 0.01f) best = static_cast<int>(i), score = worth;
    }
    if (best < 0) break;
    if (picked.empty())
      for (auto& c : in)
        if (c.dist < margin) size2 = std::max(size2, dot(c.pos - in[best].pos, c.pos - in[best].pos));
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
    for (auto& c : in) c = at(uniform(rng), uniform(rng), 1e-3 * uniform(rng));
    for (size_t i = 0; i < in.size(); i += 3) in[i].normal = {0.6, 0, 0.8};
    Candidate<double> out[4];
    double feature[4];
    const int room = 3 + round % 2;
    select_spread<double, 4>(in.data(), static_cast<int>(in.size()), room, 5e-4, kStill, kStill, 1e-4, out, feature);
    auto want = chosen(in, 5e-4, room);
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

TEST(SelectSpread, PrefersWhatTouchesToWhatIsFarther) {
  std::vector<Candidate<double>> in;
  for (int i = 0; i < 6; ++i) {
    const double c = std::cos(i * 1.0472), s = std::sin(i * 1.0472);
    in.push_back(at(1.004 * c, 1.004 * s, 4e-3));  // a chamfer
    in.push_back(at(c, s, 0));
  }
  Candidate<double> out[6];
  double feature[6];
  select_spread<double, 6>(in.data(), 12, 6, 0.1, kStill, kStill, 1e-4, out, feature);
  for (int k = 0; k < 6; ++k) EXPECT_EQ(feature[k], 2 * k + 1);
  // What closes in the step counts as touching.
  const Closing<double> falling = {{0, 0, 0}, {0, 0, -5e-3}};
  select_spread<double, 6>(in.data(), 12, 6, 0.1, falling, falling, 1e-4, out, feature);
  int outer = 0;
  for (double f : feature) outer += static_cast<int>(f) % 2 == 0;
  EXPECT_GE(outer, 3);
}

TEST(SelectSpread, KeepsAContactOfEveryNormalAndTellsWhatIsMissing) {
  std::vector<Candidate<double>> in;
  for (int i = 0; i < 12; ++i) in.push_back(at(std::cos(i * 0.5236), std::sin(i * 0.5236), -2e-3));  // overlaps most
  in.push_back(at(0.01, 0, 1e-6)), in.push_back(at(0, 0.01, 1e-6));
  in[12].normal = {1, 0, 0}, in[13].normal = {0, 1, 0};
  Candidate<double> out[4];
  double feature[4];
  EXPECT_FALSE((select_spread<double, 4>(in.data(), 14, 4, 0.1, kStill, kStill, 1e-4, out, feature)));
  EXPECT_EQ(feature[2], 12);
  EXPECT_EQ(feature[3], 13);
  // Three normals, two slots: one that touches is missing; if it stays apart nothing is.
  EXPECT_TRUE((select_spread<double, 4>(in.data(), 14, 2, 0.1, kStill, kStill, 1e-4, out, feature)));
  in[12].dist = in[13].dist = 2e-4;
  EXPECT_FALSE((select_spread<double, 4>(in.data(), 14, 2, 0.1, kStill, kStill, 1e-4, out, feature)));
  const Closing<double> nearing = {{0, 0, 0}, {-1e-3, 0, 0}};
  EXPECT_TRUE((select_spread<double, 4>(in.data(), 14, 1, 0.1, nearing, nearing, 1e-4, out, feature)));
}

TEST(SelectSpread, KeepsTheOrderOfFewCandidates) {
  std::vector<Candidate<double>> in = {at(0, 0, kFar), at(1, 0, -0.1), at(2, 0, 0.3), at(3, 0, -0.2), at(1, 0, -0.1)};
  Candidate<double> out[4];
  double feature[4];
  select_spread<double, 4>(in.data(), 5, 4, 0.01, kStill, kStill, 1e-4, out, feature);
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
    select_spread<double, 4>(in.data(), 12, 4, 1e-3, kStill, kStill, 1e-4, out, feature);
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
  const Mask<Wide> missing = select_spread<Wide, 3>(in, 10, 3, Wide(0.1f), zero_motion<Wide>(), zero_motion<Wide>(),
                                                    Wide(1e-4f), out, feature);
  for (int i = 0; i < 8; ++i) {
    float f[3];
    EXPECT_EQ(
        (select_spread<float, 3>(one[i], 10, 3, 0.1f, zero_motion<float>(), zero_motion<float>(), 1e-4f, single, f)),
        lane(missing, i) != 0);
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(lane(feature[k], i), f[k]);
      EXPECT_EQ(lane(out[k].dist, i), single[k].dist);
      EXPECT_EQ(lane(out[k].pos.x, i), single[k].pos.x);
    }
  }
}

}  // namespace
}  // namespace stiction
