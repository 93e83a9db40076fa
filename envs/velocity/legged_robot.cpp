#include "envs/velocity/legged_robot.h"

#include <algorithm>
#include <numeric>

#include "envs/core/model_search.h"
#include "host/model/fields.h"

namespace stiction {
namespace {

/// Finds what names ask for, in one model.
class Search : ModelSearch {
 public:
  Search(const Model& model, const TaskNames& names)
      : ModelSearch(model, names, "a walking robot", {"trunk", "feet", "undesired", "joints", "keyframe"}) {}

  LeggedRobot robot() {
    const Model& m = model_;
    r_.qpos = m.nq, r_.qvel = m.nv, r_.bodies = m.nbody, r_.controls = m.nu;
    check_room("positions (nq)", m.nq, LeggedRobot::kMaxPositions);
    check_room("controls (nu)", m.nu, LeggedRobot::kMaxControls);
    r_.geom_group.assign(m.ngeom, -1);
    check_floor("has nothing to stand on");
    find_trunk(), find_feet(), find_undesired(), find_pose(), find_joints();
    return r_;
  }

 private:
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
    if (trunk_ < 0)
      refuse(
          "the model has no free joint: give the robot's trunk a <freejoint/>, or a URDF's "
          "Model.from_urdf floating=True");
    if (m.body_dofadr[trunk_] != 0) refuse("the free joint of the trunk must be the model's first joint");
  }

  void find_feet() {
    const auto* list = given("feet");
    if (list == nullptr || list->empty())
      refuse("name the robot's feet: names={'feet': [...]}, geoms or bodies of the model; bodies: " +
             listed(model_.body_names) + "; geoms: " + listed(model_.geom_names));
    check_room("feet", static_cast<int>(list->size()), LeggedRobot::kMaxFeet);
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
      if (r_.undesired == LeggedRobot::kMaxUndesired)
        check_room("bodies that should touch nothing", r_.undesired + 1, LeggedRobot::kMaxUndesired);
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
    const std::vector<double> q = pose();
    std::copy(q.begin(), q.end(), r_.standing);
  }

  void find_joints() {
    const Model& m = model_;
    std::vector<int> all(m.nu);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<ServoJoint> moved = servo_hinges("joints", all);
    check_room("joints", static_cast<int>(moved.size()), LeggedRobot::kMaxJoints);
    for (int a : all) r_.standing_ctrl[a] = r_.standing[m.jnt_qposadr[m.actuator_trnid[a]]];
    for (const auto& [joint, control] : moved) {
      const int i = r_.joints++;
      r_.joint_qpos[i] = m.jnt_qposadr[joint], r_.joint_dof[i] = m.jnt_dofadr[joint];
      r_.joint_control[i] = control;
    }
  }

  LeggedRobot r_;
  int trunk_ = -1;
};

}  // namespace

LeggedRobot LeggedRobot::found(const Model& model, const TaskNames& names) { return Search(model, names).robot(); }

}  // namespace stiction
