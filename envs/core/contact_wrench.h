// Contact wrenches per body from a World's contact arrays: MuJoCo's cfrc_ext without applied forces and constraints.
//
// Row b: (torque, force) that the contacts of the last time step put on body b, world axes, the torque about the centre of mass
// of b's kinematic tree (mj_rnePostConstraint); force = impulse / h. The world's row stays zero. Masses are the model's.
#pragma once
#include <vector>

#include "host/model/model.h"
#include "host/world/world.h"
#include "math/vec3.h"

namespace stiction {

template <class T>
class ContactWrenches {
 public:
  explicit ContactWrenches(World& world)
      : model_(world.model()), capacity_(world.max_contacts()), inverse_h_(static_cast<T>(1 / world.options().step.h)) {
    auto at = [&world](const char* name) { return static_cast<const T*>(world.array(name).data); };
    xpos_ = at("xpos"), xquat_ = at("xquat"), pos_ = at("contact.pos"), frame_ = at("contact.frame");
    impulse_ = at("contact.impulse");
    geom_ = static_cast<const int*>(world.array("contact.geom").data);
    count_ = static_cast<const int*>(world.array("contact.count").data);
    root_.resize(model_.nbody), tree_mass_.assign(model_.nbody, 0);
    for (int b = 0; b < model_.nbody; ++b) {
      root_[b] = b == 0 || model_.body_parentid[b] == 0 ? b : root_[model_.body_parentid[b]];
      tree_mass_[root_[b]] += static_cast<T>(model_.body_mass[b]);
    }
  }

  bool any(int env) const { return count_[env] > 0; }
  /// out: (nbody, 6), every row written. centres: scratch, nbody.
  void operator()(int env, Vec3<T>* centres, T* out) const {
    const int n = model_.nbody;
    for (int i = 0; i < 6 * n; ++i) out[i] = 0;
    if (!any(env)) return;
    centres_of_mass(env, centres);
    for (int c = 0; c < count_[env]; ++c) {
      const int64_t k = static_cast<int64_t>(env) * capacity_ + c;
      const T *F = frame_ + 9 * k, *l = impulse_ + 3 * k;
      auto along = [&](int axis) { return (F[axis] * l[0] + F[3 + axis] * l[1] + F[6 + axis] * l[2]) * inverse_h_; };
      const Vec3<T> force{along(0), along(1), along(2)}, p = vec3(pos_ + 3 * k);
      for (int side = 0; side < 2; ++side) {
        const int body = model_.geom_bodyid[geom_[2 * k + side]];
        if (body == 0) continue;
        const Vec3<T> f = side ? force : -force, torque = cross(p - centres[root_[body]], f);
        T* row = out + 6 * body;
        row[0] += torque.x, row[1] += torque.y, row[2] += torque.z, row[3] += f.x, row[4] += f.y, row[5] += f.z;
      }
    }
  }

 private:
  static Vec3<T> vec3(const T* p) { return {p[0], p[1], p[2]}; }
  void centres_of_mass(int env, Vec3<T>* centres) const {
    const int n = model_.nbody;
    for (int b = 0; b < n; ++b) centres[b] = {T(0), T(0), T(0)};
    for (int b = 1; b < n; ++b) {
      const int64_t row = static_cast<int64_t>(env) * n + b;
      const T* q = xquat_ + 4 * row;
      const double* local = model_.body_ipos.data() + 3 * b;
      const Vec3<T> u{q[1], q[2], q[3]}, x{T(local[0]), T(local[1]), T(local[2])}, t = cross(u, x) * T(2);
      const Vec3<T> centre = vec3(xpos_ + 3 * row) + x + t * q[0] + cross(u, t);
      centres[root_[b]] = centres[root_[b]] + centre * static_cast<T>(model_.body_mass[b]);
    }
    for (int b = 1; b < n; ++b)
      if (root_[b] == b && tree_mass_[b] > 0) centres[b] = centres[b] * (1 / tree_mass_[b]);
  }

  const Model& model_;
  int capacity_;
  T inverse_h_;
  const T *xpos_, *xquat_, *pos_, *frame_, *impulse_;
  const int *geom_, *count_;
  std::vector<int> root_;
  std::vector<T> tree_mass_;
};

}  // namespace stiction
