#include "host/world/world.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

#include "host/world/cuda_world.h"
#include "host/world/world_options.h"

namespace stiction {

/// More would only take what other processes need: threads of an operating system are few.
constexpr int kMostThreads = 1024;

World::World(std::shared_ptr<const Model> model, const WorldOptions& options)
    : model_(std::move(model)), options_(options) {
  auto reject = [](const std::string& text) { throw std::invalid_argument(text); };
  if (options_.num_envs < 1) reject("num_envs is " + std::to_string(options_.num_envs) + ", expected at least 1");
  if (options_.step.h == 0) options_.step.h = model_->timestep;
  if (!(options_.step.h > 0) || options_.step.h > 1)
    reject("timestep is " + std::to_string(options_.step.h) + " s, expected more than 0 and at most 1");
  if (options_.step.iterations < 0)
    reject("iterations is " + std::to_string(options_.step.iterations) + ", expected >= 0");
  if (options_.num_threads < 0 || options_.num_threads > kMostThreads)
    reject("num_threads is " + std::to_string(options_.num_threads) + ", expected 0 to " +
           std::to_string(kMostThreads));
  if (!options_.step.implicit && (model_->disableflags & kDisableEulerdamp)) options_.step.explicit_damping = 1;
  int threads = options_.num_threads ? options_.num_threads : std::max(1u, std::thread::hardware_concurrency());
  threads_ = std::make_unique<ThreadPool>(threads);

  const Model& m = *model_;
  const int64_t n = options_.num_envs;
  const DType real = options_.float64 ? DType::kFloat64 : DType::kFloat32;
  add("qpos", real, {n, m.nq}, true), add("qvel", real, {n, m.nv}, true), add("ctrl", real, {n, m.nu}, true);
  add("time", DType::kFloat64, {n}, true);
  add("qfrc_applied", real, {n, m.nv}, true), add("xfrc_applied", real, {n, m.nbody, 6}, true);
  add("mocap_pos", real, {n, m.nmocap, 3}, true), add("mocap_quat", real, {n, m.nmocap, 4}, true);
  add("status", DType::kInt32, {n}, false);
  add("xpos", real, {n, m.nbody, 3}, false), add("xquat", real, {n, m.nbody, 4}, false);
  add("body_linvel", real, {n, m.nbody, 3}, false), add("body_angvel", real, {n, m.nbody, 3}, false);
  add("site_xpos", real, {n, m.nsite, 3}, false);
  for (const char* name : kCertificateNames) add(std::string("certificate.") + name, real, {n}, false);
  add_parameters();
}

World::Call::Call(World& world) : world_(world) {
  if (world.busy_.test_and_set())
    throw std::runtime_error("another thread is in a call of this simulation: one at a time, with a lock if need be");
}

namespace {

/// A parameter: its values in the model, its place among the arrays, and the flag that turns off what it is of.
template <class T>
struct Parameter {
  const char* name;
  int columns;  // of an entry
  Reals Model::* values;
  const T* ParameterArrays<T>::* place;
  int disabled_by = 0;  // of DisableFlag
};
template <class T>
constexpr Parameter<T> kParameters[] = {
    {"body_mass", 1, &Model::body_mass, &ParameterArrays<T>::body_mass},
    {"body_inertia", 3, &Model::body_inertia, &ParameterArrays<T>::body_inertia},
    {"geom_friction", 3, &Model::geom_friction, &ParameterArrays<T>::geom_friction},
    {"geom_size", 3, &Model::geom_size, &ParameterArrays<T>::geom_size},
    {"dof_damping", 1, &Model::dof_damping, &ParameterArrays<T>::dof_damping, kDisableDamper},
    {"dof_armature", 1, &Model::dof_armature, &ParameterArrays<T>::dof_armature},
    {"dof_frictionloss", 1, &Model::dof_frictionloss, &ParameterArrays<T>::dof_frictionloss, kDisableFrictionloss},
    {"jnt_stiffness", 1, &Model::jnt_stiffness, &ParameterArrays<T>::jnt_stiffness, kDisableSpring},
    {"jnt_range", 2, &Model::jnt_range, &ParameterArrays<T>::jnt_range},
    {"actuator_gainprm", 1, &Model::actuator_gainprm, &ParameterArrays<T>::actuator_gainprm},
    {"actuator_biasprm", 3, &Model::actuator_biasprm, &ParameterArrays<T>::actuator_biasprm},
    {"body_pos", 3, &Model::body_pos, &ParameterArrays<T>::body_pos},
    {"body_ipos", 3, &Model::body_ipos, &ParameterArrays<T>::body_ipos},
    {"site_pos", 3, &Model::site_pos, &ParameterArrays<T>::site_pos},
    {"gravity", 3, &Model::gravity, &ParameterArrays<T>::gravity, kDisableGravity},
};

}  // namespace

std::vector<std::string> parameter_names() {
  std::vector<std::string> names;
  for (const auto& p : kParameters<float>) names.push_back(p.name);
  return names;
}

void World::add_parameters() {
  const Model& m = *model_;
  for (const std::string& name : options_.per_env) {
    const Parameter<float>* found = nullptr;
    std::string known;
    for (const auto& p : kParameters<float>) {
      if (name == p.name) found = &p;
      known += (known.empty() ? "" : ", ") + std::string(p.name);
    }
    if (found == nullptr)
      throw std::invalid_argument("per_env names '" + name +
                                  "', which cannot differ between environments; these can: " + known);
    const int64_t count = name.rfind("body", 0) == 0       ? m.nbody
                          : name.rfind("geom", 0) == 0     ? m.ngeom
                          : name.rfind("dof", 0) == 0      ? m.nv
                          : name.rfind("jnt", 0) == 0      ? m.njnt
                          : name.rfind("actuator", 0) == 0 ? m.nu
                                                           : m.nsite;
    std::vector<int64_t> shape{num_envs()};
    if (name != "gravity") shape.push_back(count);
    if (found->columns > 1) shape.push_back(found->columns);
    add("params." + name, options_.float64 ? DType::kFloat64 : DType::kFloat32, shape, true);
  }
}

void World::add_contacts(int slots) {
  max_contacts_ = options_.max_contacts ? options_.max_contacts : slots;
  const int64_t n = num_envs(), c = max_contacts_;
  const DType real = options_.float64 ? DType::kFloat64 : DType::kFloat32;
  add("contact.geom", DType::kInt32, {n, c, 2}, false), add("contact.pos", real, {n, c, 3}, false);
  add("contact.frame", real, {n, c, 3, 3}, false), add("contact.dist", real, {n, c}, false);
  add("contact.impulse", real, {n, c, 3}, false), add("contact.couple", real, {n, c, 3}, false);
  add("contact.ahead", real, {n, c, 3}, false);
  add("contact.active", DType::kBool, {n, c}, false);
  add("contact.count", DType::kInt32, {n}, false), add("net_contact_force", real, {n, model_->nbody, 3}, false);
}

void World::make_arrays() {
  for (auto& [name, b] : buffers_) b->memory = allocate(b->bytes());
  for (const std::string& name : options_.per_env)
    for (const Parameter<float>& p : kParameters<float>) {
      if (name != p.name) continue;
      Buffer& b = buffer("params." + name);
      const Reals& values = (*model_).*p.values;
      const auto size = static_cast<int64_t>(values.size());
      void* to = b.memory->mirror();
      for (int64_t e = 0; e < num_envs(); ++e)
        for (int64_t i = 0; i < size; ++i) {
          if (options_.float64) static_cast<double*>(to)[e * size + i] = values[i];
          else static_cast<float*>(to)[e * size + i] = static_cast<float>(values[i]);
        }
      send(*b.memory);
    }
}

int64_t World::Buffer::bytes() const {
  int64_t size = dtype == DType::kBool ? 1 : dtype == DType::kFloat32 || dtype == DType::kInt32 ? 4 : 8;
  for (int64_t s : shape) size *= s;
  return size;
}
int64_t World::array_bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, b] : buffers_) bytes += b->bytes();
  return bytes;
}

