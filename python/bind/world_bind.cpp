// _core.World: the batch, its arrays as NumPy views that keep it alive.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <optional>

#include "host/model/compile.h"
#include "host/model/model_shape.h"
#include "host/world/cuda_world.h"
#include "host/world/inverse_dynamics.h"
#include "host/world/world.h"
#include "python/bind/arrays.h"
#include "python/bind/options.h"

namespace py = pybind11;
using namespace stiction;

namespace {

py::dtype dtype_of(DType d) {
  switch (d) {
    case DType::kFloat32: return py::dtype::of<float>();
    case DType::kFloat64: return py::dtype::of<double>();
    case DType::kInt32: return py::dtype::of<int32_t>();
    case DType::kInt64: return py::dtype::of<int64_t>();
    case DType::kBool: return py::dtype::of<bool>();
  }
  throw std::logic_error("dtype");
}

using ByteMask = py::array_t<uint8_t, py::array::c_style>;
const uint8_t* mask_data(const World& w, const std::optional<ByteMask>& mask) {
  if (!mask) return nullptr;
  if (mask->ndim() != 1 || mask->shape(0) != w.num_envs())
    throw std::invalid_argument("the mask has " + std::to_string(mask->size()) + " entries, expected " +
                                std::to_string(w.num_envs()));
  return mask->data();
}

Options<double> step_options_from(const py::dict& d) {
  Options<double> o;
  o.h = 0;
  set_fields(d, "a step", [&](auto visit) { Options<double>::each_field(visit, o); });
  return o;
}

}  // namespace

py::array stiction::array_of(const py::object& owner, const ArrayView& a) {
  const std::vector<py::ssize_t> shape(a.shape.begin(), a.shape.end());
  py::array array(dtype_of(a.dtype), shape, {}, a.data, owner);  // an owner, None too: a view
  if (!a.writable) array.attr("setflags")(py::arg("write") = false);
  return array;
}

