// The order in which limbs are numbered, by which elimination couples as few of them as possible.
#include "host/model/links.h"

#include <gtest/gtest.h>

#include "host/model/builder.h"

namespace stiction {
namespace {

/// Sides of a cube on a free joint, m; of `kJointed` a slide.
constexpr double kJointed = -1;
/// Of bodies made in this order, the bodies whose limbs come one after the other.
std::vector<int> order(const std::vector<double>& sides) {
  ModelBuilder b;
  for (double side : sides) {
    const double half = side == kJointed ? 0.5 : side / 2;
    const int body = b.add_body({.mass = 1, .inertia = box_inertia(1, {half, half, half})});
    b.add_joint({.body = body, .type = side == kJointed ? JointType::kSlide : JointType::kFree});
  }
  const LinkGraph graph = build_links(b.build());
  std::vector<LimbRoot> roots;
  for (int i = 0; i < static_cast<int>(graph.node.size()); ++i) roots.push_back({-1, i});
  std::vector<int> bodies;
  for (auto [attach, node] : ordered_limbs(graph, roots)) bodies.push_back(graph.node[node].bodies.at(0) - 1);
  return bodies;
}
using Order = std::vector<int>;

TEST(Links, WhatHoldsManyThingsComesLast) {
  EXPECT_EQ(order({kJointed, 0.06, 0.06, 0.06}), Order({1, 2, 3, 0}));  // a tray on a slide
  EXPECT_EQ(order({0.6, 0.06, 0.06, 0.06}), Order({1, 2, 3, 0}));       // a board
}

TEST(Links, WhatManyFingersHoldComesLast) {
  EXPECT_EQ(order({0.06, kJointed, kJointed, kJointed}), Order({1, 2, 3, 0}));
  EXPECT_EQ(order({0.06, kJointed}), Order({1, 0}));
}

TEST(Links, ThingsOfOneSizeStayInOrder) {
  EXPECT_EQ(order({0.06, 0.06, 0.06}), Order({0, 1, 2}));
  EXPECT_EQ(order({kJointed, kJointed}), Order({0, 1}));
}

}  // namespace
}  // namespace stiction
