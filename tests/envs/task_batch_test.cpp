// Every rule of an episode, on the template's slider: with h = 0.1 s, unit mass and no damping, two time steps under force a
// move it by 0.2 v + 0.03 a and change its velocity by 0.2 a.
#include "envs/core/task_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "envs/template/template_task.h"
#include "host/model/builder.h"

namespace stiction {
namespace {

std::shared_ptr<const Model> slider() {
  ModelBuilder b({.timestep = 0.1, .gravity = {0, 0, 0}});
  const int body = b.add_body({.name = "slider", .mass = 1, .inertia = {1, 1, 1}});
  const int joint = b.add_joint({.body = body, .type = JointType::kSlide, .axis = {1, 0, 0}});
  b.add_actuator({.joint = joint});
  return std::make_shared<const Model>(b.build());
}

using T = double;

struct Rig {
  std::unique_ptr<World> world;
  std::unique_ptr<TaskBatch<TemplateTask, T>> env;
  std::vector<T> observations, rewards, reports;
  std::vector<uint8_t> terminated, truncated;
  std::vector<int> status;
  int n;

  Rig(int count, AutoresetMode mode, int limit = 0, int threads = 1) : n(count) {
    WorldOptions options;
    options.num_envs = n, options.float64 = true, options.num_threads = threads, options.step.h = 0;
    world = World::create(slider(), options);
    env = std::make_unique<TaskBatch<TemplateTask, T>>("template", *world, BatchEnvOptions{mode, limit});
    observations.resize(3 * n), rewards.resize(n), reports.resize(4 * n);
    terminated.resize(n), truncated.resize(n), status.resize(n);
  }
  EnvOutputs out() {
    return {observations.data(), rewards.data(), terminated.data(), truncated.data(), reports.data(), status.data()};
  }
  void reset(uint64_t first_seed) {
    std::vector<uint64_t> seeds(n);
    for (int e = 0; e < n; ++e) seeds[e] = first_seed + e;
    env->reset(seeds.data(), nullptr, nullptr, out());
  }
  void step(const std::vector<T>& actions) { env->step(actions.data(), out()); }
  T position(int e) const { return observations[3 * e]; }
  T* qpos() { return static_cast<T*>(world->array("qpos").data); }
  T* qvel() { return static_cast<T*>(world->array("qvel").data); }
};

template <class S>
auto listed(S numbers) {
  return std::vector(numbers.begin(), numbers.end());
}

TEST(TaskBatch, StepsObservesAndRewards) {
  Rig r(2, AutoresetMode::kSameStep);
  r.reset(11);
  const T x = r.position(1), target = r.observations[5];
  EXPECT_EQ(r.observations[4], 0);
  EXPECT_EQ(r.reports[1], x);
  EXPECT_EQ(r.reports[2 + 1], 0);  // told by step alone
  r.step({0, 0.5});
  EXPECT_NEAR(r.position(1), x + 0.03 * 0.5, 1e-12);
  EXPECT_NEAR(r.observations[4], 0.2 * 0.5, 1e-12);
  EXPECT_EQ(r.observations[5], target);
  const T away = r.position(1) - target;
  EXPECT_NEAR(r.rewards[1], -away * away - 0.01 * 0.25, 1e-12);
  EXPECT_NEAR(r.reports[2 + 1], std::abs(away), 1e-12);
  EXPECT_NEAR(r.reports[2 * 3 + 1], -0.01 * 0.25, 1e-12);  // rows of names, columns of environments
  EXPECT_FALSE(r.terminated[1]);
  EXPECT_EQ(r.env->elapsed()[1], 1);
}

TEST(TaskBatch, SameStepResetsAtOnceAndKeepsTheEnd) {
  Rig r(3, AutoresetMode::kSameStep);
  r.reset(5);
  r.qvel()[1] = 20;
  const T start = r.position(1);
  r.step({0, 0, 0});
  EXPECT_TRUE(r.terminated[1]);
  EXPECT_TRUE(r.env->any_ended());
  EXPECT_EQ(listed(r.env->ended()), (std::vector<uint8_t>{0, 1, 0}));
  const T* last = static_cast<const T*>(r.env->final_observations());
  EXPECT_NEAR(last[3], start + 4, 1e-12);
  EXPECT_EQ(last[4], 20);
  EXPECT_NEAR(static_cast<const T*>(r.env->final_reports())[1], start + 4, 1e-12);
  EXPECT_LT(std::abs(r.position(1)), 0.5);
  EXPECT_EQ(r.observations[4], 0);
  EXPECT_LT(r.rewards[1], -9);  // of the step that ended, not of the beginning
  EXPECT_EQ(r.env->elapsed()[1], 0);
  EXPECT_EQ(r.qpos()[1], r.position(1));
  const T next = r.position(1);
  r.step({0, 0, 0});
  EXPECT_FALSE(r.terminated[1]);
  EXPECT_FALSE(r.env->any_ended());
  EXPECT_EQ(r.position(1), next);
  EXPECT_EQ(r.env->elapsed()[1], 1);
}

TEST(TaskBatch, NextStepShowsTheEndAndThenIgnoresAnAction) {
  Rig r(2, AutoresetMode::kNextStep);
  r.reset(5);
  const T start = r.position(0);
  r.qvel()[0] = 20;
  r.step({0, 0});
  EXPECT_TRUE(r.terminated[0]);
  EXPECT_NEAR(r.position(0), start + 4, 1e-12);
  EXPECT_EQ(listed(r.env->began()), (std::vector<uint8_t>{0, 0}));
  r.step({std::numeric_limits<T>::quiet_NaN(), 1});
  EXPECT_EQ(listed(r.env->began()), (std::vector<uint8_t>{1, 0}));
  EXPECT_FALSE(r.terminated[0]);
  EXPECT_EQ(r.rewards[0], 0);
  EXPECT_EQ(r.status[0], 0);
  EXPECT_LT(std::abs(r.position(0)), 0.5);
  EXPECT_EQ(r.env->elapsed()[0], 0);
  EXPECT_EQ(r.env->elapsed()[1], 2);
  const T begun = r.position(0);
  r.step({1, 1});
  EXPECT_NEAR(r.position(0), begun + 0.03, 1e-12);
}

TEST(TaskBatch, DisabledWaitsForTheCaller) {
  Rig r(2, AutoresetMode::kDisabled);
  r.reset(5);
  r.qvel()[0] = 20;
  r.step({0, 0});
  EXPECT_TRUE(r.terminated[0]);
  EXPECT_THROW(r.step({0, 0}), std::invalid_argument);
  const T other = r.position(1);
  const uint8_t mask[2] = {1, 0};
  r.env->reset(nullptr, nullptr, mask, r.out());
  EXPECT_LT(std::abs(r.position(0)), 0.5);
  EXPECT_EQ(r.position(1), other);
  EXPECT_EQ(listed(r.env->elapsed()), (std::vector<int>{0, 1}));
  EXPECT_NO_THROW(r.step({0, 0}));
}

TEST(TaskBatch, TruncatesAtTheLimit) {
  for (int limit : {3, 0, -1}) {
    Rig r(2, AutoresetMode::kSameStep, limit);
    r.reset(1);
    const int expected = limit == 0 ? TemplateTask::kMaxEpisodeSteps : limit;
    for (int i = 1; i <= 60; ++i) {
      r.step({0, 0});
      const bool end = limit >= 0 && i % expected == 0;
      ASSERT_EQ(r.truncated[0] != 0, end) << i;
      ASSERT_FALSE(r.terminated[0]);
    }
  }
}

TEST(TaskBatch, CountsFromWhatTheCallerWrites) {
  Rig r(2, AutoresetMode::kSameStep, 10);
  r.reset(1);
  r.env->elapsed()[1] = 9;
  r.step({0, 0});
  EXPECT_FALSE(r.truncated[0]);
  EXPECT_TRUE(r.truncated[1]);
}

TEST(TaskBatch, EndsABrokenEnvironmentAlone) {
  Rig r(3, AutoresetMode::kSameStep), calm(3, AutoresetMode::kSameStep);
  r.reset(1), calm.reset(1);
  const T nan = std::numeric_limits<T>::quiet_NaN();
  r.step({0.1, nan, -0.2}), calm.step({0.1, 0, -0.2});
  EXPECT_TRUE(r.terminated[1]);
  EXPECT_EQ(r.rewards[1], 0);
  EXPECT_TRUE(r.env->final_status()[1] & kNonFinite);
  EXPECT_EQ(r.status[1], 0);
  for (T x : r.observations) EXPECT_TRUE(std::isfinite(x));
  for (T x : r.rewards) EXPECT_TRUE(std::isfinite(x));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::isfinite(static_cast<const T*>(r.env->final_observations())[3 + i]));
    EXPECT_EQ(r.observations[i], calm.observations[i]);
    EXPECT_EQ(r.observations[6 + i], calm.observations[6 + i]);
  }
  const T begun = r.position(1);
  r.step({0, 1, 0});
  EXPECT_EQ(r.status[1], 0);
  EXPECT_NEAR(r.position(1), begun + 0.03, 1e-12);
}

