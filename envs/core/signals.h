// Signals: what each number of an observation or an action is, for those who deploy a policy: names, units, offsets, scales.
//
// A task lists them in `observation_signals` and `action_signals`, beside `observe` and `act`, in the order in which those write and
// read; TaskBatch refuses another count. A name is a term and its element, "joint_velocity/knee", or a term of one number alone.
// What a number means:
//
//   observation   number = scale (quantity - offset), held within [low, high]
//   action        quantity = offset + scale number, the number held within [low, high]; below 0 with scale_below in scale's place
//
// Joints, bodies and sites have the model's names, "3" where it has none; free joints are "base", or "base_2" and so on where the
// model has several. Tests: tests/python/test_signals.py (each quantity moved, and the number that should move did).
#pragma once
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "host/model/model.h"

namespace stiction {

struct Signal {
  std::string name, unit;
  double scale = 1, offset = 0;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  double scale_below = 1;
  std::string note = {};  // what the numbers above do not tell

  std::string term() const { return name.substr(0, name.find('/')); }
};

class Signals {
 public:
  explicit Signals(const Model& model) : model_(model) {}
  const Model& model() const { return model_; }
  const std::vector<Signal>& list() const { return list_; }

  /// The next one. The returned reference is valid until the one after.
  Signal& add(const std::string& name, const std::string& unit, double scale = 1, double offset = 0);
  void add_each(const std::string& term, const std::string& unit, const Names& elements, double scale = 1,
                const std::string& note = "");
  /// "term/x", "term/y", "term/z".
  void add_vector(const std::string& term, const std::string& unit, double scale = 1, const std::string& note = "");
  /// "term/w", "term/x", ...
  void add_quaternion(const std::string& term, const std::string& note = "");

  /// Coordinates of qpos and qvel from `first` on, `count` of them, by their joints.
  void add_positions(int first, int count);
  void add_velocities(int first, int count);
  /// Of each dof, "term/joint".
  void add_dofs(const std::string& term, int first, int count);
  /// Numbers (bodies, elements) of every body but the world, "term/torso.x"; units by element.
  void add_bodies(const std::string& term, std::initializer_list<std::pair<const char*, const char*>> elements,
                  const std::string& note = "");
  /// Actions that are the model's controls.
  void add_controls();
  Signal& last() { return list_.back(); }
  /// The last one's element in another term.
  void move_term(const std::string& term) { last().name = term + last().name.substr(last().name.find('/')); }
  void add_note(const std::string& note) { last().note = note; }
  /// Holds the last `count` within [low, high].
  void limit(int count, double low, double high);

  // ---- names, or numbers where there are none
  std::string joint(int joint) const;
  std::string joint_at_qpos(int qpos) const;
  std::string body(int body) const;
  /// The site that is there, else the body.
  std::string point(int body, const double* at) const;

 private:
  struct Coordinate { std::string name, unit, note; };
  std::vector<Coordinate> coordinates(bool velocities) const;
  std::string base(int joint) const;

  const Model& model_;
  std::vector<Signal> list_;
};

}  // namespace stiction
