// What a task's view holds beyond the state, from a World's arrays: contact wrenches, forces on groups of geoms, centres of
// mass, inertias and velocities of bodies, forces of actuators. Each as in MuJoCo where MuJoCo has it, but of the state after
// the last time step (contacts: of that time step), where MuJoCo's lag the positions by one. TaskNeed says which.
//
//   contact_wrench  cfrc_ext without applied forces and constraints: torque about the centre of mass of the body's tree, then
//                   force = impulse / h. The world's row is zero.
//   tree_centre     subtree_com of the body's root
//   body_inertia    cinert: about that centre, world axes: xx yy zz xy xz yz, mass times offset, mass. The world's row is zero.
//   body_twist      cvel: angular velocity, then velocity of the body's point at that centre
//   body_position   xpos
//   body_orientation  xquat
//   actuator_force  qfrc_actuator of this state and the last controls. Refused: tendons, ball and free joints.
//
// Masses and inertias are each environment's where the World has them per_env, and its gains likewise; a per-environment mass
// scales the inertia unless body_inertia is per_env too. Nothing is allocated after construction.
// Tests: tests/python/test_gymnasium_tasks.py (against MuJoCo).
#pragma once
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "envs/core/task.h"
#include "host/model/model.h"
#include "host/world/world.h"
#include "math/vec3.h"

namespace stiction {

template <class T>
class Quantities {
 public:
  /// Where one thread computes one environment's.
  struct alignas(64) Scratch {
    std::vector<Vec3<T>> centre, moment;  // (nbody) of the tree; body's centre of mass
    std::vector<T> tree_mass, wrench, tree_centre, inertia, twist, actuator, group;
  };

  /// geom_groups: (ngeom) below `groups`, or -1; null without groups. Throws std::invalid_argument for what is refused.
  Quantities(World& world, unsigned needs, const int* geom_groups, int groups)
      : model_(world.model()), world_(world), groups_(groups), geom_group_(geom_groups) {
    const unsigned spatial = kNeedsContactWrenches | kNeedsTreeCentres | kNeedsBodyInertias | kNeedsBodyTwists;
    if (needs & (spatial | kNeedsBodyPoses)) xpos_ = at("xpos"), xquat_ = at("xquat");
    if (needs & kNeedsBodyTwists) linvel_ = at("body_linvel"), angvel_ = at("body_angvel");
    if (needs & (kNeedsContactWrenches | kNeedsGroupForces)) {
      frame_ = at("contact.frame"), impulse_ = at("contact.impulse"), pos_ = at("contact.pos");
      geom_ = static_cast<const int*>(world.array("contact.geom").data);
      count_ = static_cast<const int*>(world.array("contact.count").data);
      capacity_ = world.max_contacts(), inverse_h_ = static_cast<T>(1 / world.options().step.h);
    }
    mass_ = parameter("body_mass", model_.body_mass), inertia_ = parameter("body_inertia", model_.body_inertia);
    gain_ = parameter("actuator_gainprm", model_.actuator_gainprm);
    bias_ = parameter("actuator_biasprm", model_.actuator_biasprm);
    root_.resize(model_.nbody);
    for (int b = 0; b < model_.nbody; ++b)
      root_[b] = b == 0 || model_.body_parentid[b] == 0 ? b : root_[model_.body_parentid[b]];
    if (needs & kNeedsActuatorForces) check_actuators();
  }

  Scratch scratch() const {
    const size_t n = model_.nbody;
    Scratch s;
    s.centre.resize(n), s.moment.resize(n), s.tree_mass.resize(n);
    s.wrench.assign(6 * n, 0), s.tree_centre.assign(3 * n, 0), s.inertia.assign(10 * n, 0), s.twist.assign(6 * n, 0);
    s.actuator.assign(model_.nv, 0), s.group.assign(3 * groups_ + 1, 0);
    return s;
  }

  /// Those of `needs`, which the constructor was told, into the scratch, and the view's pointers to them. `pushed`: whether
  /// contacts and actuators are told; else their forces are zero.
  void fill(int env, unsigned needs, bool pushed, Scratch& s, TaskView<T>& view) const {
    const bool contacts = pushed && count_ != nullptr && count_[env] > 0;
    const bool wrenches = (needs & kNeedsContactWrenches) && contacts;
    if (wrenches || (needs & (kNeedsTreeCentres | kNeedsBodyInertias | kNeedsBodyTwists))) centres_of_mass(env, s);
    if (needs & kNeedsContactWrenches) {
      std::fill(s.wrench.begin(), s.wrench.end(), T(0));
      if (wrenches) contact_wrenches(env, s);
    }
    if (needs & kNeedsGroupForces) {
      std::fill(s.group.begin(), s.group.end(), T(0));
      if (contacts) group_forces(env, s);
    }
    if (needs & kNeedsTreeCentres)
      for (int b = 0; b < model_.nbody; ++b) store(s.tree_centre.data() + 3 * b, s.centre[root_[b]]);
    if (needs & kNeedsBodyInertias) body_inertias(env, s);
    if (needs & kNeedsBodyTwists) body_twists(env, s);
    if (needs & kNeedsActuatorForces) {
      std::fill(s.actuator.begin(), s.actuator.end(), T(0));
      if (pushed) actuator_forces(env, view.qpos, view.qvel, s);
    }
    if (needs & kNeedsBodyPoses)
      view.body_position = xpos_ + 3 * row(env, 0), view.body_orientation = xquat_ + 4 * row(env, 0);
    view.contact_wrench = s.wrench.data(), view.tree_centre = s.tree_centre.data();
    view.body_inertia = s.inertia.data(), view.body_twist = s.twist.data();
    view.actuator_force = s.actuator.data(), view.group_force = s.group.data();
  }

