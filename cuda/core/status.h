// Bits of a world's status word, sticky until reset or clear_status. stiction.Status in Python.
#pragma once
#include "core/platform.h"

namespace stiction {

enum Status : int {
  /// A position, velocity or input was NaN, infinite or beyond 1e18, the sum of speeds beyond 1e6, or a quaternion zero. The
  /// world keeps its last finite state and stands still until it is reset. Remedy: look at the action, the applied forces and
  /// the parameters; a smaller time step.
  kNonFinite = 1,
  /// The certificate of a step exceeded the tolerance. Remedy: more iterations, or another solver; where r_dyn is large, double.
  /// Or, of "midpoint" and "implicit_euler", Newton found no free motion. Remedy: a smaller time step.
  kNotConverged = 2,
  /// A contact that touches, or could close in the step, was left out for want of slots, and none of the kept ones of its body
  /// lies in its plane. Remedy: fewer or simpler geoms near one another.
  kContactOverflow = 4,
  /// The fallback solved a step of this world. Information.
  kFallback = 8,
  /// A contact that touches, between bodies that cannot move (its W_ii is 0), was ignored.
  kImmovable = 16,
  /// No solver found an answer to a step for some bodies that touch each other, and nothing pushed them: no contact, limit, dry
  /// friction, equality or implicit servo of a tendon. kNotConverged is set, too. Remedy: double, smaller ratios of mass, a
  /// smaller time step, a start without overlaps.
  kNoImpulses = 32,
};

}  // namespace stiction
