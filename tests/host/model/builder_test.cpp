// ModelBuilder: builds the scene of small_scene.xml and compares every array with what MuJoCo compiles that file to
// (small_scene.arrays, which tests/python/test_model_import.py checks against the live compiler).
#include "host/model/builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "host/model/fields.h"

namespace stiction {
namespace {

/// Lines "name entry entry ..." as name -> entries.
std::map<std::string, std::vector<std::string>> read_arrays(const std::string& file) {
  std::ifstream in(std::filesystem::path(__FILE__).parent_path() / file);
  std::map<std::string, std::vector<std::string>> arrays;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (std::string word; words >> word;) arrays[name].push_back(word);
    arrays[name];
  }
  return arrays;
}

void add_bodies(ModelBuilder& b) {
  b.add_body({.name = "crate",
              .pos = {0, 0, 1},
              .quat = {2, 0, 0, 1},
              .mass = 2,
              .inertia = {0.02, 0.03, 0.04},
              .ipos = {0.01, 0, 0},
              .gravcomp = 0.25});
  const int cart = b.add_body({.name = "cart", .pos = {1, 0, 0.5}, .mass = 1, .inertia = {0.01, 0.01, 0.01}});
  const int pole = b.add_body({.name = "pole",
                               .parent = cart,
                               .pos = {0, 0, 0.1},
                               .mass = 0.5,
                               .inertia = {0.02, 0.02, 0.001},
                               .ipos = {0, 0, 0.25},
                               .iquat = {1, 0.1, 0, 0}});
  const int ring =
      b.add_body({.name = "ring", .parent = pole, .pos = {0, 0, 0.5}, .mass = 0.1, .inertia = {1e-4, 1e-4, 1.5e-4}});
  b.add_body({.name = "bob", .parent = ring, .mass = 0.2, .inertia = {1e-3, 1e-3, 1e-3}, .ipos = {0, 0, -0.1}});
}

void add_joints_and_geoms(ModelBuilder& b) {
  const int crate = 1, cart = 2, pole = 3, ring = 4, bob = 5;
  b.add_joint({.name = "crate_free", .body = crate, .type = JointType::kFree});
  b.add_joint({.name = "rail",
               .body = cart,
               .type = JointType::kSlide,
               .axis = {1, 0, 0},
               .range = Range{-1, 1.5},
               .ref = 0.1,
               .damping = 0.5,
               .frictionloss = 0.2});
  b.add_joint({.name = "pivot",
               .body = pole,
               .pos = {0, 0, -0.05},
               .axis = {0, 3, 4},
               .springref = 0.2,
               .stiffness = 3,
               .armature = 0.01,
               .actuatorfrcrange = Range{-5, 5}});
  b.add_joint({.name = "socket", .body = bob, .type = JointType::kBall, .damping = 0.02});
  b.add_geom({.name = "floor", .type = GeomType::kPlane, .size = {0, 0, 1}, .friction = 0.8});
  b.add_geom({.name = "crate_box",
              .body = crate,
              .type = GeomType::kBox,
              .size = {0.1, 0.15, 0.2},
              .condim = 4,
              .priority = 1});
  b.add_geom({.body = crate, .size = {0.05, 0, 0}, .pos = {0, 0, 0.2}, .contype = 2, .conaffinity = 3});
  b.add_geom({.name = "cart_cylinder",
              .body = cart,
              .type = GeomType::kCylinder,
              .size = {0.1, 0.05, 0},
              .quat = {1, 1, 0, 0}});
  b.add_geom(
      {.name = "pole_capsule", .body = pole, .type = GeomType::kCapsule, .size = {0.03, 0.2, 0}, .pos = {0, 0, 0.25}});
  b.add_geom({.body = ring, .type = GeomType::kEllipsoid, .size = {0.05, 0.05, 0.02}});
}

Model small_scene() {
  ModelBuilder b({.timestep = 0.005, .gravity = {0, 0, -9.8}, .disableflags = kDisableFilterparent});
  add_bodies(b);
  add_joints_and_geoms(b);
  b.add_site({.name = "mark", .pos = {0.5, 0, 0}});
  b.add_site({.name = "tip", .body = 4, .pos = {0, 0, 0.1}, .quat = {0, 1, 0, 0}});
  b.add_pair({.geom1 = 0, .geom2 = 4, .friction = 0.3});
  b.add_exclude({.body1 = 1, .body2 = 2});
  const int belt = b.add_tendon(
      {.name = "belt", .terms = {{1, 2.0}, {2, -0.5}}, .stiffness = 10, .damping = 0.3, .range = Range{-0.5, 0.5}});
  b.add_equality({.joint1 = 2, .joint2 = 1, .coefficients = {0.1, 2, 0, 0, 0.5}, .active = false});
  b.add_actuator({.name = "push", .joint = 1, .gear = {20}, .ctrlrange = Range{-1, 1}});
  b.add_actuator({.name = "servo", .joint = 2, .gain = 30, .bias = {0, -30, -2}, .forcerange = Range{-4, 4}});
  b.add_actuator({.name = "winch", .tendon = belt, .gain = 1.5, .bias = {0, 0, -1.5}});
  b.add_keyframe(
      {.name = "low", .qpos = {0, 0, 0.3, 1, 0, 0, 0, 0.2, 0.3, 1, 0, 0, 0}, .qvel = {}, .ctrl = {0.5, 0.1, 0}});
  b.add_keyframe({.name = "still"});
  return b.build();
}

TEST(ModelBuilder, MatchesMuJoCosCompilationOfTheSameScene) {
  const Model m = small_scene();
  const auto expected = read_arrays("small_scene.arrays");
  ASSERT_GT(expected.size(), 80u);
  visit_sizes(m,
              [&](const char* name, int count) { EXPECT_EQ(std::to_string(count), expected.at(name).at(0)) << name; });
  visit_fields(m, [&](const char* name, const auto& field, int, int) {
    const std::vector<std::string>& entries = expected.at(name);
    ASSERT_EQ(field.size(), entries.size()) << name;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(field[i]), std::stod(entries[i]), 1e-15) << name << "[" << i << "]";
    }
  });
  visit_names(m, [&](const char* name, const Names& names, int) {
    const std::vector<std::string>& entries = expected.at(name);
    ASSERT_EQ(names.size(), entries.size()) << name;
    for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i].empty() ? "-" : names[i], entries[i]) << name;
  });
  EXPECT_EQ(m.timestep, std::stod(expected.at("timestep").at(0)));
  EXPECT_EQ(m.gravity[2], std::stod(expected.at("gravity").at(2)));
  EXPECT_EQ(std::to_string(m.disableflags), expected.at("disableflags").at(0));
}

