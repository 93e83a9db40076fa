#include "host/reference/kinematics.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace stiction::reference {
namespace {

Vector3d vec3(const Reals& a, int i) { return {a[3 * i], a[3 * i + 1], a[3 * i + 2]}; }

Quaterniond normalized(double w, double x, double y, double z) {
  double n = std::sqrt(w * w + x * x + y * y + z * z);
  return n > 0 ? Quaterniond(w / n, x / n, y / n, z / n) : Quaterniond::Identity();
}

Quaterniond quat(const Reals& a, int i) { return normalized(a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3]); }

Quaterniond exponential(const Vector3d& r) {
  double angle = r.norm();
  if (angle == 0) return Quaterniond::Identity();
  Vector3d v = std::sin(angle / 2) / angle * r;
  return {std::cos(angle / 2), v.x(), v.y(), v.z()};
}

JointType type_of(const Model& model, int joint) { return static_cast<JointType>(model.jnt_type[joint]); }

/// Moves body `b` from its place at rest in the parent through its joints.
void place_body(const Model& model, const Vector& q, int b, Kinematics& k) {
  int parent = model.body_parentid[b];
  Vector3d p = k.body_pos[parent] + k.body_rot[parent] * vec3(model.body_pos, b);
  Quaterniond r = k.body_quat[parent] * quat(model.body_quat, b);
  for (int i = 0; i < model.body_jntnum[b]; ++i) {
    int joint = model.body_jntadr[b] + i, at = model.jnt_qposadr[joint];
    Vector3d anchor = vec3(model.jnt_pos, joint), axis = vec3(model.jnt_axis, joint);
    k.joint_anchor[joint] = p + r * anchor;
    k.joint_axis[joint] = r * axis;
    switch (type_of(model, joint)) {
      case JointType::kFree:
        p = q.segment<3>(at);
        r = quaternion_at(q, at + 3);
        k.joint_anchor[joint] = p;
        break;
      case JointType::kBall: r = r * quaternion_at(q, at); break;
      case JointType::kSlide: p += k.joint_axis[joint] * (q[at] - model.qpos0[at]); break;
      case JointType::kHinge: r = r * exponential(axis * (q[at] - model.qpos0[at])); break;
    }
    bool turns = type_of(model, joint) == JointType::kBall || type_of(model, joint) == JointType::kHinge;
    if (turns) p = k.joint_anchor[joint] - r * anchor;  // the anchor stays where it was
  }
  k.body_pos[b] = p;
  k.body_quat[b] = r.normalized();
  k.body_rot[b] = k.body_quat[b].toRotationMatrix();
}

/// Calls f(dof, axis, anchor, turns) for every dof that moves `body`: a translation along `axis`, or a turn about it.
template <class F>
void for_each_dof(const Model& model, const Kinematics& k, int body, F f) {
  for (int b = body; b > 0; b = model.body_parentid[b]) {
    for (int i = 0; i < model.body_jntnum[b]; ++i) {
      int joint = model.body_jntadr[b] + i, dof = model.jnt_dofadr[joint];
      switch (type_of(model, joint)) {
        case JointType::kFree:
          for (int c = 0; c < 3; ++c) {
            f(dof + c, Vector3d(Vector3d::Unit(c)), k.body_pos[b], false);
            f(dof + 3 + c, Vector3d(k.body_rot[b].col(c)), k.body_pos[b], true);
          }
          break;
        case JointType::kBall:
          for (int c = 0; c < 3; ++c) f(dof + c, Vector3d(k.body_rot[b].col(c)), k.joint_anchor[joint], true);
          break;
        case JointType::kSlide: f(dof, k.joint_axis[joint], k.joint_anchor[joint], false); break;
        case JointType::kHinge: f(dof, k.joint_axis[joint], k.joint_anchor[joint], true); break;
      }
    }
  }
}

/// The motion of another point of the same rigid body, `offset` away.
BodyMotion shifted(const BodyMotion& m, const Vector3d& offset) {
  BodyMotion s = m;
  s.linear += m.angular.cross(offset);
  s.linear_acceleration += m.angular_acceleration.cross(offset) + m.angular.cross(m.angular.cross(offset));
  return s;
}

/// Motion past one joint; `at` is the point that `m` speaks of, moved along.
BodyMotion past_joint(const Model& model, const Kinematics& k, const Vector& q, const Vector& v, int joint,
                      BodyMotion m, Vector3d& at) {
  int body = model.jnt_bodyid[joint], dof = model.jnt_dofadr[joint];
  const Vector3d &anchor = k.joint_anchor[joint], &axis = k.joint_axis[joint];
  if (type_of(model, joint) == JointType::kFree) {
    at = k.body_pos[body];
    return {k.body_rot[body] * v.segment<3>(dof + 3), v.segment<3>(dof), Vector3d::Zero(), Vector3d::Zero()};
  }
  if (type_of(model, joint) == JointType::kSlide) {
    Vector3d moved = axis * (q[model.jnt_qposadr[joint]] - model.qpos0[model.jnt_qposadr[joint]]);
    BodyMotion s = shifted(m, moved);
    s.linear += axis * v[dof];
    s.linear_acceleration += 2 * m.angular.cross(axis) * v[dof];
    at += moved;
    return s;
  }
  BodyMotion s = shifted(m, anchor - at);
  bool hinge = type_of(model, joint) == JointType::kHinge;
  Vector3d turn = hinge ? Vector3d(axis * v[dof]) : Vector3d(k.body_rot[body] * v.segment<3>(dof));
  s.angular_acceleration += m.angular.cross(turn);
  s.angular += turn;
  at = anchor;
  return s;
}

}  // namespace

