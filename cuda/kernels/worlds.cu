// Steps of worlds from states to states: the same source as the CPU's (step/step_world.h), for any robot (TileCapacity) or, where the
// macro STICTION_MODEL_SHAPE names a header, for the ModelShape in it. Compiled by nvcc and NVRTC, and linked with the solvers, which
// know no model (solve.cu, improve.cu).
//
// One kernel takes all steps of a call, so that a world stays where it is: in registers and on the stack of its lanes, and nothing but its rows
// is written for others. Warps of a launch do not wait for each other: what one is long at, a fallback say, holds its own worlds, and the
// launch after it.
#include "kernels/worlds.cuh"
#include "step/find_contacts.h"
#ifdef STICTION_MODEL_SHAPE
#include STICTION_MODEL_SHAPE
#endif

namespace stiction {

#ifdef STICTION_MODEL_SHAPE
using KernelShape = ModelShape;
#else
using KernelShape = TileCapacity;
#endif
using TileLane = Lane<float, KernelShape, Tile<kTreeTile>>;
using TileModel = TileLane::Model;
using TileTables = ParameterTables<KernelShape, float>;
// The host fills tables of TileCapacity, whatever shape reads them.
static_assert(sizeof(TileModel) == sizeof(ModelView<TileCapacity, float>) &&
              sizeof(TileTables) == sizeof(ParameterTables<TileCapacity, float>));

/// What a lane steps a world with.
struct LaneMemory {
  StepState<TileLane> s;
  Workspace<TileLane> w;
};
// Where it lies: of a model on the stack (Shape::kOnStack), which the hardware lays out so that a warp's lanes are moved together; that of
// any robot, 130 KB, is more than a stack has for all lanes of a device, and lies in its slot.
inline constexpr int kBlocks = 8;  // on a multiprocessor: 128 registers a lane, which solvers are compiled for

/// That of the fallback is the team's.
__device__ inline WorldMemory slot_memory(const CudaJob& job, int slot) {
  unsigned char* solvers = static_cast<unsigned char*>(job.solver_memory);
  unsigned char* own = solvers + slot * job.plan.world_bytes;
  unsigned char* improver =
      solvers + job.plan.slots * job.plan.world_bytes + slot / kWorldsOfTeam * job.plan.improver_bytes;
  return {own, own + job.plan.row_bytes, job.plan.improvers > 0 ? improver : nullptr};
}

/// visit(tile, here, model, worlds, w, s) by the lanes of every world of this launch. Those of a warp stay together, for they are teams:
/// `here` is false of the lanes that have no world.
template <class Visit>
__device__ void each_world(const CudaJob& job, Visit visit) {
  const Tile<kTreeTile> tile;
  const int lane = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), slot = lane / kTreeTile;
  const auto& shared = *reinterpret_cast<const TileModel*>(job.model);
  lies_in_memory(shared);
  const int64_t record = RecordLayout<TileModel>(shared).reals();
  const int world = job.first_world + slot;
  if (world - slot % (kWarp / kTreeTile) < job.arrays.num_envs) {
    const bool here = world < job.arrays.num_envs;
    const Rows<float> rows{here ? world : 0, job.arrays.num_envs};
    const SteppedWorlds<TileLane> worlds{job.options, job.arrays, rows, {job.arrays.records + rows.first * record}};
    const TileModel* model = &shared;
    if (job.own_models != nullptr) {
      TileTables& tables = reinterpret_cast<TileTables*>(job.own_models)[slot];
      if (here && tile.rank() == 0) update_environment<KernelShape, float>(shared, job.parameters, rows, tables);
      tile.sync();
      model = &tables.view;
      lies_in_memory(*model);
    }
    lies_in_memory(*model);
    auto step = [&](LaneMemory& own) {
      own.w.bind(slot_memory(job, slot));
      own.w.contacts.live.clear();
      for (auto& of : own.w.problem.dof) of.live = {};
      own.s.solving = false, own.s.flagged = false;
      visit(tile, here, *model, worlds, own.w, own.s);
    };
    if constexpr (KernelShape::kOnStack) {
      LaneMemory own;
#ifndef __CUDA_ARCH__
      __builtin_memset(static_cast<void*>(&own), 0xff, sizeof own);  // emulated: what is not written is not there
#endif
      step(own);
    } else {
      step(*reinterpret_cast<LaneMemory*>(static_cast<unsigned char*>(job.slots) + lane * int64_t{sizeof(LaneMemory)}));
    }
  }
}

