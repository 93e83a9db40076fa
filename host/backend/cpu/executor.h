// Packs of worlds, one after the other, on one thread.
#pragma once
#include <memory>
#include <type_traits>
#include <vector>

#include "host/backend/cpu/kernels.h"
#include "model/number_cast.h"
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
    tables_.view.bond = all(bond_, m.bond, m.bonds);
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
  std::vector<BondModel<Real>> bond_;
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

/// What is compiled for each kind of lane, in a file of its own.
template <class L>
struct StepOf {
  using Real = typename L::Real;
  using S = Scalar<Real>;

  /// The model of some worlds; both kinds of lanes are one type where a Real is one world.
  static const typename L::Model& model(const CpuJob<S>& job, const Rows<Real>& rows, void* tables) {
    if constexpr (std::is_same_v<typename L::Number, S>)
      if (tables == nullptr) return *job.model;
    if constexpr (std::is_same_v<typename L::Number, Real>)
      return static_cast<EnvironmentTables<Real>*>(tables)->of(job, rows);
    __builtin_unreachable();
  }
  static void step(const CpuJob<S>& job, int first, int last, void* workspace, void* tables);
  static DenseProblem<double> problem(const CpuJob<S>& job, int world, void* workspace, void* tables, double* out);
};

}  // namespace stiction
