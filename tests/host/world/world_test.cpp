// World on the CPU: what `step` does besides physics. It allocates nothing (every operator new of the process is counted),
// and the bits of a world depend neither on the batch nor on the threads.
#include "host/world/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include "host/model/builder.h"

namespace {

std::atomic<long> allocations{0};

void* counted(std::size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
void* counted(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const std::size_t a = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes ? bytes : 1);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& t) noexcept { return operator new(bytes, t); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted(bytes, a); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return counted(bytes, a); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace stiction {
namespace {

/// A box with two hinged legs above a floor and a loose ball above the box: contacts of every kind, limits, a servo.
std::shared_ptr<const Model> walker() {
  ModelBuilder b({.timestep = 0.004});
  b.add_geom({.type = GeomType::kPlane, .size = {0, 0, 1}});
  const int base =
      b.add_body({.name = "base", .pos = {0, 0, 0.3}, .mass = 3, .inertia = box_inertia(3, {0.15, 0.1, 0.05})});
  b.add_joint({.body = base, .type = JointType::kFree});
  b.add_geom({.body = base, .type = GeomType::kBox, .size = {0.15, 0.1, 0.05}});
  for (int side : {-1, 1}) {
    const int leg = b.add_body({.parent = base,
                                .pos = {0.2 * side, 0, 0},
                                .mass = 0.5,
                                .inertia = capsule_inertia(0.5, 0.03, 0.1),
                                .ipos = {0, 0, -0.12}});
    const int hinge =
        b.add_joint({.body = leg, .axis = {0, 1, 0}, .range = Range{-0.5, 0.5}, .damping = 0.1, .armature = 0.01});
    b.add_geom({.body = leg, .type = GeomType::kCapsule, .size = {0.03, 0.1, 0}, .pos = {0, 0, -0.12}});
    b.add_actuator({.joint = hinge, .gain = 5, .bias = {0, -5, -0.2}});
  }
  const int ball =
      b.add_body({.name = "ball", .pos = {0.02, 0, 0.6}, .mass = 0.4, .inertia = sphere_inertia(0.4, 0.06)});
  b.add_joint({.body = ball, .type = JointType::kFree});
  b.add_geom({.body = ball, .size = {0.06, 0, 0}});
  return std::make_shared<const Model>(b.build());
}

/// Each environment starts in one of five ways.
void start(World& world, const std::vector<int>& order) {
  float* v = static_cast<float*>(world.array("qvel").data);
  float* u = static_cast<float*>(world.array("ctrl").data);
  const int nv = world.model().nv, nu = world.model().nu;
  for (std::size_t e = 0; e < order.size(); ++e) {
    for (int i = 0; i < nv; ++i) v[e * nv + i] = 0.1f * static_cast<float>((order[e] * 7 + i * 3) % 5 - 2);
    for (int i = 0; i < nu; ++i) u[e * nu + i] = 0.2f * static_cast<float>(order[e] - 2);
  }
}

std::vector<unsigned char> state_of(World& world, int env) {
  std::vector<unsigned char> bytes;
  for (const char* name : {"qpos", "qvel"}) {
    ArrayView a = world.array(name);
    const std::size_t row = a.shape[1] * sizeof(float);
    const auto* from = static_cast<const unsigned char*>(a.data) + env * row;
    bytes.insert(bytes.end(), from, from + row);
  }
  return bytes;
}

std::vector<std::vector<unsigned char>> run(const std::vector<int>& order, const std::string& isa, int threads) {
  WorldOptions options;
  options.num_envs = static_cast<int>(order.size()), options.isa = isa, options.num_threads = threads;
  auto world = World::create(walker(), options);
  start(*world, order);
  world->step(80);
  std::vector<std::vector<unsigned char>> states;
  for (int e = 0; e < options.num_envs; ++e) states.push_back(state_of(*world, e));
  return states;
}

TEST(World, StepAllocatesNothing) {
  for (bool float64 : {false, true}) {
    WorldOptions options;
    options.num_envs = 37, options.num_threads = 2, options.float64 = float64;
    options.step.certify = 1e-7;  // so that the fallback has work
    auto world = World::create(walker(), options);
    for (const char* watched : {"xpos", "contact.count", "net_contact_force"}) world->array(watched);
    world->step(1);
    const long before = allocations;
    world->step(150);
    for (int i = 0; i < 50; ++i) world->step(1);
    EXPECT_EQ(allocations - before, 0) << (float64 ? "double" : "float");
    // The counter counts, and there was something to do.
    ::operator delete(::operator new(1));  // a new expression could be left out
    EXPECT_EQ(allocations - before, 1);
    const int* status = static_cast<const int*>(world->array("status").data);
    EXPECT_TRUE(std::any_of(status, status + options.num_envs, [](int bits) { return bits & kFallback; }));
    const int* count = static_cast<const int*>(world->array("contact.count").data);
    EXPECT_TRUE(std::any_of(count, count + options.num_envs, [](int n) { return n >= 3; }));
  }
}

TEST(World, IsBatchInvariant) {
  const auto alone = [](const std::string& isa) {
    std::vector<std::vector<unsigned char>> states;
    for (int i = 0; i < 5; ++i) states.push_back(run({i}, isa, 1)[0]);
    return states;
  };
  const auto expected = alone("scalar");
  for (int i = 1; i < 5; ++i) EXPECT_NE(expected[i], expected[0]);
  for (const std::string& isa : available_isas()) {
    EXPECT_EQ(alone(isa), expected) << isa;
    for (int threads : {1, 2}) {
      std::vector<int> order;
      for (int e = 0; e < 35; ++e) order.push_back((3 * e + threads) % 5);
      const auto found = run(order, isa, threads);
      for (std::size_t e = 0; e < order.size(); ++e)
        EXPECT_EQ(found[e], expected[order[e]]) << isa << ", environment " << e;
    }
  }
}

TEST(World, RejectsOptionsByName) {
  const auto message = [](auto change) {
    WorldOptions options;
    change(options);
    try {
      World::create(walker(), options);
    } catch (const std::invalid_argument& error) { return std::string(error.what()); }
    return std::string("accepted");
  };
  EXPECT_NE(message([](WorldOptions& o) { o.num_envs = 0; }).find("num_envs is 0"), std::string::npos);
  EXPECT_NE(message([](WorldOptions& o) { o.isa = "neon"; }).find("isa is 'neon'"), std::string::npos);
  EXPECT_NE(message([](WorldOptions& o) { o.step.h = -1; }).find("timestep is -1"), std::string::npos);
  EXPECT_NE(message([](WorldOptions& o) { o.step.iterations = -3; }).find("iterations is -3"), std::string::npos);
  EXPECT_EQ(message([](WorldOptions&) {}), "accepted");
}

}  // namespace
}  // namespace stiction
