#include "envs/arm/gripper_arm.h"

#include <algorithm>

#include "envs/core/model_search.h"
#include "host/model/fields.h"

namespace stiction {
namespace {

/// Finds what names ask for, in one model.
class Search : ModelSearch {
 public:
  Search(const Model& model, const TaskNames& names)
      : ModelSearch(model, names, "an arm with a gripper",
                    {"arm", "gripper", "fingers", "grasp", "cubes", "keyframe"}) {}

  GripperArm arm(int cubes) {
    const Model& m = model_;
    r_.qpos = m.nq, r_.qvel = m.nv, r_.bodies = m.nbody, r_.controls = m.nu;
    check_room("positions (nq)", m.nq, GripperArm::kMaxPositions);
    check_room("controls (nu)", m.nu, GripperArm::kMaxControls);
    check_floor("has nothing to put a cube on");
    const std::vector<double> q = pose();
    std::copy(q.begin(), q.end(), r_.home);
    find_arm(), find_gripper(), find_fingers(), find_grasp(), find_cubes(cubes);
    return r_;
  }

 private:
  /// Servos of the arm: those of the joints that are named, or all that drive a hinge.
  void find_arm() {
    const Model& m = model_;
    const auto* list = given("arm");
    std::vector<int> candidates;
    for (int a = 0; a < m.nu; ++a) {
      if (m.actuator_trntype[a] != static_cast<int>(Transmission::kJoint)) continue;
      const int joint = m.actuator_trnid[a];
      const bool asked = list != nullptr && std::find(list->begin(), list->end(), m.joint_names[joint]) != list->end();
      if (list == nullptr ? m.jnt_type[joint] == static_cast<int>(JointType::kHinge) : asked) candidates.push_back(a);
    }
    const std::vector<ServoJoint> moved = servo_hinges("arm", candidates);
    check_room("joints", static_cast<int>(moved.size()), GripperArm::kMaxJoints);
    for (const auto& [joint, control] : moved) {
      const int i = r_.joints++;
      r_.joint_qpos[i] = m.jnt_qposadr[joint], r_.joint_dof[i] = m.jnt_dofadr[joint], r_.joint_control[i] = control;
    }
  }
  bool of_arm(int dof) const {
    return std::find(r_.joint_dof, r_.joint_dof + r_.joints, dof) != r_.joint_dof + r_.joints;
  }
  bool drives_arm(int control) const {
    return std::find(r_.joint_control, r_.joint_control + r_.joints, control) != r_.joint_control + r_.joints;
  }

  void find_gripper() {
    const Model& m = model_;
    std::vector<int> found;
    if (const auto* list = given("gripper")) {
      for (const std::string& name : *list) {
        const int a = named("gripper", "actuator", m.actuator_names, name);
        if (drives_arm(a)) refuse("names['gripper'] has '" + name + "', which drives the arm");
        found.push_back(a);
      }
    } else {
      for (int a = 0; a < m.nu; ++a)
        if (!drives_arm(a)) found.push_back(a);
    }
    if (found.empty())
      refuse(
          "the arm has no gripper: no actuator is left for it; name the arm's joints, names={'arm': [...]}, or the "
          "gripper's actuators, names={'gripper': [...]}; actuators: " +
          listed(m.actuator_names));
    for (int a : found) {
      const double low = m.actuator_ctrlrange[2 * a], high = m.actuator_ctrlrange[2 * a + 1];
      if (!m.actuator_ctrllimited[a] || !(low < high))
        refuse("actuator '" + m.actuator_names[a] + "' (" + std::to_string(a) +
               ") of the gripper has no control range: give it a ctrlrange from closed to open");
      r_.gripper_low[r_.grippers] = low, r_.gripper_high[r_.grippers] = high, r_.gripper_control[r_.grippers++] = a;
    }
    if (r_.joints + r_.grippers != m.nu)
      refuse("the model has " + std::to_string(m.nu) + " actuators, but " + std::to_string(r_.joints) +
             " drive the arm and " + std::to_string(r_.grippers) +
             " the gripper; name all of them: " + listed(m.actuator_names));
  }

  void find_fingers() {
    const Model& m = model_;
    std::vector<int> found;
    auto scalar = [&m](int j) {
      return m.jnt_type[j] == static_cast<int>(JointType::kSlide) ||
             m.jnt_type[j] == static_cast<int>(JointType::kHinge);
    };
    if (const auto* list = given("fingers")) {
      for (const std::string& name : *list) {
        const int joint = named("fingers", "joint", m.joint_names, name);
        if (!scalar(joint) || of_arm(m.jnt_dofadr[joint]))
          refuse("names['fingers'] has '" + name + "', expected a slide or hinge that is not the arm's");
        found.push_back(joint);
      }
    } else {
      for (int j = 0; j < m.njnt; ++j)
        if (scalar(j) && !of_arm(m.jnt_dofadr[j])) found.push_back(j);
    }
    if (found.empty()) refuse("the arm has no fingers: no joints but the arm's");
    check_room("fingers", static_cast<int>(found.size()), GripperArm::kMaxFingers);
    r_.geom_group.assign(m.ngeom, -1);
    for (int joint : found) {
      const int body = m.jnt_bodyid[joint], i = r_.fingers++;
      r_.finger_qpos[i] = m.jnt_qposadr[joint], r_.finger_dof[i] = m.jnt_dofadr[joint];
      bool touchable = false;
      for (int g = 0; g < m.ngeom; ++g)
        if (m.body_weldid[m.geom_bodyid[g]] == body) r_.geom_group[g] = i, touchable = touchable || may_collide(m, g);
      if (!touchable)
        refuse("the finger '" + m.joint_names[joint] + "' (body '" + m.body_names[body] +
               "') has no geom that can touch anything");
    }
  }

  void find_grasp() {
    const Model& m = model_;
    const std::string* name = given_one("grasp");
    if (name == nullptr)
      refuse("name the point between the fingertips: names={'grasp': ...}, a site or body of the model; sites: " +
             listed(m.site_names) + "; bodies: " + listed(m.body_names));
    const BodyPoint tip = point("grasp", *name);
    r_.grasp_body = tip.body;
    std::copy(tip.at, tip.at + 3, r_.grasp_point);
  }

  void find_cubes(int wanted) {
    for (const FreeBody& c : free_bodies("cubes", wanted)) {
      const int i = r_.cubes++;
      r_.cube_body[i] = c.body, r_.cube_qpos[i] = c.qpos, r_.cube_dof[i] = c.dof;
      if (wanted > 1) r_.cube_half[i] = cube(c).half;  // what is only lifted may have any shape
    }
  }

  GripperArm r_;
};

}  // namespace

GripperArm GripperArm::found(const Model& model, const TaskNames& names, int cubes) {
  return Search(model, names).arm(cubes);
}

}  // namespace stiction
