// stiction._core: the compiled part of the package. Each bind_* lives in its own file beside this one.
#include <pybind11/pybind11.h>

namespace py = pybind11;

void bind_model(py::module_& m);
void bind_dlpack(py::module_& m);
#if __has_include("host/world/world.h")
void bind_world(py::module_& m);
void bind_solvers(py::module_& m);
#endif
#if __has_include("envs/core/batch_env.h")
void bind_envs(py::module_& m);
#endif

PYBIND11_MODULE(_core, m) {
  m.doc() = "stiction's compiled core: the model and, where built, the batched worlds.";
  bind_model(m);
  bind_dlpack(m);
#if __has_include("host/world/world.h")
  bind_world(m);
  bind_solvers(m);
#endif
#if __has_include("envs/core/batch_env.h")
  bind_envs(m);
#endif
}
