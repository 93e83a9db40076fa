#include "envs/core/model_search.h"

#include <algorithm>
#include <stdexcept>

#include "host/model/fields.h"

namespace stiction {

void refuse(const std::string& text) { throw std::invalid_argument(text); }

std::string listed(const Names& names) {
  std::string all;
  for (const std::string& n : names)
    if (!n.empty()) all += (all.empty() ? "'" : ", '") + n + "'";
  return all.empty() ? "none with a name" : all;
}

int index_of_name(const Names& names, const std::string& name) {
  const auto at = name.empty() ? names.end() : std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

ModelSearch::ModelSearch(const Model& model, const TaskNames& names, const std::string& about, const Names& roles)
    : model_(model), names_(names), about_(about) {
  for (const auto& [role, list] : names)
    if (std::find(roles.begin(), roles.end(), role) == roles.end())
      refuse(about + " has no '" + role + "' to be named; names are for " + listed(roles));
}

const std::vector<std::string>* ModelSearch::given(const std::string& role) const {
  for (const auto& [name, list] : names_)
    if (name == role) return &list;
  return nullptr;
}

const std::string* ModelSearch::given_one(const std::string& role) const {
  const auto* list = given(role);
  if (list != nullptr && list->size() != 1)
    refuse("names['" + role + "'] has " + std::to_string(list->size()) + " entries, expected one");
  return list == nullptr ? nullptr : &list->front();
}

int ModelSearch::named(const std::string& role, const std::string& kind, const Names& there,
                       const std::string& name) const {
  const int at = index_of_name(there, name);
  if (at < 0)
    refuse("names['" + role + "'] has '" + name + "', but the model has no such " + kind +
           "; there are: " + listed(there));
  return at;
}

void ModelSearch::check_floor(const std::string& why) const {
  for (int g = 0; g < model_.ngeom; ++g)
    if (model_.body_weldid[model_.geom_bodyid[g]] == 0 && may_collide(model_, g)) return;
  refuse("the model " + why +
         ": add a floor (a plane geom in its worldbody), or load the robot's scene "
         "file");
}

void ModelSearch::check_room(const std::string& what, int got, int most) const {
  if (got > most)
    refuse(about_ + " has " + std::to_string(got) + " " + what + ", at most " + std::to_string(most) +
           " are supported");
}

std::vector<double> ModelSearch::pose() const {
  const Model& m = model_;
  int key = -1;
  if (const auto* name = given_one("keyframe")) key = named("keyframe", "keyframe", m.key_names, *name);
  for (const char* usual : {"home", "stand"})
    if (key < 0) key = index_of_name(m.key_names, usual);
  const double* from = key < 0 ? m.qpos0.data() : m.key_qpos.data() + static_cast<size_t>(key) * m.nq;
  return {from, from + m.nq};
}

std::string ModelSearch::no_servo(int a) const {
  const Model& m = model_;
  const std::string name = "actuator '" + m.actuator_names[a] + "' (" + std::to_string(a) + ")";
  const bool joint = m.actuator_trntype[a] == static_cast<int>(Transmission::kJoint);
  if (!joint || m.jnt_type[m.actuator_trnid[a]] != static_cast<int>(JointType::kHinge))
    return name + " does not drive a hinge: actions are targets of hinges";
  const double gain = m.actuator_gainprm[a], stiffness = -m.actuator_biasprm[3 * a + 1];
  if (!(gain > 0) || gain != stiffness || m.actuator_gear[6 * a] != 1)
    return name + " is no position servo of gear 1 (gain " + std::to_string(gain) + ", stiffness " +
           std::to_string(stiffness) + "): actions are targets of joints, so use <position> actuators";
  return "";
}

std::vector<ServoJoint> ModelSearch::servo_hinges(const std::string& role, const std::vector<int>& actuators) const {
  const Model& m = model_;
  std::vector<int> servo(m.njnt, -1);
  std::vector<ServoJoint> order;
  for (int a : actuators) {
    if (const std::string wrong = no_servo(a); !wrong.empty()) refuse(wrong);
    const int joint = m.actuator_trnid[a];
    if (servo[joint] >= 0)
      refuse("joint '" + m.joint_names[joint] + "' has two actuators, expected one position servo");
    servo[joint] = a, order.push_back({joint, a});
  }
  if (const auto* list = given(role)) {
    order.clear();
    for (const std::string& name : *list) {
      const int joint = named(role, "joint", m.joint_names, name);
      if (servo[joint] < 0) refuse("names['" + role + "'] has '" + name + "', which has no actuator");
      for (const ServoJoint& other : order)
        if (other.joint == joint) refuse("names['" + role + "'] has '" + name + "' twice");
      order.push_back({joint, servo[joint]});
    }
  }
  if (order.empty()) refuse("the robot has no joints to move: no actuators");
  return order;
}

}  // namespace stiction