std::shared_ptr<Memory> World::allocate(size_t bytes) const {
  return options_.cuda ? std::make_shared<Memory>(bytes, options_.device) : std::make_shared<Memory>(bytes);
}

void* World::keep(const std::shared_ptr<Memory>& memory, bool writable) {
  auto is_it = [&](const auto& kept) { return kept.first == memory; };
  wait();
  if (memory->on_device() && std::none_of(kept_.begin(), kept_.end(), is_it)) {
    fetch({memory.get()});
    kept_.emplace_back(memory, writable);
  }
  return memory->mirror();
}

void World::fetch(std::initializer_list<Memory*> memories) {
  wait();
  for (Memory* memory : memories) {
    auto is_it = [&](const auto& kept) { return kept.first.get() == memory; };
    if (std::none_of(kept_.begin(), kept_.end(), is_it)) memory->download(queue());
  }
  synchronize();
}

void World::wait() {
  if (host_has_) return;
  for (auto& [memory, writable] : kept_) memory->download(queue());
  synchronize();
  host_has_ = true;
}

void World::release() {
  if (!host_has_) return;
  for (auto& [memory, writable] : kept_)
    if (writable) memory->upload(queue());
  host_has_ = false;
}

void World::add(const std::string& name, DType dtype, std::vector<int64_t> shape, bool writable) {
  auto b = std::make_unique<Buffer>();
  b->dtype = dtype, b->shape = std::move(shape), b->writable = writable;
  buffers_.emplace_back(name, std::move(b));
}

