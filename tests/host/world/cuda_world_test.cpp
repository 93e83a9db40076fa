// World on CUDA where it cannot be had: what it says. Where it can: steps against the CPU.
#include "host/world/cuda_world.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "tests/step/tile_models.h"

#if STICTION_WITH_CUDA
#include "kernels/device.h"
#endif

namespace stiction {
namespace {

std::string missing() {
#if STICTION_WITH_CUDA
  return cuda_unavailable(kCurrentDevice);
#else
  return "build";
#endif
}

std::unique_ptr<World> make(const Model& model, bool cuda, int num_envs = 33) {
  WorldOptions o;
  o.num_envs = num_envs, o.cuda = cuda, o.step.h = 0, o.step.fallback = 0, o.step.tolerance = 0;
  o.solver.options.first.anderson = 0;
  return World::create(std::make_shared<Model>(model), o);
}

TEST(CudaWorld, RejectsByNameWhatIsMissing) {
  if (missing().empty()) GTEST_SKIP() << "there is a GPU";
  try {
    make(testing::legged({}).build(), true);
    FAIL() << "expected std::invalid_argument";
  } catch (const std::invalid_argument& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("device is 'cuda', but "), std::string::npos) << text;
    EXPECT_NE(text.find("use device='cpu'"), std::string::npos) << text;
  }
}

/// Random controls for some steps; returns qvel.
std::vector<float> run(World& w, int steps) {
  const ArrayView ctrl = w.host_array("ctrl"), qvel = w.host_array("qvel");
  auto* u = static_cast<float*>(ctrl.data);
  for (int s = 0; s < steps; ++s) {
    for (int64_t i = 0; i < ctrl.shape[0] * ctrl.shape[1]; ++i) u[i] = std::sin(0.37f * static_cast<float>(i * 7 + s));
    w.step(2);
    w.wait();
  }
  const auto* v = static_cast<const float*>(qvel.data);
  return {v, v + qvel.shape[0] * qvel.shape[1]};
}

TEST(CudaWorld, StepsAsTheCpuDoes) {
  if (!missing().empty()) GTEST_SKIP() << missing();
  for (const Model& model : {testing::legged({}).build(), testing::menagerie()}) {
    auto cpu = make(model, false), cuda = make(model, true);
    const std::vector<float> a = run(*cpu, 2), b = run(*cuda, 2);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4 * std::max(1.0f, std::abs(a[i])));
  }
}

TEST(CudaWorld, RepeatsItselfBitForBitWhateverTheBatch) {
  if (!missing().empty()) GTEST_SKIP() << missing();
  const Model model = testing::legged({}).build();
  auto first = make(model, true, 33), again = make(model, true, 33), small = make(model, true, 3);
  const std::vector<float> a = run(*first, 20), b = run(*again, 20);
  EXPECT_EQ(a, b);
  const std::vector<float> c = run(*small, 20);  // the controls of its first world are those of the others' first
  EXPECT_EQ(std::memcmp(a.data(), c.data(), sizeof(float) * model.nv), 0);
}

}  // namespace
}  // namespace stiction
