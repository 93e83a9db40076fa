// Fixed shapes: the same step with counts known at compile time, by one lane and by four, against the Capacity shape.
#include <cstring>

#include "host/model/fit.h"
#include "tests/step/batch_run.h"
#include "tests/step/tile_models.h"

namespace stiction {
namespace {

using testing::Batch;
using testing::difference;
using testing::LegOptions;

Options<double> plain_options(const Model& m) {
  Options<double> o;
  o.h = m.timestep, o.anderson = 0, o.fallback = 0, o.tolerance = 0;
  return o;
}

/// 12 steps by Capacity and Serial, by Shape and Serial, by Shape and four lanes.
template <class Shape>
void matches_capacity(const Model& model, double agreement, bool certificate = false) {
  auto tables = compile(model);
  auto fitted = fit<Shape>(*tables);
  const Options<double> opt = plain_options(model);
  auto batch = [&](const auto& view) {
    return Batch<double>(model, RecordLayout<std::decay_t<decltype(view)>>(view).reals(), 6, 11, 2.0, false);
  };
  Batch<double> capacity = batch(tables->view), serial = batch(fitted->view), tile = batch(fitted->view);
  for (Batch<double>* b : {&serial, &tile})  // cleared records have no contacts
    for (int e = 0; e < b->worlds; ++e)
      for (int s = 0; s < Shape::kSlots; ++s) b->records[e * b->record + s * kRecordFields] = -1;
  for (int e = 0; e < capacity.worlds; ++e)
    for (int s = 0; s < tables->view.world_slots; ++s) capacity.records[e * capacity.record + s * kRecordFields] = -1;
  testing::step_serial<Lane<double, Capacity, Serial>>(tables->view, opt, capacity, 12);
  testing::step_serial<Lane<double, Shape, Serial>>(fitted->view, opt, serial, 12);
  testing::step_tiles<Lane<double, Shape, TileEmulator<4>>>(fitted->view, opt, tile, 12);
  double contacts = 0;
  for (int w = 0; w < capacity.worlds; ++w) contacts += capacity.field(kNumContacts, w) / capacity.worlds;
  EXPECT_GE(contacts, 1.0) << "the worlds must be in contact";
  for (const Batch<double>* b : {&serial, &tile}) {
    EXPECT_LE(difference(capacity.qpos, b->qpos), agreement);
    EXPECT_LE(difference(capacity.qvel, b->qvel), agreement);
    EXPECT_EQ(capacity.time, b->time);
    if (!certificate) continue;
    EXPECT_EQ(capacity.status, b->status);
    for (int w = 0; w < capacity.worlds; ++w)
      EXPECT_NEAR(capacity.field(kRCon, w), b->field(kRCon, w), 100 * agreement);
  }
}

TEST(FixedShape, MatchesCapacityOnAnAnt) {
  matches_capacity<AntShape>(testing::legged({.feet_only = true}).build(), 1e-12);
}
TEST(FixedShape, MatchesCapacityOnAQuadruped) {
  matches_capacity<QuadrupedShape>(
      testing::legged({.joints = 3, .feet_only = true, .servo = true, .limited = false}).build(), 1e-12);
}
TEST(FixedShape, MatchesCapacityOnASmallerRobotPaddedWithGhosts) {
  matches_capacity<QuadrupedShape>(testing::legged({.feet_only = true, .limited = false, .legs = 3}).build(), 1e-12);
}
TEST(FixedShape, MatchesCapacityWithEveryFeature) {
  matches_capacity<QuadrupedFullShape>(
      testing::legged({.joints = 3, .feet_only = true, .frictionloss = 0.05, .stiffness = 0.5}).build(), 1e-12, true);
}

TEST(FixedShape, AWorldThatTurnsBadKeepsTheStateOfTheCall) {
  const Model model = testing::legged({.feet_only = true}).build();
  auto tables = compile(model);
  auto fitted = fit<AntShape>(*tables);
  Batch<double> b(model, RecordLayout<ModelView<AntShape, double>>(fitted->view).reals(), 6, 11, 2.0, false);
  const std::vector<double> before = b.qpos;
  b.ctrl[2 * model.nu + 7] = std::nan("");
  testing::step_tiles<Lane<double, AntShape, TileEmulator<4>>>(fitted->view, plain_options(model), b, 4);
  for (int i = 0; i < model.nq; ++i) EXPECT_EQ(b.qpos[2 * model.nq + i], before[2 * model.nq + i]);
  EXPECT_NE(b.qpos[0], before[0]);
  for (int w = 0; w < b.worlds; ++w) EXPECT_EQ((b.status[w] & kNonFinite) != 0, w == 2);
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
  EXPECT_PRED2(has, refusal<AntShape>(testing::legged({.feet_only = true, .base_stiffness = 1}).build()),
               "springs on its base");
  EXPECT_PRED2(has, refusal<AntShape>(testing::legged({.feet_only = true, .legs = 6}).build()), "6 limbs");
  EXPECT_PRED2(has, refusal<AntShape>(testing::legged({}).build()), "may touch");
  EXPECT_EQ(refusal<AntShape>(testing::legged({.feet_only = true}).build()), "");
}

}  // namespace
}  // namespace stiction