TEST(TaskBatch, EpisodesDependOnTheOwnSeedAlone) {
  Rig many(7, AutoresetMode::kSameStep, 4, 2), one(1, AutoresetMode::kSameStep, 4, 1);
  many.reset(40), one.reset(45);
  for (int i = 0; i < 13; ++i) {
    EXPECT_EQ(std::memcmp(&many.observations[15], one.observations.data(), 3 * sizeof(T)), 0) << i;
    std::vector<T> actions(7, 0.3);
    many.step(actions), one.step({0.3});
  }
  const T third_episode = one.position(0);
  one.reset(45);
  EXPECT_NE(one.position(0), third_episode);
  many.reset(40);
  EXPECT_EQ(one.position(0), many.position(5));
}

TEST(TaskBatch, SeedsOnlyWhereAsked) {
  Rig r(3, AutoresetMode::kSameStep);
  r.reset(1);
  const T first = r.position(0), second = r.position(1);
  const uint64_t seeds[3] = {1, 99, 3};
  const uint8_t seeded[3] = {1, 0, 1};
  r.env->reset(seeds, seeded, nullptr, r.out());
  EXPECT_EQ(r.position(0), first);
  EXPECT_NE(r.position(1), second);  // the second episode of seed 2
}

TEST(TaskBatch, ParametersAreSetByName) {
  Rig r(1, AutoresetMode::kDisabled);
  const auto all = r.env->parameters();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].name, "start");
  EXPECT_EQ(all[1].values, (std::vector<double>{-0.5, 0.5}));
  EXPECT_TRUE(all[3].is_switch);
  r.env->set_parameter("start", {0.25, 0.25}), r.env->set_parameter("effort_weight", {2});
  r.env->set_parameter("ends_off_rail", {0});
  r.reset(1);
  EXPECT_EQ(r.position(0), 0.25);
  r.qvel()[0] = 20;
  r.step({0.5});
  EXPECT_NEAR(r.reports[3], -0.5, 1e-12);
  EXPECT_FALSE(r.terminated[0]);
  EXPECT_THROW(r.env->set_parameter("start", {1, 0}), std::invalid_argument);
  EXPECT_THROW(r.env->set_parameter("start", {1}), std::invalid_argument);
  EXPECT_THROW(r.env->set_parameter("rail", {std::nan("")}), std::invalid_argument);
  EXPECT_THROW(r.env->set_parameter("ends_off_rail", {2}), std::invalid_argument);
  EXPECT_THROW(r.env->set_parameter("gauge", {1}), std::invalid_argument);
}

