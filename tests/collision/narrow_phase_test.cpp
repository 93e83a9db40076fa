// Covers cuda/collision/narrow_phase.h and all pairs below it.
#include "collision/narrow_phase.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tests/collision/support_oracle.h"

namespace stiction {
namespace {

using oracle::Body;
using oracle::V;

constexpr int kTypes[] = {GeomKind::kPlane,    GeomKind::kSphere, GeomKind::kCapsule, GeomKind::kEllipsoid,
                          GeomKind::kCylinder, GeomKind::kBox,    GeomKind::kMesh};

const oracle::Hull& small_hull() {
  static const oracle::Hull hull = oracle::random_hull(20, 1);
  return hull;
}
const oracle::Hull& large_hull() {  // climbs its graph
  static const oracle::Hull hull = oracle::random_hull(60, 2);
  return hull;
}

bool is_iterative(int type1, int type2) {
  auto needs = [](int t) { return t == GeomKind::kEllipsoid || t == GeomKind::kCylinder || t == GeomKind::kMesh; };
  if (type1 == GeomKind::kPlane || (type1 == GeomKind::kSphere && type2 == GeomKind::kCylinder)) return false;
  return needs(type1) || needs(type2);
}

template <class Real> GeomPose<Real> cast(const GeomPose<double>& g) {
  auto to = [](Vec3<double> x) {
    using S = Scalar<Real>;
    return Vec3<Real>{Real(S(x.x)), Real(S(x.y)), Real(S(x.z))};
  };
  return {to(g.size), {{{to(g.pose.R.row[0]), to(g.pose.R.row[1]), to(g.pose.R.row[2])}}, to(g.pose.p)}};
}

template <class Real> PlacedGeom<Real> placed(const Body& b, const HullView<Real>* hull) {
  return {cast<Real>(b.geom), b.type, hull};
}

template <class Real> std::vector<Candidate<Real>> collide_bodies(const Body& a, const Body& b) {
  HullView<Real> ha = {}, hb = {};
  if (a.hull) ha = a.hull->view<Real>();
  if (b.hull) hb = b.hull->view<Real>();
  std::vector<Candidate<Real>> out(candidate_count(a.type, b.type));
  collide<Capacity>(placed(a, &ha), placed(b, &hb), true, still(Real(kFar)), out.data());
  return out;
}

template <class Real> const Candidate<Real>& deepest(const std::vector<Candidate<Real>>& all) {
  return *std::min_element(all.begin(), all.end(), [](auto& x, auto& y) { return x.dist < y.dist; });
}
V array(Vec3<double> x) { return {x.x, x.y, x.z}; }

struct Pair { int type1, type2; };
class NarrowPhase : public testing::TestWithParam<Pair> {
 protected:
  Pair pair() const { return GetParam(); }
  /// Poses per pair; STICTION_POSES=100000 for the long run.
  static int poses(int usual) {
    const char* text = std::getenv("STICTION_POSES");
    return text ? std::atoi(text) : usual;
  }
};

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  for (int a : kTypes)
    for (int b : kTypes)
      if (a <= b && candidate_count(a, b) > 0) pairs.push_back({a, b});
  return pairs;
}
std::string pair_name(const testing::TestParamInfo<Pair>& info) {
  const char* name[] = {"Plane", "", "Sphere", "Capsule", "Ellipsoid", "Cylinder", "Box", "Mesh"};
  return std::string(name[info.param.type1]) + name[info.param.type2];
}

/// The separation along the claimed normal is the claimed distance, and no direction separates more.
TEST_P(NarrowPhase, MatchesBruteForce) {
  auto [type1, type2] = pair();
  oracle::Poses random(10 * type1 + type2);
  bool iterative = is_iterative(type1, type2);
  double tolerance = iterative ? 1e-4 : 1e-6, worst = 0, attained = 0;
  int overlapping = 0, n = poses(iterative ? 1500 : 4000);
  for (int i = 0; i < n; ++i) {
    Body a = random.body(type1, &small_hull()), b = random.body(type2, i % 2 ? &small_hull() : &large_hull());
    random.place(a, b);
    auto found = collide_bodies<double>(a, b);
    auto near = deepest(found);
    ASSERT_LT(near.dist, kFar);
    double size = oracle::size_of(b), along, best;
    V normal = array(near.normal);
    EXPECT_NEAR(dot(near.normal, near.normal), 1, 1e-9);
    if (type1 == GeomKind::kPlane) {
      V z = array(column(a.geom.pose.R, 2));
      along = best = -oracle::reach(b, {-z[0], -z[1], -z[2]});
    } else {
      size = std::min(size, oracle::size_of(a));
      along = oracle::separation_along(a, b, normal);
      best = oracle::best_separation(a, b, normal, 150);
    }
    overlapping += near.dist < 0;
    attained = std::max(attained, std::abs(along - near.dist) / size);
    worst = std::max(worst, (best - near.dist) / size);
  }
  EXPECT_LT(attained, iterative ? 1.5e-4 : 1e-6);  // of points equally deep to 1e-4 any may stay
  EXPECT_LT(worst, tolerance);
  EXPECT_GT(overlapping, n / 5);
  RecordProperty("worst", std::to_string(worst));
  if (std::getenv("STICTION_PRINT"))
    std::printf("  overlap %d/%d attained %.2e worst %.2e\n", overlapping, n, attained, worst);
}

/// Both surface points of a contact are in their shapes, and no contact is deeper than the signed distance.
TEST_P(NarrowPhase, KeepsContactsOnBothShapes) {
  auto [type1, type2] = pair();
  oracle::Poses random(100 + 10 * type1 + type2);
  // Features are flattened (mesh) and kept 0.1 % beyond their borders (box-box).
  double slack = is_iterative(type1, type2) || type1 == GeomKind::kBox ? 5e-4 : 1e-9;
  for (int i = 0; i < 500; ++i) {
    Body a = random.body(type1, &small_hull()), b = random.body(type2, &small_hull());
    random.place(a, b);
    auto found = collide_bodies<double>(a, b);
    for (const auto& c : found) {
      if (c.dist >= kFar) continue;
      for (int k = 0; k < 60; ++k) {
        double z = 1 - (2 * k + 1.0) / 60, r = std::sqrt(1 - z * z), t = 2.399963229728653 * k;
        V d = {r * std::cos(t), r * std::sin(t), z};
        V on_a = oracle::axpy(-0.5 * c.dist, array(c.normal), array(c.pos)),
          on_b = oracle::axpy(0.5 * c.dist, array(c.normal), array(c.pos));
        EXPECT_LE(oracle::dot(d, on_b), oracle::reach(b, d) + slack);
        if (type1 != GeomKind::kPlane) { EXPECT_LE(oracle::dot(d, on_a), oracle::reach(a, d) + slack); }
      }
    }
  }
}

TEST_P(NarrowPhase, MatchesDoubleInFloat) {
  auto [type1, type2] = pair();
  oracle::Poses random(200 + 10 * type1 + type2);
  double worst = 0;
  for (int i = 0; i < 2000; ++i) {
    Body a = random.body(type1, &small_hull()), b = random.body(type2, &large_hull());
    random.place(a, b);
    double exact = deepest(collide_bodies<double>(a, b)).dist, got = deepest(collide_bodies<float>(a, b)).dist;
    worst = std::max(
        worst, std::abs(exact - got) /
                   (type1 == GeomKind::kPlane ? oracle::size_of(b) : std::min(oracle::size_of(a), oracle::size_of(b))));
  }
  EXPECT_LT(worst, is_iterative(type1, type2) ? 1.2e-4 : 1e-5);  // of points equally deep to 1e-4 any may stay
  if (std::getenv("STICTION_PRINT")) std::printf("  float %.2e\n", worst);
}

/// Every lane has the bits that a lone world has, whatever its neighbours; unwanted lanes are absent.
TEST_P(NarrowPhase, IsBatchInvariant) {
  using Wide = Pack<float, 8>;
  auto [type1, type2] = pair();
  oracle::Poses random(300 + 10 * type1 + type2);
  int count = candidate_count(type1, type2);
  HullView<float> hull = small_hull().view<float>();
  for (int round = 0; round < 100; ++round) {
    PlacedGeom<Wide> a, b;
    PlacedGeom<float> one_a[8], one_b[8];
    a.type = type1, b.type = type2, a.hull = b.hull = &hull;
    Mask<Wide> wanted = {};
    for (int i = 0; i < 8; ++i) {
      Body x = random.body(type1, &small_hull()), y = random.body(type2, &small_hull());
      random.place(x, y);
      if (round % 4 == 0) x.geom.pose.R = y.geom.pose.R = rotation(Quat<double>{1, 0, 0, 0});
      one_a[i] = placed(x, &hull), one_b[i] = placed(y, &hull);
      wanted[i] = (i + round) % 5 != 0 ? -1 : 0;
      auto put = [i](Vec3<Wide>& to, Vec3<float> from) {
        set_lane(to.x, i, from.x), set_lane(to.y, i, from.y), set_lane(to.z, i, from.z);
      };
      put(a.size, one_a[i].size), put(a.pose.p, one_a[i].pose.p), put(b.size, one_b[i].size),
          put(b.pose.p, one_b[i].pose.p);
      for (int k = 0; k < 3; ++k)
        put(a.pose.R.row[k], one_a[i].pose.R.row[k]), put(b.pose.R.row[k], one_b[i].pose.R.row[k]);
    }
    Candidate<Wide> wide[kMaxCandidates];
    collide<Capacity>(a, b, wanted, still(Wide(kFar)), wide);
    for (int i = 0; i < 8; ++i) {
      Candidate<float> one[kMaxCandidates];
      collide<Capacity>(one_a[i], one_b[i], wanted[i] != 0, still<float>(kFar), one);
      for (int k = 0; k < count; ++k) {
        float got[7] = {wide[k].pos.x.v[i],    wide[k].pos.y.v[i],    wide[k].pos.z.v[i], wide[k].normal.x.v[i],
                        wide[k].normal.y.v[i], wide[k].normal.z.v[i], wide[k].dist.v[i]};
        static_assert(sizeof(Candidate<float>) == sizeof(got));
        ASSERT_EQ(std::memcmp(got, &one[k], sizeof(got)), 0)
            << "round " << round << " lane " << i << " candidate " << k;
        if (!wanted[i]) { EXPECT_EQ(got[6], kFar); }
      }
    }
  }
}

/// Contacts of a hull are those of its vertices alone: its graph, on which only what is low is visited, says where to look.
TEST(NarrowPhaseOfHulls, GraphChangesNothing) {
  const oracle::Hull hulls[] = {oracle::random_hull(30, 1), oracle::random_hull(90, 2),
                                oracle::frustum_hull(20, 0.06, 0.04, 0.03), oracle::frustum_hull(45, 0.06, 0.06, 0.03)};
  std::mt19937 rng(3);
  std::normal_distribution<float> normal;
  int round = 0, several = 0;
  for (const int other : {GeomKind::kPlane, GeomKind::kBox, GeomKind::kCylinder})
    for (const oracle::Hull& hull : hulls) {
      oracle::Poses random(900 + 10 * other);
      const HullView<float> with = hull.view<float>();
      HullView<float> without = with;
      without.edgeadr = without.edge = nullptr;
      for (int i = 0; i < 300; ++i, ++round) {
        Body x = random.body(other, nullptr), y = random.body(GeomKind::kMesh, &hull);
        random.place(x, y);
        // Level; beside other shapes closest points would begin at another of equally far vertices.
        if (other == GeomKind::kPlane && i % 3 == 0) x.geom.pose.R = y.geom.pose.R = rotation(Quat<double>{1, 0, 0, 0});
        const float speed = i % 2 == 0 ? 0.0f : 0.003f;
        Reach<float> reach = still(kFar);
        reach.way = {{speed * normal(rng), speed * normal(rng), speed * normal(rng)},
                     {speed * normal(rng), speed * normal(rng), speed * normal(rng)}};
        Candidate<float> got[kMaxCandidates], expected[kMaxCandidates];
        collide<Capacity>(placed(x, &with), placed(y, &with), true, reach, got);
        collide<Capacity>(placed(x, &without), placed(y, &without), true, reach, expected);
        int touching = 0;
        for (int k = 0; k < candidate_count(other, GeomKind::kMesh); ++k) {
          ASSERT_EQ(std::memcmp(&got[k], &expected[k], sizeof(got[k])), 0) << "type " << other << " round " << round;
          touching += got[k].dist < 0.001f;
        }
        several += touching > 2;
      }
    }
  EXPECT_GT(several, 100);
}

TEST_P(NarrowPhase, ReachDropsNothingNearer) {
  auto [type1, type2] = pair();
  const int count = candidate_count(type1, type2);
  oracle::Poses random(600 + 10 * type1 + type2);
  int kept = 0, dropped = 0;
  for (int round = 0; round < 2000; ++round) {
    Body x = random.body(type1, &small_hull()), y = random.body(type2, &small_hull());
    random.place(x, y);
    y.geom.pose.p = y.geom.pose.p + (y.geom.pose.p - x.geom.pose.p) * 0.2;
    const float reach = 0.002f * static_cast<float>(round % 50);
    HullView<float> hull = small_hull().view<float>();
    Candidate<float> all[kMaxCandidates], near[kMaxCandidates];
    const PlacedGeom<float> a = placed(x, &hull), b = placed(y, &hull);
    collide<Capacity>(a, b, true, still<float>(kFar), all);
    collide<Capacity>(a, b, true, still<float>(reach), near);
    bool touches = false;
    for (int k = 0; k < count; ++k) touches = touches || all[k].dist < reach;
    for (int k = 0; k < count; ++k) {
      if (touches) {
        ASSERT_EQ(std::memcmp(&near[k], &all[k], sizeof(all[k])), 0) << "round " << round;
      } else {
        EXPECT_TRUE(near[k].dist == all[k].dist || near[k].dist == kFar) << "round " << round;
      }
      dropped += near[k].dist == kFar && all[k].dist != kFar;
    }
    kept += touches;
  }
  EXPECT_GT(kept, 0);
  const bool never =
      type1 == GeomKind::kCapsule && type2 == GeomKind::kCylinder;  // but where the axis pierces, and touches
  if (is_iterative(type1, type2) && !never) { EXPECT_GT(dropped, 0); }
}

TEST_P(NarrowPhase, IsSymmetric) {
  auto [type1, type2] = pair();
  if (type1 != type2) GTEST_SKIP() << "types differ";
  oracle::Poses random(400 + type1);
  for (int i = 0; i < 500; ++i) {
    Body a = random.body(type1, &small_hull()), b = random.body(type2, &large_hull());
    random.place(a, b);
    auto x = deepest(collide_bodies<double>(a, b)), y = deepest(collide_bodies<double>(b, a));
    EXPECT_NEAR(x.dist, y.dist, is_iterative(type1, type2) ? 1e-6 : 1e-9);
    if (!is_iterative(type1, type2)) { EXPECT_NEAR(dot(x.normal, y.normal), -1, 1e-6); }
  }
}

/// Coincident, parallel, touching, flat and empty shapes: finite candidates with unit normals, in float and double.
TEST_P(NarrowPhase, IsFiniteWhenDegenerate) {
  auto [type1, type2] = pair();
  const double sizes[][3] = {{0, 0, 0},     {0.1, 0, 0},      {0, 0.1, 0},       {0.1, 0.1, 0.1},
                             {0.1, 0.1, 0}, {0.05, 0.2, 0.1}, {1e-6, 1e-6, 1e-6}};
  const double places[][3] = {{0, 0, 0},       {0.1, 0, 0},  {0, 0, 0.2}, {0.15, 0, 0},
                              {0.1, 0.1, 0.1}, {0, 0, 1e-9}, {0, 0.3, 0}};
  const Quat<double> turns[] = {{1, 0, 0, 0},
                                {0.5, 0.5, 0.5, 0.5},
                                {0.70710678118654752, 0, 0.70710678118654752, 0},
                                {0.92387953251128674, 0, 0, 0.38268343236508977},
                                {1, 1e-9, 0, 0}};
  static const oracle::Hull box = oracle::box_hull(0.1, 0.1, 0.1);
  auto check = [](auto c) {
    auto n = c.normal;
    EXPECT_TRUE(is_finite(c.pos.x) && is_finite(c.pos.y) && is_finite(c.pos.z) && is_finite(c.dist));
    EXPECT_NEAR(n.x * n.x + n.y * n.y + n.z * n.z, 1, 1e-5);
  };
  for (auto& s : sizes)
    for (auto& r : sizes)
      for (auto& p : places)
        for (auto& q : turns) {
          Body a = {type1, {{s[0], s[1], s[2]}, {rotation(Quat<double>{1, 0, 0, 0}), {0, 0, 0}}}, &box};
          Body b = {type2, {{r[0], r[1], r[2]}, {rotation(q), {p[0], p[1], p[2]}}}, &box};
          for (auto& c : collide_bodies<float>(a, b)) check(c);
          for (auto& c : collide_bodies<double>(a, b)) check(c);
        }
}

INSTANTIATE_TEST_SUITE_P(Pairs, NarrowPhase, testing::ValuesIn(all_pairs()), pair_name);

/// Flat on a face of a box of up to 100 m, whose axes are rounded to float: every contact is at the small body.
TEST(NarrowPhaseOfFar, LeavesContactsOfWhatLiesOnALargeBoxAtTheBody) {
  for (int type : {GeomKind::kSphere, GeomKind::kCapsule, GeomKind::kEllipsoid, GeomKind::kCylinder, GeomKind::kBox,
                   GeomKind::kMesh}) {
    oracle::Poses random(700 + type);
    for (int i = 0; i < 2000; ++i) {
      Body own = random.body(type, &small_hull()), ground = random.body(GeomKind::kBox, nullptr);
      const double yaw = random.uniform(-3, 3), tilt = i % 4 == 0 ? 0 : std::pow(10, random.uniform(-7, -3));
      own.geom.pose.R = ground.geom.pose.R * rotation(normalized(Quat<double>{std::cos(yaw), tilt, 0, std::sin(yaw)}));
      Vec3<double> half = {random.uniform(1, 50), random.uniform(1, 50), random.uniform(0.1, 50)};
      ground.geom.size = {float(half.x), float(half.y), float(half.z)};
      const double height = oracle::reach(own, array(column(ground.geom.pose.R, 2) * -1.0));
      const double gap = std::pow(10, random.uniform(-8, -3)) * (i % 3 - 1);
      const Vec3<double> at = {random.uniform(-0.9, 0.9) * half.x, random.uniform(-0.9, 0.9) * half.y,
                               half.z + height + gap};
      const Vec3<double> p = ground.geom.pose.R * at;
      ground.geom.pose.p = {float(-p.x), float(-p.y), float(-p.z)};
      own.geom.pose.p = {0, 0, 0};
      const bool first = type < GeomKind::kBox || (type == GeomKind::kBox && i % 2 == 0);
      int found = 0;
      for (const auto& c : collide_bodies<float>(first ? own : ground, first ? ground : own)) {
        if (c.dist > 0.1f) continue;
        ++found;
        ASSERT_LT(norm(c.pos), 1.001 * oracle::size_of(own) + 1e-3) << "type " << type << ", pose " << i;
        EXPECT_LT(1 - std::abs(dot(c.normal, vec<float>(column(ground.geom.pose.R, 2)))), 1e-4);
      }
      EXPECT_GT(found, 0);
    }
  }
}

TEST(CandidateCount, NeverExceedsTheMost) {
  for (int a = 0; a < 8; ++a)
    for (int b = a; b < 8; ++b) EXPECT_LE(candidate_count(a, b), kMaxCandidates);
  EXPECT_EQ(candidate_count(GeomKind::kPlane, GeomKind::kPlane), 0);
  EXPECT_EQ(candidate_count(GeomKind::kHeightfield, GeomKind::kSphere), 0);
  EXPECT_EQ(candidate_count(GeomKind::kPlane, GeomKind::kBox), 8);
  for (int own = GeomKind::kSphere; own <= GeomKind::kMesh; ++own)
    for (int fixed : {GeomKind::kPlane, GeomKind::kCylinder, GeomKind::kBox, GeomKind::kMesh}) {
      EXPECT_GE(free_count(own, fixed), plane_count(own));
      EXPECT_LE(free_count(own, fixed), kMaxCandidates);
    }
  EXPECT_EQ(free_count(GeomKind::kBox, GeomKind::kEllipsoid), 1);
}

}  // namespace
}  // namespace stiction
