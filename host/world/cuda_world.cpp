#include "host/world/cuda_world.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "host/world/world_options.h"
#include "step/export.h"
#include "step/record_state.h"

#if STICTION_WITH_CUDA
#include "kernels/device.h"
#include "kernels/launches.h"

namespace stiction {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw std::invalid_argument(text); }

/// A model's tables where the device reaches them.
class DeviceTables {
 public:
  explicit DeviceTables(ModelTables<float>& from) {
    ModelView<Capacity, float>& to = *static_cast<ModelView<Capacity, float>*>(keep(&from.view, sizeof(from.view)));
    to.probe = copy(from.probe), to.plane = copy(from.plane), to.geom = copy(from.geom), to.pair = copy(from.pair);
    to.link_pair = copy(from.link_pair), to.actuator = copy(from.actuator), to.tie = copy(from.tie);
    to.body = copy(from.body), to.site = copy(from.site);
    const float* vert = copy(from.hull_vert);
    const int *edgeadr = copy(from.hull_edgeadr), *edge = copy(from.hull_edge);
    std::vector<HullView<float>> hulls = from.hull;
    for (HullView<float>& h : hulls) {
      h.vert = vert + (h.vert - from.hull_vert.data());
      if (h.edgeadr != nullptr) h.edgeadr = edgeadr + (h.edgeadr - from.hull_edgeadr.data());
      h.edge = edge;
    }
    to.hull = copy(hulls);
    view_ = &to;
  }
  const ModelView<Capacity, float>* view() const { return view_; }

 private:
  void* keep(const void* from, size_t bytes) {
    memory_.push_back(managed_memory(bytes));
    if (bytes) std::memcpy(memory_.back().get(), from, bytes);
    return memory_.back().get();
  }
  template <class T>
  const T* copy(const std::vector<T>& from) {
    return static_cast<const T*>(keep(from.data(), from.size() * sizeof(T)));
  }
  std::vector<std::shared_ptr<void>> memory_;
  const ModelView<Capacity, float>* view_ = nullptr;
};

/// A model of its own for each tile that steps at once, for parameters that differ between environments: `count` ParameterTables,
/// and behind them what they point to.
std::shared_ptr<void> own_models(const ModelView<Capacity, float>& m, int count) {
  using Tables = ParameterTables<Capacity, float>;
  auto padded = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  const size_t probes = padded(m.probes * sizeof(*m.probe)), geoms = padded(m.ngeom * sizeof(*m.geom)),
               pairs = padded(m.pairs * sizeof(*m.pair)), actuators = padded(m.actuators * sizeof(*m.actuator)),
               ties = padded(m.ties * sizeof(*m.tie));
  const size_t tables = padded(count * sizeof(Tables));
  auto memory = managed_memory(tables + count * (probes + geoms + pairs + actuators + ties));
  auto* own = static_cast<Tables*>(memory.get());
  auto* free = static_cast<unsigned char*>(memory.get()) + tables;
  auto copy = [&](auto*& to, const auto* from, int items, size_t bytes) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(free);
    std::copy_n(from, items, to);
    free += bytes;
  };
  for (int i = 0; i < count; ++i) {
    own[i].view = m;
    copy(own[i].probe, m.probe, m.probes, probes), copy(own[i].geom, m.geom, m.ngeom, geoms);
    copy(own[i].pair, m.pair, m.pairs, pairs), copy(own[i].actuator, m.actuator, m.actuators, actuators);
    copy(own[i].tie, m.tie, m.ties, ties);
    own[i].view.probe = own[i].probe, own[i].view.geom = own[i].geom;
    own[i].view.pair = own[i].pair, own[i].view.actuator = own[i].actuator;
    own[i].view.tie = own[i].tie;
  }
  return memory;
}

class CudaWorld final : public World {
 public:
  CudaWorld(std::shared_ptr<const Model> model, const WorldOptions& options)
      : World(std::move(model), options),
        tables_(convert<float>(*compile(*model_))),
        device_tables_(*tables_),
        layout_(tables_->view) {
    records_ = managed_memory(sizeof(float) * record_size() * num_envs());
    reset_rows_ = make_reset_rows<float>();
    job_.options = options_in<float>({options_.step, options_.solver});
    const auto sizes = WorldMemory::sizes<float>(tables_->view, job_.options);
    job_.plan = plan_launches<float>(num_envs(), sizes.total());
    workspace_ = device_memory(job_.plan.workspace_bytes);
    solver_memory_ = device_memory(job_.plan.step_tiles * sizes.total());
    max_contacts_ =
        options_.max_contacts ? options_.max_contacts : tables_->view.world_slots + tables_->view.pair_slots;
    const int64_t n = num_envs(), c = max_contacts_;
    add("contact.geom", DType::kInt32, {n, c, 2}, false), add("contact.pos", DType::kFloat32, {n, c, 3}, false);
    add("contact.frame", DType::kFloat32, {n, c, 3, 3}, false), add("contact.dist", DType::kFloat32, {n, c}, false);
    add("contact.impulse", DType::kFloat32, {n, c, 3}, false), add("contact.active", DType::kBool, {n, c}, false);
    add("contact.count", DType::kInt32, {n}, false),
        add("net_contact_force", DType::kFloat32, {n, model_->nbody, 3}, false);
    make_job();
    reset(nullptr);
  }

