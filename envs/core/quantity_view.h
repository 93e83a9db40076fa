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
//   actuator_force  qfrc_actuator of this state and the last controls
//
// Masses and inertias are each environment's where the World has them per_env, and its gains likewise; a per-environment mass
// scales the inertia unless body_inertia is per_env too. Plain pointers, the same on the host and on a device; quantities.h
// fills them in. Tests: tests/python/test_gymnasium_tasks.py (against MuJoCo).
#pragma once
#include "dynamics/actuator.h"
#include "envs/core/task.h"
#include "math/vec3.h"

namespace stiction {

/// A model's numbers (stride 0), or each environment's.
template <class T>
struct Numbers {
  const T* data = nullptr;
  int64_t stride = 0;
  HD bool per_env() const { return stride != 0; }
  HD const T* of(int env) const { return data + env * stride; }
};

/// An actuator on a hinge or slide.
template <class T>
struct Motor {
  int dof, qpos;
  ActuatorModel<T> law;  // the model's, with its gains
};
/// actuatorfrcrange of a joint.
template <class T>
struct JointForceRange {
  int dof;
  T low, high;
};

/// Where the quantities of one environment are computed: parts of size() numbers, which are zero at first.
template <class T>
struct QuantityScratch {
  T *centre, *moment;  // (nbody, 3) of the tree; body's centre of mass
  T *tree_mass, *wrench, *tree_centre, *inertia, *twist, *actuator, *group;

  HD QuantityScratch(T* at, int nbody, int nv, int groups) {
    auto take = [&](int count) {
      T* part = at;
      at += count;
      return part;
    };
    centre = take(3 * nbody), moment = take(3 * nbody), tree_mass = take(nbody), wrench = take(6 * nbody);
    tree_centre = take(3 * nbody), inertia = take(10 * nbody), twist = take(6 * nbody), actuator = take(nv);
    group = take(3 * groups);
  }
  /// A multiple of 16.
  HD static int size(int nbody, int nv, int groups) { return (32 * nbody + nv + 3 * groups + 15) / 16 * 16; }
};

template <class T>
struct QuantityView {
  using Scratch = QuantityScratch<T>;

  int nbody = 0, nv = 0, nu = 0, groups = 0, capacity = 0, motors = 0, force_ranges = 0;  // capacity: of contacts
  T inverse_h = 0;
  const T *xpos = nullptr, *xquat = nullptr, *linvel = nullptr, *angvel = nullptr, *ctrl = nullptr;
  const T *contact_pos = nullptr, *contact_frame = nullptr, *contact_impulse = nullptr;
  const int *contact_geom = nullptr, *contact_count = nullptr;
  const int *root = nullptr, *geom_body = nullptr, *geom_group = nullptr;  // (nbody), (ngeom), (ngeom)
  const T *body_iquat = nullptr, *shared_mass = nullptr;                   // (nbody, 4), (nbody)
  Numbers<T> mass, inertia, ipos, gain, bias;                              // (nbody), (nbody, 3) twice, (nu), (nu, 3)
  const Motor<T>* motor = nullptr;                                         // (motors), none where actuation is disabled
  const JointForceRange<T>* force_range = nullptr;

  HD int scratch_size() const { return Scratch::size(nbody, nv, groups); }

  /// Those of `needs` into the scratch (scratch_size() numbers), and the view's pointers to them. `pushed`: whether contacts and
  /// actuators are told; else their forces are zero.
  HD void fill(int env, unsigned needs, bool pushed, T* at, TaskView<T>& view) const {
    const Scratch s(at, nbody, nv, groups);
    const bool contacts = pushed && contact_count != nullptr && contact_count[env] > 0;
    const bool wrenches = (needs & kNeedsContactWrenches) && contacts;
    if (wrenches || (needs & (kNeedsTreeCentres | kNeedsBodyInertias | kNeedsBodyTwists))) centres_of_mass(env, s);
    if (needs & kNeedsContactWrenches) {
      clear(s.wrench, 6 * nbody);
      if (wrenches) contact_wrenches(env, s);
    }
    if (needs & kNeedsGroupForces) {
      clear(s.group, 3 * groups);
      if (contacts) group_forces(env, s);
    }
    if (needs & kNeedsTreeCentres)
      for (int b = 0; b < nbody; ++b) store(s.tree_centre + 3 * b, load(s.centre + 3 * root[b]));
    if (needs & kNeedsBodyInertias) body_inertias(env, s);
    if (needs & kNeedsBodyTwists) body_twists(env, s);
    if (needs & kNeedsActuatorForces) {
      clear(s.actuator, nv);
      if (pushed) actuator_forces(env, view.qpos, view.qvel, s);
    }
    if (needs & kNeedsBodyPoses)
      view.body_position = xpos + 3 * row(env, 0), view.body_orientation = xquat + 4 * row(env, 0);
    view.contact_wrench = s.wrench, view.tree_centre = s.tree_centre, view.body_inertia = s.inertia;
    view.body_twist = s.twist, view.actuator_force = s.actuator, view.group_force = s.group;
  }

 private:
  HD static void clear(T* to, int count) {
    for (int i = 0; i < count; ++i) to[i] = T(0);
  }
  HD static Vec3<T> load(const T* p) { return {p[0], p[1], p[2]}; }
  HD static void store(T* to, const Vec3<T>& v) { to[0] = v.x, to[1] = v.y, to[2] = v.z; }
  HD static Vec3<T> turned(const T* q, const Vec3<T>& x) {
    const Vec3<T> u{q[1], q[2], q[3]}, t = cross(u, x) * T(2);
    return x + t * q[0] + cross(u, t);
  }
  HD int64_t row(int env, int body) const { return static_cast<int64_t>(env) * nbody + body; }