 private:
  /// A model's numbers, or each environment's.
  struct Values {
    std::vector<T> shared;
    const T* data = nullptr;
    int64_t stride = 0;
    bool per_env() const { return stride != 0; }
    const T* of(int env) const { return data + env * stride; }
  };
  Values parameter(const char* name, const Reals& values) {
    Values v;
    const auto& per_env = world_.options().per_env;
    if (std::find(per_env.begin(), per_env.end(), name) != per_env.end()) {
      v.data = at((std::string("params.") + name).c_str()), v.stride = static_cast<int64_t>(values.size());
    } else {
      v.shared.assign(values.begin(), values.end());
      v.data = v.shared.data();
    }
    return v;
  }
  const T* at(const char* name) { return static_cast<const T*>(world_.array(name).data); }
  template <class S>
  static Vec3<T> vec3(const S* p) {
    return {T(p[0]), T(p[1]), T(p[2])};
  }
  static void store(T* to, const Vec3<T>& v) { to[0] = v.x, to[1] = v.y, to[2] = v.z; }
  static Vec3<T> turned(const T* q, const Vec3<T>& x) {
    const Vec3<T> u{q[1], q[2], q[3]}, t = cross(u, x) * T(2);
    return x + t * q[0] + cross(u, t);
  }
  int64_t row(int env, int body) const { return static_cast<int64_t>(env) * model_.nbody + body; }

  void centres_of_mass(int env, Scratch& s) const {
    const int n = model_.nbody;
    const T* mass = mass_.of(env);
    for (int b = 0; b < n; ++b) s.centre[b] = {T(0), T(0), T(0)}, s.tree_mass[b] = 0;
    for (int b = 1; b < n; ++b) {
      const int64_t r = row(env, b);
      s.moment[b] = vec3(xpos_ + 3 * r) + turned(xquat_ + 4 * r, vec3(model_.body_ipos.data() + 3 * b));
      s.centre[root_[b]] = s.centre[root_[b]] + s.moment[b] * mass[b];
      s.tree_mass[root_[b]] += mass[b];
    }
    for (int b = 1; b < n; ++b)
      if (root_[b] == b && s.tree_mass[b] > 0) s.centre[b] = s.centre[b] * (1 / s.tree_mass[b]);
  }

  /// Force of contact c of an environment on its second geom, world axes, N.
  Vec3<T> contact_force(int64_t k) const {
    const T *F = frame_ + 9 * k, *l = impulse_ + 3 * k;
    auto along = [&](int axis) { return (F[axis] * l[0] + F[3 + axis] * l[1] + F[6 + axis] * l[2]) * inverse_h_; };
    return {along(0), along(1), along(2)};
  }

  void contact_wrenches(int env, Scratch& s) const {
    for (int c = 0; c < count_[env]; ++c) {
      const int64_t k = static_cast<int64_t>(env) * capacity_ + c;
      const Vec3<T> force = contact_force(k), p = vec3(pos_ + 3 * k);
      for (int side = 0; side < 2; ++side) {
        const int body = model_.geom_bodyid[geom_[2 * k + side]];
        if (body == 0) continue;
        const Vec3<T> f = side ? force : -force, torque = cross(p - s.centre[root_[body]], f);
        T* to = s.wrench.data() + 6 * body;
        to[0] += torque.x, to[1] += torque.y, to[2] += torque.z, to[3] += f.x, to[4] += f.y, to[5] += f.z;
      }
    }
  }

  void group_forces(int env, Scratch& s) const {
    for (int c = 0; c < count_[env]; ++c) {
      const int64_t k = static_cast<int64_t>(env) * capacity_ + c;
      const Vec3<T> force = contact_force(k);
      for (int side = 0; side < 2; ++side) {
        const int group = geom_group_[geom_[2 * k + side]];
        if (group < 0) continue;
        T* to = s.group.data() + 3 * group;
        store(to, vec3(to) + (side ? force : -force));
      }
    }
  }

