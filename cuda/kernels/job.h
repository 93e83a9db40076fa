// What the kernels of a step are given. Plain data, for the host, nvcc and NVRTC.
//
// All pointers lead to memory that the device reaches.
#pragma once
#include "core/queue.h"
#include "step/export.h"
#include "step/step_job.h"

namespace stiction {

/// Sizes of the launches. Results do not depend on them: a launch takes as many worlds as there are slots.
struct CudaPlan {
  int slots = 0;  // worlds that step at once
  int kinematics_blocks = 0;
  int64_t slot_bytes = 0;      // of all slots
  int improvers = 0;           // teams that improve answers, each those of its worlds
  int64_t row_bytes = 0;       // of the rows of a slot
  int64_t world_bytes = 0;     // and of its solver
  int64_t improver_bytes = 0;  // of the fallback's, an improver's own
  int64_t local_bytes = 0;     // that the driver sets aside at the first launch, see local_memory()
};

struct CudaJob : StepJob<float, TileCapacity> {
  CudaPlan plan;
  int first_world = 0;  // of the plan.slots that a launch takes
  void* slots;          // plan.slot_bytes of device memory
  void* solver_memory;  // WorldMemory of plan.slots worlds, then the improvers', likewise
  ParameterTables<TileCapacity, float>*
      own_models;  // (plan.slots), where parameters differ between environments; else null
  unsigned long long* clock =
      nullptr;  // (kStages) cycles of all warps in each stage are added there; null: nobody asks
  CudaQueue queue;
};

/// Between the moments that a clock of stages looks at.
enum Stage : int { kFind, kAssemble, kSolve, kJudge, kImprove, kSettle, kRecover, kStages };

inline constexpr int kThreads = 64, kWarp = 32;  // lanes of a block, of a warp
/// Lanes that have a world, each some of its limbs; and the team of them that shares a solver's work on the worlds of its tiles, one after
/// the other: where a row each is enough for them, else a warp.
inline constexpr int kTreeTile = 4, kSolveTile = 16, kWorldsOfTeam = kSolveTile / kTreeTile;

/// Changes where the layout of what the host and kernels of a model hand each other does.
inline constexpr int64_t kHandedOver = (int64_t{sizeof(CudaJob)} * 1000 + sizeof(FoundContacts<float>)) * 100000 +
                                       sizeof(ParameterTables<TileCapacity, float>);

}  // namespace stiction
