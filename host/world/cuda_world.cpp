#include "host/world/cuda_world.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#if STICTION_WITH_CUDA
#include "host/world/world_of.h"
#include "kernels/device.h"
#include "kernels/launches.h"
#include "model/tables.h"
#include "step/world_memory.h"

namespace stiction {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw std::invalid_argument(text); }

/// A block of device memory that the host fills once.
class Filled {
 public:
  Filled(const void* from, size_t bytes, const CudaQueue& queue) : memory_(bytes, queue.device) {
    if (bytes) std::memcpy(memory_.mirror(), from, bytes);
    memory_.upload(queue);
  }
  void* data() const { return memory_.data(); }

 private:
  Memory memory_;
};

/// A model's tables where the device reaches them.
class DeviceTables {
 public:
  DeviceTables(const ModelTables<float>& from, const CudaQueue& queue) : queue_(queue) {
    ModelView<TileCapacity, float> to;
    cast_view(from.view, to);
    each_table(from.view, [this](int, auto& address, const auto& table) { address = copy(table); }, to, from);
    const float* vert = copy(from.hull_vert);
    const int *edgeadr = copy(from.hull_edgeadr), *edge = copy(from.hull_edge), *start = copy(from.hull_start);
    std::vector<HullView<float>> hulls = from.hull;
    for (HullView<float>& h : hulls) {
      h.vert = vert + (h.vert - from.hull_vert.data());
      if (h.edgeadr != nullptr) h.edgeadr = edgeadr + (h.edgeadr - from.hull_edgeadr.data());
      h.edge = edge, h.start = start + (h.start - from.hull_start.data());
    }
    to.hull = copy(hulls), view_on_host = to;
    view_ = static_cast<const ModelView<TileCapacity, float>*>(keep(&to, sizeof(to)));
  }
  const ModelView<TileCapacity, float>* view() const { return view_; }
  ModelView<TileCapacity, float> view_on_host;  // the same, with the device's addresses

 private:
  const void* keep(const void* from, size_t bytes) {
    memory_.push_back(std::make_unique<Filled>(from, bytes, queue_));
    return memory_.back()->data();
  }
  template <class T>
  const T* copy(const std::vector<T>& from) {
    return static_cast<const T*>(keep(from.data(), from.size() * sizeof(T)));
  }
  CudaQueue queue_;
  std::vector<std::unique_ptr<Filled>> memory_;
  const ModelView<TileCapacity, float>* view_ = nullptr;
};

/// A model of its own for each slot, for parameters that differ between environments: `count` ParameterTables,
/// and behind them what they point to.
struct OwnModels {
  using Tables = ParameterTables<TileCapacity, float>;

  const ModelView<Capacity, float>& model;  // in the host's memory
  size_t count;

  static size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }
  size_t tables() const { return padded(count * sizeof(Tables)); }
  size_t bytes() const {
    size_t each = 0;
    each_own_table(model, [&](int items, auto* table) { each += padded(items * sizeof(*table)); }, model);
    return tables() + count * each;
  }

  /// Fills `to`; what is not of the environment's own is that of `shared`, addresses of the device.
  void fill(Memory& to, const ModelView<TileCapacity, float>& shared) const {
    auto* own = static_cast<Tables*>(to.mirror());
    size_t free = tables();
    auto copy = [&](int items, auto*& address, auto*& seen, const auto* from) {
      using Item = std::remove_reference_t<decltype(*address)>;
      std::copy_n(from, items, reinterpret_cast<Item*>(static_cast<unsigned char*>(to.mirror()) + free));
      seen = address = reinterpret_cast<Item*>(static_cast<unsigned char*>(to.data()) + free);
      free += padded(items * sizeof(Item));
    };
    for (size_t i = 0; i < count; ++i) {
      own[i].view = shared;
      each_own_table(model, copy, own[i], own[i].view, model);
    }
  }
};

class CudaWorld final : public WorldOf<CudaJob> {
 public:
  CudaWorld(std::shared_ptr<const Model> model, const WorldOptions& options) : WorldOf(std::move(model), options, 1) {
    job_.queue.device = options_.device;
    if (options_.step.fallback >= kFirstChosenFallback)
      throw std::invalid_argument("fallback by a solver's name is not on CUDA; True and False are");
    if (law_of(options_.solver) != Law::kCoulomb) job_.options.step.fallback = 0;  // a kernel has none of other laws
    kernels_ = options_.kernels.empty() ? shipped_kernels() : load_kernels(options_.kernels, options_.device);
    options_.kernels.clear();
    job_.plan = plan_launches(kernels_, num_envs(), memory_sizes<float>(tables_->view, job_.options, kSolveTile),
                              options_.device);
    require_memory();
    make_job();
    device_tables_ = std::make_unique<DeviceTables>(*tables_, job_.queue);
    job_.model = device_tables_->view();
    slots_ = allocate(job_.plan.slot_bytes), job_.slots = slots_->data();
    solver_memory_ = allocate(solver_bytes()), job_.solver_memory = solver_memory_->data();
    if (!options_.per_env.empty()) make_own_models();
    prepare_launches(kernels_, job_);  // what it has no memory for fails here
    reset(nullptr);
  }

