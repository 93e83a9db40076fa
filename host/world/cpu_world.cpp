// World on the CPU: threads over packs.
#include <algorithm>
#include <stdexcept>

#include "host/backend/aligned.h"
#include "host/backend/cpu_libraries.h"
#include "host/world/cuda_world.h"
#include "host/world/world_options.h"
#include "step/export.h"
#include "step/record_state.h"

namespace stiction {
namespace {

template <class T>
class CpuWorld final : public World {
 public:
  CpuWorld(std::shared_ptr<const Model> model, const WorldOptions& options, const CpuLibrary* lib,
           const CpuKernels<T>* kernels)
      : World(std::move(model), options), lib_(lib), kernels_(kernels), tables_(convert<T>(*compile(*model_))) {
    const auto& view = tables_->view;
    layout_ = std::make_unique<RecordLayout<ModelView<Capacity, T>>>(view);
    packs_ = (num_envs() + kernels_->width - 1) / kernels_->width;
    records_ = aligned(sizeof(T) * record_size() * packs_ * kernels_->width);
    for (int i = 0; i < threads_->size(); ++i) workspaces_.push_back(aligned(kernels_->workspace_bytes));
    add_contacts(view.world_slots + view.pair_slots), make_arrays();
    contact_arrays_ = contact_arrays();
    reset_rows_ = make_reset_rows<T>();
    make_job();
    for (auto& workspace : workspaces_) {
      memory_.push_back(aligned(kernels_->memory_bytes(job_)));
      kernels_->bind_memory(job_, workspace.get(), memory_.back().get());
      if (void* own = kernels_->create_tables(job_)) environment_tables_.push_back(own);
    }
    reset(nullptr);
  }

  ~CpuWorld() override {
    for (void* own : environment_tables_) kernels_->destroy_tables(own);
  }

  void step(int n) override {
    if (n < 0) throw std::invalid_argument("n is " + std::to_string(n) + ", expected >= 0");
    if (n == 0) return;
    job_.steps = n;
    auto work = [this](int thread, int first, int last) {
      kernels_->step(job_, first, last, workspaces_[thread].get(), tables_of(thread));
    };
    threads_->run(packs_, work);
    update_watched();
  }

  std::vector<std::pair<std::string, int64_t>> memory() const override {
    const int64_t rows = int64_t{packs_} * kernels_->width, workspaces = threads_->size();
    return {
        {"arrays", array_bytes()},
        {"records", static_cast<int64_t>(sizeof(T)) * record_size() * rows},
        {"workspaces", workspaces * static_cast<int64_t>(kernels_->workspace_bytes + kernels_->memory_bytes(job_))}};
  }
  int64_t record_size() const override { return layout_->reals(); }
  void get_records(double* rows) override {
    for (int64_t e = 0; e < num_envs(); ++e)
      for (int64_t i = 0; i < record_size(); ++i) rows[e * record_size() + i] = record(e, i);
  }
  void set_records(const double* rows) override {
    for (int64_t e = 0; e < num_envs(); ++e)
      for (int64_t i = 0; i < record_size(); ++i) record(e, i) = static_cast<T>(rows[e * record_size() + i]);
    if (watch_contacts_) update_contacts(nullptr);
  }
  DenseProblem<double> contact_problem(int env) override {
    if (env < 0 || env >= num_envs())
      throw std::invalid_argument("env is " + std::to_string(env) + ", expected 0 to " +
                                  std::to_string(num_envs() - 1));
    problem_.resize(kernels_->problem_size(job_));
    return kernels_->problem(job_, env, workspaces_[0].get(), tables_of(0), problem_.data());
  }
  DenseProblem<double> next_problem(int env, const double* qfrc) override {
    const Model& m = model();
    const BatchArrays<T>& a = job_.arrays;
    auto row = [env](const T* of, int length) {
      return std::vector<double>(of + int64_t{env} * length, of + (int64_t{env} + 1) * length);
    };
    const std::vector<double> qpos = row(a.qpos, m.nq), qvel = row(a.qvel, m.nv), applied = row(a.qfrc_applied, m.nv);
    std::vector<T> kept(record_size());
    for (int64_t i = 0; i < record_size(); ++i) kept[i] = record(env, i);
    auto put_applied = [&](const double* from) {
      T* to = buffer("qfrc_applied").template as<T>() + int64_t{env} * m.nv;
      for (int i = 0; i < m.nv; ++i) to[i] = static_cast<T>(from[i]);
    };
    record_of_state(tables_->view, qpos.data(), qvel.data(),
                    [&](int i, double x) { record(env, i) = static_cast<T>(x); });
    put_applied(qfrc);
    const DenseProblem<double> problem = contact_problem(env);
    put_applied(applied.data());
    for (int64_t i = 0; i < record_size(); ++i) record(env, i) = kept[i];
    return problem;
  }
  void previous_state(int env, double* qpos, double* qvel) override {
    state_of_record(tables_->view, [&](int i) { return record(env, i); }, qpos, qvel);
  }
  std::string isa() const override { return lib_->isa; }
  int pack_width() const override { return kernels_->width; }