  void step(int n) override {
    if (n < 0) refuse("n is " + std::to_string(n) + ", expected >= 0");
    if (n == 0) return;
    job_.steps = n;
    launch_step(job_);
    update_watched();
  }
  void wait() const override { synchronize(); }
  void set_stream(void* stream) override { job_.stream = stream; }
  void* stream() const override { return job_.stream; }
  DenseProblem<double> contact_problem(int) override {
    refuse("contact_problem is computed on the CPU only: set this state in a simulation with device='cpu'");
  }
  void previous_state(int env, double* qpos, double* qvel) const override {
    wait();
    const float* record = records() + env * record_size();
    state_of_record(tables_->view, [&](int i) { return record[i]; }, qpos, qvel);
  }
  int64_t record_size() const override { return layout_.reals(); }
  void get_records(double* rows) const override {
    wait();
    for (int64_t i = 0; i < record_size() * num_envs(); ++i) rows[i] = records()[i];
  }
  void set_records(const double* rows) override {
    wait();
    for (int64_t i = 0; i < record_size() * num_envs(); ++i) records()[i] = static_cast<float>(rows[i]);
    if (watch_contacts_) update_contacts(nullptr);
  }
  std::string isa() const override { return "cuda"; }
  int pack_width() const override { return 1; }

 protected:
  void update_kinematics(const uint8_t* mask) override { launch_kinematics(job_, mask); }
  void update_contacts(const uint8_t* mask) override { launch_contacts(job_, contact_arrays_, max_contacts_, mask); }
  void reset_rows(const uint8_t* mask, int keyframe) override { launch_reset(job_, reset_rows_, mask, keyframe); }

 private:
  float* records() const { return static_cast<float*>(records_.get()); }

  void make_job() {
    job_.model = device_tables_.view(), job_.workspace = workspace_.get(), job_.steps = 1;
    job_.solver_memory = solver_memory_.get();
    BatchArrays<float>& a = job_.arrays;
    a.num_envs = num_envs(), a.records = records();
    a.qpos = buffer("qpos").as<float>(), a.qvel = buffer("qvel").as<float>(), a.ctrl = buffer("ctrl").as<float>();
    a.qfrc_applied = buffer("qfrc_applied").as<float>(), a.xfrc_applied = buffer("xfrc_applied").as<float>();
    a.time = buffer("time").as<double>(), a.status = buffer("status").as<int>();
    for (int f = 0; f < kCertificateFields; ++f)
      a.certificate[f] = buffer(std::string("certificate.") + kCertificateNames[f]).as<float>();
    contact_arrays_ = {buffer("contact.geom").as<int>(),       buffer("contact.pos").as<float>(),
                       buffer("contact.frame").as<float>(),    buffer("contact.dist").as<float>(),
                       buffer("contact.impulse").as<float>(),  buffer("contact.active").as<uint8_t>(),
                       buffer("contact.count").as<int>(),      buffer("net_contact_force").as<float>(),
                       static_cast<float>(1 / options_.step.h)};
    job_.parameters = parameter_arrays<float>();
    own_models_ = options_.per_env.empty() ? nullptr : own_models(*job_.model, job_.plan.step_tiles);
    job_.own_models = static_cast<ParameterTables<Capacity, float>*>(own_models_.get());
    job_.outputs = {buffer("xpos").as<float>(), buffer("xquat").as<float>(), buffer("body_linvel").as<float>(),
                    buffer("body_angvel").as<float>(), buffer("site_xpos").as<float>()};
  }

  std::unique_ptr<ModelTables<float>> tables_;
  DeviceTables device_tables_;
  RecordLayout<ModelView<Capacity, float>> layout_;
  std::shared_ptr<void> records_, workspace_, solver_memory_, own_models_;
  ResetRows<float> reset_rows_{};
  ContactArrays<float> contact_arrays_{};
  CudaJob<float> job_{};
};

}  // namespace

std::unique_ptr<World> create_cuda_world(std::shared_ptr<const Model> model, const WorldOptions& options) {
  const std::string missing = cuda_unavailable();
  if (!missing.empty()) refuse("device is 'cuda', but there is " + missing);
  if (options.float64) refuse("dtype is 'float64', but simulations on CUDA are in float32: use device='cpu'");
  return std::make_unique<CudaWorld>(std::move(model), options);
}

std::shared_ptr<void> device_reachable_memory(size_t bytes) { return managed_memory(bytes); }

}  // namespace stiction

#else

namespace stiction {

std::unique_ptr<World> create_cuda_world(std::shared_ptr<const Model>, const WorldOptions&) {
  throw std::invalid_argument(
      "device is 'cuda', but this is no CUDA build: rebuild with STICTION_CUDA=ON and nvcc on PATH, or "
      "use device='cpu'");
}
std::shared_ptr<void> device_reachable_memory(size_t) { return nullptr; }

}  // namespace stiction

#endif
