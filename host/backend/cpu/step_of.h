// StepOf, to be instantiated.
#pragma once
#include <utility>

#include "host/backend/cpu/executor.h"
#include "step/last_problem.h"

namespace stiction {

/// Packs that take their steps in the places of a thread.
template <class L>
class Walk {
 public:
  using Real = typename L::Real;
  using S = Scalar<Real>;

  Walk(const CpuJob<S>& job, void* workspace, void* tables)
      : job_(job), space_(static_cast<PackSpace<L>*>(workspace)), tables_(tables) {
    for (int i = 0; i < job.places; ++i) place_[i] = i;
  }
  /// All steps of packs first .. last - 1.
  void take(int first, int last) {
    while (first < last || waiting_ > 0) {
      while (first < last && waiting_ < job_.places) {
        begin(place_[waiting_], first++);
        if (waits(place_[waiting_])) ++waiting_;
      }
      improve();
      const int improved = waiting_;
      waiting_ = 0;
      for (int i = 0; i < improved; ++i) {
        settle<L>(Serial{}, *model_[place_[i]], worlds(place_[i]), workspace(place_[i]), state(place_[i]));
        if (waits(place_[i])) std::swap(place_[waiting_++], place_[i]);
      }
    }
  }

 private:
  Workspace<L>& workspace(int place) const { return space_[place].workspace; }
  StepState<L>& state(int place) const { return space_[place].state; }
  SteppedWorlds<L> worlds(int place) const {
    return {job_.options, job_.arrays, rows_[place], {pack_record<Real>(job_, rows_[place].first / kWidth<Real>)}};
  }
  void begin(int place, int pack) {
    rows_[place] = pack_rows<Real>(job_, pack);
    model_[place] = &StepOf<L>::model(job_, rows_[place], tables_, place);
    begin_steps<L>(Serial{}, *model_[place], worlds(place), workspace(place), state(place));
  }
  /// Whether a pack waits to be improved; else it is through.
  bool waits(int place) const {
    const Serial g;
    if (take_steps<L>(g, *model_[place], worlds(place), job_.steps, workspace(place), state(place))) return true;
    end_steps<L>(g, *model_[place], worlds(place), job_.steps, state(place));
    return false;
  }
  void improve() const {
    if (waiting_ == 0) return;
    improve_posed<Real, true>(
        Serial{}, job_.options, waiting_, [&](int i) -> auto& { return state(place_[i]); },
        workspace(0).memory.fallback);
  }

  const CpuJob<S>& job_;
  PackSpace<L>* space_;
  void* tables_;
  Rows<Real> rows_[kImprovedTogether<Real>];
  const typename L::Model* model_[kImprovedTogether<Real>];
  int place_[kImprovedTogether<Real>];  // those that wait, then free ones
  int waiting_ = 0;
};

template <class L>
void StepOf<L>::step(const CpuJob<S>& job, int first, int last, void* workspace, void* tables) {
  Walk<L>(job, workspace, tables).take(first, last);
}

template <class L>
void StepOf<L>::find(const CpuJob<S>& job, const FoundContacts<S>& found, int first, int last, void* workspace,
                     void* tables) {
  auto& w = static_cast<PackSpace<L>*>(workspace)->workspace;
  for (int p = first; p < last; ++p) {
    const Rows<Real> rows = pack_rows<Real>(job, p);
    bool wanted = false;
    for (int i = 0; i < rows.count(); ++i) wanted = wanted || found.wants(rows.first + i);
    const SteppedWorlds<L> worlds{job.options, job.arrays, rows, {pack_record<Real>(job, p)}};
    if (wanted) find_batch_contacts<L>(Serial{}, model(job, rows, tables), worlds, found, w);
  }
}

template <class L>
DenseProblem<double> StepOf<L>::problem(const CpuJob<S>& job, int world, bool next, void* workspace, void* tables,
                                        double* out) {
  constexpr int W = kWidth<Real>;
  auto& w = static_cast<PackSpace<L>*>(workspace)->workspace;
  const Rows<Real> rows = pack_rows<Real>(job, world / W);
  const SteppedWorlds<L> worlds{job.options, job.arrays, rows, {pack_record<Real>(job, world / W)}};
  return last_problem<L>(model(job, rows, tables), worlds, world % W, next, w, out);
}

template <class L>
void StepOf<L>::solved_velocity(const CpuJob<S>& job, int world, const S* after, void* workspace, void* tables) {
  constexpr int W = kWidth<Real>;
  const Rows<Real> rows = pack_rows<Real>(job, world / W);
  const SteppedWorlds<L> worlds{job.options, job.arrays, rows, {pack_record<Real>(job, world / W)}};
  stiction::solved_velocity<L>(model(job, rows, tables), worlds, world % W, after,
                               static_cast<PackSpace<L>*>(workspace)->workspace);
}

}  // namespace stiction
