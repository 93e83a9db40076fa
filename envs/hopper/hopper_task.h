// Hopper: hop forward on one leg. Gymnasium's Hopper-v5 on envs/hopper/hopper.xml, whose sizes are the same.
// 11 observations, 3 actions. Healthy: z > 0.7 m, |pitch| < 0.2 rad, all else within +-100. See planar_walker.h.
#pragma once
#include "envs/planar/planar_walker.h"

namespace stiction {

struct HopperTask : PlanarWalker<3> {
  HopperTask() {
    healthy_z_range = {0.7, kUnlimited}, healthy_angle_range = {-0.2, 0.2}, healthy_state_range = {-100, 100};
  }
  template <class Self, class F>
  static void parameters(Self& self, F&& f) {
    PlanarWalker::parameters(self, f), f("healthy_state_range", self.healthy_state_range);
  }
};

}  // namespace stiction