/// The slider with wind: an event draws a velocity, finish counts the steps of an episode and those before it.
struct WindyTask : TemplateTask {
  static constexpr int kMemory = 3;
  template <class S>
  HD void disturb(Random& random, const TaskView<S>& view, S* qvel, S* memory) const {
    qvel[0] = random.uniform<S>(0, 1), memory[1] = qvel[0] + 0 * view.qpos[0];
  }
  template <class Real>
  HD void finish(const TaskView<Real>&, Real* memory) const {
    memory[2] = memory[2] + Real(1);
  }
  template <class Real>
  HD void report(const TaskView<Real>&, const Real* memory, Real* numbers) const {
    numbers[0] = memory[1], numbers[1] = memory[2];
  }
};

TEST(TaskBatch, DisturbsWithTheStepsOwnNumbersAndKeepsMemory) {
  WorldOptions options;
  options.num_envs = 3, options.float64 = true, options.num_threads = 2;
  std::vector<T> winds;
  for (int first : {0, 2}) {  // environments seeded 7, 8, 9, then 9, 10, 11
    auto world = World::create(slider(), options);
    TaskBatch<WindyTask, T> env("windy", *world, {AutoresetMode::kSameStep, 4});
    Rig r(3, AutoresetMode::kSameStep);  // its arrays
    const uint64_t seeds[3] = {7u + first, 8u + first, 9u + first};
    env.reset(seeds, nullptr, nullptr, r.out());
    for (int i = 0; i < 6; ++i) {
      const std::vector<T> still(3, 0);
      env.step(still.data(), r.out());
      const bool ended = env.any_ended();
      ASSERT_EQ(ended, i == 3);
      const T* told = ended ? static_cast<const T*>(env.final_reports()) : r.reports.data();
      EXPECT_EQ(told[3 + 1], i + 1);  // resets leave what they do not write
      winds.push_back(told[first ? 0 : 2]);
      EXPECT_NEAR(ended ? static_cast<const T*>(env.final_observations())[1] : r.observations[1], told[0], 1e-12);
    }
    env.reset(seeds, nullptr, nullptr, r.out());
    const std::vector<T> still(3, 0);
    env.step(still.data(), r.out());
    EXPECT_EQ(r.reports[3 + 1], 1);  // a seed begins with nothing remembered
  }
  for (int i = 0; i < 6; ++i) EXPECT_EQ(winds[i], winds[6 + i]);
  for (int i = 1; i < 6; ++i) EXPECT_NE(winds[0], winds[i]);
}

