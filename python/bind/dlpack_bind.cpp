// _core.dlpack_capsule: a NumPy array's memory as a DLPack capsule of a stated device, for arrays in memory that a GPU reads too.
//
// The structures are those of DLPack 1.x (dmlc/dlpack, dlpack.h). The capsule keeps the array alive; strides are in elements.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace py = pybind11;

namespace {

struct DlDevice { int32_t type, id; };
struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor*);
};
struct DlVersion { uint32_t major, minor; };
struct DlManagedTensorVersioned {
  DlVersion version;
  void* context;
  void (*deleter)(DlManagedTensorVersioned*);
  uint64_t flags;
  DlTensor tensor;
};
constexpr uint64_t kReadOnly = 1;

/// What a capsule keeps: the array, and room for its shape and strides.
template <class Managed>
struct Context {
  Managed managed;
  py::object array;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
void release(Managed* managed) {
  if (!Py_IsInitialized()) return;  // the interpreter is gone, and with it the array
  py::gil_scoped_acquire gil;
  delete static_cast<Context<Managed>*>(managed->context);
}

DlType type_of(const py::array& array) {
  const char kind = array.dtype().kind();
  const auto bits = static_cast<uint8_t>(8 * array.itemsize());
  if (kind == 'i') return {0, bits, 1};
  if (kind == 'u') return {1, bits, 1};
  if (kind == 'f') return {2, bits, 1};
  if (kind == 'b') return {6, bits, 1};
  throw py::buffer_error(std::string("DLPack has no type for '") + kind + "'");
}

template <class Managed>
py::object capsule(const py::array& array, int device_type, int device_id, const char* name) {
  auto context = std::make_unique<Context<Managed>>();
  context->array = array;
  for (py::ssize_t i = 0; i < array.ndim(); ++i) {
    context->shape.push_back(array.shape(i));
    context->strides.push_back(array.strides(i) / array.itemsize());
  }
  Managed& managed = context->managed;
  managed.tensor = {array.size() ? const_cast<void*>(array.data()) : nullptr,
                    {device_type, device_id},
                    static_cast<int32_t>(array.ndim()),
                    type_of(array),
                    context->shape.data(),
                    context->strides.data(),
                    0};
  managed.context = context.get(), managed.deleter = &release<Managed>;
  if constexpr (std::is_same_v<Managed, DlManagedTensorVersioned>) {
    managed.version = {1, 0};
    managed.flags = array.writeable() ? 0 : kReadOnly;
  }
  PyObject* made = PyCapsule_New(&managed, name, [](PyObject* self) {
    // A consumer renames the capsule and calls the deleter itself.
    constexpr const char* kName = std::is_same_v<Managed, DlManagedTensor> ? "dltensor" : "dltensor_versioned";
    if (!PyCapsule_IsValid(self, kName)) return;
    auto* tensor = static_cast<Managed*>(PyCapsule_GetPointer(self, kName));
    if (tensor->deleter) tensor->deleter(tensor);
  });
  if (made == nullptr) throw py::error_already_set();
  context.release();
  return py::reinterpret_steal<py::object>(made);
}

}  // namespace

void bind_dlpack(py::module_& m) {
  m.def(
      "dlpack_capsule",
      [](const py::array& array, int device_type, int device_id, bool versioned) {
        if (versioned) return capsule<DlManagedTensorVersioned>(array, device_type, device_id, "dltensor_versioned");
        return capsule<DlManagedTensor>(array, device_type, device_id, "dltensor");
      },
      py::arg("array"), py::arg("device_type"), py::arg("device_id"), py::arg("versioned"),
      "The array's memory as a DLPack capsule; `versioned`: DLManagedTensorVersioned.");
}
