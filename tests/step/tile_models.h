// Robots for tests of step executions: small, but with every kind of row and contact.
#pragma once
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "host/model/builder.h"

namespace stiction::testing {

/// MuJoCo's quaternion that turns z to a horizontal direction.
inline Quadruple lying(double yaw) {
  const double c = std::sqrt(0.5);
  return {c, -c * std::sin(yaw), c * std::cos(yaw), 0};
}

struct LegOptions {
  int joints = 2;          // 2: hip yaw and knee; 3: abduction, hip, knee
  bool feet_only = false;  // geometry: a sphere at the tip, else capsules
  double frictionloss = 0, stiffness = 0, base_stiffness = 0;
  bool servo = false;                // position servo with damping, else a motor
  std::optional<Range> effort = {};  // of each joint, N m
  bool limited = true;
  int legs = 4;
};

/// A floating sphere with four legs on a plane: Gymnasium's Ant in shape (2 joints a leg), or a quadruped (3).
inline ModelBuilder legged(const LegOptions& o, ModelOptions options = {}) {
  ModelBuilder b(options);
  b.add_geom({.name = "floor", .type = GeomType::kPlane, .size = {10, 10, 1}, .friction = 0.8});
  const int torso = b.add_body({.name = "torso", .pos = {0, 0, 0.28}, .mass = 3, .inertia = sphere_inertia(3, 0.15)});
  b.add_joint({.name = "root", .body = torso, .type = JointType::kFree, .stiffness = o.base_stiffness});
  if (!o.feet_only) b.add_geom({.body = torso, .size = {0.15}});
  for (int leg = 0; leg < o.legs; ++leg) {
    const double yaw = M_PI / 4 + leg * 2 * M_PI / o.legs, x = std::cos(yaw), y = std::sin(yaw);
    int parent = torso;
    for (int j = 0; j < o.joints; ++j) {
      const bool tip = j + 1 == o.joints;
      const double length = 0.2;
      const Triple at = j == 0                    ? Triple{0.2 * x, 0.2 * y, 0}
                        : j == 1 && o.joints == 3 ? Triple{0.03 * x, 0.03 * y, 0}
                                                  : Triple{length * x, length * y, -0.05};
      const int link = b.add_body({.name = "leg" + std::to_string(leg) + std::to_string(j),
                                   .parent = parent,
                                   .pos = at,
                                   .mass = 0.5,
                                   .inertia = capsule_inertia(0.5, 0.04, 0.1),
                                   .ipos = {0.1 * x, 0.1 * y, tip ? -0.1 : 0},
                                   .iquat = lying(yaw)});
      const Triple axis = j == 0 ? (o.joints == 3 ? Triple{x, y, 0} : Triple{0, 0, 1}) : Triple{-y, x, 0};
      JointSpec joint{.body = link,
                      .axis = axis,
                      .stiffness = o.stiffness,
                      .damping = 0.3,
                      .armature = 0.01,
                      .frictionloss = o.frictionloss,
                      .actuatorfrcrange = o.effort};
      if (o.limited) joint.range = Range{-0.5, 0.4};
      const int hinge = b.add_joint(joint);
      if (o.servo) b.add_actuator({.joint = hinge, .gain = 20, .bias = {0, -20, -0.5}, .forcerange = Range{-6, 6}});
      else b.add_actuator({.joint = hinge, .gear = {8, 0, 0, 0, 0, 0}, .ctrlrange = Range{-1, 1}});
      if (tip && o.feet_only)
        b.add_geom(
            {.body = link, .size = {0.03}, .pos = {0.15 * x, 0.15 * y, -0.25}, .conaffinity = 0});  // the floor only
      else if (!o.feet_only)
        b.add_geom({.body = link,
                    .type = GeomType::kCapsule,
                    .size = {0.04, tip ? 0.15 : 0.08},
                    .pos = {0.1 * x, 0.1 * y, tip ? -0.1 : 0},
                    .quat = tip ? Quadruple{1, 0, 0, 0} : lying(yaw)});
      parent = link;
    }
  }
  return b;
}

/// A quadruped of capsules beside a free box, with a tail on a ball joint with a limit, a joint equality, a tendon with spring,
/// limit, dry friction and two actuators under force ranges of its and of its joints', weight compensation, dry friction in the joints and
/// springs in all of them.
inline ModelBuilder menagerie_builder() {
  ModelBuilder b = legged({.joints = 3,
                           .frictionloss = 0.05,
                           .stiffness = 0.5,
                           .base_stiffness = 2,
                           .servo = true,
                           .effort = Range{-3, 2}});
  const int box =
      b.add_body({.name = "box", .pos = {0.42, 0.37, 0.1}, .mass = 1, .inertia = box_inertia(1, {.1, .1, .1})});
  b.add_joint({.body = box, .type = JointType::kFree, .stiffness = 1});
  b.add_geom({.body = box, .type = GeomType::kBox, .size = {0.1, 0.1, 0.1}});
  const int tail = b.add_body({.name = "tail",
                               .parent = 1,
                               .pos = {-0.2, 0, 0},
                               .mass = 0.3,
                               .inertia = capsule_inertia(0.3, 0.03, 0.1),
                               .ipos = {-0.1, 0, 0},
                               .gravcomp = 0.7});
  b.add_joint({.body = tail,
               .type = JointType::kBall,
               .range = Range{0, 0.02},
               .stiffness = 0.1,
               .damping = 0.02,
               .armature = 0.002});
  b.add_geom({.body = tail, .type = GeomType::kCapsule, .size = {0.03, 0.1}, .pos = {-0.1, 0, 0}, .quat = lying(0)});
  const int tip = b.add_body(
      {.name = "tip", .parent = tail, .pos = {-0.22, 0, 0}, .mass = 0.1, .inertia = sphere_inertia(0.1, 0.04)});
  const int wag = b.add_joint({.body = tip, .axis = {0, 1, 0}, .damping = 0.01, .armature = 0.002});
  b.add_geom({.body = tip, .size = {0.04}});
  b.add_equality({.joint1 = 2, .joint2 = 5, .coefficients = {0.05, 0.8, 0.1, 0, 0}});
  b.add_equality({.joint1 = wag, .joint2 = -1, .coefficients = {0.1, 0, 0, 0, 0}, .active = false});
  const int tendon = b.add_tendon({.terms = {{3, 1.0}, {9, -0.7}, {wag, 0.3}},
                                   .stiffness = 3,
                                   .damping = 0.1,
                                   .frictionloss = 0.1,
                                   .lengthspring = Range{-0.02, 0.02},
                                   .range = Range{-0.3, 0.3},
                                   .actuatorfrcrange = Range{-1, 1.5}});
  b.add_actuator({.tendon = tendon, .gain = 5, .bias = {0, -5, -0.1}});
  b.add_actuator({.tendon = tendon});
  return b;
}
inline Model menagerie() { return menagerie_builder().build(); }

/// The menagerie with bodies held together: within a limb, limb to limb and to the trunk, to a free body, to the world and to a
/// mocap body, and an equality of tendons.
inline Model looped() {
  ModelBuilder b = menagerie_builder();
  const int torso = 1, box = 14, tail = 15, tip = 16;
  b.add_connect({.body1 = 4, .body2 = 7, .anchor1 = {0.1, 0.1, -0.2}, .anchor2 = {0.1, -0.1, -0.2}});
  b.add_connect({.body1 = 8, .body2 = torso, .anchor1 = {0, 0, 0.05}, .anchor2 = {-0.2, -0.1, 0.1}});
  b.add_weld({.body1 = box, .body2 = 10, .anchor = {0.05, 0, 0}, .pos = {-0.1, 0.1, 0}, .torquescale = 0.3});
  b.add_connect({.body1 = tip, .body2 = 0, .anchor2 = {-0.4, 0, 0.3}});
  b.add_connect({.body1 = tail, .body2 = 12, .anchor1 = {-0.1, 0, 0}});
  const int hand = b.add_body({.name = "hand", .pos = {0.1, 0.2, 0.3}, .quat = {0.8, 0, 0.6, 0}, .mocap = true});
  b.add_weld({.body1 = hand, .body2 = torso, .pos = {0, -0.1, 0}});
  b.add_weld({.body1 = box, .body2 = tip, .active = false});
  const int other = b.add_tendon({.terms = {{1, 0.5}, {3, 1}}});
  b.add_equality(TendonEqualitySpec{.tendon1 = 0, .tendon2 = other, .coefficients = {0.01, 0.6, 0.1, 0, 0}});
  return b.build();
}

}  // namespace stiction::testing
