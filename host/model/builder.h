// ModelBuilder: a Model put together in C++, with MuJoCo's meaning and defaults (angles in rad, half sizes).
//
//   ModelBuilder builder;
//   const int torso = builder.add_body({.name = "torso", .pos = {0, 0, 1}, .mass = 2, .inertia = box_inertia(2, {.1, .1, .1})});
//   builder.add_joint({.body = torso, .type = JointType::kFree});
//   builder.add_geom({.body = torso, .type = GeomType::kBox, .size = {.1, .1, .1}});
//   const Model model = builder.build();
//
// Every add_* returns the number of the thing in the model. Bodies come after their parent; joints in body order (their
// numbers, and those of the dofs, are the order of addition). build() derives addresses, weldid, qpos0 and qpos_spring and
// runs validate(). Deviations from MJCF: mass and inertia are explicit (box_inertia and its like help), no defaults tree.
//
// Errors: std::invalid_argument from add_* (an unknown number, order) and from build() (validate).
#pragma once
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/model/model.h"

namespace stiction {

using Triple = std::array<double, 3>;
using Quadruple = std::array<double, 4>;
using Range = std::array<double, 2>;

/// Principal moments about the centre of a homogeneous solid, kg m^2; sizes are MuJoCo's: half lengths, radii, axis z.
Triple box_inertia(double mass, Triple half_size);
Triple sphere_inertia(double mass, double radius);
Triple ellipsoid_inertia(double mass, Triple radii);
Triple cylinder_inertia(double mass, double radius, double half_length);
Triple capsule_inertia(double mass, double radius, double half_length);

struct BodySpec {
  std::string name = {};
  int parent = 0;
  Triple pos{};  // in the parent's frame
  Quadruple quat{1, 0, 0, 0};
  double mass = 0;
  Triple inertia{};  // principal moments in the inertial frame
  Triple ipos{};     // the inertial frame in the body's frame
  Quadruple iquat{1, 0, 0, 0};
  double gravcomp = 0;
  bool mocap = false;  // moved by the user: a child of the world without joints
};

struct JointSpec {
  std::string name = {};
  int body = 0;
  JointType type = JointType::kHinge;
  Triple pos{};
  Triple axis{0, 0, 1};             // normalised by add_joint
  std::optional<Range> range = {};  // slide, hinge; ball: 0 and the largest angle
  double ref = 0, springref = 0;    // slide, hinge: q in the pose the bodies are given in; q where the spring rests
  double stiffness = 0, damping = 0, armature = 0, frictionloss = 0;
  std::optional<Range> actuatorfrcrange = {};
};

struct GeomSpec {
  std::string name = {};
  int body = 0;
  GeomType type = GeomType::kSphere;
  Triple size{};
  Triple pos{};
  Quadruple quat{1, 0, 0, 0};
  double friction = 1;
  int contype = 1, conaffinity = 1, condim = 3, priority = 0;
  double stiffness = 0, dissipation = 0;  // 0: rigid
  double restitution = 0;
  int mesh = -1;  // from add_mesh, for GeomType::kMesh
};

struct MeshSpec {
  std::vector<Triple> vertices = {};               // of the convex hull, in the geom's frame
  std::vector<std::array<int, 3>> triangles = {};  // the hull's surface, either orientation
};

struct SiteSpec {
  std::string name = {};
  int body = 0;
  Triple pos{};
  Quadruple quat{1, 0, 0, 0};
};

struct TendonSpec {
  std::string name = {};
  std::vector<std::pair<int, double>> terms = {};  // joint, coefficient: length = sum of coefficient * q
  double stiffness = 0, damping = 0, frictionloss = 0;
  std::optional<Range> lengthspring = {};  // default: the length at qpos_spring
  std::optional<Range> range = {}, actuatorfrcrange = {};
};

struct EqualitySpec {
  int joint1 = 0, joint2 = -1;
  std::array<double, 5> coefficients{0, 1, 0, 0, 0};
  bool active = true;
};

/// The same between the lengths of fixed tendons, less those at qpos0.
struct TendonEqualitySpec {
  int tendon1 = 0, tendon2 = -1;
  std::array<double, 5> coefficients{0, 1, 0, 0, 0};
  bool active = true;
};

/// A point of body 1 held to one of body 2, each in its body's frame.
struct ConnectSpec {
  int body1 = 0, body2 = 0;
  Triple anchor1{}, anchor2{};
  bool active = true;
};

/// A frame of body 1 held to one at `anchor` of body 2, parallel to it.
struct WeldSpec {
  int body1 = 0, body2 = 0;
  Triple anchor{};  // on body 2
  Triple pos{};     // in body 1's frame
  Quadruple quat{1, 0, 0, 0};
  double torquescale = 1;  // m
  bool active = true;
};

struct ActuatorSpec {
  std::string name = {};
  int joint = -1, tendon = -1;  // exactly one of them
  std::array<double, 6> gear{1, 0, 0, 0, 0, 0};
  double gain = 1;  // force = gain ctrl + bias . (1, length, velocity)
  Triple bias{};
  std::optional<Range> ctrlrange = {}, forcerange = {};
};

struct PairSpec {
  int geom1 = 0, geom2 = 0;
  double friction = 1;
  int condim = 3;
};
struct ExcludeSpec { int body1 = 0, body2 = 0; };
struct KeyframeSpec {
  std::string name = {};
  Reals qpos = {}, qvel = {}, ctrl = {};
};  // empty: qpos0, zeros, zeros

struct ModelOptions {
  double timestep = 0.002;
  Triple gravity{0, 0, -9.81};
  int disableflags = 0;  // DisableFlag
};

class ModelBuilder {
 public:
  explicit ModelBuilder(ModelOptions options = {});

  int add_body(const BodySpec& spec);
  int add_joint(const JointSpec& spec);
  int add_geom(const GeomSpec& spec);
  int add_mesh(const MeshSpec& spec);
  int add_site(const SiteSpec& spec);
  int add_tendon(const TendonSpec& spec);
  int add_equality(const EqualitySpec& spec);
  int add_equality(const TendonEqualitySpec& spec);
  int add_connect(const ConnectSpec& spec);
  int add_weld(const WeldSpec& spec);
  int add_actuator(const ActuatorSpec& spec);
  int add_pair(const PairSpec& spec);
  int add_exclude(const ExcludeSpec& spec);
  int add_keyframe(const KeyframeSpec& spec);

  /// The validated model; the builder can go on and build a larger one.
  Model build() const;

 private:
  int add_equality(Equality type, int count, const char* what, int obj1, int obj2, const Reals& data, bool active);

  Model model_;                             // everything but what build() derives
  std::vector<KeyframeSpec> keyframes_;     // their lengths are known in build()
  std::vector<bool> default_lengthspring_;  // (ntendon)
};

}  // namespace stiction