void require_size(const char* name, const Vector& value, int size) {
  if (value.size() != size)
    throw std::invalid_argument(std::string(name) + ": got " + std::to_string(value.size()) + " entries, expected " +
                                std::to_string(size));
}

Quaterniond quaternion_at(const Vector& q, int address) {
  return normalized(q[address], q[address + 1], q[address + 2], q[address + 3]);
}

Kinematics forward_kinematics(const Model& model, const Vector& q) {
  require_size("q", q, model.nq);
  Kinematics k;
  k.body_pos.assign(model.nbody, Vector3d::Zero());
  k.body_quat.assign(model.nbody, Quaterniond::Identity());
  k.body_rot.assign(model.nbody, Matrix3d::Identity());
  k.joint_anchor.resize(model.njnt);
  k.joint_axis.resize(model.njnt);
  for (int b = 1; b < model.nbody; ++b) place_body(model, q, b, k);
  for (int b = 0; b < model.nbody; ++b) {
    Matrix3d axes = k.body_rot[b] * quat(model.body_iquat, b).toRotationMatrix();
    k.com.push_back(k.body_pos[b] + k.body_rot[b] * vec3(model.body_ipos, b));
    k.inertia.push_back(axes * vec3(model.body_inertia, b).asDiagonal() * axes.transpose());
  }
  for (int g = 0; g < model.ngeom; ++g) {
    int b = model.geom_bodyid[g];
    k.geom_pos.push_back(k.body_pos[b] + k.body_rot[b] * vec3(model.geom_pos, g));
    k.geom_rot.push_back(k.body_rot[b] * quat(model.geom_quat, g).toRotationMatrix());
  }
  for (int s = 0; s < model.nsite; ++s) {
    int b = model.site_bodyid[s];
    k.site_pos.push_back(k.body_pos[b] + k.body_rot[b] * vec3(model.site_pos, s));
    k.site_rot.push_back(k.body_rot[b] * quat(model.site_quat, s).toRotationMatrix());
  }
  return k;
}

Matrix point_jacobian(const Model& model, const Kinematics& k, int body, const Vector3d& point) {
  Matrix J = Matrix::Zero(3, model.nv);
  for_each_dof(model, k, body, [&](int dof, const Vector3d& axis, const Vector3d& anchor, bool turns) {
    J.col(dof) = turns ? Vector3d(axis.cross(point - anchor)) : axis;
  });
  return J;
}

Matrix angular_jacobian(const Model& model, const Kinematics& k, int body) {
  Matrix J = Matrix::Zero(3, model.nv);
  for_each_dof(model, k, body, [&](int dof, const Vector3d& axis, const Vector3d&, bool turns) {
    if (turns) J.col(dof) = axis;
  });
  return J;
}

std::vector<BodyMotion> body_motions(const Model& model, const Kinematics& k, const Vector& q, const Vector& v) {
  require_size("q", q, model.nq);
  require_size("v", v, model.nv);
  std::vector<BodyMotion> motions(model.nbody);
  for (int b = 1; b < model.nbody; ++b) {
    int parent = model.body_parentid[b];
    Vector3d at = k.body_pos[parent] + k.body_rot[parent] * vec3(model.body_pos, b);
    BodyMotion m = shifted(motions[parent], at - k.body_pos[parent]);
    for (int i = 0; i < model.body_jntnum[b]; ++i) m = past_joint(model, k, q, v, model.body_jntadr[b] + i, m, at);
    motions[b] = shifted(m, k.body_pos[b] - at);
  }
  return motions;
}

double tendon_length(const Model& model, int tendon, const Vector& q) {
  double length = 0;
  for (int i = model.tendon_adr[tendon]; i < model.tendon_adr[tendon] + model.tendon_num[tendon]; ++i)
    length += model.wrap_coef[i] * q[model.jnt_qposadr[model.wrap_jntid[i]]];
  return length;
}

Vector tendon_row(const Model& model, int tendon) {
  Vector row = Vector::Zero(model.nv);
  for (int i = model.tendon_adr[tendon]; i < model.tendon_adr[tendon] + model.tendon_num[tendon]; ++i)
    row[model.jnt_dofadr[model.wrap_jntid[i]]] += model.wrap_coef[i];
  return row;
}

Vector3d rotation_difference(const Quaterniond& to, const Quaterniond& from) {
  Quaterniond d = from.conjugate() * to;
  double sine = d.vec().norm();
  if (sine == 0) return Vector3d::Zero();
  double angle = 2 * std::atan2(sine, d.w());
  if (angle > M_PI) angle -= 2 * M_PI;
  return d.vec() * (angle / sine);
}

Vector integrate(const Model& model, const Vector& q, const Vector& v, double h) {
  require_size("q", q, model.nq);
  require_size("v", v, model.nv);
  Vector next = q;
  for (int joint = 0; joint < model.njnt; ++joint) {
    int at = model.jnt_qposadr[joint], dof = model.jnt_dofadr[joint];
    JointType type = type_of(model, joint);
    if (type == JointType::kHinge || type == JointType::kSlide) {
      next[at] += h * v[dof];
      continue;
    }
    if (type == JointType::kFree) {
      next.segment<3>(at) += h * v.segment<3>(dof);
      at += 3;
      dof += 3;
    }
    Quaterniond turned = (quaternion_at(q, at) * exponential(h * v.segment<3>(dof))).normalized();
    next.segment<4>(at) << turned.w(), turned.x(), turned.y(), turned.z();
  }
  return next;
}

}  // namespace stiction::reference
