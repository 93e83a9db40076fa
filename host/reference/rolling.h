// What a step's J misses of a cylinder's rim or an ellipsoid that rolls on what stands still: docs/theory.md, (3.1e).
#pragma once
#include "host/reference/contact_problem.h"

namespace stiction::reference {

/// b of a contact, world axes, 0 where there is none. v_free: the free motion's velocity.   m/s
Vector3d rolling_bend(const Model& model, const Kinematics& k, const Vector& v, const Vector& v_free, const Contact& c,
                      double h);

}  // namespace stiction::reference
