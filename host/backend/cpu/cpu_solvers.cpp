// All solvers of the list and the fallback, once per number type.
#include "host/backend/cpu/executor.h"
#include "step/solve_rows.h"

namespace stiction {

#define STICTION_INSTANTIATE(Real)                                                                               \
  template SolveStats<Real> solve_rows(const Serial&, const RowProblem<Real>&, const SolveLimits<Scalar<Real>>&, \
                                       const SolverOptions<Scalar<Real>>&, Real*, Real*);                        \
  template int64_t solver_memory<Real>(const SolverOptions<Scalar<Real>>&, const RowCounts&);                    \
  template int64_t fallback_bytes<Real>(const FallbackPlan&, const RowCounts&);                                  \
  template void fall_back<Real, true>(const Serial&, FlaggedRows<Real>*, int, const FallbackPlan&, void*);

#if STICTION_FLOAT32
STICTION_INSTANTIATE(CpuReal)
#endif
#if STICTION_ISA_SCALAR
STICTION_INSTANTIATE(double)
#endif

}  // namespace stiction
