// What a step's J misses of a cylinder's rim, an ellipsoid or a sphere off the centre of mass that rolls on what stands still: docs/theory.md, (3.1e).
#pragma once
#include "host/reference/contact_problem.h"

namespace stiction::reference {

struct Rolling {
  std::vector<Vector3d> bend;  // b of each contact, world axes, 0 where there is none            m/s
  Vector part;                 // of each joint, k of the body on its own that hangs on it, if it rolls; else 0
};
/// v_free: the free motion's velocity.
Rolling rolling_of(const Model& model, const Kinematics& k, const Vector& v, const Vector& v_free,
                   const std::vector<Contact>& contacts, double h);

}  // namespace stiction::reference
