// World on the CPU: threads over packs.
#include <algorithm>

#include "host/backend/aligned.h"
#include "host/backend/cpu_libraries.h"
#include "host/model/model_shape.h"
#include "host/world/cuda_world.h"
#include "host/world/world_of.h"

namespace stiction {
namespace {

template <class T>
class CpuWorld final : public WorldOf<CpuJob<T>> {
  using Base = WorldOf<CpuJob<T>>;
  using Base::contact_arrays_, Base::job_, Base::layout_, Base::num_envs, Base::packs_, Base::record_of;
  using Base::record_size, Base::reset_rows_, Base::tables_, Base::threads_, Base::width_;

 public:
  CpuWorld(std::shared_ptr<const Model> model, const WorldOptions& options, const CpuLibrary* lib,
           const CpuKernels<T>* kernels)
      : Base(std::move(model), options, kernels->width), lib_(lib), kernels_(kernels) {
    this->make_job();
    job_.model = &tables_->view;
    job_.per_env = !options.per_env.empty();
    job_.four_limbs = links_of_four_limbs(tables_->view);
    if (options.step.fallback) job_.places = std::clamp(threads_->largest_piece(packs_), 1, kernels_->most_places);
    for (int i = 0; i < threads_->size(); ++i) {
      workspaces_.push_back(aligned(workspace_bytes()));
      memory_.push_back(aligned(kernels_->memory_bytes(job_)));
      kernels_->bind_memory(job_, workspaces_.back().get(), memory_.back().get());
      if (void* own = kernels_->create_tables(job_)) environment_tables_.push_back(own);
    }
    this->reset(nullptr);
  }

  ~CpuWorld() override {
    for (void* own : environment_tables_) kernels_->destroy_tables(own);
  }

  std::vector<std::pair<std::string, int64_t>> memory() const override {
    const auto each = static_cast<int64_t>(workspace_bytes()) + kernels_->memory_bytes(job_);
    return {
        {"arrays", this->array_bytes()}, {"records", this->record_bytes()}, {"workspaces", threads_->size() * each}};
  }
  DenseProblem<double> contact_problem(int env) override {
    check(env);
    return problem(env, false);
  }
  DenseProblem<double> next_problem(int env, const double* qfrc) override {
    check(env);
    const int nv = this->model().nv;
    T* force = this->buffer("qfrc_applied").template as<T>() + int64_t{env} * nv;
    const std::vector<T> applied(force, force + nv);
    for (int i = 0; i < nv; ++i) force[i] = static_cast<T>(qfrc[i]);
    const DenseProblem<double> found = problem(env, true);
    std::copy(applied.begin(), applied.end(), force);
    return found;
  }
  void to_solved_velocity(int env, double* v) override {
    check(env);
    const int nq = this->model().nq, nv = this->model().nv;
    T *qpos = this->buffer("qpos").template as<T>() + int64_t{env} * nq,
      *qvel = this->buffer("qvel").template as<T>() + int64_t{env} * nv;
    const std::vector<T> q(qpos, qpos + nq), before(qvel, qvel + nv);
    const std::vector<T> after(v, v + nv);
    kernels_->solved_velocity(job_, env, after.data(), workspaces_[0].get(), tables_of(0));
    for (int i = 0; i < nv; ++i) v[i] += double{qvel[i]} - double{after[i]};
    std::copy(q.begin(), q.end(), qpos), std::copy(before.begin(), before.end(), qvel);
  }
  std::string isa() const override { return lib_->isa; }

 protected:
  void run_steps() override {
    auto work = [this](int thread, int first, int last) {
      kernels_->step(job_, first, last, workspaces_[thread].get(), tables_of(thread));
    };
    threads_->run(packs_, work);
  }

  void update_kinematics(const uint8_t* mask) override {
    auto wanted = [&](int pack) {
      const int begin = pack * width_, end = std::min(begin + width_, num_envs());
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
    auto work = [&](int, int first, int last) {
      for (int e = first; e < last; ++e)
        if (mask == nullptr || mask[e])
          export_contacts(tables_->view, e, record_of(e), this->max_contacts(), contact_arrays_);
    };
    threads_->run(num_envs(), work);
  }

  void find_contacts(const uint8_t* mask) override {
    const FoundContacts<T> found{contact_arrays_, this->max_contacts(), mask};
    auto work = [&](int thread, int first, int last) {
      kernels_->find(job_, found, first, last, workspaces_[thread].get(), tables_of(thread));
    };
    threads_->run(packs_, work);
  }

  void reset_rows(const uint8_t* mask, int keyframe) override {
    for (int64_t e = 0; e < num_envs(); ++e) {
      if (mask != nullptr && !mask[e]) continue;
      reset_rows_.state(e, keyframe);
      reset_rows_.record(layout_, [record = record_of(e)](int i, T x) { record(i) = x; });
    }
  }

 private:
  void check(int env) const {
    if (env < 0 || env >= num_envs())
      throw std::invalid_argument("env is " + std::to_string(env) + ", expected 0 to " +
                                  std::to_string(num_envs() - 1));
  }
  DenseProblem<double> problem(int env, bool next) {
    problem_.resize(kernels_->problem_size(job_));
    return kernels_->problem(job_, env, next, workspaces_[0].get(), tables_of(0), problem_.data());
  }
  size_t workspace_bytes() const { return job_.places * kernels_->place_bytes; }
  void* tables_of(int thread) const { return environment_tables_.empty() ? nullptr : environment_tables_[thread]; }

  const CpuLibrary* lib_;
  const CpuKernels<T>* kernels_;
  std::vector<Aligned> workspaces_, memory_;  // per thread
  std::vector<double> problem_;               // what contact_problem's views point into
  std::vector<void*> environment_tables_;     // per thread, if some parameter is per environment
};

}  // namespace

std::unique_ptr<World> World::create(std::shared_ptr<const Model> model, const WorldOptions& options) {
  if (options.cuda) return create_cuda_world(std::move(model), options);
  const CpuLibrary* lib = &cpu_library(options.float64, options.isa);
  if (options.float64) return std::make_unique<CpuWorld<double>>(std::move(model), options, lib, lib->float64);
  return std::make_unique<CpuWorld<float>>(std::move(model), options, lib, lib->float32);
}

}  // namespace stiction
