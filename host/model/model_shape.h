// One model's ModelShape (model/shape.h) in C++: its own bounds, the counts that the source can be told, the pairs of geometries
// that may meet. What a GPU's kernels are compiled for.
#pragma once
#include <string>

#include "host/model/compile.h"

namespace stiction {

/// A header for STICTION_MODEL_SHAPE (kernels/worlds.cu); the same text for models that the same kernels serve.
/// springs_vary: stiffnesses of joints differ between environments.   pre: the tables fit a TileCapacity
std::string model_shape(const ModelTables<double>& tables, bool springs_vary);

/// The number of links of each limb of a model that FourLimbs of it serves, else 0.
template <class S> int links_of_four_limbs(const ModelView<Capacity, S>& m);

}  // namespace stiction
