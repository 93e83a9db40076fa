// _core.Model: the arrays of a Model as read-only NumPy views, and a Model from a dictionary of arrays.
//
// Held by std::shared_ptr<Model>, reachable from Python as const only; a view keeps its model alive.
// Errors: ValueError naming the field (std::invalid_argument), TypeError for what is no array of numbers.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>

#include "host/model/fields.h"

namespace py = pybind11;
using stiction::Model;
using stiction::Names;

namespace {

std::string shape_text(const py::array& array) { return py::str(array.attr("shape")).cast<std::string>(); }

std::string expected_text(int rows, int cols) {
  return "(" + std::to_string(rows) + (cols == 1 ? ",)" : ", " + std::to_string(cols) + ")");
}

/// arrays[name] as a C-ordered array of T; an absent one is empty.
template <class T>
py::array_t<T> take(const py::dict& arrays, const char* name) {
  if (!arrays.contains(name)) return py::array_t<T>(0);
  constexpr int kind = py::array::c_style | py::array::forcecast;
  auto raw = py::array::ensure(arrays[name]);
  const char type = raw ? raw.dtype().kind() : 'O';
  const bool integers = std::is_same_v<T, int>;
  if (std::string(integers ? "biu" : "biuf").find(type) == std::string::npos && !(raw && raw.size() == 0)) {
    throw py::type_error(std::string(name) + " is no array of " + (integers ? "integers" : "numbers"));
  }
  return py::array_t<T, kind>(raw);
}

template <class T>
void fill(const py::dict& arrays, const char* name, std::vector<T>& field, int rows, int cols) {
  const py::array_t<T> array = take<T>(arrays, name);
  const py::ssize_t expected = py::ssize_t{rows} * cols;
  const bool flat = array.ndim() == 1 && cols == 1, deep = array.ndim() == 2 && array.shape(1) == cols;
  if (array.size() != expected || (expected > 0 && !flat && !deep)) {
    const std::string got = arrays.contains(name) ? "has shape " + shape_text(array) : "is missing";
    throw std::invalid_argument(std::string(name) + " " + got + ", expected " + expected_text(rows, cols));
  }
  field.assign(array.data(), array.data() + array.size());
}

void reject_unknown(const Model& m, const py::dict& arrays) {
  std::set<std::string> known{"timestep", "gravity", "disableflags"};
  visit_sizes(m, [&](const char* name, int) { known.insert(name); });
  visit_fields(m, [&](const char* name, const auto&, int, int) { known.insert(name); });
  visit_names(m, [&](const char* name, const Names&, int) { known.insert(name); });
  for (const auto& item : arrays) {
    const auto key = item.first.cast<std::string>();
    if (!known.count(key)) throw std::invalid_argument("'" + key + "' is no field of a model");
  }
}

std::shared_ptr<Model> from_arrays(const py::dict& arrays) {
  auto model = std::make_shared<Model>();
  Model& m = *model;
  reject_unknown(m, arrays);
  visit_sizes(m, [&](const char* name, int& count) {
    if (!arrays.contains(name)) throw std::invalid_argument(std::string(name) + " is missing, expected a count");
    count = arrays[name].cast<int>();
    if (count < 0) throw std::invalid_argument(std::string(name) + " is " + std::to_string(count) + ", expected >= 0");
  });
  if (arrays.contains("timestep")) m.timestep = arrays["timestep"].cast<double>();
  if (arrays.contains("disableflags")) m.disableflags = arrays["disableflags"].cast<int>();
  if (arrays.contains("gravity")) fill(arrays, "gravity", m.gravity, 3, 1);
  // The shapes of the mesh arrays follow from these two.
  fill(arrays, "mesh_vertnum", m.mesh_vertnum, m.nmesh, 1);
  fill(arrays, "mesh_edgeadr", m.mesh_edgeadr, m.nmesh > 0 ? stiction::detail::total_mesh_vertices(m) + 1 : 0, 1);
  visit_fields(m, [&](const char* name, auto& field, int rows, int cols) { fill(arrays, name, field, rows, cols); });
  visit_names(m, [&](const char* name, Names& names, int count) {
    names = arrays.contains(name) ? arrays[name].cast<Names>() : Names(count);
  });
  validate(m);
  return model;
}

template <class T>
py::array view(const std::vector<T>& field, int rows, int cols, const py::object& owner) {
  std::vector<py::ssize_t> shape{rows};
  if (cols != 1) shape.push_back(cols);
  py::array array(py::dtype::of<T>(), shape, field.data(), owner);
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

/// Key fields have cols == nq, which may be 1: they stay two-dimensional.
bool is_key_field(const std::string& name) { return name.rfind("key_", 0) == 0; }

template <class T>
py::object view_of(const char* name, const std::vector<T>& field, int rows, int cols, const py::object& owner) {
  const py::array array = view(field, rows, cols, owner);
  return is_key_field(name) && cols == 1 ? array.attr("reshape")(rows, 1) : py::object(array);
}

py::dict to_arrays(const py::object& self) {
  const Model& m = self.cast<const Model&>();
  py::dict out;
  visit_sizes(m, [&](const char* name, int count) { out[name] = count; });
  out["timestep"] = m.timestep;
  out["disableflags"] = m.disableflags;
  out["gravity"] = view(m.gravity, 3, 1, self);
  visit_fields(m, [&](const char* name, const auto& field, int rows, int cols) {
    out[name] = view_of(name, field, rows, cols, self);
  });
  visit_names(m, [&](const char* name, const Names& names, int) { out[name] = names; });
  return out;
}

}  // namespace

void bind_model(py::module_& module) {
  py::class_<Model, std::shared_ptr<Model>> cls(module, "Model",
                                                "What is simulated: immutable arrays, MuJoCo's names.");
  cls.def_static("from_arrays", &from_arrays, py::arg("arrays"), "A validated model from a dictionary of its arrays.");
  cls.def("to_arrays", &to_arrays, "Every field by name; the arrays are read-only views.");
  cls.def_readonly("timestep", &Model::timestep).def_readonly("disableflags", &Model::disableflags);
  cls.def_property_readonly("gravity",
                            [](const py::object& self) { return view(self.cast<const Model&>().gravity, 3, 1, self); });
  const Model shapes;
  visit_sizes(shapes, [&](const char* name, int) {
    cls.def_property_readonly(name, [key = std::string(name)](const Model& m) {
      int found = 0;
      visit_sizes(m, [&](const char* other, int count) { found = key == other ? count : found; });
      return found;
    });
  });
  visit_fields(shapes, [&](const char* name, const auto&, int, int) {
    cls.def_property_readonly(name, [key = std::string(name)](const py::object& self) {
      py::object found = py::none();
      visit_fields(self.cast<const Model&>(), [&](const char* other, const auto& field, int rows, int cols) {
        if (key == other) found = view_of(other, field, rows, cols, self);
      });
      return found;
    });
  });
  visit_names(shapes, [&](const char* name, const Names&, int) {
    cls.def_property_readonly(name, [key = std::string(name)](const Model& m) {
      Names found;
      visit_names(m, [&](const char* other, const Names& names, int) { found = key == other ? names : found; });
      return found;
    });
  });
  module.def(
      "validate", [](std::shared_ptr<const Model> m) { validate(*m); }, py::arg("model"),
      "Raises ValueError naming the first field that is not as a model's must be.");
}