  void body_inertias(int env, Scratch& s) const {
    const T *mass = mass_.of(env), *principal = inertia_.of(env);
    for (int b = 1; b < model_.nbody; ++b) {
      const int64_t r = row(env, b);
      const double* turn = model_.body_iquat.data() + 4 * b;
      const T q[4] = {T(turn[0]), T(turn[1]), T(turn[2]), T(turn[3])};
      const bool scaled = mass_.per_env() && !inertia_.per_env() && model_.body_mass[b] > 0;
      const T scale = scaled ? mass[b] / T(model_.body_mass[b]) : T(1);
      const Vec3<T> d = s.moment[b] - s.centre[root_[b]];
      T* to = s.inertia.data() + 10 * b;
      const T m = mass[b], square = dot(d, d);
      to[0] = m * (square - d.x * d.x), to[1] = m * (square - d.y * d.y), to[2] = m * (square - d.z * d.z);
      to[3] = -m * d.x * d.y, to[4] = -m * d.x * d.z, to[5] = -m * d.y * d.z;
      for (int axis = 0; axis < 3; ++axis) {
        const Vec3<T> unit{T(axis == 0), T(axis == 1), T(axis == 2)}, a = turned(xquat_ + 4 * r, turned(q, unit));
        const T i = principal[3 * b + axis] * scale;
        to[0] += i * a.x * a.x, to[1] += i * a.y * a.y, to[2] += i * a.z * a.z;
        to[3] += i * a.x * a.y, to[4] += i * a.x * a.z, to[5] += i * a.y * a.z;
      }
      store(to + 6, d * m), to[9] = m;
    }
  }

  void body_twists(int env, Scratch& s) const {
    for (int b = 1; b < model_.nbody; ++b) {
      const int64_t r = row(env, b);
      const Vec3<T> w = vec3(angvel_ + 3 * r);
      store(s.twist.data() + 6 * b, w);
      store(s.twist.data() + 6 * b + 3, vec3(linvel_ + 3 * r) + cross(w, s.centre[root_[b]] - vec3(xpos_ + 3 * r)));
    }
  }

  void check_actuators() const {
    for (int a = 0; a < model_.nu; ++a) {
      const bool joint = model_.actuator_trntype[a] == static_cast<int>(Transmission::kJoint);
      const int type = joint ? model_.jnt_type[model_.actuator_trnid[a]] : -1;
      if (type != static_cast<int>(JointType::kHinge) && type != static_cast<int>(JointType::kSlide))
        throw std::invalid_argument("actuator '" + model_.actuator_names[a] + "' (" + std::to_string(a) +
                                    ") does not drive a hinge or slide: its task needs the forces of actuators, which "
                                    "are told of hinges and slides only");
    }
  }

  void actuator_forces(int env, const T* qpos, const T* qvel, Scratch& s) const {
    const Model& m = model_;
    if (m.disableflags & kDisableActuation) return;
    const T *ctrl = static_cast<const T*>(ctrl_.data) + static_cast<int64_t>(env) * m.nu, *gain = gain_.of(env);
    const T* bias = bias_.of(env);
    for (int a = 0; a < m.nu; ++a) {
      const int joint = m.actuator_trnid[a], dof = m.jnt_dofadr[joint];
      auto limited = [](T x, bool is, const double* r) { return is ? std::clamp(x, T(r[0]), T(r[1])) : x; };
      const bool clamps = m.actuator_ctrllimited[a] && !(m.disableflags & kDisableClampctrl);
      const T gear = T(m.actuator_gear[6 * a]), u = limited(ctrl[a], clamps, m.actuator_ctrlrange.data() + 2 * a);
      const T length = gear * qpos[m.jnt_qposadr[joint]], velocity = gear * qvel[dof];
      const T force = gain[a] * u + bias[3 * a] + bias[3 * a + 1] * length + bias[3 * a + 2] * velocity;
      s.actuator[dof] += gear * limited(force, m.actuator_forcelimited[a], m.actuator_forcerange.data() + 2 * a);
    }
    for (int j = 0; j < m.njnt; ++j)
      if (m.jnt_actfrclimited[j]) {
        T& f = s.actuator[m.jnt_dofadr[j]];
        f = std::clamp(f, T(m.jnt_actfrcrange[2 * j]), T(m.jnt_actfrcrange[2 * j + 1]));
      }
  }

  const Model& model_;
  World& world_;
  int groups_, capacity_ = 0;
  const int* geom_group_;
  T inverse_h_ = 0;
  const T *xpos_ = nullptr, *xquat_ = nullptr, *linvel_ = nullptr, *angvel_ = nullptr;
  const T *pos_ = nullptr, *frame_ = nullptr, *impulse_ = nullptr;
  const int *geom_ = nullptr, *count_ = nullptr;
  Values mass_, inertia_, gain_, bias_;
  ArrayView ctrl_ = world_.array("ctrl");
  std::vector<int> root_;
};

}  // namespace stiction
