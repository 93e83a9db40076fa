// A task's parameters by name: weights, ranges and switches that its `parameters(self, f)` lists as f(name, member).
//
// Values are 1 number (double), low and high (Interval), or 0 or 1 (bool). Errors: std::invalid_argument naming the parameter,
// what was got and what was expected; for an unknown name those there are.
#pragma once
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "envs/core/task.h"

namespace stiction {

struct TaskParameter {
  std::string name;
  std::vector<double> values;
  bool is_switch = false;
};

namespace detail {

inline void assign_parameter(double& to, const std::vector<double>& v, const std::string& what) {
  if (v.size() != 1) throw std::invalid_argument(what + " has " + std::to_string(v.size()) + " values, expected one");
  to = v[0];
}
inline void assign_parameter(Interval& to, const std::vector<double>& v, const std::string& what) {
  if (v.size() != 2)
    throw std::invalid_argument(what + " has " + std::to_string(v.size()) + " values, expected (low, high)");
  if (v[0] > v[1])
    throw std::invalid_argument(what + " is (" + std::to_string(v[0]) + ", " + std::to_string(v[1]) +
                                "), expected low <= high");
  to = {v[0], v[1]};
}
inline void assign_parameter(bool& to, const std::vector<double>& v, const std::string& what) {
  if (v.size() != 1 || (v[0] != 0 && v[0] != 1))
    throw std::invalid_argument(what + " is a switch, expected one value: true or false");
  to = v[0] != 0;
}

inline TaskParameter parameter(const char* name, double value) { return {name, {value}}; }
inline TaskParameter parameter(const char* name, const Interval& r) { return {name, {r.low, r.high}}; }
inline TaskParameter parameter(const char* name, bool value) { return {name, {value ? 1.0 : 0.0}, true}; }

}  // namespace detail

template <class Task>
std::vector<TaskParameter> parameters_of(const Task& task) {
  std::vector<TaskParameter> all;
  Task::parameters(task, [&](const char* name, const auto& value) { all.push_back(detail::parameter(name, value)); });
  return all;
}

/// `label`: the task's name, for messages.
template <class Task>
void set_parameter(Task& task, const std::string& label, const std::string& name, const std::vector<double>& values) {
  const std::string what = "parameter '" + name + "' of task '" + label + "'";
  for (double v : values)
    if (std::isnan(v)) throw std::invalid_argument(what + " is not a number");
  bool found = false;
  std::string there;
  Task::parameters(task, [&](const char* known, auto& member) {
    if (name == known) detail::assign_parameter(member, values, what), found = true;
    there += (there.empty() ? "'" : ", '") + std::string(known) + "'";
  });
  if (!found) throw std::invalid_argument("task '" + label + "' has no parameter '" + name + "'; there are: " + there);
}

}  // namespace stiction
