#include "envs/velocity/legged_robot.h"

#include <algorithm>
#include <stdexcept>

#include "host/model/fields.h"

namespace stiction {
namespace {

constexpr const char* kRoles[] = {"trunk", "feet", "undesired", "joints", "keyframe"};

[[noreturn]] void refuse(const std::string& text) { throw std::invalid_argument(text); }

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

/// Finds what names ask for, in one model.
class Search {
 public:
  Search(const Model& model, const TaskNames& names) : model_(model), names_(names) {
    for (const auto& [role, list] : names) {
      if (std::find(std::begin(kRoles), std::end(kRoles), role) == std::end(kRoles))
        refuse("a walking robot has no '" + role + "' to be named; names are for " +
               listed({std::begin(kRoles), std::end(kRoles)}));
      if (role == "keyframe" && list.size() != 1)
        refuse("names['" + role + "'] has " + std::to_string(list.size()) + " entries, expected one");
    }
  }

  LeggedRobot robot() {
    const Model& m = model_;
    r_.qpos = m.nq, r_.qvel = m.nv, r_.bodies = m.nbody, r_.controls = m.nu;
    if (m.nq > LeggedRobot::kMaxPositions) refuse(limit("positions (nq)", m.nq, LeggedRobot::kMaxPositions));
    if (m.nu > LeggedRobot::kMaxControls) refuse(limit("controls (nu)", m.nu, LeggedRobot::kMaxControls));
    r_.geom_group.assign(m.ngeom, -1);
    check_floor();
    find_trunk(), find_feet(), find_undesired(), find_pose(), find_joints();
    return r_;
  }

 private:
  const std::vector<std::string>* given(const std::string& role) const {
    for (const auto& [name, list] : names_)
      if (name == role) return &list;
    return nullptr;
  }
  static std::string limit(const std::string& what, int got, int most) {
    return "the robot has " + std::to_string(got) + " " + what + ", at most " + std::to_string(most) + " are supported";
  }
  int named(const std::string& role, const std::string& kind, const Names& there, const std::string& name) const {
    const int at = index_of_name(there, name);
    if (at < 0)
      refuse("names['" + role + "'] has '" + name + "', but the model has no such " + kind +
             "; there are: " + listed(there));
    return at;
  }

  void check_floor() const {
    for (int g = 0; g < model_.ngeom; ++g)
      if (model_.body_weldid[model_.geom_bodyid[g]] == 0 && may_collide(model_, g)) return;
    refuse(
        "the model has nothing to stand on: add a floor (a plane geom in its worldbody), or load the robot's scene "
        "file");
  }

  /// Geoms of a body that are in no group yet join it. Whether one that can be touched did.
  bool join(int body, int group) {
    bool touchable = false;
    for (int g = 0; g < model_.ngeom; ++g)
      if (model_.geom_bodyid[g] == body && r_.geom_group[g] < 0)
        r_.geom_group[g] = group, touchable = touchable || may_collide(model_, g);
    return touchable;
  }

  void find_trunk() {
    const Model& m = model_;
    for (int j = 0; j < m.njnt; ++j)
      if (m.jnt_type[j] == static_cast<int>(JointType::kFree)) {
        if (trunk_ >= 0) refuse("the model has several free joints; a walking robot has one, at its trunk");
        trunk_ = m.jnt_bodyid[j];
      }
    if (trunk_ < 0) refuse("the model has no free joint: give the robot's trunk a <freejoint/>");
    if (m.body_dofadr[trunk_] != 0) refuse("the free joint of the trunk must be the model's first joint");
  }

  void find_feet() {
    const auto* list = given("feet");
    if (list == nullptr || list->empty())
      refuse("name the robot's feet: names={'feet': [...]}, geoms or bodies of the model; bodies: " +
             listed(model_.body_names) + "; geoms: " + listed(model_.geom_names));
    if (list->size() > static_cast<size_t>(LeggedRobot::kMaxFeet))
      refuse(limit("feet", static_cast<int>(list->size()), LeggedRobot::kMaxFeet));
    for (const std::string& name : *list) {
      const int geom = index_of_name(model_.geom_names, name), body = index_of_name(model_.body_names, name);
      const int group = ++r_.feet;
      if (geom < 0 && body < 0)
        refuse("names['feet'] has '" + name + "', but the model has no such geom or body; geoms: " +
               listed(model_.geom_names) + "; bodies: " + listed(model_.body_names));
      const bool touchable = geom >= 0 ? may_collide(model_, geom) : join(body, group);
      if (geom >= 0) r_.geom_group[geom] = group;
      if (!touchable) refuse("the foot '" + name + "' has no geom that can touch anything");
    }
  }

