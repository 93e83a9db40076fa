// _core.BatchEnv: a task on every environment of a _core.World; each call returns fresh arrays.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "envs/core/batch_env.h"
#include "python/bind/arrays.h"

namespace py = pybind11;
using namespace stiction;

namespace {

using Bytes = py::array_t<uint8_t, py::array::c_style>;

py::dtype real(const BatchEnv& env) { return env.float64() ? py::dtype::of<double>() : py::dtype::of<float>(); }

py::array copied(const BatchEnv& env, const void* data, std::vector<py::ssize_t> shape) {
  return py::array(real(env), std::move(shape), data);
}

py::array_t<bool> flags(std::span<const uint8_t> set) {
  py::array_t<bool> copy(static_cast<py::ssize_t>(set.size()));
  std::copy(set.begin(), set.end(), copy.mutable_data());
  return copy;
}

struct Fresh {
  py::array observations, rewards, reports;
  py::array_t<bool> terminated, truncated;
  py::array_t<int> status;
  EnvOutputs out;

  explicit Fresh(const BatchEnv& env)
      : observations(real(env), std::vector<py::ssize_t>{env.num_envs(), env.observations()}),
        rewards(real(env), std::vector<py::ssize_t>{env.num_envs()}),
        reports(real(env),
                std::vector<py::ssize_t>{static_cast<py::ssize_t>(env.report_names().size()), env.num_envs()}),
        terminated(env.num_envs()),
        truncated(env.num_envs()),
        status(env.num_envs()) {
    out = {observations.mutable_data(),
           rewards.mutable_data(),
           reinterpret_cast<uint8_t*>(terminated.mutable_data()),
           reinterpret_cast<uint8_t*>(truncated.mutable_data()),
           reports.mutable_data(),
           status.mutable_data()};
  }
};

void check_length(const char* what, py::ssize_t got, int expected) {
  if (got != expected)
    throw std::invalid_argument(std::string(what) + " has " + std::to_string(got) + " entries, expected " +
                                std::to_string(expected));
}

AutoresetMode mode_of(const std::string& name) {
  if (name == "NextStep") return AutoresetMode::kNextStep;
  if (name == "SameStep") return AutoresetMode::kSameStep;
  if (name == "Disabled") return AutoresetMode::kDisabled;
  throw std::invalid_argument("autoreset_mode is '" + name + "', expected 'NextStep', 'SameStep' or 'Disabled'");
}

using Seeds = std::optional<py::array_t<uint64_t, py::array::c_style>>;
using Chosen = std::optional<Bytes>;
void check_lengths(const BatchEnv& env, const Seeds& seeds, const Chosen& seeded, const Chosen& mask) {
  if (seeds) check_length("seeds", seeds->size(), env.num_envs());
  if (seeded) check_length("seeded", seeded->size(), env.num_envs());
  if (mask) check_length("mask", mask->size(), env.num_envs());
}

py::tuple reset(BatchEnv& env, const Seeds& seeds, const Chosen& seeded, const Chosen& mask) {
  check_lengths(env, seeds, seeded, mask);
  const World::Call call(env.world());
  Fresh fresh(env);
  env.reset(seeds ? seeds->data() : nullptr, seeded ? seeded->data() : nullptr, mask ? mask->data() : nullptr,
            env.on_device() ? env.outputs_buffer() : fresh.out);
  if (env.on_device()) env.read_outputs(fresh.out);
  return py::make_tuple(fresh.observations, fresh.reports, fresh.status);
}

/// dtype, shape and order are the caller's affair; see VectorEnv.step.
py::tuple step(BatchEnv& env, const py::array& actions) {
  if (!actions.dtype().is(real(env)) || !(actions.flags() & py::array::c_style) || actions.ndim() != 2 ||
      actions.shape(0) != env.num_envs() || actions.shape(1) != env.actions())
    throw std::invalid_argument("actions must be a C-contiguous array (" + std::to_string(env.num_envs()) + ", " +
                                std::to_string(env.actions()) + ") of the environment's dtype");
  const World::Call call(env.world());
  Fresh fresh(env);
  const void* data = actions.data();
  {
    py::gil_scoped_release release;
    if (env.on_device()) {
      env.send_actions(data);
      env.step(env.actions_buffer(), env.outputs_buffer());
      env.read_outputs(fresh.out);
    } else {
      env.step(data, fresh.out);
    }
  }
  return py::make_tuple(fresh.observations, fresh.rewards, fresh.terminated, fresh.truncated, fresh.reports,
                        fresh.status);
}

/// Rows of others have no meaning.
py::array begun_observations(BatchEnv& env) {
  const World::Call call(env.world());
  Fresh fresh(env);
  env.show_begun(env.on_device() ? env.outputs_buffer() : fresh.out);
  if (env.on_device()) env.read_outputs(fresh.out);
  return fresh.observations;
}

/// The batch's own memory, for those who read results where they are computed.
py::dict buffers(const py::object& self) {
  py::dict all;
  for (const auto& [name, a] : self.cast<BatchEnv&>().buffers()) all[name.c_str()] = array_of(self, a);
  return all;
}

py::dict get_state(BatchEnv& env) {
  const World::Call call(env.world());
  py::dict all;
  for (const auto& [name, a] : env.state()) all[name.c_str()] = array_of(py::none(), a).attr("copy")();
  return all;
}

void set_state(BatchEnv& env, const py::dict& given) {
  const World::Call call(env.world());
  for (const auto& [name, a] : env.state()) {
    py::array to = array_of(py::none(), a);
    to[py::ellipsis()] = given[name.c_str()];
  }
  env.send_state();
}

/// A dictionary for each number, by the fields of Signal.
py::list signals(const std::vector<Signal>& from) {
  py::list all;
  for (const Signal& s : from)
    all.append(py::dict(py::arg("name") = s.name, py::arg("unit") = s.unit, py::arg("scale") = s.scale,
                        py::arg("offset") = s.offset, py::arg("low") = s.low, py::arg("high") = s.high,
                        py::arg("scale_below") = s.scale_below, py::arg("note") = s.note));
  return all;
}

/// {name: number, (low, high) or bool}
py::dict parameters(const BatchEnv& env) {
  py::dict all;
  for (const TaskParameter& p : env.parameters()) {
    if (p.is_switch) all[p.name.c_str()] = p.values[0] != 0;
    else if (p.values.size() == 1) all[p.name.c_str()] = p.values[0];
    else all[p.name.c_str()] = py::make_tuple(p.values[0], p.values[1]);
  }
  return all;
}

}  // namespace