World::Buffer& World::buffer(const std::string& name) {
  for (auto& [key, b] : buffers_)
    if (key == name) return *b;
  throw std::invalid_argument("a simulation has no array '" + name + "'");
}

std::vector<std::string> World::array_names() const {
  std::vector<std::string> names;
  for (const auto& [key, b] : buffers_) names.push_back(key);
  return names;
}

ArrayView World::array(const std::string& name) {
  Buffer& b = buffer(name);
  const bool kinematic = name == "xpos" || name == "xquat" || name.rfind("body_", 0) == 0 || name == "site_xpos";
  const bool contact = name.rfind("contact.", 0) == 0 || name == "net_contact_force";
  if (kinematic && !watch_kinematics_) release(), watch_kinematics_ = true, update_kinematics(nullptr);
  if (contact && !watch_contacts_) {
    release();
    watch_contacts_ = true;
    if (!contacts_found_) update_contacts(nullptr);
  }
  return {b.memory->data(), b.dtype, b.shape, b.writable};
}

ArrayView World::host_array(const std::string& name) {
  ArrayView view = array(name);
  view.data = keep(buffer(name).memory, view.writable);
  return view;
}

void World::read_array(const std::string& name, void* to) {
  array(name);
  Memory& memory = *buffer(name).memory;
  fetch({&memory});
  std::memcpy(to, memory.mirror(), memory.bytes());
}

void World::write_array(const std::string& name, const void* from) {
  Memory& memory = *buffer(name).memory;
  wait();
  std::memcpy(memory.mirror(), from, memory.bytes());
  send(memory);
  synchronize();
}

void World::update_watched(const uint8_t* mask) {
  if (watch_kinematics_) update_kinematics(mask);
  if (watch_contacts_ || contacts_found_) update_contacts(mask);
}

void World::update_poses() {
  release();
  if (watch_kinematics_) update_kinematics(nullptr);
}

void World::forward(const uint8_t* mask) {
  mask = reached(mask);
  update_poses();
  if (mask && !watch_contacts_ && !contacts_found_) update_contacts(nullptr);  // of whom the mask leaves out
  contacts_found_ = true;
  find_contacts(mask);
}

