#include "envs/core/signals.h"

#include <algorithm>

namespace stiction {
namespace {

std::string named(const Names& names, int index) { return names[index].empty() ? std::to_string(index) : names[index]; }

JointType type_of(const Model& model, int joint) { return static_cast<JointType>(model.jnt_type[joint]); }

}  // namespace

Signal& Signals::add(const std::string& name, const std::string& unit, double scale, double offset) {
  Signal signal{name, unit};
  signal.scale = signal.scale_below = scale, signal.offset = offset;
  return list_.emplace_back(signal);
}
void Signals::add_each(const std::string& term, const std::string& unit, const Names& elements, double scale,
                       const std::string& note) {
  for (const std::string& element : elements) add(term + "/" + element, unit, scale).note = note;
}
void Signals::add_vector(const std::string& term, const std::string& unit, double scale, const std::string& note) {
  add_each(term, unit, {"x", "y", "z"}, scale, note);
}
void Signals::add_quaternion(const std::string& term, const std::string& note) {
  add_each(term, "1", {"w", "x", "y", "z"}, 1, note);
}

std::string Signals::joint(int joint) const { return named(model_.joint_names, joint); }
std::string Signals::body(int body) const { return named(model_.body_names, body); }
std::string Signals::joint_at_qpos(int qpos) const {
  const auto& at = model_.jnt_qposadr;
  return joint(static_cast<int>(std::upper_bound(at.begin(), at.end(), qpos) - at.begin()) - 1);
}
std::string Signals::point(int body, const double* at) const {
  for (int s = 0; s < model_.nsite; ++s)
    if (model_.site_bodyid[s] == body && std::equal(at, at + 3, model_.site_pos.begin() + 3 * s) &&
        !model_.site_names[s].empty())
      return model_.site_names[s];
  return this->body(body);
}

std::string Signals::base(int joint) const {
  int number = 1;
  for (int j = 0; j < joint; ++j) number += type_of(model_, j) == JointType::kFree;
  return number == 1 ? "base" : "base_" + std::to_string(number);
}

std::vector<Signals::Coordinate> Signals::coordinates(bool velocities) const {
  std::vector<Coordinate> all;
  auto add = [&all](const std::string& term, const char* unit, const Names& elements, const char* note = "") {
    for (const std::string& element : elements) all.push_back({term + "/" + element, unit, note});
  };
  for (int j = 0; j < model_.njnt; ++j) {
    const JointType type = type_of(model_, j);
    if (type == JointType::kFree) {
      const std::string name = base(j);
      add(name + (velocities ? "_linear_velocity" : "_position"), velocities ? "m/s" : "m", {"x", "y", "z"},
          "world's axes");
      if (velocities) add(name + "_angular_velocity", "rad/s", {"x", "y", "z"}, "the body's axes");
      else add(name + "_orientation", "1", {"w", "x", "y", "z"});
    } else if (type == JointType::kBall) {
      if (velocities) add("joint_velocity/" + joint(j), "rad/s", {"x", "y", "z"});
      else add("joint_orientation/" + joint(j), "1", {"w", "x", "y", "z"});
    } else {
      const std::string unit = type == JointType::kHinge ? "rad" : "m";
      all.push_back(
          {(velocities ? "joint_velocity/" : "joint_position/") + joint(j), unit + (velocities ? "/s" : ""), ""});
    }
  }
  return all;
}

void Signals::add_positions(int first, int count) {
  const auto all = coordinates(false);
  for (int i = first; i < first + count; ++i) add(all.at(i).name, all.at(i).unit).note = all[i].note;
}
void Signals::add_velocities(int first, int count) {
  const auto all = coordinates(true);
  for (int i = first; i < first + count; ++i) add(all.at(i).name, all.at(i).unit).note = all[i].note;
}
void Signals::add_dofs(const std::string& term, int first, int count) {
  const auto all = coordinates(true);
  for (int i = first; i < first + count; ++i) {
    const std::string& velocity = all.at(i).name;
    const std::string of = velocity.substr(velocity.find('/') + 1);
    const bool base = velocity.find("_velocity") != std::string::npos && velocity.rfind("joint_", 0) != 0;
    add(term + "/" + (base ? velocity.substr(0, velocity.find("_velocity")) + "." : "") + of,
        all.at(i).unit == "m/s" ? "N" : "N m");
  }
}
void Signals::add_bodies(const std::string& term, std::initializer_list<std::pair<const char*, const char*>> elements,
                         const std::string& note) {
  for (int b = 1; b < model_.nbody; ++b)
    for (const auto& [element, unit] : elements) add(term + "/" + body(b) + "." + element, unit).note = note;
}
void Signals::add_controls() {
  for (int a = 0; a < model_.nu; ++a) {
    const int joint = model_.actuator_trnid[a];
    const double* bias = model_.actuator_biasprm.data() + 3 * a;
    if (model_.actuator_trntype[a] != static_cast<int>(Transmission::kJoint) ||
        type_of(model_, joint) < JointType::kSlide || bias[0] != 0 || bias[1] != 0 || bias[2] != 0) {
      add("control/" + named(model_.actuator_names, a), "the actuator's");
      continue;
    }
    const bool slide = type_of(model_, joint) == JointType::kSlide;
    Signal& s = add((slide ? "force/" : "torque/") + this->joint(joint), slide ? "N" : "N m",
                    model_.actuator_gainprm[a] * model_.actuator_gear[6 * a]);
    if (model_.actuator_ctrllimited[a] && !(model_.disableflags & kDisableClampctrl))
      s.low = model_.actuator_ctrlrange[2 * a], s.high = model_.actuator_ctrlrange[2 * a + 1];
  }
}
void Signals::limit(int count, double low, double high) {
  for (auto s = list_.end() - count; s != list_.end(); ++s) s->low = low, s->high = high;
}

}  // namespace stiction