/// Moments of a homogeneous solid of revolution about its centre by quadrature of discs: (across, along).
std::array<double, 2> quadrature(double mass, double top, double (*radius_squared)(double)) {
  const int n = 20000;
  double volume = 0, across = 0, along = 0;
  for (int i = 0; i < n; ++i) {
    const double z = top * (2 * (i + 0.5) / n - 1), r2 = radius_squared(z);
    volume += r2, along += r2 * r2 / 2, across += r2 * (r2 / 4 + z * z);
  }
  return {mass * across / volume, mass * along / volume};
}

TEST(ModelBuilder, InertiaOfSolidsMatchesQuadrature) {
  const double r = 0.3, h = 0.7, mass = 2.5;
  const auto capsule = quadrature(mass, h + r, [](double z) {
    const double beyond = std::max(std::abs(z) - 0.7, 0.0);
    return 0.09 - beyond * beyond;
  });
  const auto cylinder = quadrature(mass, h, [](double) { return 0.09; });
  const auto ellipsoid = quadrature(mass, h, [](double z) { return 0.09 * (1 - z * z / 0.49); });
  EXPECT_NEAR(capsule_inertia(mass, r, h)[0], capsule[0], 1e-8);
  EXPECT_NEAR(capsule_inertia(mass, r, h)[2], capsule[1], 1e-8);
  EXPECT_NEAR(cylinder_inertia(mass, r, h)[1], cylinder[0], 1e-8);
  EXPECT_NEAR(cylinder_inertia(mass, r, h)[2], cylinder[1], 1e-8);
  EXPECT_NEAR(ellipsoid_inertia(mass, {r, r, h})[0], ellipsoid[0], 1e-8);
  EXPECT_NEAR(ellipsoid_inertia(mass, {r, r, h})[2], ellipsoid[1], 1e-8);
  EXPECT_NEAR(sphere_inertia(mass, r)[1], 0.4 * mass * r * r, 1e-15);
  // A cube of side 1: m/6 about every axis.
  EXPECT_NEAR(box_inertia(6, {0.5, 0.5, 0.5})[0], 1, 1e-15);
  EXPECT_NEAR(box_inertia(12, {0.1, 0.5, 1})[2], 12 * (0.04 + 1.0) / 12, 1e-15);
}

TEST(ModelBuilder, MeshNeighboursAreTheHullsEdges) {
  ModelBuilder b;
  const int mesh = b.add_mesh({.vertices = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
                               .triangles = {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {0, 3, 2}}});
  b.add_geom({.type = GeomType::kMesh, .mesh = mesh});
  const Model m = b.build();
  EXPECT_EQ(m.mesh_edgeadr, (Ints{0, 3, 6, 9, 12}));
  EXPECT_EQ(m.mesh_edge, (Ints{1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2}));
}

/// The message of the std::invalid_argument that `action` throws; fails the test if it throws none.
template <class F>
std::string message_of(F&& action) {
  try {
    action();
  } catch (const std::invalid_argument& error) { return error.what(); }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(ModelBuilder, RejectsWhatIsNotThereByName) {
  ModelBuilder b;
  const int body = b.add_body({.name = "arm", .mass = 1, .inertia = {1, 1, 1}});
  const int late = b.add_body({.name = "hand", .parent = body, .mass = 1, .inertia = {1, 1, 1}});
  EXPECT_EQ(message_of([&] { b.add_body({.name = "x", .parent = 7}); }),
            "body 'x': parent is 7, expected one of the 3 added");
  b.add_joint({.name = "wrist", .body = late, .type = JointType::kBall});
  EXPECT_NE(message_of([&] { b.add_joint({.name = "elbow", .body = body}); }).find("in body order"), std::string::npos);
  EXPECT_NE(message_of([&] { b.add_joint({.name = "e", .body = late, .axis = {0, 0, 0}}); }).find("axis has norm 0"),
            std::string::npos);
  EXPECT_NE(message_of([&] { b.add_tendon({.name = "t", .terms = {{0, 1.0}}}); }).find("free or ball"),
            std::string::npos);
  EXPECT_NE(message_of([&] { b.add_actuator({.name = "a"}); }).find("expected exactly one"), std::string::npos);
  EXPECT_NE(message_of([&] { b.add_geom({.name = "g", .type = GeomType::kMesh}); }).find("mesh is -1"),
            std::string::npos);
  b.add_keyframe({.name = "home", .qpos = {1}});
  EXPECT_EQ(message_of([&] { b.build(); }), "keyframe 'home': qpos has 1 entries, expected 4");
}

}  // namespace
}  // namespace stiction
