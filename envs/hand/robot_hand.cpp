#include "envs/hand/robot_hand.h"

#include <algorithm>
#include <numeric>

#include "envs/core/model_search.h"

namespace stiction {
namespace {

/// Finds what names ask for, in one model.
class Search : ModelSearch {
 public:
  Search(const Model& model, const TaskNames& names)
      : ModelSearch(model, names, "a hand", {"joints", "fingertips", "cube", "keyframe"}) {}

  RobotHand hand() {
    const Model& m = model_;
    r_.qpos = m.nq, r_.qvel = m.nv, r_.bodies = m.nbody, r_.controls = m.nu;
    check_room("positions (nq)", m.nq, RobotHand::kMaxPositions);
    check_room("controls (nu)", m.nu, RobotHand::kMaxControls);
    const std::vector<double> q = pose();
    std::copy(q.begin(), q.end(), r_.home);
    find_joints(), find_fingertips();
    const FreeCube cube = this->cube(free_bodies("cube", 1).front());
    r_.cube_qpos = cube.qpos, r_.cube_dof = cube.dof;
    return r_;
  }

 private:
  void find_joints() {
    const Model& m = model_;
    std::vector<int> all(m.nu);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<ServoJoint> moved = servo_hinges("joints", all);
    check_room("joints", static_cast<int>(moved.size()), RobotHand::kMaxJoints);
    for (int a : all) r_.home_ctrl[a] = r_.home[m.jnt_qposadr[m.actuator_trnid[a]]];
    for (const auto& [joint, control] : moved) {
      const std::string name = "joint '" + m.joint_names[joint] + "'";
      const double low = m.jnt_range[2 * joint], high = m.jnt_range[2 * joint + 1];
      const double home = r_.home[m.jnt_qposadr[joint]];
      if (!m.jnt_limited[joint]) refuse(name + " of the hand has no limits: actions are parts of joints' ranges");
      if (!(low <= home && home <= high && low < high))
        refuse(name + " is at " + std::to_string(home) + " in the home pose, beyond its limits " + std::to_string(low) +
               " and " + std::to_string(high));
      const int i = r_.joints++;
      r_.joint_qpos[i] = m.jnt_qposadr[joint], r_.joint_dof[i] = m.jnt_dofadr[joint], r_.joint_control[i] = control;
      r_.joint_low[i] = low, r_.joint_high[i] = high;
    }
  }

  void find_fingertips() {
    const auto* list = given("fingertips");
    if (list == nullptr || list->empty())
      refuse("name the hand's fingertips: names={'fingertips': [...]}, sites or bodies of the model; sites: " +
             listed(model_.site_names) + "; bodies: " + listed(model_.body_names));
    check_room("fingertips", static_cast<int>(list->size()), RobotHand::kMaxFingertips);
    for (const std::string& name : *list) {
      const BodyPoint tip = point("fingertips", name);
      std::copy(tip.at, tip.at + 3, r_.tip_point + 3 * r_.fingertips);
      r_.tip_body[r_.fingertips++] = tip.body;
    }
  }

  RobotHand r_;
};

}  // namespace

RobotHand RobotHand::found(const Model& model, const TaskNames& names) { return Search(model, names).hand(); }

}  // namespace stiction
