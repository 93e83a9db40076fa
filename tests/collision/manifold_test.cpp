// Covers cuda/collision/convex/manifold.h and the multi-point pairs of primitives/, on resting poses.
#include <gtest/gtest.h>

#include <functional>

#include "tests/collision/support_oracle.h"

namespace stiction {
namespace {

using oracle::Body;

struct Found {
  std::vector<Candidate<double>> all;
  int active(double margin) const {
    return static_cast<int>(std::count_if(all.begin(), all.end(), [&](auto& c) { return c.dist < margin; }));
  }
  /// Does the vertical line through (x, y) pass inside the contacts? What keeps a body above it from tipping.
  bool supports(double x, double y, double margin) const {
    for (int k = 0; k < 64; ++k) {
      double c = std::cos(k * 0.09817477), s = std::sin(k * 0.09817477), most = -1;
      for (auto& p : all)
        if (p.dist < margin) most = std::max(most, c * (p.pos.x - x) + s * (p.pos.y - y));
      if (most <= 1e-6) return false;
    }
    return true;
  }
};

Found collide_double(const Body& a, const Body& b) {
  HullView<double> ha = {}, hb = {};
  if (a.hull) ha = a.hull->view<double>();
  if (b.hull) hb = b.hull->view<double>();
  Found f;
  f.all.resize(candidate_count(a.type, b.type));
  const PlacedGeom<double> placed_a{a.geom, a.type, &ha}, placed_b{b.geom, b.type, &hb};
  collide<Capacity>(placed_a, placed_b, true, still<double>(kFar), f.all.data());
  return f;
}
Mat3<double> turned(double yaw, double tilt) {
  Quat<double> z = {std::cos(yaw / 2), 0, 0, std::sin(yaw / 2)}, x = {std::cos(tilt / 2), std::sin(tilt / 2), 0, 0};
  return rotation(x * z);
}
const oracle::Hull& block() {
  static const oracle::Hull hull = oracle::box_hull(0.1, 0.1, 0.05);
  return hull;
}
/// A hexagonal prism of 0.1 m, the edges of its ends chamfered by 0.2 mm.
const oracle::Hull& chamfered_prism() {
  static const oracle::Hull made = [] {
    oracle::Hull hull;
    for (double z : {-0.05, -0.0498, 0.0498, 0.05})
      for (int k = 0; k < 6; ++k) {
        const double r = std::abs(z) > 0.0499 ? 0.0498 : 0.05, angle = k * 1.0471975512;
        for (double x : {r * std::cos(angle), r * std::sin(angle), z}) hull.vert.push_back(x);
      }
    oracle::build_graph(hull);
    return hull;
  }();
  return made;
}
/// A body whose flat face is 0.05 below its origin.
Body flat(int type) {
  return {type,
          {{0.1, type == GeomKind::kCylinder ? 0.05 : 0.1, 0.05}, {turned(0, 0), {0, 0, 0}}},
          type == GeomKind::kMesh ? &block() : nullptr};
}

class Resting : public testing::TestWithParam<std::pair<int, int>> {};

/// Face on face, overlapping, touching and just apart, turned and shifted: three contacts or more that hold the weight.
TEST_P(Resting, SupportsTheWeight) {
  auto [low, high] = GetParam();
  for (double gap : {-1e-3, -1e-5, 0.0, 1e-4})
    for (double yaw : {0.0, 0.3, 0.7853981634, 1.2})
      for (double shift : {0.0, 0.03})
        for (double tilt : {0.0, 1e-7, 1e-5}) {
          Body a = flat(low), b = flat(high);
          b.geom.pose = {turned(yaw, tilt), {shift, shift / 2, 0.1 + gap}};
          Found f = collide_double(a, b);
          EXPECT_GE(f.active(gap + 1e-4), 3)
              << "gap " << gap << " yaw " << yaw << " shift " << shift << " tilt " << tilt;
          EXPECT_TRUE(f.supports(shift, shift / 2, gap + 1e-4))
              << "gap " << gap << " yaw " << yaw << " shift " << shift << " tilt " << tilt;
          for (auto& c : f.all)
            if (c.dist < kFar) {
              EXPECT_NEAR(c.dist, gap, 1e-5);
              EXPECT_NEAR(c.normal.z, 1, 1e-5);
            }
        }
}
std::string resting_name(const testing::TestParamInfo<std::pair<int, int>>& info) {
  const char* name[] = {"", "", "", "", "", "Cylinder", "Box", "Mesh"};
  return std::string(name[info.param.second]) + "On" + name[info.param.first];
}
INSTANTIATE_TEST_SUITE_P(Faces, Resting,
                         testing::Values(std::pair{5, 5}, std::pair{5, 6}, std::pair{5, 7}, std::pair{6, 6},
                                         std::pair{6, 7}, std::pair{7, 7}),
                         resting_name);

/// On a plane, the plane being geom 1.
TEST(Manifold, SupportsWhatRestsOnAPlane) {
  Body plane = {GeomKind::kPlane, {{0, 0, 0}, {turned(0, 0), {0, 0, 0}}}};
  for (int type : {GeomKind::kCylinder, GeomKind::kBox, GeomKind::kMesh})
    for (double yaw : {0.0, 0.4, 0.7853981634})
      for (double tilt : {0.0, 1e-6}) {
        Body b = flat(type);
        b.geom.pose = {turned(yaw, tilt), {0.3, 0.1, 0.0499}};
        Found f = collide_double(plane, b);
        EXPECT_GE(f.active(1e-3), 3);
        EXPECT_TRUE(f.supports(0.3, 0.1, 1e-3));
      }
}

TEST(Manifold, KeepsBothEndsOfLyingCapsulesAndCylinders) {
  const double quarter = 1.5707963267948966;
  for (int low : {GeomKind::kBox, GeomKind::kMesh})
    for (int high : {GeomKind::kCapsule, GeomKind::kCylinder})
      for (double tilt : {0.0, 1e-6, -1e-6}) {
        Body a = flat(low), b = {high, {{0.02, 0.06, 0}, {turned(0, quarter + tilt), {0.01, 0.02, 0.0699}}}};
        bool swap = high < low;
        Found f = swap ? collide_double(b, a) : collide_double(a, b);
        ASSERT_EQ(f.active(1e-4), 2) << low << " " << high;
        double low_end = 1, high_end = -1;
        for (auto& c : f.all) {
          if (c.dist >= 1e-4) continue;
          low_end = std::min(low_end, c.pos.y), high_end = std::max(high_end, c.pos.y);
          EXPECT_NEAR(c.dist, -1e-4, 1e-6);
        }
        EXPECT_NEAR(low_end, -0.04, 1e-3);
        EXPECT_NEAR(high_end, 0.08, 1e-3);
      }
}

/// Faces of one size, turned by next to nothing, shifted or not: their corners, no place between them.
TEST(Manifold, HasNoCrossingsOfEdgesSideBySide) {
  for (double turn : {0.0, 1e-9, 1e-6, -3e-6, 1e-4})
    for (double x : {0.0, 1e-7, 1e-5})
      for (double y : {0.0, 0.03}) {  // two edges are side by side where they end elsewhere, too
        Body a = flat(GeomKind::kBox), b = a;
        b.geom.pose = {turned(turn, 0), {x, y, 0.0999}};
        Found f = collide_double(a, b);
        EXPECT_EQ(f.active(1e-3), 4) << "turn " << turn << " at " << x << " " << y;
        for (auto& c : f.all)
          if (c.dist < 1e-3) {
            EXPECT_NEAR(std::abs(c.pos.x), 0.1, 1e-4);
            EXPECT_TRUE(std::abs(c.pos.y - y + 0.1) < 1e-4 || std::abs(c.pos.y - 0.1) < 1e-4) << c.pos.y;
          }
      }
}

/// A can that stands half beyond the edge of a box: what holds it there lies on the true rim, not on a chord.
TEST(Manifold, ClipsFacesAgainstTheTrueCircle) {
  for (double yaw : {0.0, 0.2, 0.5}) {
    Body a = flat(GeomKind::kCylinder), b = flat(GeomKind::kBox);
    a.geom.pose = {turned(yaw, 0), {0.13, 0, 0.1}};
    Found f = collide_double(a, b);
    double most = 0;
    for (auto& c : f.all)
      if (c.dist < kFar && std::abs(c.pos.x - 0.1) < 1e-9) most = std::max(most, std::abs(c.pos.y));
    EXPECT_NEAR(most, std::sqrt(0.1 * 0.1 - 0.03 * 0.03), 1e-9) << "yaw " << yaw;
  }
}

/// What counts as one point or as on a face goes by the smaller body: four corners on a floor of any size.
TEST(Manifold, KeepsSmallFacesOnLargeFloors) {
  for (double half : {0.1, 1.0, 10.0, 100.0}) {
    Body a = {GeomKind::kBox, {{half, half, 0.05}, {turned(0, 0), {0, 0, 0}}}}, b = a;
    b.geom.size = {0.01, 0.01, 0.01}, b.geom.pose = {turned(0.3, 0), {half / 3, 0, 0.0599}};
    EXPECT_EQ(collide_double(a, b).active(0), 4) << half;
    b.geom.pose.p.x = half + 0.002;  // the centre beyond the edge: all contacts on this side
    for (auto& c : collide_double(a, b).all)
      if (c.dist < kFar) { EXPECT_LE(c.pos.x, half + 1e-4) << half; }
  }
}

/// Of a chamfered hull the ring that touches is kept, not the one 0.2 mm higher and farther out.
TEST(Manifold, StandsOnTheRingThatTouches) {
  Body b = {GeomKind::kMesh, {{0, 0, 0}, {turned(0.3, 0), {0, 0, 0.05}}}, &chamfered_prism()};
  for (Body a : {Body{GeomKind::kPlane, {{0, 0, 0}, {turned(0, 0), {0, 0, 0}}}},
                 Body{GeomKind::kBox, {{5, 5, 0.1}, {turned(0, 0), {0, 0, -0.1}}}}}) {
    Found f = collide_double(a, b);
    EXPECT_EQ(f.active(1e-3), 6);
    for (auto& c : f.all)
      if (c.dist < kFar) { EXPECT_NEAR(c.dist, 0, 1e-7); }
    EXPECT_TRUE(f.supports(0.01, 0.01, 1e-3));
  }
}

/// What turns on a plane, 1e-3 rad a step for a third of a turn, stands on the same vertices, each in its slot.
TEST(Manifold, KeepsItsVerticesAsItTurns) {
  Body plane = {GeomKind::kPlane, {{0, 0, 0}, {turned(0, 0), {0, 0, 0}}}};
  Body b = {GeomKind::kMesh, {{0, 0, 0}, {turned(0, 0), {0.3, 0.1, 0.05}}}, &chamfered_prism()};
  for (double tilt : {0.0, 1e-7, 1e-6}) {
    Found first;
    for (int step = 0; step <= 2100; ++step) {
      b.geom.pose.R = turned(1e-3 * step, tilt);
      Found f = collide_double(plane, b);
      ASSERT_EQ(f.active(1e-3), 6) << "tilt " << tilt << " step " << step;
      for (auto& c : f.all) c.pos = transposed_times(b.geom.pose.R, c.pos - b.geom.pose.p);
      if (step == 0) first = f;
      ASSERT_EQ(f.all.size(), first.all.size());
      for (size_t k = 0; k < f.all.size(); ++k) {
        ASSERT_EQ(f.all[k].dist < 1e-3, first.all[k].dist < 1e-3);
        if (f.all[k].dist < 1e-3) {
          ASSERT_LE(norm(f.all[k].pos - first.all[k].pos), 1e-6)
              << "tilt " << tilt << " step " << step << " slot " << k;
        }
      }
    }
  }
}

/// A prism that has sunk unevenly, by what its contacts carry, stands on the same corners however uneven: on up to eight on all.
TEST(Manifold, KeepsItsCornersHoweverUnevenlyTheySink) {
  const Body floors[] = {{GeomKind::kPlane, {{0, 0, 0}, {turned(0, 0), {0, 0, 0}}}},
                         {GeomKind::kBox, {{0.5, 0.5, 0.1}, {turned(0, 0), {0, 0, -0.1}}}}};
  for (int corners = 3; corners <= 17; ++corners)
    for (const bool lies : {false, true}) {
      oracle::Hull hull;
      for (double z : {-0.02, 0.02})
        for (int k = 0; k < corners; ++k) {
          const double angle = k * 6.283185307179586 / corners, x = 0.05 * std::cos(angle), y = 0.05 * std::sin(angle);
          if (lies) hull.vert.insert(hull.vert.end(), {z, x, y});
          else hull.vert.insert(hull.vert.end(), {x, y, z});
        }
      oracle::build_graph(hull);
      const double quarter = 1.5707963267948966, half = lies ? quarter / 2 : 0;
      const Mat3<double> stands = rotation(Quat<double>{std::cos(half), 0, -std::sin(half), 0});
      for (const Body& floor : floors) {
        oracle::Poses random(corners);
        std::vector<int> first;
        for (int round = 0; round < 50; ++round) {
          const double way = random.uniform(0, 4 * quarter), tilt = 1e-5 / 2;
          const Quat<double> tips = {1, tilt * std::cos(way), tilt * std::sin(way), 0};
          Body b = {GeomKind::kMesh, {{0, 0, 0}, {rotation(tips) * stands, {0, 0, 0.02 - 1e-6}}}, &hull};
          std::vector<int> kept;
          for (const auto& c : collide_double(floor, b).all) {
            if (c.dist > 1e-4) continue;
            int nearest = 0;
            for (int i = 1; i < hull.count(); ++i) {
              auto far = [&](int k) { return norm(b.geom.pose * hull_vertex<double>(hull.view<double>(), k) - c.pos); };
              if (far(i) < far(nearest)) nearest = i;
            }
            kept.push_back(nearest);
          }
          std::sort(kept.begin(), kept.end());
          if (round == 0) first = kept;
          ASSERT_EQ(kept, first) << corners << " corners, floor " << floor.type << ", lies " << lies << ", " << round;
        }
        EXPECT_GE(first.size(), corners <= 8 ? static_cast<size_t>(corners) : 4u);
      }
    }
}

TEST(Manifold, GivesCrossingAxesAPerpendicularNormal) {
  const double quarter = 1.5707963267948966;
  Body a = {GeomKind::kCapsule, {{0.05, 0.2, 0}, {turned(0, 0), {0, 0, 0}}}}, b = a;
  b.geom.pose.R = turned(0, quarter);
  Found f = collide_double(a, b);
  EXPECT_NEAR(f.all[0].dist, -0.1, 1e-12);
  EXPECT_NEAR(std::abs(f.all[0].normal.x), 1, 1e-9);
  EXPECT_EQ(f.all[1].dist, kFar);
}

TEST(Manifold, KeepsTwoContactsOfParallelCapsules) {
  for (double tilt : {0.0, 1e-9, -1e-9, 1e-4, -1e-4}) {
    Body a = {GeomKind::kCapsule, {{0.05, 0.2, 0}, {turned(0, 0), {0, 0, 0}}}}, b = a;
    b.geom.pose = {turned(0, tilt), {0, 0.0999, 0.1}};
    Found f = collide_double(a, b);
    EXPECT_NEAR(f.all[0].pos.z, -0.1, 1e-3);  // candidate 0 is the lower, whichever is deeper
    EXPECT_NEAR(f.all[1].pos.z, 0.2, 1e-3);
  }
}

/// A resting body's slots keep their contacts under noise: what warm start relies on.
TEST_P(Resting, KeepsItsSlotsUnderNoise) {
  auto [low, high] = GetParam();
  oracle::Poses random(1);
  Found first;
  int moved = 0, rounds = 100;
  for (int i = 0; i < rounds; ++i) {
    Body a = flat(low), b = flat(high);
    b.geom.pose = {turned(0.3 + random.uniform(-1e-6, 1e-6), random.uniform(-1e-6, 1e-6)),
                   {random.uniform(-1e-6, 1e-6), 0.01, 0.0999}};
    Found f = collide_double(a, b);
    if (i == 0) first = f;
    bool same = true;
    for (size_t k = 0; k < f.all.size(); ++k) same &= norm(f.all[k].pos - first.all[k].pos) < 1e-4;
    moved += !same;
  }
  EXPECT_LE(moved, rounds / 10);
}

}  // namespace
}  // namespace stiction
