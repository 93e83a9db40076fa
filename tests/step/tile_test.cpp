// Tile code on the CPU: the whole step by T lanes against the same step by one.
#include <cstring>

#include "tests/step/batch_run.h"
#include "tests/step/tile_models.h"

namespace stiction {
namespace {

using testing::Batch;
using testing::difference;

struct Tables {
  Model model;
  std::unique_ptr<ModelTables<double>> tables;
  int record;
  explicit Tables(Model m) : model(std::move(m)), tables(compile(model)) {
    record = RecordLayout<ModelView<Capacity, double>>(tables->view).reals();
  }
  const ModelView<Capacity, double>& view() const { return tables->view; }
  Batch<double> batch(bool loads) const { return Batch<double>(model, record, 6, 7, 2.0, loads); }
};

StepOptions<double> options(const Model& m, bool anderson, double tolerance, bool fallback = false) {
  StepOptions<double> o;
  o.step.h = m.timestep, o.step.tolerance = tolerance, o.step.fallback = fallback;
  with_solver(Solvers{}, 0, o.solver.options, [&](auto, auto& own) {
    if constexpr (requires { own.anderson; }) own.anderson = anderson;
  });
  return o;
}

/// Contact-rich steps by one lane and by T.
template <int T>
void compare(const Tables& t, bool anderson, double tolerance, bool loads, double agreement, int steps = 10,
             bool midpoint = false) {
  StepOptions<double> opt = options(t.model, anderson, tolerance);
  if (midpoint) opt.step.theta = opt.step.theta_vq = 0.5, opt.step.newton = 30;
  Batch<double> one = t.batch(loads), tile = t.batch(loads);
  testing::step_serial<Lane<double, Capacity, Serial>>(t.view(), opt, one, steps);
  testing::step_tiles<Lane<double, Capacity, TileEmulator<T>>>(t.view(), opt, tile, steps);
  double contacts = 0;
  for (int w = 0; w < one.worlds; ++w) contacts += one.field(kNumContacts, w) / one.worlds;
  EXPECT_GE(contacts, 1.5) << "the worlds must be in contact";
  EXPECT_LE(difference(one.qpos, tile.qpos), agreement);
  EXPECT_LE(difference(one.qvel, tile.qvel), agreement);
  EXPECT_LE(difference(one.records, tile.records), agreement);
  for (int w = 0; w < one.worlds; ++w) {
    EXPECT_NEAR(one.field(kNumContacts, w), tile.field(kNumContacts, w),
                anderson ? 1 : 0);  // an impulse that is rounding
    EXPECT_EQ(one.field(kIterations, w), tile.field(kIterations, w));
    EXPECT_NEAR(one.field(kRCon, w), tile.field(kRCon, w), 100 * agreement);
    EXPECT_LE(tile.field(kRDyn, w), 1e-10);
  }
  EXPECT_EQ(one.status, tile.status);
  EXPECT_EQ(one.time, tile.time);
}

template <class Number>
struct TileStep : ::testing::Test {
  static constexpr int kLanes = Number::value;
};
using Sizes = ::testing::Types<std::integral_constant<int, 1>, std::integral_constant<int, 2>,
                               std::integral_constant<int, 4>, std::integral_constant<int, 8>>;
TYPED_TEST_SUITE(TileStep, Sizes);

TYPED_TEST(TileStep, MatchesSerialOnAnAnt) {
  const Tables ant(testing::legged({}).build());
  compare<TestFixture::kLanes>(ant, false, 0, false, 1e-12);
  compare<TestFixture::kLanes>(ant, true, 0, true, 1e-9);
}

TYPED_TEST(TileStep, MatchesSerialOnEveryKindOfRow) {
  const Tables all(testing::menagerie());
  ASSERT_GT(all.view().ties, 4);
  ASSERT_GT(all.view().link_pairs, 10);
  compare<TestFixture::kLanes>(all, false, 0, true, 1e-12);
  // Deep overlaps are solved twice, and extrapolation magnifies rounding each time: where impulses press bodies against each other and move
  // nothing, nothing takes it back.
  compare<TestFixture::kLanes>(all, true, 0, false, 1e-6, 5);
}

TYPED_TEST(TileStep, MatchesSerialOnBodiesHeldTogether) {
  const Tables all(testing::looped());
  ASSERT_EQ(all.view().bonds, 8);
  // Loops that start torn open ask for more than a hundred passes give: what rounding makes of them grows, and Anderson's
  // extrapolation would choose otherwise.
  compare<TestFixture::kLanes>(all, false, 0, true, 1e-9, 3);
  compare<TestFixture::kLanes>(all, false, 0, false, 1e-9, 3);
}

TYPED_TEST(TileStep, MatchesSerialUnderTheMidpointRule) {
  const Tables ant(testing::legged({}).build()), all(testing::menagerie());
  compare<TestFixture::kLanes>(ant, false, 0, true, 1e-9, 10, true);
  compare<TestFixture::kLanes>(all, false, 0, true, 1e-9, 5, true);
}

TEST(TileModels, EveryBondOfTheLoopedMenageriePulls) {
  const Tables all(testing::looped());
  Batch<double> b = all.batch(true);
  testing::step_serial<Lane<double, Capacity, Serial>>(all.view(), options(all.model, false, 0), b, 10);
  const RecordLayout<ModelView<Capacity, double>> layout(all.view());
  for (int i = 0; i < all.view().bonds; ++i)
    for (int k = 0; k < 3; ++k) EXPECT_GT(std::abs(b.records[layout.bond(i) + k]), 1e-6) << i << ", " << k;
}

template <class Solver>
Law law_of_default() {
  return typename Solver::template Options<double>{}.law();
}

/// The certificate takes W_nt from rows that several lanes wrote.
TYPED_TEST(TileStep, CertifiesMaximumDissipationAsSerialDoes) {
  const Tables all(testing::menagerie());
  StepOptions<double> opt = options(all.model, false, 0);
  opt.step.iterations = 2;
  int number = 0;
  each_solver(
      [&](auto solver, auto&) {
        if (law_of_default<decltype(solver)>() == Law::kDissipation) opt.solver.solver = number;
        ++number;
      },
      opt.solver.options);
  Batch<double> one = all.batch(false), tile = all.batch(false);
  testing::step_serial<Lane<double, Capacity, Serial>>(all.view(), opt, one, 1);
  testing::step_tiles<Lane<double, Capacity, TileEmulator<TestFixture::kLanes>>>(all.view(), opt, tile, 1);
  for (int w = 0; w < one.worlds; ++w) {
    EXPECT_GT(one.field(kRMdp, w), 1e-6);
    EXPECT_NE(one.field(kRMdp, w), one.field(kRCon, w));
    EXPECT_NEAR(one.field(kRMdp, w), tile.field(kRMdp, w), 1e-9 * one.field(kScale, w));
  }
}

TEST(TileModels, TheMenagerieUsesEveryKindOfRow) {
  const Tables all(testing::menagerie());
  Batch<double> b = all.batch(true);
  testing::step_serial<Lane<double, Capacity, Serial>>(all.view(), options(all.model, false, 0), b, 10);
  const RecordLayout<ModelView<Capacity, double>> layout(all.view());
  int world = 0, pair = 0, limit = 0, friction = 0, tie = 0, ball = 0;
  for (int e = 0; e < b.worlds; ++e) {
    const double* r = b.records.data() + e * b.record;
    for (int c = 0; c < layout.slots; ++c) world += r[layout.slot(c) + kRecordN] != 0 && r[layout.slot_id(c)] >= 0;
    for (int c = 0; c < layout.pairs; ++c) pair += r[layout.pair(c) + kRecordN] != 0 && r[layout.pair_id(c)] >= 0;
    for (int d = 0; d < layout.dofs; ++d)
      limit += r[layout.dof_row(kLimitRow, d)] != 0, friction += r[layout.dof_row(kFrictionRow, d)] != 0;
    for (int i = 0; i < layout.ties; ++i) {
      tie += r[layout.tie(i)] != 0;
      ball += all.view().tie[i].kind == kTieBallLimit && r[layout.tie(i)] > 0;
    }
  }
  EXPECT_GT(world, b.worlds);
  EXPECT_GT(pair, 0);
  EXPECT_GT(limit, 0);
  EXPECT_GT(friction, b.worlds);
  EXPECT_GT(tie, 3 * b.worlds);
  EXPECT_GT(ball, 0);
}

TYPED_TEST(TileStep, FallsBackOnNewtonAsSerialDoes) {
  const Tables all(testing::menagerie());
  StepOptions<double> few = options(all.model, true, 1e-12, true);
  few.step.iterations = 2, few.step.certify = 1e-8;
  Batch<double> one = all.batch(false), tile = all.batch(false);
  testing::step_serial<Lane<double, Capacity, Serial>>(all.view(), few, one, 1);
  testing::step_tiles<Lane<double, Capacity, TileEmulator<TestFixture::kLanes>>>(all.view(), few, tile, 1);
  int solved = 0;
  for (int w = 0; w < one.worlds; ++w) {
    EXPECT_NE(one.status[w] & kFallback, 0);
    EXPECT_NE(tile.status[w] & kFallback, 0);
    if ((one.status[w] | tile.status[w]) & kNotConverged) continue;  // what is no solution need not be the same one
    ++solved;
    for (int i = 0; i < all.model.nv; ++i)
      EXPECT_NEAR(one.qvel[w * all.model.nv + i], tile.qvel[w * all.model.nv + i], 1e-6);
  }
  EXPECT_GE(solved, one.worlds - 2);
}

TYPED_TEST(TileStep, StopsAtTheSameIterationAsSerial) {
  const Tables all(testing::menagerie());
  compare<TestFixture::kLanes>(all, false, 1e-4, false, 1e-9);
  // What stops at 1e-4 V does not take back what Anderson's extrapolation makes of rounding.
  compare<TestFixture::kLanes>(all, true, 1e-4, false, 1e-6, 3);
}

TEST(TileEmulator, GivesTheSameBitsInAnyOrderOfLanes) {
  const Tables all(testing::menagerie());
  const StepOptions<double> opt = options(all.model, true, 0);
  using L = Lane<double, Capacity, TileEmulator<4>>;
  Batch<double> a = all.batch(true), b = all.batch(true);
  testing::step_tiles<L>(all.view(), opt, a, 6, 1);
  testing::step_tiles<L>(all.view(), opt, b, 6, 12345);
  EXPECT_EQ(a.qpos, b.qpos);
  EXPECT_EQ(a.qvel, b.qvel);
  EXPECT_EQ(a.certificate, b.certificate);
}

TEST(TileEmulator, SumsAndMaximaAreTheSameInAllLanes) {
  double sums[8], largest[8];
  TileEmulator<8>::run([&](const TileEmulator<8>& g) {
    sums[g.rank()] = g.sum(0.1 * (g.rank() + 1));
    largest[g.rank()] = g.max(static_cast<double>((g.rank() * 5) % 8));
  });
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(sums[i], sums[0]);
    EXPECT_NEAR(sums[i], 3.6, 1e-14);
    EXPECT_EQ(largest[i], 7);
  }
}

TEST(TileEmulator, RejectsALaneThatSkipsASum) {
  auto skips = [](const TileEmulator<4>& g) {
    if (g.rank() != 2) g.sum(1.0f);
  };
  EXPECT_THROW(TileEmulator<4>::run(skips), std::logic_error);
}

TEST(TileEmulator, RejectsLanesAtDifferentCollectives) {
  auto differs = [](const TileEmulator<2>& g) {
    if (g.rank() == 0) g.sum(1.0f);
    else g.max(1.0f);
  };
  EXPECT_THROW(TileEmulator<2>::run(differs), std::logic_error);
}

TEST(TileEmulator, AWorldWithABadControlIsFrozenByAllLanes) {
  const Tables ant(testing::legged({}).build());
  Batch<double> b = ant.batch(false);
  const std::vector<double> before = b.qpos;
  b.ctrl[ant.model.nu + 5] = std::nan("");  // of one limb, hence seen by one lane
  testing::step_tiles<Lane<double, Capacity, TileEmulator<4>>>(ant.view(), options(ant.model, true, 0), b, 3);
  EXPECT_EQ(b.status[1] & kNonFinite, kNonFinite);
  EXPECT_EQ(b.status[0] & kNonFinite, 0);
  for (int i = 0; i < ant.model.nq; ++i) EXPECT_NEAR(b.qpos[ant.model.nq + i], before[ant.model.nq + i], 1e-15);
}

}  // namespace
}  // namespace stiction
