// validate: each case spoils one thing in a sound model and expects the complaint to name it.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <stdexcept>

#include "host/model/builder.h"

namespace stiction {
namespace {

/// A crate on a plane and a two-link arm with a tendon, an equality and two actuators.
Model sound() {
  ModelBuilder b;
  const int crate = b.add_body({.name = "crate", .mass = 1, .inertia = box_inertia(1, {1, 1, 1})});
  const int upper = b.add_body({.name = "upper", .mass = 1, .inertia = {1, 1, 1}});
  const int lower = b.add_body({.name = "lower", .parent = upper, .mass = 1, .inertia = {1, 1, 1}});
  b.add_joint({.body = crate, .type = JointType::kFree});
  const int shoulder = b.add_joint({.name = "shoulder", .body = upper, .range = Range{-1, 1}});
  const int elbow = b.add_joint({.name = "elbow", .body = lower, .stiffness = 1, .damping = 1});
  b.add_geom({.type = GeomType::kPlane});
  b.add_geom({.body = crate, .type = GeomType::kBox, .size = {1, 1, 1}});
  const int tendon = b.add_tendon({.terms = {{shoulder, 1.0}, {elbow, -1.0}}});
  b.add_equality({.joint1 = shoulder, .joint2 = elbow});
  b.add_actuator({.joint = shoulder, .ctrlrange = Range{-1, 1}});
  b.add_actuator({.tendon = tendon});
  return b.build();
}

struct Case {
  const char* name;
  std::function<void(Model&)> spoil;
  const char* complaint;
};

const double kNan = std::numeric_limits<double>::quiet_NaN();

const Case kCases[] = {
    {"NegativeSize", [](Model& m) { m.npair = -1; }, "npair is -1"},
    {"WrongLength", [](Model& m) { m.body_mass.pop_back(); }, "body_mass has 3 entries, expected 4"},
    {"NotFinite", [](Model& m) { m.geom_pos[4] = kNan; }, "geom_pos has a non-finite entry at 4"},
    {"Names", [](Model& m) { m.body_names.pop_back(); }, "body_names has 3 entries"},
    {"RepeatedName", [](Model& m) { m.joint_names[0] = "elbow"; }, "joint_names has 'elbow' twice"},
    {"Timestep", [](Model& m) { m.timestep = 0; }, "timestep is 0"},
    {"Gravity", [](Model& m) { m.gravity = {1}; }, "gravity has 1 entries"},
    {"ParentAfterChild", [](Model& m) { m.body_parentid[2] = 3; }, "body_parentid[2] is 3"},
    {"Weld", [](Model& m) { m.body_weldid[3] = 2; }, "body_weldid[3] is 2, expected 3"},
    {"JointBlocks", [](Model& m) { m.body_jntadr[2] = 0; }, "body_jntadr[2] is 0, expected 1"},
    {"NegativeMass", [](Model& m) { m.body_mass[3] = -1; }, "body_mass[3] is -1"},
    {"MovingWithoutMass", [](Model& m) { m.body_mass[3] = 0; }, "'lower' moves but has mass 0"},
    {"TurningWithoutInertia", [](Model& m) { m.body_inertia[9] = m.body_inertia[10] = m.body_inertia[11] = 0; },
     "'lower' turns but has no inertia"},
    {"ImpossibleInertia", [](Model& m) { m.body_inertia[9] = 5; }, "body_inertia[3] is (5, 1, 1)"},
    {"Quaternion", [](Model& m) { m.body_quat[4] = 2; }, "body_quat[1] has norm 2"},
    {"InitialQuaternion", [](Model& m) { m.qpos0[3] = 0; }, "qpos0 quaternion"},
    {"JointType", [](Model& m) { m.jnt_type[1] = 9; }, "jnt_type[1] is 9"},
    {"JointAddress", [](Model& m) { m.jnt_qposadr[1] = 6; }, "jnt_qposadr[1] is 6, expected 7"},
    {"LimitedFreeJoint", [](Model& m) { m.jnt_limited[0] = 1; }, "jnt_limited[0] is set"},
    {"NegativeStiffness", [](Model& m) { m.jnt_stiffness[0] = -1; }, "jnt_stiffness[0] is -1"},
    {"SpringQuaternion", [](Model& m) { m.qpos_spring[3] = 2; }, "qpos_spring quaternion"},
    {"FreeJointFriction", [](Model& m) { m.dof_frictionloss[2] = 1; }, "dof_frictionloss[2] is 1"},
    {"Axis", [](Model& m) { m.jnt_axis[5] = 0.5; }, "jnt_axis"},
    {"Range", [](Model& m) { m.jnt_range[2] = 2; }, "jnt_range[1] is (2, 1)"},
    {"NegativeDamping", [](Model& m) { m.dof_damping[7] = -1; }, "dof_damping[7] is -1"},
    {"GeomType", [](Model& m) { m.geom_type[1] = 8; }, "geom_type[1] is 8"},
    {"GeomSize", [](Model& m) { m.geom_size[5] = 0; }, "geom_size[5] is 0"},
    {"MeshWithoutHull", [](Model& m) { m.geom_type[1] = 7; }, "geom_dataid[1] is -1"},
    {"Friction", [](Model& m) { m.geom_friction[3] = -0.1; }, "geom_friction[3] is -0.1"},
    {"TendonOnFreeJoint", [](Model& m) { m.wrap_jntid[0] = 0; }, "wrap_jntid[0]"},
    {"EqualityWithItself", [](Model& m) { m.eq_obj2id[0] = m.eq_obj1id[0]; }, "to itself"},
    {"EqualityType", [](Model& m) { m.eq_type[0] = 4; }, "eq_type[0] is 4"},
    {"EqualityOfNoBody", [](Model& m) { m.eq_type[0] = 0, m.eq_obj2id[0] = -1; }, "eq_obj2id[0] is -1"},
    {"WeldQuaternion", [](Model& m) { m.eq_type[0] = 1; }, "eq_data quaternion"},
    {"WeldTorquescale", [](Model& m) { m.eq_type[0] = 1, m.eq_data[6] = 1, m.eq_data[10] = -1; }, "torquescale -1"},
    {"MocapOnAJoint", [](Model& m) { m.nmocap = 1, m.body_mocapid[1] = 0; }, "is a mocap body"},
    {"MocapCount", [](Model& m) { m.nmocap = 1; }, "nmocap is 1, expected 0"},
    {"MocapOrder", [](Model& m) { m.nmocap = 2, m.body_mocapid[1] = 1; }, "body_mocapid[1] is 1"},
    {"Transmission", [](Model& m) { m.actuator_trntype[0] = 4; }, "actuator_trntype[0] is 4"},
    {"ActuatorTarget", [](Model& m) { m.actuator_trnid[1] = 1; }, "actuator_trnid[1] is 1"},
};

class Validate : public testing::TestWithParam<Case> {};

TEST_P(Validate, RejectsNamingTheField) {
  Model m = sound();
  GetParam().spoil(m);
  try {
    validate(m);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().complaint), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Spoilt, Validate, testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

TEST(ValidateModel, AcceptsMasslessFramesCarryingAWeldedBody) {
  ModelBuilder b;
  const int frame = b.add_body({.name = "frame"});
  b.add_joint({.body = frame});
  b.add_body({.name = "load", .parent = frame, .mass = 1, .inertia = {1, 1, 1}});
  EXPECT_NO_THROW(b.build());
}

}  // namespace
}  // namespace stiction
