#include "envs/core/model_search.h"

#include <algorithm>
#include <cmath>
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
           std::to_string(stiffness) +
           "): actions are targets of joints, so use <position> actuators, or kp= and kd= of Model.from_urdf";
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

BodyPoint ModelSearch::point(const std::string& role, const std::string& name) const {
  const Model& m = model_;
  const int site = index_of_name(m.site_names, name), body = index_of_name(m.body_names, name);
  if (site < 0 && body < 0)
    refuse("names['" + role + "'] has '" + name + "', but the model has no such site or body; sites: " +
           listed(m.site_names) + "; bodies: " + listed(m.body_names));
  if (site < 0) return {body, {0, 0, 0}};
  const double* at = m.site_pos.data() + 3 * site;
  return {m.site_bodyid[site], {at[0], at[1], at[2]}};
}

std::vector<FreeBody> ModelSearch::free_bodies(const std::string& role, int wanted) const {
  const Model& m = model_;
  std::vector<int> bodies;
  if (const auto* list = given(role)) {
    for (const std::string& name : *list) bodies.push_back(named(role, "body", m.body_names, name));
  } else {
    for (int j = 0; j < m.njnt; ++j)
      if (m.jnt_type[j] == static_cast<int>(JointType::kFree)) bodies.push_back(m.jnt_bodyid[j]);
  }
  if (static_cast<int>(bodies.size()) != wanted)
    refuse("the task handles " + std::to_string(wanted) + (wanted == 1 ? " cube" : " cubes") + ", got " +
           std::to_string(bodies.size()) + ": name bodies with a free joint, names={'" + role +
           "': [...]}; bodies: " + listed(m.body_names));
  std::vector<FreeBody> found;
  for (int body : bodies) {
    for (const FreeBody& other : found)
      if (other.body == body) refuse("names['" + role + "'] has '" + m.body_names[body] + "' twice");
    found.push_back(free_body(body));
  }
  return found;
}

FreeBody ModelSearch::free_body(int body) const {
  const Model& m = model_;
  const std::string name = "the cube '" + m.body_names[body] + "'";
  const int joint = m.body_jntadr[body];
  if (joint < 0 || m.jnt_type[joint] != static_cast<int>(JointType::kFree))
    refuse(name + " has no free joint: give it a <freejoint/>");
  bool touchable = false;
  for (int g = 0; g < m.ngeom; ++g) touchable = touchable || (m.geom_bodyid[g] == body && may_collide(m, g));
  if (!touchable) refuse(name + " has no geom that can be touched");
  return {body, m.jnt_qposadr[joint], m.jnt_dofadr[joint]};
}

FreeCube ModelSearch::cube(const FreeBody& of) const {
  const Model& m = model_;
  const std::string name = "the cube '" + m.body_names[of.body] + "'";
  int box = -1, touchable = 0;
  for (int g = 0; g < m.ngeom; ++g)
    if (m.geom_bodyid[g] == of.body && may_collide(m, g)) box = g, ++touchable;
  const double *size = m.geom_size.data() + 3 * std::max(box, 0), *at = m.geom_pos.data() + 3 * std::max(box, 0);
  auto differ = [size](double a, double b) { return std::abs(a - b) > 1e-6 * size[0]; };
  if (touchable != 1 || m.geom_type[box] != static_cast<int>(GeomType::kBox) || differ(size[0], size[1]) ||
      differ(size[0], size[2]) || differ(at[0], 0) || differ(at[1], 0) || differ(at[2], 0))
    refuse(name + " must have one geom that can be touched, a box with equal sides about the body's origin");
  return {of, size[0]};
}

}  // namespace stiction