void bind_world(py::module_& m) {
  m.def("available_isas", &available_isas,
        "Instruction sets of this processor that the CPU backend can use, best first.");
  m.def(
      "model_shape",
      [](const Model& model, bool springs_vary, int max_contacts) {
        return model_shape(*compile(model, room_of<TileCapacity>(), max_contacts), springs_vary);
      },
      py::arg("model"), py::arg("springs_vary"), py::arg("max_contacts"),
      "The header that a model's own kernels are compiled for, see model/shape.h.");
  m.def("cuda_architecture", &cuda_architecture, py::arg("device"),
        "The compute capability of a CUDA device, 90 for 9.0; of the thread's own, -1.");
  py::class_<World>(m, "World")
      .def(py::init([](std::shared_ptr<Model> model, int num_envs, bool float64, const std::string& isa,
                       const std::string& solver, const py::dict& solver_options, int num_threads, int max_contacts,
                       const py::dict& options, const std::vector<std::string>& per_env, std::optional<int> cuda,
                       const py::bytes& kernels) {
             WorldOptions o;
             o.num_envs = num_envs, o.float64 = float64, o.isa = isa, o.num_threads = num_threads;
             o.max_contacts = max_contacts, o.per_env = per_env;
             o.step = step_options_from(options), o.solver = solver_options_from(solver, solver_options, float64);
             if (cuda) o.cuda = true, o.device = *cuda;
             o.kernels = kernels;
             return World::create(std::move(model), o);
           }),
           py::arg("model"), py::kw_only(), py::arg("num_envs"), py::arg("float64"), py::arg("isa"), py::arg("solver"),
           py::arg("solver_options") = py::dict(), py::arg("num_threads"), py::arg("max_contacts"), py::arg("options"),
           py::arg("per_env") = std::vector<std::string>{}, py::arg("cuda") = py::none(),
           py::arg("kernels") = py::bytes(),
           "cuda: the ordinal of a device, or -1 for the thread's own; None is the CPU. kernels: the image of a "
           "model's own.")
      .def(
          "array",
          [](py::object self, const std::string& name) {
            auto& w = self.cast<World&>();
            const World::Call call(w);
            return array_of(self, w.host_array(name));
          },
          py::arg("name"), "The host's view of an array, up to date after every call that waits.")
      .def(
          "device_array",
          [](py::object self, const std::string& name) {
            auto& w = self.cast<World&>();
            const World::Call call(w);
            return array_of(self, w.array(name));
          },
          py::arg("name"), "The same where the backend has it: on a GPU an address that the host cannot touch.")
      .def(
          "read_array",
          [](World& w, const std::string& name) {
            const World::Call call(w);
            const ArrayView a = w.array(name);
            py::array copy(dtype_of(a.dtype), std::vector<py::ssize_t>(a.shape.begin(), a.shape.end()));
            w.read_array(name, copy.mutable_data());
            return copy;
          },
          py::arg("name"), "A copy of an array as it is now.")
      .def(
          "write_array",
          [](World& w, const std::string& name, const py::array& values) {
            const World::Call call(w);
            const ArrayView a = w.array(name);
            if (!values.dtype().is(dtype_of(a.dtype)) || !(values.flags() & py::array::c_style) ||
                !std::equal(a.shape.begin(), a.shape.end(), values.shape(), values.shape() + values.ndim()))
              throw std::invalid_argument(name + " is written by a C-contiguous array of its own shape and dtype");
            w.write_array(name, values.data());
          },
          py::arg("name"), py::arg("values"))
      .def("array_names", &World::array_names)
      .def(
          "step",
          [](World& w, int n, bool wait) {
            const World::Call call(w);
            w.step(n);
            if (wait) w.wait();
          },
          py::arg("n"), py::arg("wait") = true, py::call_guard<py::gil_scoped_release>())
      .def(
          "forward",
          [](World& w, std::optional<ByteMask> mask) {
            const World::Call call(w);
            const uint8_t* wanted = mask_data(w, mask);
            const py::gil_scoped_release release;
            w.forward(wanted);
            w.wait();
          },
          py::arg("mask") = py::none())
      .def(
          "update_poses",
          [](World& w) {
            const World::Call call(w);
            w.update_poses();
            w.wait();
          },
          py::call_guard<py::gil_scoped_release>())
      .def(
          "wait",
          [](World& w) {
            const World::Call call(w);
            w.wait();
          },
          py::call_guard<py::gil_scoped_release>())
      .def(
          "release",
          [](World& w) {
            const World::Call call(w);
            w.release();
          },
          "Gives arrays to the device, for work that others queue.")
      .def(
          "set_stream", [](World& w, uintptr_t stream) { w.set_stream(reinterpret_cast<void*>(stream)); },
          py::arg("stream"), "The CUDA stream, by its address, that later work is queued on; 0 is the default.")
      .def(
          "reset",
          [](World& w, std::optional<ByteMask> mask, int keyframe) {
            const World::Call call(w);
            w.reset(mask_data(w, mask), keyframe);
          },
          py::arg("mask") = py::none(), py::arg("keyframe") = -1)
      .def(
          "clear_status",
          [](World& w, std::optional<ByteMask> mask) {
            const World::Call call(w);
            w.clear_status(mask_data(w, mask));
          },
          py::arg("mask") = py::none())
      .def("time_step",
           [](World& w) {
             const World::Call call(w);
             py::dict ms;
             for (const auto& [name, time] : w.time_step()) ms[name.c_str()] = time;
             return ms;
           })
      .def("contact_problem",
           [](World& w, int env) {
             const World::Call call(w);
             const DenseProblem<double> d = w.contact_problem(env);
             auto copy = [](const double* data, std::vector<py::ssize_t> shape) {
               py::array_t<double> a(shape);
               std::copy(data, data + a.size(), a.mutable_data());
               return a;
             };
             const py::ssize_t n = d.nv, c = d.contacts, r = d.rows;
             py::dict out;
             out["A"] = copy(d.A, {n, n}), out["b"] = copy(d.b, {n}), out["J"] = copy(d.J, {3 * c, n});
             out["e"] = copy(d.e, {3 * c}), out["R"] = copy(d.R, {3 * c}), out["mu"] = copy(d.mu, {c});
             out["impulse"] = copy(d.impulse, {3 * c}), out["J_row"] = copy(d.J_row, {r, n});
             out["e_row"] = copy(d.e_row, {r}), out["R_row"] = copy(d.R_row, {r}), out["lower"] = copy(d.lower, {r});
             out["upper"] = copy(d.upper, {r}), out["row_impulse"] = copy(d.row_impulse, {r});
             if (d.spins > 0)
               out["J_spin"] = copy(d.J_spin, {3 * c, n}), out["spin_impulse"] = copy(d.spin_impulse, {3 * c});
             return out;
           })
      .def("inverse_dynamics",
           [](World& w, int env, const py::array_t<double, py::array::c_style | py::array::forcecast>& qacc, bool warm,
              const std::optional<std::vector<double>>& guess) {
             const World::Call call(w);
             if (qacc.size() != w.model().nv) throw std::invalid_argument("qacc has not nv entries");
             const InverseDynamics found = inverse_dynamics(w, env, qacc.data(), {warm, guess});
             auto copy = [](const std::vector<double>& x, std::vector<py::ssize_t> shape) {
               py::array_t<double> a(shape);
               std::copy(x.begin(), x.end(), a.mutable_data());
               return a;
             };
             const auto size = [](const std::vector<double>& x) { return static_cast<py::ssize_t>(x.size()); };
             return py::make_tuple(copy(found.qfrc, {size(found.qfrc)}),
                                   copy(found.impulse, {size(found.impulse) / 3, 3}),
                                   copy(found.row_impulse, {size(found.row_impulse)}),
                                   copy(found.spin_impulse, {size(found.spin_impulse) / 3, 3}), found.residual);
           })
      .def("previous_states",
           [](World& w) {
             const World::Call call(w);
             const auto n = static_cast<py::ssize_t>(w.num_envs());
             py::array_t<double> qpos({n, static_cast<py::ssize_t>(w.model().nq)});
             py::array_t<double> qvel({n, static_cast<py::ssize_t>(w.model().nv)}), owed(qvel.request().shape);
             w.previous_states(qpos.mutable_data(), qvel.mutable_data(), owed.mutable_data());
             return py::make_tuple(qpos, qvel, owed);
           })
      .def("get_records",
           [](World& w) {
             const World::Call call(w);
             py::array_t<double> rows(
                 {static_cast<py::ssize_t>(w.num_envs()), static_cast<py::ssize_t>(w.record_size())});
             w.get_records(rows.mutable_data());
             return rows;
           })
      .def("set_records",
           [](World& w, py::array_t<double, py::array::c_style | py::array::forcecast> rows) {
             if (rows.ndim() != 2 || rows.shape(0) != w.num_envs() || rows.shape(1) != w.record_size())
               throw std::invalid_argument("records have the wrong shape");
             const World::Call call(w);
             w.set_records(rows.data());
           })
      .def_property_readonly(
          "device", [](const World& w) { return w.options().cuda ? w.options().device : -1; },
          "The ordinal of the CUDA device; -1 on the CPU.")
      .def_property_readonly("memory",
                             [](const World& w) {
                               py::dict bytes;
                               for (const auto& [name, size] : w.memory()) bytes[name.c_str()] = size;
                               return bytes;
                             })
      .def_property_readonly("isa", &World::isa)
      .def_property_readonly("pack_width", &World::pack_width)
      .def_property_readonly("num_threads", &World::num_threads)
      .def_property_readonly("max_contacts", &World::max_contacts)
      .def_property_readonly("timestep", [](const World& w) { return w.options().step.h; });
}