 protected:
  void update_kinematics(const uint8_t* mask) override {
    const int width = kernels_->width;
    auto wanted = [&](int pack) {
      const int begin = pack * width, end = std::min(begin + width, num_envs());
      return std::any_of(mask + begin, mask + end, [](uint8_t set) { return set != 0; });
    };
    auto work = [&](int thread, int first, int last) {
      void* workspace = workspaces_[thread].get();
      if (mask == nullptr) return kernels_->kinematics(job_, first, last, workspace);
      for (int p = first; p < last; ++p)
        if (wanted(p)) kernels_->kinematics(job_, p, p + 1, workspace);
    };
    threads_->run(packs_, work);
  }

  void update_contacts(const uint8_t* mask) override {
    const ContactArrays<T>& out = contact_arrays_;
    auto work = [&](int, int first, int last) {
      for (int e = first; e < last; ++e)
        if (mask == nullptr || mask[e])
          export_contacts(tables_->view, e, [&](int i) { return record(e, i); }, max_contacts_, out);
    };
    threads_->run(num_envs(), work);
  }

  void reset_rows(const uint8_t* mask, int keyframe) override {
    for (int64_t e = 0; e < num_envs(); ++e) {
      if (mask != nullptr && !mask[e]) continue;
      reset_rows_.state(e, keyframe);
      reset_rows_.record(*layout_, [&](int i, T x) { record(e, i) = x; });
    }
  }

 private:
  void* tables_of(int thread) const { return environment_tables_.empty() ? nullptr : environment_tables_[thread]; }
  T& record(int64_t env, int64_t i) const {
    const int W = kernels_->width;
    return static_cast<T*>(records_.get())[((env / W) * record_size() + i) * W + env % W];
  }

  ContactArrays<T> contact_arrays() {
    return {buffer("contact.geom").template as<int>(),  buffer("contact.pos").template as<T>(),
            buffer("contact.frame").template as<T>(),   buffer("contact.dist").template as<T>(),
            buffer("contact.impulse").template as<T>(), buffer("contact.active").template as<uint8_t>(),
            buffer("contact.count").template as<int>(), buffer("net_contact_force").template as<T>(),
            static_cast<T>(1 / options_.step.h)};
  }

  void make_job() {
    job_.model = &tables_->view;
    job_.options = options_in<T>({options_.step, options_.solver});
    BatchArrays<T>& a = job_.arrays;
    a.num_envs = num_envs();
    a.qpos = buffer("qpos").template as<T>(), a.qvel = buffer("qvel").template as<T>();
    a.ctrl = buffer("ctrl").template as<T>(), a.time = buffer("time").template as<double>();
    a.qfrc_applied = buffer("qfrc_applied").template as<T>(), a.xfrc_applied = buffer("xfrc_applied").template as<T>();
    a.mocap_pos = buffer("mocap_pos").template as<T>(), a.mocap_quat = buffer("mocap_quat").template as<T>();
    a.status = buffer("status").template as<int>();
    a.records = static_cast<T*>(records_.get());
    for (int f = 0; f < kCertificateFields; ++f)
      a.certificate[f] = buffer(std::string("certificate.") + kCertificateNames[f]).template as<T>();
    job_.outputs = {buffer("xpos").template as<T>(), buffer("xquat").template as<T>(),
                    buffer("body_linvel").template as<T>(), buffer("body_angvel").template as<T>(),
                    buffer("site_xpos").template as<T>()};
    job_.parameters = parameter_arrays<T>(), job_.per_env = !options_.per_env.empty();
    job_.steps = 1;
  }

  const CpuLibrary* lib_;
  const CpuKernels<T>* kernels_;
  std::unique_ptr<ModelTables<T>> tables_;
  std::unique_ptr<RecordLayout<ModelView<Capacity, T>>> layout_;
  int packs_ = 0;
  Aligned records_;
  std::vector<Aligned> workspaces_, memory_;  // per thread
  std::vector<double> problem_;               // what contact_problem's views point into
  std::vector<void*> environment_tables_;     // per thread, if some parameter is per environment
  CpuJob<T> job_;
  ResetRows<T> reset_rows_{};
  ContactArrays<T> contact_arrays_{};  // looked up once: a long name is a string on the heap
};

}  // namespace

std::unique_ptr<World> World::create(std::shared_ptr<const Model> model, const WorldOptions& options) {
  if (options.cuda) return create_cuda_world(std::move(model), options);
  const CpuLibrary* lib = &cpu_library(options.float64, options.isa);
  if (options.float64) return std::make_unique<CpuWorld<double>>(std::move(model), options, lib, lib->float64);
  return std::make_unique<CpuWorld<float>>(std::move(model), options, lib, lib->float32);
}

}  // namespace stiction