/// body(team, first) by kTeam lanes for those of their worlds that are `asked` for, whose own lanes are first, first + 1, ...
template <int kTeam, class Body>
__device__ void by_team(bool asked, Body body) {
  const Tile<kTeam> team;
  if (!team.any(asked)) return;
  for (int first = 0; first < kTeam; first += kTreeTile)
    if (team.from(asked, first)) body(team, first);
  team.sync();
}
template <int kTeam>
__device__ bool is_own(const Tile<kTeam>& team, int first) {
  return team.rank() / kTreeTile * kTreeTile == first;
}
/// The chosen solver on what is posed. Returns its iterations.
__device__ inline float solve(const CudaJob& job, const PosedSolve<float>& posed, void* memory) {
  float iterations = 0;
  auto solve_each = [&](auto by, const auto& team, int first) {
    const RowProblem<float> rows = from_lane(team, posed.rows, first);
    const float found = by(job.options, rows, from_lane(team, posed.impulse, first), from_lane(team, memory, first));
    if (is_own(team, first)) iterations = found;
  };
  const int lanes = posed.solving ? lanes_of(job.options, posed.rows) : 0;
  if (lanes == kTreeTile) iterations = solve_by_tile(job.options, posed.rows, posed.impulse, memory);
  Tile<kWarp>().sync();
  by_team<kSolveTile>(lanes == kSolveTile,
                      [&](const auto& team, int first) { solve_each(solve_by_team, team, first); });
  by_team<kWarp>(lanes == kWarp, [&](const auto& team, int first) { solve_each(solve_by_warp, team, first); });
  return iterations;
}
/// The fallback on what is flagged.
__device__ inline void improve(const CudaJob& job, PosedSolve<float>& posed, void* memory) {
  by_team<kSolveTile>(posed.flagged, [&](const auto& team, int first) {
    PosedSolve<float> of = from_lane(team, posed, first);
    improve_by_team(job.options, of, memory);
    of = from_lane(team, of, 0);
    if (is_own(team, first)) posed = of;
  });
}

/// Adds what a warp has taken since it looked before to that of a stage.
class StageClock {
 public:
  __device__ explicit StageClock(unsigned long long* total) : total_(threadIdx.x % kWarp == 0 ? total : nullptr) {
    if (total_ != nullptr) last_ = clock64();
  }
  __device__ void mark(Stage stage) {
    if (total_ == nullptr) return;
    const long long now = clock64();
    atomicAdd(total_ + stage, static_cast<unsigned long long>(now - last_));
    last_ = now;
  }

 private:
  unsigned long long* total_;
  long long last_ = 0;
};

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks) step_kernel(const __grid_constant__ CudaJob job) {
  const Tile<kWarp> warp;
  each_world(job, [&](const auto& tile, bool here, const auto& model, const auto& worlds, auto& w, auto& s) {
    StageClock clock(job.clock);
    auto stage = [&](Stage which, auto work) {
      if (here) work();
      warp.sync();
      clock.mark(which);
    };
    if (here) begin_steps<TileLane>(tile, model, worlds, w, s);
    for (int step = 0; step < job.steps; ++step) {
      stage(kFind, [&] {
        enter_step<TileLane>(tile, model, worlds, step, job.steps, s);
        find_step<TileLane>(tile, model, worlds, w, s);
      });
      stage(kAssemble, [&] { pose_step<TileLane>(tile, model, worlds, w, s); });
      s.iterations = solve(job, s, w.memory.solver);
      clock.mark(kSolve);
      stage(kJudge, [&] { judge_step<TileLane>(tile, model, worlds, w, s); });
      improve(job, s, w.memory.fallback);
      clock.mark(kImprove);
      stage(kSettle, [&] { settle_step<TileLane>(tile, model, worlds, w, s); });
      solve(job, s, w.memory.solver);
      stage(kRecover, [&] {
        if (s.solving) recover<TileLane>(tile, model, job.options, w, s);
      });
    }
    if (here) end_steps<TileLane>(tile, model, worlds, job.steps, s);
    warp.sync();
  });
}

extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)
    find_kernel(const __grid_constant__ CudaJob job, const __grid_constant__ FoundContacts<float> found) {
  each_world(job, [&](const auto& tile, bool here, const auto& model, const auto& worlds, auto& w, auto&) {
    if (here && found.wants(worlds.rows.first)) find_batch_contacts<TileLane>(tile, model, worlds, found, w);
  });
}

#ifdef STICTION_MODEL_SHAPE
/// Whether these kernels and who launches them mean the same by what is handed over.
extern "C" __device__ int64_t handed_over = kHandedOver;
#else
const int64_t kBuildLaneBytes = sizeof(LaneMemory);
#endif

}  // namespace stiction
