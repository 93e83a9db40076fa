#include "host/world/cuda_world.h"

#include <cstring>
#include <stdexcept>

#include "host/world/contact_export.h"
#include "host/world/record_state.h"
#include "host/world/world_options.h"

#if STICTION_WITH_CUDA
#include "host/backend/cuda/device.h"
#include "host/backend/cuda/kernels.h"

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

class CudaWorld final : public World {
 public:
  CudaWorld(std::shared_ptr<const Model> model, const WorldOptions& options)
      : World(std::move(model), options),
        tables_(convert<float>(*compile(*model_))),
        device_tables_(*tables_),
        layout_(tables_->view) {
    records_ = managed_memory(sizeof(float) * record_size() * num_envs());
    job_.plan = plan_launches<float>(num_envs());
    workspace_ = device_memory(job_.plan.workspace_bytes);
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
    synchronize();
    update_watched();
  }
  DenseProblem<double> contact_problem(int) override {
    refuse("contact_problem is computed on the CPU only: set this state in a simulation with device='cpu'");
  }
  void previous_state(int env, double* qpos, double* qvel) const override {
    const float* record = records() + env * record_size();
    state_of_record(tables_->view, [&](int i) { return record[i]; }, qpos, qvel);
  }
  int64_t record_size() const override { return layout_.reals(); }
  void get_records(double* rows) const override {
    for (int64_t i = 0; i < record_size() * num_envs(); ++i) rows[i] = records()[i];
  }
  void set_records(const double* rows) override {
    for (int64_t i = 0; i < record_size() * num_envs(); ++i) records()[i] = static_cast<float>(rows[i]);
    if (watch_contacts_) update_contacts(nullptr);
  }
  std::string isa() const override { return "cuda"; }
  int pack_width() const override { return 1; }

 protected:
  void update_kinematics(const uint8_t*) override {
    launch_kinematics(job_);
    synchronize();
  }
  void update_contacts(const uint8_t* mask) override {
    const ContactArrays<float> out{buffer("contact.geom").as<int>(),       buffer("contact.pos").as<float>(),
                                   buffer("contact.frame").as<float>(),    buffer("contact.dist").as<float>(),
                                   buffer("contact.impulse").as<float>(),  buffer("contact.active").as<uint8_t>(),
                                   buffer("contact.count").as<int>(),      buffer("net_contact_force").as<float>(),
                                   static_cast<float>(1 / options_.step.h)};
    auto work = [&](int, int first, int last) {
      for (int64_t e = first; e < last; ++e)
        if (mask == nullptr || mask[e])
          export_contacts(
              tables_->view, e, [&](int i) { return records()[e * record_size() + i]; }, max_contacts_, out);
    };
    threads_->run(num_envs(), work);
  }
  void clear_records(const uint8_t* mask) override {
    for (int64_t e = 0; e < num_envs(); ++e) {
      if (mask != nullptr && !mask[e]) continue;
      float* record = records() + e * record_size();
      std::memset(record, 0, sizeof(float) * record_size());
      for (int s = 0; s < layout_.slots + layout_.pairs; ++s) record[layout_.slot(s) + kRecordId] = -1;
    }
  }

 private:
  float* records() const { return static_cast<float*>(records_.get()); }

  void make_job() {
    job_.model = device_tables_.view(), job_.workspace = workspace_.get(), job_.steps = 1;
    job_.options = options_in<float>(options_.step);
    BatchArrays<float>& a = job_.arrays;
    a.num_envs = num_envs(), a.records = records();
    a.qpos = buffer("qpos").as<float>(), a.qvel = buffer("qvel").as<float>(), a.ctrl = buffer("ctrl").as<float>();
    a.qfrc_applied = buffer("qfrc_applied").as<float>(), a.xfrc_applied = buffer("xfrc_applied").as<float>();
    a.time = buffer("time").as<double>(), a.status = buffer("status").as<int>();
    for (int f = 0; f < kCertificateFields; ++f)
      a.certificate[f] = buffer(std::string("certificate.") + kCertificateNames[f]).as<float>();
    job_.outputs = {buffer("xpos").as<float>(), buffer("xquat").as<float>(), buffer("body_linvel").as<float>(),
                    buffer("body_angvel").as<float>(), buffer("site_xpos").as<float>()};
  }

  std::unique_ptr<ModelTables<float>> tables_;
  DeviceTables device_tables_;
  RecordLayout<ModelView<Capacity, float>> layout_;
  std::shared_ptr<void> records_, workspace_;
  CudaJob<float> job_;
};

}  // namespace

std::unique_ptr<World> create_cuda_world(std::shared_ptr<const Model> model, const WorldOptions& options) {
  const std::string missing = cuda_unavailable();
  if (!missing.empty()) refuse("device is 'cuda', but there is " + missing);
  if (options.float64) refuse("dtype is 'float64', but simulations on CUDA are in float32: use device='cpu'");
  if (options.solver != SolverKind::kSubAdmm)
    refuse("this solver runs on the CPU only: use solver='subadmm' or device='cpu'");
  if (!options.per_env.empty()) refuse("per_env parameters are available on the CPU only: use device='cpu'");
  return std::make_unique<CudaWorld>(std::move(model), options);
}

std::shared_ptr<void> batch_memory(const WorldOptions& options, size_t bytes) {
  return options.cuda ? managed_memory(bytes) : nullptr;
}

}  // namespace stiction

#else

namespace stiction {

std::unique_ptr<World> create_cuda_world(std::shared_ptr<const Model>, const WorldOptions&) {
  throw std::invalid_argument(
      "device is 'cuda', but this is no CUDA build: rebuild with STICTION_CUDA=ON and nvcc on PATH, or "
      "use device='cpu'");
}
std::shared_ptr<void> batch_memory(const WorldOptions&, size_t) { return nullptr; }

}  // namespace stiction

#endif
