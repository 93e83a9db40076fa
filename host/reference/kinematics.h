// Textbook forward kinematics, point Jacobians, velocities and velocity-product accelerations of a Model, in double.
//
// Part of the oracle (host/reference): slow, dense, obvious, independent of cuda/. Conventions are MuJoCo's: several joints of
// a body act in order; slide and hinge measure from qpos0; quaternions (w, x, y, z); qvel of a free joint is the linear
// velocity in the world frame, then the angular velocity in the body frame; of a ball joint the angular velocity in the
// body frame. Quaternions of q need not be normalised; a zero quaternion reads as the identity.
//
// Shapes: q (nq) m, rad; v (nv) m/s, rad/s. World frame unless said otherwise. Preconditions: a validated Model and vectors
// of its sizes; std::invalid_argument otherwise.
#pragma once
#include <Eigen/Core>
#include <Eigen/Geometry>
#include <vector>

#include "host/model/model.h"

namespace stiction::reference {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;
using Eigen::Matrix3d;
using Eigen::Quaterniond;
using Eigen::Vector3d;

/// World poses of everything, as functions of q.
struct Kinematics {
  std::vector<Vector3d> body_pos;      // (nbody)  origins
  std::vector<Quaterniond> body_quat;  // (nbody)
  std::vector<Matrix3d> body_rot;      // (nbody)
  std::vector<Vector3d> com;           // (nbody)  centres of mass
  std::vector<Matrix3d> inertia;       // (nbody)  about the centre of mass, world axes, kg m^2
  std::vector<Vector3d> geom_pos, site_pos;
  std::vector<Matrix3d> geom_rot, site_rot;
  std::vector<Vector3d> joint_anchor, joint_axis;  // (njnt)  anchor point, axis of hinge or slide
};

Kinematics forward_kinematics(const Model& model, const Vector& q);

/// Jacobian (3, nv) of the velocity of a point fixed to `body`, now at the world position `point`.
Matrix point_jacobian(const Model& model, const Kinematics& kinematics, int body, const Vector3d& point);
/// Jacobian (3, nv) of the angular velocity of `body`, world axes.
Matrix angular_jacobian(const Model& model, const Kinematics& kinematics, int body);

/// Motion of a body's origin at (q, v) with qacc = 0, world axes.
struct BodyMotion {
  Vector3d angular = Vector3d::Zero(), linear = Vector3d::Zero();                            // rad/s, m/s
  Vector3d angular_acceleration = Vector3d::Zero(), linear_acceleration = Vector3d::Zero();  // J-dot v
};
std::vector<BodyMotion> body_motions(const Model& model, const Kinematics& kinematics, const Vector& q,
                                     const Vector& v);

/// Length of a fixed tendon, sum of coef q, and its constant row (nv) of derivatives.
double tendon_length(const Model& model, int tendon, const Vector& q);
Vector tendon_row(const Model& model, int tendon);

/// The rotation vector (body frame) that turns `from` into `to`: from exp(r) = to, |r| <= pi.
Vector3d rotation_difference(const Quaterniond& to, const Quaterniond& from);
/// The normalised quaternion that starts at q[address].
Quaterniond quaternion_at(const Vector& q, int address);

/// q (+) h v: positions after moving at v for h seconds; quaternions advance by the exponential map and are normalised.
Vector integrate(const Model& model, const Vector& q, const Vector& v, double h);

/// Throws std::invalid_argument unless `value` has `size` entries.
void require_size(const char* name, const Vector& value, int size);

}  // namespace stiction::reference