  /// The trunk and what is fixed to it, and bodies that the user counts as trunk.
  void join_trunk() {
    for (int b = 1; b < model_.nbody; ++b)
      if (model_.body_weldid[b] == trunk_) join(b, 0);
    if (const auto* list = given("trunk"))
      for (const std::string& name : *list) {
        const int body = named("trunk", "body", model_.body_names, name);
        if (body == 0) refuse("names['trunk'] has the world, expected bodies of the robot");
        if (model_.body_weldid[body] != trunk_ && !join(body, 0))
          refuse("names['trunk'] has '" + name +
                 "', which has no geom that can touch anything but feet and what is undesired");
      }
  }

  void find_undesired() {
    const auto* list = given("undesired");
    auto add = [this](int body) {
      if (r_.undesired == LeggedRobot::kMaxUndesired) refuse(limit("bodies", model_.nbody, LeggedRobot::kMaxUndesired));
      if (join(body, 1 + r_.feet + r_.undesired)) ++r_.undesired;
      else  // nothing of it can be touched: no group
        for (int& group : r_.geom_group)
          if (group == 1 + r_.feet + r_.undesired) group = -1;
    };
    if (list != nullptr)
      for (const std::string& name : *list) {
        const int body = named("undesired", "body", model_.body_names, name);
        if (body == 0 || body == trunk_) refuse("names['undesired'] has '" + name + "', expected a body of the limbs");
        add(body);
      }
    join_trunk();
    for (int b = 1; list == nullptr && b < model_.nbody; ++b)
      if (model_.body_weldid[b] != trunk_ && model_.body_weldid[b] != 0) add(b);
  }

  void find_pose() {
    const Model& m = model_;
    int key = -1;
    if (const auto* list = given("keyframe")) key = named("keyframe", "keyframe", m.key_names, list->front());
    for (const char* usual : {"home", "stand"})
      if (key < 0) key = index_of_name(m.key_names, usual);
    for (int i = 0; i < m.nq; ++i) r_.standing[i] = key < 0 ? m.qpos0[i] : m.key_qpos[key * m.nq + i];
  }

  void find_joints() {
    const Model& m = model_;
    std::vector<int> servo(m.njnt, -1), order;
    for (int a = 0; a < m.nu; ++a) {
      const int joint = checked_servo(a);
      if (servo[joint] >= 0)
        refuse("joint '" + m.joint_names[joint] + "' has two actuators, expected one position servo");
      servo[joint] = a, order.push_back(joint);
      r_.standing_ctrl[a] = r_.standing[m.jnt_qposadr[joint]];
    }
    if (const auto* list = given("joints")) {
      order.clear();
      for (const std::string& name : *list) {
        const int joint = named("joints", "joint", m.joint_names, name);
        if (servo[joint] < 0) refuse("names['joints'] has '" + name + "', which has no actuator");
        if (std::find(order.begin(), order.end(), joint) != order.end())
          refuse("names['joints'] has '" + name + "' twice");
        order.push_back(joint);
      }
    }
    if (order.empty()) refuse("the robot has no joints to move: no actuators");
    if (order.size() > static_cast<size_t>(LeggedRobot::kMaxJoints))
      refuse(limit("joints", static_cast<int>(order.size()), LeggedRobot::kMaxJoints));
    for (int joint : order) {
      const int i = r_.joints++;
      r_.joint_qpos[i] = m.jnt_qposadr[joint], r_.joint_dof[i] = m.jnt_dofadr[joint];
      r_.joint_control[i] = servo[joint];
    }
  }

  /// The hinge that a position servo drives, whose target is the hinge's angle.
  int checked_servo(int a) const {
    const Model& m = model_;
    const std::string name = "actuator '" + m.actuator_names[a] + "' (" + std::to_string(a) + ")";
    const int joint = m.actuator_trnid[a];
    if (m.actuator_trntype[a] != static_cast<int>(Transmission::kJoint) ||
        m.jnt_type[joint] != static_cast<int>(JointType::kHinge))
      refuse(name + " does not drive a hinge: actions are targets of hinges");
    const double gain = m.actuator_gainprm[a], stiffness = -m.actuator_biasprm[3 * a + 1];
    if (!(gain > 0) || gain != stiffness || m.actuator_gear[6 * a] != 1)
      refuse(name + " is no position servo of gear 1 (gain " + std::to_string(gain) + ", stiffness " +
             std::to_string(stiffness) + "): actions are targets of joints, so use <position> actuators");
    return joint;
  }

  const Model& model_;
  const TaskNames& names_;
  LeggedRobot r_;
  int trunk_ = -1;
};

}  // namespace

LeggedRobot LeggedRobot::found(const Model& model, const TaskNames& names) { return Search(model, names).robot(); }

}  // namespace stiction
