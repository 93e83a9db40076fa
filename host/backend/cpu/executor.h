// Packs of worlds on one thread, one after the other; those with worlds to improve wait for each other.
#pragma once
#include <memory>
#include <type_traits>
#include <vector>

#include "host/backend/cpu/kernels.h"
#include "host/model/compile.h"
#include "model/tables.h"
#include "step/find_contacts.h"
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
    auto cast = [](int count, auto& own, auto& address, const auto* from) {
      for (int i = 0; i < count; ++i) own.push_back(number_cast<Real>(from[i]));
      address = own.data();
    };
    cast_view(m, tables_.view);
    each_table(m, cast, own_, tables_.view, m);
    each_own_table(m, [](int, auto& address, auto& own) { address = own.data(); }, tables_, own_);
    tables_.view.hull = m.hull;
  }
  const ModelView<Capacity, Real>& of(const CpuJob<Scalar<Real>>& job, const Rows<Real>& rows) {
    update_environment<Capacity, Real>(*job.model, job.parameters, rows, tables_);
    return tables_.view;
  }

 private:
  ParameterTables<Capacity, Real> tables_;
  TableVectors<Real> own_;
};

/// What a pack needs while it takes a step.
template <class L>
struct PackSpace {
  Workspace<L> workspace;
  StepState<L> state;
};

template <class Real> using SharedLane = Lane<Real, Capacity, Serial>;
template <class Real, int links> using FourLimbsLane = Lane<Real, FourLimbs<links>, Serial>;
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
  using Lane = L;
  using Real = typename L::Real;
  using S = Scalar<Real>;

  /// The model of some worlds, in table `place`; both kinds of lanes are one type where a Real is one world.
  static const typename L::Model& model(const CpuJob<S>& job, const Rows<Real>& rows, void* tables, int place = 0) {
    if constexpr (std::is_same_v<typename L::Number, S>)
      if (tables == nullptr) return reinterpret_cast<const typename L::Model&>(*job.model);  // see Shape::Tables
    if constexpr (std::is_same_v<typename L::Number, Real>)
      return (*static_cast<std::vector<EnvironmentTables<Real>>*>(tables))[place].of(job, rows);
    __builtin_unreachable();
  }
  static void step(const CpuJob<S>& job, int first, int last, void* workspace, void* tables);
  static void find(const CpuJob<S>& job, const FoundContacts<S>& found, int first, int last, void* workspace,
                   void* tables);
  static DenseProblem<double> problem(const CpuJob<S>& job, int world, bool next, void* workspace, void* tables,
                                      double* out);
  static void solved_velocity(const CpuJob<S>& job, int world, const S* after, void* workspace, void* tables);
};

}  // namespace stiction
