// One batch of worlds in double or float, stepped by any Group and Shape on the CPU: what executions are compared with.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "host/model/compile.h"
#include "step/solve_rows.h"
#include "step/step_world.h"
#include "tests/support/tile_emulator.h"

namespace stiction::testing {

/// Users' arrays of N worlds, of number type T.
template <class T>
struct Batch {
  int worlds;
  std::vector<T> qpos, qvel, ctrl, force, wrench, mocap_pos, mocap_quat, records, certificate;
  std::vector<double> time;
  std::vector<int> status;
  int record = 0;

  Batch(const Model& m, int record_size, int n, unsigned seed, double speed, bool loads)
      : worlds(n),
        qvel(n * m.nv),
        ctrl(n * m.nu),
        force(n * m.nv),
        wrench(n * m.nbody * 6),
        records(n * record_size),
        certificate(n * kCertificateFields),
        time(n),
        status(n),
        record(record_size) {
    std::mt19937 random(seed);
    auto draw = [&] { return std::uniform_real_distribution<double>(-1, 1)(random); };
    for (int w = 0; w < n; ++w) {
      std::vector<double> q(m.qpos0);
      for (int j = 0; j < m.njnt; ++j) {
        const int a = m.jnt_qposadr[j];
        const auto type = static_cast<JointType>(m.jnt_type[j]);
        if (type == JointType::kHinge || type == JointType::kSlide) q[a] += 0.4 * draw();
        if (type == JointType::kFree) q[a + 2] += 0.05 * draw();
        if (type == JointType::kFree || type == JointType::kBall) {
          const int s = type == JointType::kFree ? a + 3 : a;
          double norm = 0;
          for (int i = 0; i < 4; ++i) q[s + i] += 0.2 * draw(), norm += q[s + i] * q[s + i];
          for (int i = 0; i < 4; ++i) q[s + i] /= std::sqrt(norm);
        }
      }
      qpos.insert(qpos.end(), q.begin(), q.end());
      for (int body = 0; body < m.nbody; ++body) {
        if (m.body_mocapid[body] < 0) continue;
        const double *p = &m.body_pos[3 * body], *turn = &m.body_quat[4 * body];
        mocap_pos.insert(mocap_pos.end(), p, p + 3), mocap_quat.insert(mocap_quat.end(), turn, turn + 4);
      }
    }
    for (T& v : qvel) v = static_cast<T>(speed * draw());
    for (T& u : ctrl) u = static_cast<T>(draw());
    if (!loads) return;
    for (T& f : force) f = static_cast<T>(0.5 * draw());
    for (T& f : wrench) f = static_cast<T>(2 * draw());
  }
  BatchArrays<T> arrays() {
    BatchArrays<T> a;
    a.num_envs = worlds, a.qpos = qpos.data(), a.qvel = qvel.data(), a.ctrl = ctrl.data(), a.time = time.data();
    a.qfrc_applied = force.data(), a.xfrc_applied = wrench.data(), a.status = status.data(), a.records = records.data();
    a.mocap_pos = mocap_pos.data(), a.mocap_quat = mocap_quat.data();
    for (int f = 0; f < kCertificateFields; ++f) a.certificate[f] = certificate.data() + f * worlds;
    return a;
  }
  T field(CertificateField f, int world) const { return certificate[f * worlds + world]; }
};

/// A workspace that starts as garbage: nothing may be read before it is written.
template <class W>
std::unique_ptr<W> poisoned() {
  auto w = std::unique_ptr<W>(new W);
  auto* bytes = reinterpret_cast<unsigned char*>(w.get());
  for (size_t i = 0; i < sizeof(W); ++i) bytes[i] = 0xff;  // NaN
  return w;
}

/// Memory of a world, poisoned too, for options as they are asked for.
template <class T, class Model>
struct PoisonedMemory {
  std::vector<T> numbers;
  MemorySizes sizes;
  PoisonedMemory(const Model& m, const StepOptions<T>& o) : sizes(memory_sizes<T>(m, o)) {
    numbers.resize(static_cast<size_t>(sizes.total()) / sizeof(T) + 64);
    std::memset(numbers.data(), 0xff, numbers.size() * sizeof(T));
  }
  WorldMemory memory() { return world_memory(numbers.data(), sizes); }
};

/// `steps` steps of a pack of worlds by the lanes of a group.
template <class L>
void step_batch(const typename L::Group& g, const typename L::Model& m, const SteppedWorlds<L>& worlds, int steps,
                Workspace<L>& w) {
  using Real = typename L::Real;
  StepState<L> s;
  begin_steps<L>(g, m, worlds, w, s);
  while (take_steps<L>(g, m, worlds, steps, w, s)) {
    auto state = [&](int) -> StepState<L>& { return s; };
    improve_posed<Real, true>(g, worlds.options, 1, state, w.memory.fallback);
    g.sync();
    settle<L>(g, m, worlds, w, s);
  }
  end_steps<L>(g, m, worlds, steps, s);
}

template <class L, class T>
void step_serial(const typename L::Model& m, const StepOptions<T>& opt, Batch<T>& b, int steps) {
  auto w = poisoned<Workspace<L>>();
  PoisonedMemory<T, typename L::Model> memory(m, opt);
  w->bind(memory.memory());
  for (int i = 0; i < b.worlds; ++i)
    step_batch<L>(Serial{}, m, {opt, b.arrays(), Rows<T>{i, b.worlds}, {b.records.data() + i * b.record}}, steps, *w);
}

/// L::Group: TileEmulator<T>. Checks that all lanes hold the same trunk, bit for bit.
template <class L, class T>
void step_tiles(const typename L::Model& m, const StepOptions<T>& opt, Batch<T>& b, int steps, unsigned seed = 1) {
  using Group = typename L::Group;
  std::vector<std::unique_ptr<Workspace<L>>> lane(Group::kSize);
  PoisonedMemory<T, typename L::Model> memory(m, opt);
  for (auto& w : lane) w = poisoned<Workspace<L>>(), w->bind(memory.memory());
  for (int i = 0; i < b.worlds; ++i) {
    auto body = [&](const Group& g) {
      step_batch<L>(g, m, {opt, b.arrays(), Rows<T>{i, b.worlds}, {b.records.data() + i * b.record}}, steps,
                    *lane[g.rank()]);
    };
    Group::run(body, seed + i);
    for (int r = 1; r < Group::kSize; ++r) {
      EXPECT_EQ(std::memcmp(lane[r]->v.trunk, lane[0]->v.trunk, sizeof(T) * m.trunk_dofs()), 0) << "lane " << r;
      for (int t = 0; t < m.trunk_links(); ++t)
        EXPECT_EQ(std::memcmp(&lane[r]->kin.pose.trunk[t], &lane[0]->kin.pose.trunk[t], sizeof(Pose<T>)), 0)
            << "lane " << r;
    }
  }
}

/// The largest difference, relative to the larger of 1 and the numbers.
template <class T>
double difference(const std::vector<T>& a, const std::vector<T>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    const double d = std::abs(x - y) / std::max({1.0, std::abs(x), std::abs(y)});
    worst = std::isnan(d) ? 1e300 : std::max(worst, d);
  }
  return worst;
}

}  // namespace stiction::testing