  void set_stream(void* stream) override {
    if (stream == job_.queue.stream) return;
    order_behind(job_.queue, stream);
    job_.queue.stream = stream;
  }
  CudaQueue queue() const override { return job_.queue; }
  std::vector<std::pair<std::string, int64_t>> memory() const override {
    const size_t own = options_.per_env.empty() ? 0 : OwnModels{tables_->view, size_t(job_.plan.slots)}.bytes();
    return {{"arrays", array_bytes()},
            {"records", record_bytes()},
            {"workspaces", static_cast<int64_t>(job_.plan.slot_bytes + own) + solver_bytes()},
            {"local", static_cast<int64_t>(job_.plan.local_bytes)}};
  }
  DenseProblem<double> contact_problem(int) override {
    refuse("contact_problem is computed on the CPU only: set this state in a simulation with device='cpu'");
  }
  DenseProblem<double> next_problem(int, const double*) override {
    refuse("inverse_dynamics is computed on the CPU only: set this state in a simulation with device='cpu'");
  }
  void to_solved_velocity(int, double*) override {
    refuse("inverse_dynamics is computed on the CPU only: set this state in a simulation with device='cpu'");
  }
  std::string isa() const override { return "cuda"; }
  std::vector<std::pair<std::string, double>> time_step() override {
    std::vector<std::pair<std::string, double>> times;
    advance(1, [&] { times = stiction::time_step(kernels_, job_); });
    return times;
  }

 protected:
  void run_steps() override { launch_step(kernels_, job_); }
  void synchronize() const override { wait_for(job_.queue); }
  void update_kinematics(const uint8_t* mask) override { launch_kinematics(job_, mask); }
  void update_contacts(const uint8_t* mask) override { launch_contacts(job_, contact_arrays_, max_contacts_, mask); }
  void find_contacts(const uint8_t* mask) override {
    launch_find_contacts(kernels_, job_, {contact_arrays_, max_contacts_, mask});
  }
  void reset_rows(const uint8_t* mask, int keyframe) override { launch_reset(job_, reset_rows_, mask, keyframe); }

 private:
  int64_t solver_bytes() const {
    const CudaPlan& p = job_.plan;
    return p.slots * p.world_bytes + p.improvers * p.improver_bytes;
  }
  void require_memory() const {
    auto gigabytes = [](int64_t bytes) {
      char text[32];
      std::snprintf(text, sizeof text, "%.2f GB", 1e-9 * static_cast<double>(bytes));
      return std::string(text);
    };
    int64_t needed = 0;
    std::string parts;
    for (const auto& [name, bytes] : memory()) {
      needed += bytes;
      parts += (parts.empty() ? "" : ", ") + name + " " + gigabytes(bytes);
    }
    const auto free = static_cast<int64_t>(free_memory(options_.device));
    if (needed <= free) return;
    const int64_t each = (array_bytes() + record_bytes()) / num_envs();
    throw OutOfMemory(std::to_string(num_envs()) + " environments need " + gigabytes(needed) + " (" + parts + "; " +
                      std::to_string(each) + " bytes per environment), but CUDA device " +
                      std::to_string(options_.device) + " has " + gigabytes(free) +
                      " free: make fewer, or free what others keep (torch.cuda.empty_cache())");
  }

  void make_own_models() {
    const OwnModels own{tables_->view, size_t(job_.plan.slots)};
    own_models_ = allocate(own.bytes());
    own.fill(*own_models_, device_tables_->view_on_host);
    send(*own_models_);
    job_.own_models = static_cast<ParameterTables<TileCapacity, float>*>(own_models_->data());
  }

  StepKernels kernels_;
  std::unique_ptr<DeviceTables> device_tables_;
  std::shared_ptr<Memory> slots_, solver_memory_, own_models_;
};

}  // namespace

int cuda_architecture(int device) {
  const std::string missing = cuda_unavailable(device);
  if (!missing.empty()) refuse("device is 'cuda', but there is " + missing);
  return architecture_of(device);
}

std::unique_ptr<World> create_cuda_world(std::shared_ptr<const Model> model, const WorldOptions& options) {
  cuda_architecture(options.device);  // that there is one
  if (options.float64) refuse("dtype is 'float64', but simulations on CUDA are in float32: use device='cpu'");
  WorldOptions on_it = options;
  if (on_it.device == kCurrentDevice) on_it.device = current_device();
  return std::make_unique<CudaWorld>(std::move(model), on_it);
}

}  // namespace stiction

#else

namespace stiction {

int cuda_architecture(int) {
  throw std::invalid_argument(
      "device is 'cuda', but this is no CUDA build: rebuild with STICTION_CUDA=ON and nvcc on PATH, or "
      "use device='cpu'");
}
std::unique_ptr<World> create_cuda_world(std::shared_ptr<const Model>, const WorldOptions& options) {
  cuda_architecture(options.device);
  return nullptr;
}

}  // namespace stiction

#endif
