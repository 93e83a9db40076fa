// Walker2d: walk forward on two legs in the plane. Gymnasium's Walker2d-v5 on envs/walker2d/walker2d.xml, whose sizes are the
// same. 17 observations, 6 actions. Healthy: 0.8 < z < 2 m, |pitch| < 1 rad. See planar_walker.h.
#pragma once
#include "envs/planar/planar_walker.h"

namespace stiction {

struct Walker2dTask : PlanarWalker<6> {
  Walker2dTask() { healthy_z_range = {0.8, 2}, healthy_angle_range = {-1, 1}; }
};

}  // namespace stiction