void bind_envs(py::module_& m) {
  m.def("task_names", &task_names, "Tasks that BatchEnv knows.");
  py::class_<BatchEnv>(m, "BatchEnv")
      .def(py::init([](const std::string& task, World& world, const std::string& autoreset_mode, int max_episode_steps,
                       const py::dict& names) {
             BatchEnvOptions options{mode_of(autoreset_mode), max_episode_steps, {}};
             for (const auto& [role, list] : names)
               options.names.emplace_back(role.cast<std::string>(), list.cast<std::vector<std::string>>());
             return make_batch_env(task, world, options);
           }),
           py::arg("task"), py::arg("world"), py::kw_only(), py::arg("autoreset_mode"), py::arg("max_episode_steps"),
           py::arg("names") = py::dict(), py::keep_alive<1, 3>())
      .def("reset", &reset, py::arg("seeds"), py::arg("seeded"), py::arg("mask"))
      .def("step", &step, py::arg("actions"))
      .def("begun_observations", &begun_observations,
           "Of who has begun an episode in the last call, anew: something has been changed since.")
      .def("buffers", &buffers,
           "Its own memory by name, where the backend has it: what `advance` and `begin` read and write.")
      .def("get_state", &get_state,
           "Copies of all that a later step depends on besides the simulation's state, by name.")
      .def("set_state", &set_state, py::arg("state"))
      .def(
          "begin",
          [](BatchEnv& e, const Seeds& seeds, const Chosen& seeded, const Chosen& mask) {
            check_lengths(e, seeds, seeded, mask);
            const World::Call call(e.world());
            e.reset(seeds ? seeds->data() : nullptr, seeded ? seeded->data() : nullptr, mask ? mask->data() : nullptr,
                    e.outputs_buffer());
          },
          py::arg("seeds"), py::arg("seeded"), py::arg("mask"), "reset, into the buffers.")
      .def(
          "advance",
          [](BatchEnv& e) {
            const World::Call call(e.world());
            e.step(e.actions_buffer(), e.outputs_buffer());
          },
          py::call_guard<py::gil_scoped_release>(), "A step of the buffer's actions; does not wait for a device.")
      .def(
          "show_begun",
          [](BatchEnv& e) {
            const World::Call call(e.world());
            e.show_begun(e.outputs_buffer());
          },
          "begun_observations, into the buffers; does not wait for a device.")
      .def("parameters", &parameters)
      .def("observation_signals", [](const BatchEnv& e) { return signals(e.observation_signals()); })
      .def("action_signals", [](const BatchEnv& e) { return signals(e.action_signals()); })
      .def("set_parameter", &BatchEnv::set_parameter, py::arg("name"), py::arg("values"))
      .def_property_readonly("any_ended", &BatchEnv::any_ended)
      .def("ended", [](const BatchEnv& e) { return flags(e.ended()); })
      .def("began", [](const BatchEnv& e) { return flags(e.began()); })
      .def("final_observations",
           [](const BatchEnv& e) { return copied(e, e.final_observations(), {e.num_envs(), e.observations()}); })
      .def("final_reports",
           [](const BatchEnv& e) {
             return copied(e, e.final_reports(), {static_cast<py::ssize_t>(e.report_names().size()), e.num_envs()});
           })
      .def("final_status",
           [](const BatchEnv& e) {
             const std::span<const int> status = e.final_status();
             return py::array_t<int>(static_cast<py::ssize_t>(status.size()), status.data());
           })
      .def_property_readonly("elapsed",
                             [](py::object self) {
                               const std::span<int> elapsed = self.cast<BatchEnv&>().elapsed();
                               return py::array_t<int>(static_cast<py::ssize_t>(elapsed.size()), elapsed.data(), self);
                             })
      .def_property_readonly("observations", &BatchEnv::observations)
      .def_property_readonly("actions", &BatchEnv::actions)
      .def_property_readonly("reset_reports", &BatchEnv::reset_reports)
      .def_property_readonly("report_names", &BatchEnv::report_names)
      .def_property_readonly("substeps", &BatchEnv::substeps)
      .def_property_readonly("max_episode_steps", &BatchEnv::max_episode_steps)
      .def_property_readonly("action_limit", &BatchEnv::action_limit);
}
