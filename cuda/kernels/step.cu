// A step as launches of its stages; how much memory that takes; and kernels of one thread a world.
#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "kernels/launch.cuh"
#include "kernels/launches.h"
#include "kernels/stages.cuh"

namespace stiction {
namespace {

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
  const int64_t reals = RecordLayout<TileModel>(*job.model).reals();
  const float* record = job.arrays.records + world * reals;
  export_contacts(*job.model, world, [=](int i) { return record[i]; }, max_contacts, out);
}

__global__ void __launch_bounds__(kThreads)
    reset_kernel(const CudaJob job, const ResetRows<float> rows, const uint8_t* mask, int keyframe) {
  const int world = blockIdx.x * kThreads + threadIdx.x;
  if (world >= job.arrays.num_envs || (mask != nullptr && !mask[world])) return;
  const RecordLayout<TileModel> layout(*job.model);
  float* record = job.arrays.records + static_cast<int64_t>(world) * layout.reals();
  rows.state(world, keyframe);
  rows.record(layout, [=](int i, float x) { record[i] = x; });
}

/// At least so many lanes; with none to run a kernel is loaded.
template <class... Parameters, class... Arguments>
void launch_lanes(void (*kernel)(Parameters...), int64_t lanes, const CudaQueue& queue, const Arguments&... arguments) {
  launch(kernel, static_cast<int>(std::max<int64_t>(1, (lanes + kThreads - 1) / kThreads)), kThreads, queue,
         arguments...);
}

/// All worlds pass through the slots, as many at a time as a branch has, in the branches in turn.
int number_of_passes(const CudaJob& job) {
  return (job.arrays.num_envs + job.plan.branch_slots - 1) / job.plan.branch_slots;
}
StagePass pass_of(const CudaJob& job, int number) {
  const int slots = job.plan.branch_slots, first = number * slots;
  return {.first = first,
          .count = std::min(slots, job.arrays.num_envs - first),
          .slot = number % job.plan.branches * slots};
}
template <class Visit>
void each_pass(const CudaJob& job, Visit visit) {
  for (int number = 0; number < number_of_passes(job); ++number) visit(pass_of(job, number));
}

enum : int { kFind, kAssemble, kSolve, kJudge, kImprove, kSettle, kEnd };
void launch_stage(const StepKernels& kernels, int stage, const CudaJob& job, const StagePass& pass,
                  const CudaQueue& queue) {
  const int improvers = job.plan.improvers > 0 ? (pass.count + kSlotsOfImprover - 1) / kSlotsOfImprover : 0;
  const int64_t lanes =
      stage == kImprove ? int64_t{improvers} * kImproverTile : int64_t{pass.count} * StepKernels::stages[stage].lanes;
  launch_lanes(kernels.kernel[stage], lanes, queue, job, pass);
}

/// What a step launches, in this order.
struct Launch {
  const char* name;
  int stage;
};
constexpr Launch kLaunches[] = {{"find", kFind},       {"assemble", kAssemble}, {"solve", kSolve},   {"judge", kJudge},
                                {"improve", kImprove}, {"settle", kSettle},     {"recover", kSolve}, {"end", kEnd}};
/// One step of the worlds of a pass; before() of every launch.
template <class Before>
void run_step(const StepKernels& kernels, const CudaJob& job, StagePass pass, const CudaQueue& queue, Before before) {
  for (const Launch& launch : kLaunches) {
    before();
    pass.recovers = launch.name == std::string_view("recover");
    launch_stage(kernels, launch.stage, job, pass, queue);
  }
}

/// At most so many streams; each has enough worlds to fill a part of the device.
constexpr int kMostBranches = 4, kBranchesOfDevice = 16;
constexpr int64_t kKinematicsBytes = kThreads * sizeof(OutputWorkspace<Lane<float, TileCapacity, Serial>>);

}  // namespace

const StepKernels::Stage StepKernels::stages[kCount] = {
    {"find", "find", kTreeTile, true}, {"assemble", "assemble", kTreeTile, true},
    {"solve", "solve", kSolveTile},    {"judge", "settle", kTreeTile, true},
    {"improve", "improve", 0},         {"settle", "settle", kTreeTile, true},
    {"end", "settle", kTreeTile, true}};

StepKernels shipped_kernels() {
  return {{find_kernel, assemble_kernel, solve_kernel, judge_kernel, improve_kernel, settle_kernel, end_kernel},
          kLaneBytes,
          nullptr};
}

StepKernels load_kernels(const std::map<std::string, std::string>& images, int device) {
  const OnDevice here(device);
  auto libraries = std::make_shared<std::map<std::string, std::shared_ptr<void>>>();
  StepKernels found = shipped_kernels();
  for (int i = 0; i < StepKernels::kCount; ++i) {
    const auto& [name, file, lanes, of_model] = StepKernels::stages[i];
    if (!of_model) continue;
    const auto image = images.find(file);
    if (image == images.end()) throw std::invalid_argument(std::string("no image of kernels/") + file + ".cu");
    std::shared_ptr<void>& library = (*libraries)[file];
    if (!library) library = load_library(image->second.data());
    found.kernel[i] = reinterpret_cast<StageKernel>(kernel_of(library.get(), std::string(name) + "_kernel"));
  }
  int64_t handed_over = 0;
  read_number(libraries->at("find").get(), "slot_lane_bytes", found.lane_bytes);
  read_number(libraries->at("find").get(), "handed_over", handed_over);
  if (handed_over != kHandedOver) throw std::invalid_argument("these kernels are of other sources than the build");
  found.loaded = libraries;
  return found;
}

