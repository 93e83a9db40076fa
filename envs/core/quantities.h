// Quantities: the tables and arrays behind a QuantityView, from a World. See quantity_view.h.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "envs/core/quantity_view.h"
#include "host/model/links.h"
#include "host/model/model.h"
#include "host/world/world.h"
#include "model/number_cast.h"

namespace stiction {

template <class T>
class Quantities {
 public:
  /// geom_groups: (ngeom) below `groups`, or -1; null without groups. Throws std::invalid_argument: actuator forces are told of
  /// hinges and slides only, not of tendons, ball and free joints.
  Quantities(World& world, unsigned needs, const int* geom_groups, int groups) : model_(world.model()), world_(world) {
    const Model& m = model_;
    QuantityView<T>& v = view_;
    v.nbody = m.nbody, v.nv = m.nv, v.nu = m.nu, v.groups = groups;
    const unsigned spatial = kNeedsContactWrenches | kNeedsTreeCentres | kNeedsBodyInertias | kNeedsBodyTwists;
    if (needs & (spatial | kNeedsBodyPoses)) v.xpos = at("xpos"), v.xquat = at("xquat");
    if (needs & kNeedsBodyTwists) v.linvel = at("body_linvel"), v.angvel = at("body_angvel");
    if (needs & (kNeedsContactWrenches | kNeedsGroupForces)) {
      v.contact_frame = at("contact.frame"), v.contact_impulse = at("contact.impulse");
      v.contact_pos = at("contact.pos");
      v.contact_geom = static_cast<const int*>(world.array("contact.geom").data);
      v.contact_count = static_cast<const int*>(world.array("contact.count").data);
      v.capacity = world.max_contacts(), v.inverse_h = static_cast<T>(1 / world.options().step.h);
    }
    v.ctrl = at("ctrl");
    v.mass = numbers("body_mass", m.body_mass), v.inertia = numbers("body_inertia", m.body_inertia);
    v.gain = numbers("actuator_gainprm", m.actuator_gainprm), v.bias = numbers("actuator_biasprm", m.actuator_biasprm);
    v.ipos = numbers("body_ipos", m.body_ipos), v.body_iquat = copy<T>(m.body_iquat),
    v.shared_mass = copy<T>(m.body_mass);
    std::vector<int> root(m.nbody);
    for (int b = 0; b < m.nbody; ++b) root[b] = b == 0 || m.body_parentid[b] == 0 ? b : root[m.body_parentid[b]];
    v.root = copy<int>(root), v.geom_body = copy<int>(m.geom_bodyid);
    if (geom_groups != nullptr) v.geom_group = copy<int>(std::vector<int>(geom_groups, geom_groups + m.ngeom));
    if (needs & kNeedsActuatorForces) add_motors();
  }

  const QuantityView<T>& view() const { return view_; }

 private:
  template <class To, class Values>
  const To* copy(const Values& values) {
    memory_.push_back(world_.allocate(sizeof(To) * values.size()));
    Memory& memory = *memory_.back();
    std::transform(values.begin(), values.end(), static_cast<To*>(memory.mirror()),
                   [](const auto& x) { return static_cast<To>(x); });
    world_.send(memory);
    return static_cast<const To*>(memory.data());
  }
  const T* at(const char* name) { return static_cast<const T*>(world_.array(name).data); }
  Numbers<T> numbers(const char* name, const Reals& values) {
    const auto& per_env = world_.options().per_env;
    if (std::find(per_env.begin(), per_env.end(), name) == per_env.end()) return {copy<T>(values), 0};
    return {at((std::string("params.") + name).c_str()), static_cast<int64_t>(values.size())};
  }

  void add_motors() {
    const Model& m = model_;
    if (m.disableflags & kDisableActuation) return;
    std::vector<Motor<T>> motors;
    for (int a = 0; a < m.nu; ++a) {
      const bool of_joint = m.actuator_trntype[a] == static_cast<int>(Transmission::kJoint);
      const int joint = of_joint ? m.actuator_trnid[a] : -1, type = of_joint ? m.jnt_type[joint] : -1;
      if (type != static_cast<int>(JointType::kHinge) && type != static_cast<int>(JointType::kSlide))
        throw std::invalid_argument("actuator '" + m.actuator_names[a] + "' (" + std::to_string(a) +
                                    ") does not drive a hinge or slide: its task needs the forces of actuators, which "
                                    "are told of hinges and slides only");
      motors.push_back(
          {m.jnt_dofadr[joint], m.jnt_qposadr[joint], number_cast<T>(actuator_of(m, a, m.actuator_gear[6 * a]))});
    }
    std::vector<JointForceRange<T>> ranges;
    for (int j = 0; j < m.njnt; ++j)
      if (m.jnt_actfrclimited[j])
        ranges.push_back({m.jnt_dofadr[j], T(m.jnt_actfrcrange[2 * j]), T(m.jnt_actfrcrange[2 * j + 1])});
    view_.motor = copy<Motor<T>>(motors), view_.motors = static_cast<int>(motors.size());
    view_.force_range = copy<JointForceRange<T>>(ranges), view_.force_ranges = static_cast<int>(ranges.size());
  }

  const Model& model_;
  World& world_;
  QuantityView<T> view_;
  std::vector<std::shared_ptr<Memory>> memory_;
};

}  // namespace stiction
