// What every backend's kernels are given of a batch.
#pragma once
#include "model/parameters.h"
#include "step/outputs.h"
#include "step/step_options.h"
#include "step/user_arrays.h"

namespace stiction {

/// Pointers are those that the kernels reach.
template <class T, class Shape_ = Capacity>
struct StepJob {
  using Number = T;
  using Shape = Shape_;
  const ModelView<Shape, T>* model;
  StepOptions<T> options;
  BatchArrays<T> arrays;
  ParameterArrays<T> parameters;
  KinematicArrays<T> outputs;
  int steps = 1;
};

}  // namespace stiction