CudaPlan plan_launches(const StepKernels& kernels, int num_envs, const MemorySizes& sizes, int device) {
  CudaPlan plan;
  plan.lane_bytes = kernels.lane_bytes, plan.row_bytes = sizes.rows, plan.world_bytes = sizes.rows + sizes.solver,
  plan.improver_bytes = sizes.fallback;
  auto address = [](auto* kernel) { return reinterpret_cast<const void*>(kernel); };
  size_t local = local_memory(address(kinematics_kernel), device);
  for (const StageKernel kernel : kernels.kernel) local = std::max(local, local_memory(address(kernel), device));
  plan.local_bytes = static_cast<int64_t>(local);

  const auto free = static_cast<int64_t>(free_memory(device)), memory = (free - std::min(free, plan.local_bytes)) / 4;
  auto fitting = [memory](int64_t wanted, int64_t bytes) {
    return static_cast<int>(std::max<int64_t>(1, std::min(wanted, memory / bytes)));
  };
  plan.posed_bytes = (sizeof(PosedSolve<float>) + 63) / 64 * 64;
  const int64_t slot = kTreeTile * kernels.lane_bytes + plan.posed_bytes;
  const int64_t resident = resident_blocks(address(kernels.kernel[kFind]), kThreads, device) * (kThreads / kTreeTile);
  const int64_t bytes = slot + plan.world_bytes + plan.improver_bytes / kSlotsOfImprover;
  const int slots = fitting(std::min<int64_t>(num_envs, resident), bytes);
  plan.branches = static_cast<int>(std::clamp<int64_t>(kBranchesOfDevice * slots / resident, 1, kMostBranches));
  // Blocks of whole slots, whose words lie in whole warps.
  constexpr int kTogether = kThreads / kTreeTile;
  plan.branch_slots = (slots + plan.branches * kTogether - 1) / (plan.branches * kTogether) * kTogether;
  plan.slots = plan.branches * plan.branch_slots;
  plan.improvers = sizes.fallback > 0 ? (plan.slots + kSlotsOfImprover - 1) / kSlotsOfImprover : 0;
  const int64_t blocks =
      std::min((num_envs + kThreads - 1) / kThreads, resident_blocks(address(kinematics_kernel), kThreads, device));
  plan.kinematics_blocks = fitting(blocks, kKinematicsBytes);
  plan.posed_begin = kTreeTile * kernels.lane_bytes * plan.slots;
  plan.slot_bytes = std::max(slot * plan.slots, kKinematicsBytes * plan.kinematics_blocks);
  return plan;
}

void prepare_launches(const StepKernels& kernels, const CudaJob& job) {
  CudaJob idle = job;
  idle.arrays.num_envs = 0, idle.plan.kinematics_blocks = 1;
  run_step(kernels, idle, StagePass{.count = 0}, job.queue, [] {});
  launch_kinematics(idle, nullptr);
  note_local_memory(static_cast<size_t>(job.plan.local_bytes), job.queue.device);
}

void launch_step(const StepKernels& kernels, const CudaJob& job, Branches& branches) {
  const int passes = number_of_passes(job), together = std::min(passes, job.plan.branches);
  branches.fork(job.queue, together);
  for (int first = 0; first < passes; first += together)
    for (int step = 0; step < job.steps; ++step)
      for (int branch = 0; branch < std::min(together, passes - first); ++branch) {
        StagePass pass = pass_of(job, first + branch);
        pass.step = step;
        run_step(kernels, job, pass, branches.queue(branch), [] {});
      }
  branches.join();
}
std::vector<std::pair<std::string, double>> time_step(const StepKernels& kernels, const CudaJob& job) {
  StreamClock clock(job.queue);
  each_pass(job, [&](StagePass pass) {
    for (; pass.step < job.steps; ++pass.step) run_step(kernels, job, pass, job.queue, [&] { clock.mark(); });
  });
  clock.mark();
  std::vector<std::pair<std::string, double>> times;
  for (const Launch& launch : kLaunches) times.emplace_back(launch.name, 0);
  const std::vector<double> laps = clock.laps();
  for (size_t i = 0; i < laps.size(); ++i) times[i % times.size()].second += laps[i];
  return times;
}
void launch_find_contacts(const StepKernels& kernels, const CudaJob& job, const FoundContacts<float>& found) {
  each_pass(job, [&](StagePass pass) {
    pass.finds = true, pass.found = found;
    launch_stage(kernels, kFind, job, pass, job.queue);
  });
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
