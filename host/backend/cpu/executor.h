// Packs of worlds, one after the other, on one thread.
#pragma once
#include <memory>
#include <type_traits>
#include <vector>

#include "host/backend/cpu/kernels.h"
#include "model/number_cast.h"
#include "solvers/pgs/pgs_world.h"
#include "step/step_world.h"

namespace stiction {

#if STICTION_ISA_AVX512
using CpuReal = Pack<float, 16>;
#elif STICTION_ISA_AVX2
using CpuReal = Pack<float, 8>;
#else
using CpuReal = float;
#endif

/// Tables whose numbers are Reals, for per-environment parameters: the shared model's, written over pack by pack.
template <class Real>
class EnvironmentTables {
 public:
  explicit EnvironmentTables(const ModelView<Capacity, Scalar<Real>>& m) {
    auto all = [](auto& to, const auto* from, int count) {
      for (int i = 0; i < count; ++i) to.push_back(number_cast<Real>(from[i]));
      return to.data();
    };
    cast_view(m, tables_.view);
    tables_.view.probe = tables_.probe = all(probe_, m.probe, m.probes);
    tables_.view.geom = tables_.geom = all(geom_, m.geom, m.ngeom);
    tables_.view.pair = tables_.pair = all(pair_, m.pair, m.pairs);
    tables_.view.actuator = tables_.actuator = all(actuator_, m.actuator, m.actuators);
    tables_.view.tie = tables_.tie = all(tie_, m.tie, m.ties);
    tables_.view.plane = all(plane_, m.plane, m.planes);
    tables_.view.body = all(body_, m.body, m.nbody), tables_.view.site = all(site_, m.site, m.nsite);
    tables_.view.link_pair = m.link_pair, tables_.view.hull = m.hull;
  }
  const ModelView<Capacity, Real>& of(const CpuJob<Scalar<Real>>& job, const Rows<Real>& rows) {
    update_environment<Capacity, Real>(*job.model, job.parameters, rows, tables_);
    return tables_.view;
  }

 private:
  ParameterTables<Capacity, Real> tables_;
  std::vector<ProbeModel<Real>> probe_;
  std::vector<GeomModel<Real>> geom_;
  std::vector<PairModel<Real>> pair_;
  std::vector<ActuatorModel<Real>> actuator_;
  std::vector<PlaneModel<Real>> plane_;
  std::vector<TieModel<Real>> tie_;
  std::vector<BodyModel<Real>> body_;
  std::vector<SiteModel<Real>> site_;
};

template <class Real> using SharedLane = Lane<Real, Capacity, Serial>;
template <class Real> using PerEnvLane = Lane<Real, Capacity, Serial, Real>;

template <class Real>
Rows<Real> pack_rows(const CpuJob<Scalar<Real>>& job, int pack) {
  return {pack * kWidth<Real>, job.arrays.num_envs};
}
template <class Real>
Real* pack_record(const CpuJob<Scalar<Real>>& job, int pack) {
  const int64_t size = RecordLayout<ModelView<Capacity, Scalar<Real>>>(*job.model).reals();
  return reinterpret_cast<Real*>(job.arrays.records + pack * size * kWidth<Real>);
}

/// L: SharedLane or PerEnvLane.
template <class L, template <class> class Solver>
void step_packs(const CpuJob<Scalar<typename L::Real>>& job, int first, int last, void* memory, void* tables) {
  using Real = typename L::Real;
  auto& w = *static_cast<Workspace<L, Solver<L>>*>(memory);
  for (int p = first; p < last; ++p) {
    const Rows<Real> rows = pack_rows<Real>(job, p);
    Real* record = pack_record<Real>(job, p);
    if constexpr (std::is_same_v<typename L::Number, Real>) {
      if (tables != nullptr) {
        const auto& own = static_cast<EnvironmentTables<Real>*>(tables)->of(job, rows);
        step_batch<L, Solver<L>>(Serial{}, own, job.options, job.arrays, rows, record, job.steps, w);
        continue;
      }
    }
    if constexpr (std::is_same_v<typename L::Number, Scalar<Real>>)
      step_batch<L, Solver<L>>(Serial{}, *job.model, job.options, job.arrays, rows, record, job.steps, w);
  }
}

template <class L, template <class> class Solver>
DenseProblem<double> problem_of(const CpuJob<Scalar<typename L::Real>>& job, int world, void* memory, void* tables,
                                double* out) {
  using Real = typename L::Real;
  constexpr int W = kWidth<Real>;
  auto& w = *static_cast<Workspace<L, Solver<L>>*>(memory);
  const Rows<Real> rows = pack_rows<Real>(job, world / W);
  Real* record = pack_record<Real>(job, world / W);
  if constexpr (std::is_same_v<typename L::Number, Real>)
    if (tables != nullptr)
      return last_problem<L, Solver<L>>(static_cast<EnvironmentTables<Real>*>(tables)->of(job, rows), job.options,
                                        job.arrays, rows, record, world % W, w, out);
  if constexpr (std::is_same_v<typename L::Number, Scalar<Real>>)
    return last_problem<L, Solver<L>>(*job.model, job.options, job.arrays, rows, record, world % W, w, out);
  return {};
}

/// Each lane type of each solver is compiled in a file of its own.
template <class L>
void step_subadmm(const CpuJob<Scalar<typename L::Real>>& job, int first, int last, void* memory, void* tables);
template <class L>
DenseProblem<double> problem_subadmm(const CpuJob<Scalar<typename L::Real>>& job, int world, void* memory, void* tables,
                                     double* out);
template <class L>
void step_pgs(const CpuJob<Scalar<typename L::Real>>& job, int first, int last, void* memory, void* tables);
template <class L>
DenseProblem<double> problem_pgs(const CpuJob<Scalar<typename L::Real>>& job, int world, void* memory, void* tables,
                                 double* out);

}  // namespace stiction
