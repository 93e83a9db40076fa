// What the kernels of a step are given. Plain data, for the host, nvcc and NVRTC.
//
// All pointers lead to memory that the device reaches.
#pragma once
#include "core/queue.h"
#include "step/export.h"
#include "step/step_job.h"

namespace stiction {

/// Sizes of the launches. Results do not depend on them: worlds pass through the slots, as many at a time as there are.
struct CudaPlan {
  int slots = 0;  // worlds that step at once
  int kinematics_blocks = 0;
  int branches = 1;            // streams that passes are spread over
  int branch_slots = 0;        // slots of each
  int64_t lane_bytes = 0;      // of a lane of a slot
  int64_t posed_begin = 0;     // where what solvers see begins, behind all lanes,
  int64_t posed_bytes = 0;     // of each slot
  int64_t slot_bytes = 0;      // of all slots
  int improvers = 0;           // warps that improve answers, each those of kSlotsOfImprover slots
  int64_t row_bytes = 0;       // of the rows of a slot
  int64_t world_bytes = 0;     // and of its solver
  int64_t improver_bytes = 0;  // of the fallback's, an improver's own
  int64_t local_bytes = 0;     // that the driver sets aside at the first launch, see local_memory()
};

struct CudaJob : StepJob<float, TileCapacity> {
  CudaPlan plan;
  void* slots;          // plan.slot_bytes of device memory
  void* solver_memory;  // WorldMemory of plan.slots worlds, then the improvers', likewise
  ParameterTables<TileCapacity, float>*
      own_models;  // (plan.slots), where parameters differ between environments; else null
  CudaQueue queue;
};

/// Worlds first .. first + count - 1 of a batch, in slots slot, slot + 1, ..., in a step of the call.
struct StagePass {
  int first = 0, count = 0, slot = 0, step = 0;
  bool recovers = false;       // of the solve stage: for the second time in a step
  bool finds = false;          // of the find stage: contacts alone, of present states,
  FoundContacts<float> found;  // into these
};

inline constexpr int kThreads = 64;  // of a block
/// Lanes that share a world: where each takes some limbs, and where they share a solver's work.
inline constexpr int kTreeTile = 4, kSolveTile = 16;
/// An improver has a warp, of which kSolveTile lanes work: in one warp, several would wait for each other. About one world in a
/// thousand is improved.
inline constexpr int kImproverTile = 32, kSlotsOfImprover = 4;

}  // namespace stiction