  HD void centres_of_mass(int env, const Scratch& s) const {
    const T *m = mass.of(env), *own = ipos.of(env);
    clear(s.centre, 3 * nbody), clear(s.tree_mass, nbody);
    for (int b = 1; b < nbody; ++b) {
      const int64_t r = row(env, b);
      T* centre = s.centre + 3 * root[b];
      const Vec3<T> at = load(xpos + 3 * r) + turned(xquat + 4 * r, load(own + 3 * b));
      store(s.moment + 3 * b, at), store(centre, load(centre) + at * m[b]);
      s.tree_mass[root[b]] += m[b];
    }
    for (int b = 1; b < nbody; ++b)
      if (root[b] == b && s.tree_mass[b] > 0) store(s.centre + 3 * b, load(s.centre + 3 * b) * (1 / s.tree_mass[b]));
  }

  /// Force of contact c of an environment on its second geom, world axes, N.
  HD Vec3<T> contact_force(int64_t k) const {
    const T *F = contact_frame + 9 * k, *l = contact_impulse + 3 * k;
    auto along = [&](int axis) { return (F[axis] * l[0] + F[3 + axis] * l[1] + F[6 + axis] * l[2]) * inverse_h; };
    return {along(0), along(1), along(2)};
  }

  HD void contact_wrenches(int env, const Scratch& s) const {
    for (int c = 0; c < contact_count[env]; ++c) {
      const int64_t k = static_cast<int64_t>(env) * capacity + c;
      const Vec3<T> force = contact_force(k), p = load(contact_pos + 3 * k);
      for (int side = 0; side < 2; ++side) {
        const int body = geom_body[contact_geom[2 * k + side]];
        if (body == 0) continue;
        const Vec3<T> f = side ? force : -force, torque = cross(p - load(s.centre + 3 * root[body]), f);
        T* to = s.wrench + 6 * body;
        to[0] += torque.x, to[1] += torque.y, to[2] += torque.z, to[3] += f.x, to[4] += f.y, to[5] += f.z;
      }
    }
  }

  HD void group_forces(int env, const Scratch& s) const {
    for (int c = 0; c < contact_count[env]; ++c) {
      const int64_t k = static_cast<int64_t>(env) * capacity + c;
      const Vec3<T> force = contact_force(k);
      for (int side = 0; side < 2; ++side) {
        const int group = geom_group[contact_geom[2 * k + side]];
        if (group < 0) continue;
        T* to = s.group + 3 * group;
        store(to, load(to) + (side ? force : -force));
      }
    }
  }

  HD void body_inertias(int env, const Scratch& s) const {
    const T *masses = mass.of(env), *principal = inertia.of(env);
    for (int b = 1; b < nbody; ++b) {
      const int64_t r = row(env, b);
      const bool scaled = mass.per_env() && !inertia.per_env() && shared_mass[b] > 0;
      const T m = masses[b], scale = scaled ? m / shared_mass[b] : T(1);
      const Vec3<T> d = load(s.moment + 3 * b) - load(s.centre + 3 * root[b]);
      T* to = s.inertia + 10 * b;
      const T square = dot(d, d);
      to[0] = m * (square - d.x * d.x), to[1] = m * (square - d.y * d.y), to[2] = m * (square - d.z * d.z);
      to[3] = -m * d.x * d.y, to[4] = -m * d.x * d.z, to[5] = -m * d.y * d.z;
      for (int axis = 0; axis < 3; ++axis) {
        const Vec3<T> unit{T(axis == 0), T(axis == 1), T(axis == 2)};
        const Vec3<T> a = turned(xquat + 4 * r, turned(body_iquat + 4 * b, unit));
        const T i = principal[3 * b + axis] * scale;
        to[0] += i * a.x * a.x, to[1] += i * a.y * a.y, to[2] += i * a.z * a.z;
        to[3] += i * a.x * a.y, to[4] += i * a.x * a.z, to[5] += i * a.y * a.z;
      }
      store(to + 6, d * m), to[9] = m;
    }
  }

  HD void body_twists(int env, const Scratch& s) const {
    for (int b = 1; b < nbody; ++b) {
      const int64_t r = row(env, b);
      const Vec3<T> w = load(angvel + 3 * r), away = load(s.centre + 3 * root[b]) - load(xpos + 3 * r);
      store(s.twist + 6 * b, w);
      store(s.twist + 6 * b + 3, load(linvel + 3 * r) + cross(w, away));
    }
  }

  HD void actuator_forces(int env, const T* qpos, const T* qvel, const Scratch& s) const {
    const T *u = ctrl + static_cast<int64_t>(env) * nu, *gains = gain.of(env), *biases = bias.of(env);
    for (int a = 0; a < motors; ++a) {
      const Motor<T>& m = motor[a];
      ActuatorModel<T> law = m.law;
      law.gain = gains[a], law.bias0 = biases[3 * a], law.bias1 = biases[3 * a + 1], law.bias2 = biases[3 * a + 2];
      s.actuator[m.dof] += force_now(law, u[a], qpos[m.qpos], qvel[m.dof]);
    }
    for (int j = 0; j < force_ranges; ++j) {
      T& f = s.actuator[force_range[j].dof];
      f = clamp(f, force_range[j].low, force_range[j].high);
    }
  }
};

}  // namespace stiction