TEST(TaskBatch, RejectsAnotherModel) {
  ModelBuilder b;
  const int body = b.add_body({.mass = 1, .inertia = {1, 1, 1}});
  b.add_joint({.body = body, .type = JointType::kHinge});
  b.add_joint({.body = body, .type = JointType::kSlide});
  auto world = World::create(std::make_shared<const Model>(b.build()), WorldOptions{});
  EXPECT_THROW((TaskBatch<TemplateTask, float>("template", *world, BatchEnvOptions{})), std::invalid_argument);
  EXPECT_THROW(make_batch_env("ant", *world, {}), std::invalid_argument);
  EXPECT_THROW(make_batch_env("bee", *world, {}), std::invalid_argument);
  EXPECT_THROW(make_batch_env("ant", *world, {AutoresetMode::kDisabled, 0, {{"trunk", {"torso"}}}}),
               std::invalid_argument);
}

// Tasks are written once for plain numbers and for packs of environments.
TEST(TemplateTask, PacksDoWhatFloatsDo) {
  using P = Pack<float, 8>;
  const TemplateTask task;
  P x, v(0.5f), a(0.25f), target(0.1f), observation[3], terms[2];
  for (int w = 0; w < 8; ++w) set_lane(x, w, -1.5f + 0.4f * static_cast<float>(w));
  TaskView<P> pack;
  pack.qpos = &x, pack.qvel = &v, pack.action = &a;
  task.observe(pack, &target, observation), task.reward(pack, &target, terms);
  const auto over = task.terminated(pack);
  for (int w = 0; w < 8; ++w) {
    const float xw = lane(x, w), vw = 0.5f, aw = 0.25f, tw = 0.1f;
    TaskView<float> one;
    one.qpos = &xw, one.qvel = &vw, one.action = &aw;
    float seen[3], told[2];
    task.observe(one, &tw, seen), task.reward(one, &tw, told);
    EXPECT_EQ(lane(observation[0], w), seen[0]);
    EXPECT_EQ(lane(terms[0], w), told[0]);
    EXPECT_EQ(lane(over, w) != 0, task.terminated(one));
  }
}

}  // namespace
}  // namespace stiction