void World::clear_status(const uint8_t* mask) {
  Memory& memory = *buffer("status").memory;
  fetch({&memory});
  int* status = static_cast<int*>(memory.mirror());
  for (int i = 0; i < num_envs(); ++i)
    if (mask == nullptr || mask[i]) status[i] = 0;
  send(memory);
  synchronize();
}

template <class T>
ResetRows<T> World::make_reset_rows() {
  const Model& m = *model_;
  const int np = 3 * m.nmocap, row = m.nq + m.nv + m.nu + 7 * m.nmocap;
  begin_ = allocate(sizeof(T) * row * (1 + m.nkey));
  T* begin = static_cast<T*>(begin_->mirror());
  auto write = [](T* to, const double* from, int n) {
    for (int i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
  };
  write(begin, m.qpos0.data(), m.nq);
  for (int b = 0; b < m.nbody; ++b)
    if (const int i = m.body_mocapid[b]; i >= 0) {
      T* to = begin + m.nq + m.nv + m.nu;
      write(to + 3 * i, &m.body_pos[3 * b], 3), write(to + np + 4 * i, &m.body_quat[4 * b], 4);
    }
  for (int k = 0; k < m.nkey; ++k) {
    T* to = begin + static_cast<int64_t>(k + 1) * row;
    write(to, m.key_qpos.data() + k * m.nq, m.nq), write(to + m.nq, m.key_qvel.data() + k * m.nv, m.nv);
    write(to + m.nq + m.nv, m.key_ctrl.data() + k * m.nu, m.nu);
    to += m.nq + m.nv + m.nu;
    write(to, m.key_mpos.data() + k * np, np), write(to + np, m.key_mquat.data() + k * 4 * m.nmocap, 4 * m.nmocap);
  }
  send(*begin_);
  return {m.nq,
          m.nv,
          m.nu,
          m.nbody,
          m.nmocap,
          static_cast<const T*>(begin_->data()),
          buffer("qpos").as<T>(),
          buffer("qvel").as<T>(),
          buffer("ctrl").as<T>(),
          buffer("qfrc_applied").as<T>(),
          buffer("xfrc_applied").as<T>(),
          buffer("mocap_pos").as<T>(),
          buffer("mocap_quat").as<T>(),
          buffer("time").as<double>(),
          buffer("status").as<int>()};
}
template <class T>
ParameterArrays<T> World::parameter_arrays() {
  ParameterArrays<T> p;
  for (const std::string& name : options_.per_env)
    for (const Parameter<T>& x : kParameters<T>)
      if (name == x.name && !(model_->disableflags & x.disabled_by)) p.*x.place = buffer("params." + name).as<T>();
  return p;
}
template ParameterArrays<float> World::parameter_arrays();
template ParameterArrays<double> World::parameter_arrays();
template ResetRows<float> World::make_reset_rows();
template ResetRows<double> World::make_reset_rows();

void World::reset_state(const uint8_t* mask, int keyframe) {
  if (keyframe < -1 || keyframe >= model_->nkey)
    throw std::invalid_argument("keyframe " + std::to_string(keyframe) + " does not exist; the model has " +
                                std::to_string(model_->nkey));
  release();
  reset_rows(mask, keyframe);
}

const uint8_t* World::reached(const uint8_t* mask) {
  if (mask == nullptr) return nullptr;
  wait();
  if (mask_ == nullptr) mask_ = allocate(num_envs());
  std::memcpy(mask_->mirror(), mask, num_envs());
  send(*mask_);
  return static_cast<const uint8_t*>(mask_->data());
}

void World::reset(const uint8_t* mask, int keyframe) {
  wait();
  mask = reached(mask);
  reset_state(mask, keyframe);
  update_watched(mask);
  wait();
}

}  // namespace stiction
