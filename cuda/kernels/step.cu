// Launches of a step; how much memory that takes; and kernels of one thread a world.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "kernels/launch.cuh"
#include "kernels/launches.h"
#include "kernels/worlds.cuh"
#include "step/step_world.h"

namespace stiction {

__global__ void __launch_bounds__(kThreads) kinematics_kernel(const CudaJob job, const uint8_t* mask) {
  using L = Lane<float, TileCapacity, Serial>;
  const int thread = blockIdx.x * kThreads + threadIdx.x;
  auto& w = static_cast<OutputWorkspace<L>*>(job.slots)[thread];
  for (int world = thread; world < job.arrays.num_envs; world += gridDim.x * kThreads)
    if (mask == nullptr || mask[world])
      write_kinematics<L>(*job.model, job.arrays, job.outputs, Rows<float>{world, job.arrays.num_envs}, w);
}

__global__ void __launch_bounds__(kThreads)
    contacts_kernel(const CudaJob job, const ContactArrays<float> out, int max_contacts, const uint8_t* mask) {
  const int world = blockIdx.x * kThreads + threadIdx.x;
  if (world >= job.arrays.num_envs || (mask != nullptr && !mask[world])) return;
  const int64_t reals = RecordLayout<ModelView<TileCapacity, float>>(*job.model).reals();
  const float* record = job.arrays.records + world * reals;
  export_contacts(*job.model, world, [=](int i) { return record[i]; }, max_contacts, out);
}

__global__ void __launch_bounds__(kThreads)
    reset_kernel(const CudaJob job, const ResetRows<float> rows, const uint8_t* mask, int keyframe) {
  const int world = blockIdx.x * kThreads + threadIdx.x;
  if (world >= job.arrays.num_envs || (mask != nullptr && !mask[world])) return;
  const RecordLayout<ModelView<TileCapacity, float>> layout(*job.model);
  float* record = job.arrays.records + static_cast<int64_t>(world) * layout.reals();
  rows.state(world, keyframe);
  rows.record(layout, [=](int i, float x) { record[i] = x; });
}

namespace {

/// At least so many lanes; with none to run a kernel is loaded.
template <class... Parameters, class... Arguments>
void launch_lanes(void (*kernel)(Parameters...), int64_t lanes, const CudaQueue& queue, const Arguments&... arguments) {
  launch(kernel, static_cast<int>(std::max<int64_t>(1, (lanes + kThreads - 1) / kThreads)), kThreads, queue,
         arguments...);
}

/// By the lanes of all slots, a launch for so many worlds: what a multiprocessor's warps do then goes through the code together, which its
/// caches of instructions do not hold. Of no world, by those of a block.
template <class... Parameters, class... Arguments>
void launch_slots(void (*kernel)(CudaJob, Parameters...), const CudaJob& job, const Arguments&... arguments) {
  CudaJob part = job;
  do {
    const int worlds = std::min(job.plan.slots, job.arrays.num_envs - part.first_world);
    launch_lanes(kernel, int64_t{worlds} * kTreeTile, job.queue, part, arguments...);
    part.first_world += job.plan.slots;
  } while (part.first_world < job.arrays.num_envs);
}

constexpr int64_t kKinematicsBytes = kThreads * sizeof(OutputWorkspace<Lane<float, TileCapacity, Serial>>);

}  // namespace

StepKernels shipped_kernels() { return {step_kernel, find_kernel, kBuildLaneBytes, nullptr}; }

StepKernels load_kernels(const std::string& image, int device) {
  const OnDevice here(device);
  StepKernels found{};
  found.loaded = load_library(image.data());
  found.step = reinterpret_cast<decltype(found.step)>(kernel_of(found.loaded.get(), "step_kernel"));
  found.find = reinterpret_cast<decltype(found.find)>(kernel_of(found.loaded.get(), "find_kernel"));
  int64_t handed_over = 0;
  read_number(found.loaded.get(), "handed_over", handed_over);
  if (handed_over != kHandedOver) throw std::invalid_argument("these kernels are of other sources than the build");
  return found;
}

CudaPlan plan_launches(const StepKernels& kernels, int num_envs, const MemorySizes& sizes, int device) {
  CudaPlan plan;
  plan.row_bytes = sizes.rows, plan.world_bytes = sizes.rows + sizes.solver, plan.improver_bytes = sizes.fallback;
  auto address = [](auto* kernel) { return reinterpret_cast<const void*>(kernel); };
  const size_t local =
      std::max({local_memory(address(kinematics_kernel), device), local_memory(address(kernels.step), device),
                local_memory(address(kernels.find), device)});
  plan.local_bytes = static_cast<int64_t>(local);

  const auto free = static_cast<int64_t>(free_memory(device)), memory = (free - std::min(free, plan.local_bytes)) / 4;
  auto fitting = [memory](int64_t wanted, int64_t bytes) {
    return static_cast<int>(std::max<int64_t>(1, std::min(wanted, memory / bytes)));
  };
  constexpr int kOfBlock = kThreads / kTreeTile;
  const int64_t resident = resident_blocks(address(kernels.step), kThreads, device) * int64_t{kOfBlock};
  const int64_t lanes = kTreeTile * kernels.lane_bytes;
  const int64_t bytes = lanes + plan.world_bytes + plan.improver_bytes / kWorldsOfTeam;
  const int most = fitting(std::min<int64_t>(num_envs, resident), bytes), launches = (num_envs + most - 1) / most;
  plan.slots = ((num_envs + launches - 1) / launches + kOfBlock - 1) / kOfBlock * kOfBlock;  // launches alike
  plan.improvers = sizes.fallback > 0 ? plan.slots / kWorldsOfTeam : 0;
  const int64_t blocks =
      std::min((num_envs + kThreads - 1) / kThreads, resident_blocks(address(kinematics_kernel), kThreads, device));
  plan.kinematics_blocks = fitting(blocks, kKinematicsBytes);
  plan.slot_bytes = std::max(lanes * plan.slots, kKinematicsBytes * plan.kinematics_blocks);
  return plan;
}

void prepare_launches(const StepKernels& kernels, const CudaJob& job) {
  CudaJob idle = job;
  idle.arrays.num_envs = 0, idle.plan.kinematics_blocks = 1;
  prefer_cache(reinterpret_cast<const void*>(kernels.step), job.queue.device);
  launch_step(kernels, idle);
  launch_find_contacts(kernels, idle, {});
  launch_kinematics(idle, nullptr);
  note_local_memory(static_cast<size_t>(job.plan.local_bytes), job.queue.device);
}

void launch_step(const StepKernels& kernels, const CudaJob& job) { launch_slots(kernels.step, job); }
std::vector<std::pair<std::string, double>> time_step(const StepKernels& kernels, const CudaJob& job) {
  constexpr const char* kNames[kStages] = {"find", "assemble", "solve", "judge", "improve", "settle", "recover"};
  constexpr size_t kBytes = kStages * sizeof(unsigned long long);
  const std::shared_ptr<void> cycles = device_memory(kBytes, job.queue.device),
                              copy = pinned_memory(kBytes, job.queue.device);
  CudaJob timed = job;
  timed.clock = static_cast<unsigned long long*>(cycles.get());
  StreamClock clock(job.queue);
  clock.mark();
  launch_step(kernels, timed);
  clock.mark();
  const double ms = clock.laps().front();
  copy_to_host(copy.get(), cycles.get(), kBytes, job.queue);
  wait_for(job.queue);
  const auto* spent = static_cast<const unsigned long long*>(copy.get());
  const double all = std::max(1.0, std::accumulate(spent, spent + kStages, 0.0));
  std::vector<std::pair<std::string, double>> times;
  for (int i = 0; i < kStages; ++i) times.emplace_back(kNames[i], ms * static_cast<double>(spent[i]) / all);
  return times;
}
void launch_find_contacts(const StepKernels& kernels, const CudaJob& job, const FoundContacts<float>& found) {
  launch_slots(kernels.find, job, found);
}
void launch_kinematics(const CudaJob& job, const uint8_t* mask) {
  launch(kinematics_kernel, job.plan.kinematics_blocks, kThreads, job.queue, job, mask);
}
void launch_contacts(const CudaJob& job, const ContactArrays<float>& out, int max_contacts, const uint8_t* mask) {
  launch_lanes(contacts_kernel, job.arrays.num_envs, job.queue, job, out, max_contacts, mask);
}
void launch_reset(const CudaJob& job, const ResetRows<float>& rows, const uint8_t* mask, int keyframe) {
  launch_lanes(reset_kernel, job.arrays.num_envs, job.queue, job, rows, mask, keyframe);
}

}  // namespace stiction
