// A step as launches of its stages; how much memory that takes; and kernels of one thread a world.
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

/// What a step launches, in this order.
struct Launch {
  const char* name;
  Stage stage;
  bool recovers = false;
};
const Launch (&launches())[8] {
  static const Launch step[] = {{"find", find_stage()},           {"assemble", assemble_stage()},
                                {"solve", solve_stage()},         {"judge", judge_stage()},
                                {"improve", improve_stage()},     {"settle", settle_stage()},
                                {"recover", solve_stage(), true}, {"end", end_stage()}};
  return step;
}
/// One step of the worlds of a pass; before(launch) of every launch.
template <class Before>
void run_step(const CudaJob& job, StagePass pass, Before before) {
  for (const Launch& launch : launches()) {
    before(launch);
    pass.recovers = launch.recovers;
    launch.stage.run(job, pass);
  }
}

constexpr size_t kSlotBytes = kTreeTile * sizeof(SlotLane);
constexpr size_t kKinematicsBytes = kThreads * sizeof(OutputWorkspace<Lane<float, TileCapacity, Serial>>);

}  // namespace

CudaPlan plan_launches(int num_envs, int64_t world_bytes, int device) {
  CudaPlan plan;
  const auto* kinematics = reinterpret_cast<const void*>(kinematics_kernel);
  plan.local_bytes = local_memory(kinematics, device);
  for (const Launch& l : launches())
    plan.local_bytes = std::max(plan.local_bytes, local_memory(l.stage.kernel, device));

  const size_t free = free_memory(device), memory = (free - std::min(free, plan.local_bytes)) / 4;
  auto fitting = [memory](int64_t wanted, size_t bytes) {
    return static_cast<int>(std::max<int64_t>(1, std::min(wanted, static_cast<int64_t>(memory / bytes))));
  };
  const int64_t resident = resident_blocks(find_stage().kernel, kThreads, device) * (kThreads / kTreeTile);
  plan.slots = fitting(std::min<int64_t>(num_envs, resident), kSlotBytes + static_cast<size_t>(world_bytes));
  const int64_t blocks = std::min((num_envs + kThreads - 1) / kThreads, resident_blocks(kinematics, kThreads, device));
  plan.kinematics_blocks = fitting(blocks, kKinematicsBytes);
  plan.slot_bytes = std::max(kSlotBytes * plan.slots, kKinematicsBytes * plan.kinematics_blocks);
  plan.world_bytes = world_bytes;
  return plan;
}

void prepare_launches(const CudaJob& job) {
  CudaJob idle = job;
  idle.arrays.num_envs = 0, idle.plan.kinematics_blocks = 1;
  const StagePass none{.count = 0};
  run_step(idle, none, [](const Launch&) {});
  launch_kinematics(idle, nullptr);
  note_local_memory(job.plan.local_bytes, job.queue.device);
}

void launch_step(const CudaJob& job) {
  each_pass(job, [&](StagePass pass) {
    for (; pass.step < job.steps; ++pass.step) run_step(job, pass, [](const Launch&) {});
  });
}
std::vector<std::pair<std::string, double>> time_step(const CudaJob& job) {
  StreamClock clock(job.queue);
  each_pass(job, [&](StagePass pass) {
    for (; pass.step < job.steps; ++pass.step) run_step(job, pass, [&](const Launch&) { clock.mark(); });
  });
  clock.mark();
  std::vector<std::pair<std::string, double>> times;
  for (const Launch& launch : launches()) times.emplace_back(launch.name, 0);
  const std::vector<double> laps = clock.laps();
  for (size_t i = 0; i < laps.size(); ++i) times[i % times.size()].second += laps[i];
  return times;
}
void launch_find_contacts(const CudaJob& job, const FoundContacts<float>& found) {
  each_pass(job, [&](StagePass pass) {
    pass.finds = true, pass.found = found;
    find_stage().run(job, pass);
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
