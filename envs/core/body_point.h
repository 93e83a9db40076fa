// Where a point that is fixed to a body is: grasp points, fingertips. For tasks that need kNeedsBodyPoses.
#pragma once
#include "envs/core/task.h"
#include "math/pose.h"

namespace stiction {

/// `at`: in the body's frame, m. In the world's axes, m.
template <class Real>
HD Vec3<Real> body_point(const TaskView<Real>& view, int body, const double* at) {
  const Real *p = view.body_position + 3 * body, *q = view.body_orientation + 4 * body;
  const Vec3<Real> offset{Real(at[0]), Real(at[1]), Real(at[2])};
  return Vec3<Real>{p[0], p[1], p[2]} + rotation(Quat<Real>{q[0], q[1], q[2], q[3]}) * offset;
}

}  // namespace stiction
