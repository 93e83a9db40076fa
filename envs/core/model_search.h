// ModelSearch: what a user calls a model's parts, found; what the tasks on any robot share. Each such task lists its roles
// ('feet', 'cube', ...) and says what it is about ("a walking robot"), for messages.
//
// Errors: std::invalid_argument naming the role, the name and what the model has instead.
// Tests: tests/python/test_velocity_env.py, test_manipulation_env.py.
#pragma once
#include "envs/core/batch_env.h"
#include "host/model/model.h"

namespace stiction {

[[noreturn]] void refuse(const std::string& text);
/// 'a', 'b', for messages; elements without a name are left out.
std::string listed(const Names& names);
int index_of_name(const Names& names, const std::string& name);

/// A joint that is moved by one position servo of gear 1.
struct ServoJoint { int joint, control; };
/// In the body's frame, m.
struct BodyPoint {
  int body;
  double at[3];
};
/// A body with a free joint, that can be touched; its first qpos and dof.
struct FreeBody { int body, qpos, dof; };
/// One whose shape is a box of equal sides, `half` of one in m.
struct FreeCube : FreeBody { double half; };

class ModelSearch {
 public:
  /// `about`: "a walking robot". Refuses names for roles that are not in `roles`.
  ModelSearch(const Model& model, const TaskNames& names, const std::string& about, const Names& roles);

  /// What the user named, or null.
  const std::vector<std::string>* given(const std::string& role) const;
  /// The same, of a role that has one entry; null if it was not named.
  const std::string* given_one(const std::string& role) const;
  /// The number of a body, joint, ... (`kind`, of those `there`) that a role names.
  int named(const std::string& role, const std::string& kind, const Names& there, const std::string& name) const;

  /// Refuses a model without a fixed geom that can be touched; `why`: "has nothing to stand on".
  void check_floor(const std::string& why) const;
  /// Refuses more than there is room for.
  void check_room(const std::string& what, int got, int most) const;
  /// qpos of role 'keyframe', else of a keyframe 'home' or 'stand', else qpos0; (nq).
  std::vector<double> pose() const;

  /// Whether a position servo of gear 1 drives a joint of one coordinate: an empty string, or what is wrong with it.
  std::string no_servo(int actuator) const;
  /// The hinges that `role` names, or, if it names none, those that `actuators` drive. Each has one actuator and this is a
  /// position servo of gear 1, whose target is its angle.
  std::vector<ServoJoint> servo_hinges(const std::string& role, const std::vector<int>& actuators) const;

  /// The place of a site, or of a body, that `role` names.
  BodyPoint point(const std::string& role, const std::string& name) const;
  /// So many of the bodies that `role` names, or, if it names none, of the free bodies.
  std::vector<FreeBody> free_bodies(const std::string& role, int wanted) const;
  /// A cube among them.
  FreeCube cube(const FreeBody& of) const;

 protected:
  const Model& model_;

 private:
  FreeBody free_body(int body) const;

  const TaskNames& names_;
  std::string about_;
};

}  // namespace stiction
