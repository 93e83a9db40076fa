// What the user may set of a step, whatever its solver. S: plain number. Defaults are the product's; see the members of the Python
// class stiction.SolverOptions of the same names. What a solver adds: the Options in its folder.
#pragma once
#include "core/platform.h"

namespace stiction {

/// The value of Options::fallback that is the first solver of the list in step/solvers.h; the others follow.
inline constexpr int kFirstChosenFallback = 2;

template <class S>
struct Options {
  S h = S(0.002);            // time step                                                      s
  int explicit_damping = 0;  // joint damping is a force (MuJoCo with eulerdamp disabled)
  int implicit = 1;          // joint and actuator stiffness and damping in A ([Castro2023] eq. 15); 0: MuJoCo's Euler
  S theta = S(1);            // of [Castro2023] (6), of implicit forces: 1 at the end of the step, 1/2 in its middle
  S theta_vq = S(1);         // positions move with theta_vq v + (1 - theta_vq) v before
  int newton = 0;         // iterations of the free motion at most; 0: one linear solve, and what spins by gyroscopic.h
  S erp = S(0.2);         // part of an overlap to remove in one step                       1
  S max_recovery = S(1);  // bound on that velocity                                         m/s, rad/s
  S margin = S(0.002);    // gaps beyond it, and beyond what the free motion covers, are ignored m
  S merge = S(5e-4);  // of contacts of one normal this near to each other the deeper counts alone; thin: StepReach  m
  S penetration_allowance = S(1e-6);  // overlap of a near-rigid contact under the weight of 1 / W_nn; 0: rigid  m
  S tangential_compliance = S(0);     // R_t of every contact as a part of its mean W: SAP's sigma               1
  int iterations = 100;               // of the solver, at most; exactly, if tolerance is 0
  S tolerance = S(1e-5);              // stop a world when its residual is below tolerance * V
  S certify = S(1e-3);                // r_con / V beyond which a world is flagged kNotConverged; theory, section 8
  int warm_start = 1;
  int fallback =
      1;  // of worlds above `certify`: 0 none, 1 the law's own (step/fallback.h), then the solvers of the list

  /// Whether what turns freely does so by the closed form of dynamics/gyroscopic.h, its centre of mass going straight.
  HD bool moves_centres() const { return implicit && newton == 0; }

  template <class Visit, class... O>
  HD static void each_field(Visit visit, O&... o) {
    visit("h", o.h...), visit("explicit_damping", o.explicit_damping...), visit("implicit", o.implicit...);
    visit("theta", o.theta...), visit("theta_vq", o.theta_vq...), visit("newton", o.newton...);
    visit("erp", o.erp...), visit("max_recovery", o.max_recovery...), visit("margin", o.margin...);
    visit("merge", o.merge...), visit("penetration_allowance", o.penetration_allowance...);
    visit("tangential_compliance", o.tangential_compliance...), visit("iterations", o.iterations...),
        visit("tolerance", o.tolerance...);
    visit("certify", o.certify...), visit("warm_start", o.warm_start...), visit("fallback", o.fallback...);
  }
};

}  // namespace stiction
