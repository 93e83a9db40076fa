// What every backend's kernels are given of a batch.
#pragma once
#include "model/parameters.h"
#include "step/outputs.h"
#include "step/step_options.h"
#include "step/user_arrays.h"

namespace stiction {

/// Pointers are those that the kernels reach.
template <class T>
struct StepJob {
  using Number = T;
  const ModelView<Capacity, T>* model;
  StepOptions<T> options;
  BatchArrays<T> arrays;
  ParameterArrays<T> parameters;
  KinematicArrays<T> outputs;
  int steps = 1;
};

}  // namespace stiction
