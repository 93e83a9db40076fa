// Fixed shapes: the dynamics with counts known at compile time, by one lane and by four, against the Capacity shape.
#include <gtest/gtest.h>

#include <random>

#include "core/tile_emulator.h"
#include "host/model/fit.h"
#include "tests/dynamics/free_velocity.h"
#include "tests/step/tile_models.h"

namespace stiction {
namespace {

using testing::free_velocity;
using testing::FreeMotionSpace;

/// v* of random states by Capacity, by Shape, by Shape and four lanes.
template <class Shape>
void matches_capacity(const Model& model) {
  auto tables = compile(model);
  auto fitted = fit<Shape>(*tables);
  Options<double> opt;
  opt.h = model.timestep;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  for (int state = 0; state < 5; ++state) {
    std::vector<double> q(model.nv), v(model.nv), capacity(model.nv), serial(model.nv), tile(model.nv);
    for (double& x : q) x = uniform(random);
    for (double& x : v) x = 4 * uniform(random);
    FreeMotionSpace<Lane<double, Capacity, Serial>> a;
    free_velocity(Serial{}, tables->view, opt, q.data(), v.data(), a, capacity.data());
    FreeMotionSpace<Lane<double, Shape, Serial>> b;
    free_velocity(Serial{}, fitted->view, opt, q.data(), v.data(), b, serial.data());
    using Group = TileEmulator<4>;
    FreeMotionSpace<Lane<double, Shape, Group>> lanes[4];
    Group::run(
        [&](const Group& g) { free_velocity(g, fitted->view, opt, q.data(), v.data(), lanes[g.rank()], tile.data()); });
    for (int i = 0; i < model.nv; ++i) {
      EXPECT_NEAR(serial[i], capacity[i], 1e-11 * std::max(1.0, std::abs(capacity[i]))) << i;
      EXPECT_NEAR(tile[i], capacity[i], 1e-11 * std::max(1.0, std::abs(capacity[i]))) << i;
    }
  }
}

TEST(FixedShape, MatchesCapacityOnAnAnt) { matches_capacity<AntShape>(testing::legged({.feet_only = true}).build()); }
TEST(FixedShape, MatchesCapacityOnAQuadruped) {
  matches_capacity<QuadrupedShape>(
      testing::legged({.joints = 3, .feet_only = true, .servo = true, .limited = false}).build());
}
TEST(FixedShape, MatchesCapacityOnASmallerRobotPaddedWithGhosts) {
  matches_capacity<QuadrupedShape>(testing::legged({.feet_only = true, .limited = false, .legs = 3}).build());
}

template <class Shape>
std::string refusal(const Model& model) {
  try {
    fit<Shape>(*compile(model));
  } catch (const std::invalid_argument& e) { return e.what(); }
  return "";
}

TEST(FixedShape, RejectsWhatItHasNoPlaceForByName) {
  EXPECT_NE(refusal<AntShape>(testing::menagerie()), "");
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_PRED2(has, refusal<AntShape>(testing::legged({.joints = 3, .feet_only = true}).build()), "3 links in a limb");
  EXPECT_PRED2(has, refusal<QuadrupedShape>(testing::legged({.joints = 3, .feet_only = true}).build()), "joint limits");
  EXPECT_PRED2(has, refusal<AntShape>(testing::legged({.feet_only = true, .frictionloss = 0.1}).build()),
               "dry friction");
}

}  // namespace
}  // namespace stiction
