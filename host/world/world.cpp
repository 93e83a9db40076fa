#include "host/world/world.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "host/world/cuda_world.h"

namespace stiction {

World::World(std::shared_ptr<const Model> model, const WorldOptions& options)
    : model_(std::move(model)), options_(options) {
  auto reject = [](const std::string& text) { throw std::invalid_argument(text); };
  if (options_.num_envs < 1) reject("num_envs is " + std::to_string(options_.num_envs) + ", expected at least 1");
  if (options_.step.h == 0) options_.step.h = model_->timestep;
  if (!(options_.step.h > 0) || options_.step.h > 1)
    reject("timestep is " + std::to_string(options_.step.h) + " s, expected more than 0 and at most 1");
  if (options_.step.iterations < 0)
    reject("iterations is " + std::to_string(options_.step.iterations) + ", expected >= 0");
  if (options_.num_threads < 0) reject("num_threads is " + std::to_string(options_.num_threads) + ", expected >= 0");
  options_.step.explicit_damping = !options_.step.implicit && (model_->disableflags & kDisableEulerdamp);
  int threads = options_.num_threads ? options_.num_threads : std::max(1u, std::thread::hardware_concurrency());
  threads_ = std::make_unique<ThreadPool>(threads);

  const Model& m = *model_;
  const int64_t n = options_.num_envs;
  const DType real = options_.float64 ? DType::kFloat64 : DType::kFloat32;
  add("qpos", real, {n, m.nq}, true), add("qvel", real, {n, m.nv}, true), add("ctrl", real, {n, m.nu}, true);
  add("time", DType::kFloat64, {n}, true);
  add("qfrc_applied", real, {n, m.nv}, true), add("xfrc_applied", real, {n, m.nbody, 6}, true);
  add("status", DType::kInt32, {n}, false);
  add("xpos", real, {n, m.nbody, 3}, false), add("xquat", real, {n, m.nbody, 4}, false);
  add("body_linvel", real, {n, m.nbody, 3}, false), add("body_angvel", real, {n, m.nbody, 3}, false);
  add("site_xpos", real, {n, m.nsite, 3}, false);
  for (const char* name : {"r_dyn", "r_con", "r_ccp", "r_row", "r_cone", "penetration", "scale", "num_contacts",
                           "iterations", "converged"})
    add(std::string("certificate.") + name, real, {n}, false);
  add_parameters();
}

namespace {

/// A parameter: its values in the model, and how many numbers an environment has of it.
struct Parameter {
  const char* name;
  const Reals& (*values)(const Model&);
};
template <Reals Model::* Field>
const Reals& field(const Model& m) {
  return m.*Field;
}
constexpr Parameter kParameters[] = {
    {"body_mass", field<&Model::body_mass>},
    {"body_inertia", field<&Model::body_inertia>},
    {"geom_friction", field<&Model::geom_friction>},
    {"geom_size", field<&Model::geom_size>},
    {"dof_damping", field<&Model::dof_damping>},
    {"dof_armature", field<&Model::dof_armature>},
    {"dof_frictionloss", field<&Model::dof_frictionloss>},
    {"jnt_stiffness", field<&Model::jnt_stiffness>},
    {"jnt_range", field<&Model::jnt_range>},
    {"actuator_gainprm", field<&Model::actuator_gainprm>},
    {"actuator_biasprm", field<&Model::actuator_biasprm>},
    {"gravity", field<&Model::gravity>},
};

}  // namespace

std::vector<std::string> parameter_names() {
  std::vector<std::string> names;
  for (const Parameter& p : kParameters) names.push_back(p.name);
  return names;
}

void World::add_parameters() {
  const Model& m = *model_;
  for (const std::string& name : options_.per_env) {
    const Parameter* found = nullptr;
    std::string known;
    for (const Parameter& p : kParameters) {
      if (name == p.name) found = &p;
      known += (known.empty() ? "" : ", ") + std::string(p.name);
    }
    if (found == nullptr)
      throw std::invalid_argument("per_env names '" + name +
                                  "', which cannot differ between environments; these can: " + known);
    const Reals& values = found->values(m);
    const int64_t n = num_envs(), size = static_cast<int64_t>(values.size());
    std::vector<int64_t> shape{n};
    const int64_t count = name.rfind("body", 0) == 0       ? m.nbody
                          : name.rfind("geom", 0) == 0     ? m.ngeom
                          : name.rfind("dof", 0) == 0      ? m.nv
                          : name.rfind("jnt", 0) == 0      ? m.njnt
                          : name.rfind("actuator", 0) == 0 ? m.nu
                                                           : 1;
    if (name != "gravity") shape.push_back(count);
    if (size != count) shape.push_back(count ? size / count : 0);
    Buffer& b = add("params." + name, options_.float64 ? DType::kFloat64 : DType::kFloat32, shape, true);
    for (int64_t e = 0; e < n; ++e)
      for (int64_t i = 0; i < size; ++i) {
        if (options_.float64) b.as<double>()[e * size + i] = values[i];
        else b.as<float>()[e * size + i] = static_cast<float>(values[i]);
      }
  }
}

World::Buffer& World::add(const std::string& name, DType dtype, std::vector<int64_t> shape, bool writable) {
  auto b = std::make_unique<Buffer>();
  int64_t items = 1;
  for (int64_t s : shape) items *= s;
  const int size = dtype == DType::kBool ? 1 : dtype == DType::kFloat32 || dtype == DType::kInt32 ? 4 : 8;
  b->device = batch_memory(options_, items * size);
  if (b->device == nullptr) b->bytes.resize(items * size + 64);  // 64-byte aligned
  auto address = reinterpret_cast<uintptr_t>(b->bytes.data());
  b->data = b->device ? static_cast<unsigned char*>(b->device.get()) : b->bytes.data() + (64 - address % 64) % 64;
  b->dtype = dtype, b->shape = std::move(shape), b->writable = writable;
  buffers_.emplace_back(name, std::move(b));
  return *buffers_.back().second;
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
  if (kinematic && !watch_kinematics_) watch_kinematics_ = true, update_kinematics(nullptr);
  if (contact && !watch_contacts_) watch_contacts_ = true, update_contacts(nullptr);
  return {b.data, b.dtype, b.shape, b.writable};
}

void World::update_watched(const uint8_t* mask) {
  if (watch_kinematics_) update_kinematics(mask);
  if (watch_contacts_) update_contacts(mask);
}

void World::forward_envs(const uint8_t* mask) {
  if (watch_kinematics_) update_kinematics(mask);
}

void World::clear_status(const uint8_t* mask) {
  int* status = buffer("status").as<int>();
  for (int i = 0; i < num_envs(); ++i)
    if (mask == nullptr || mask[i]) status[i] = 0;
}

void World::reset(const uint8_t* mask, int keyframe) {
  const Model& m = *model_;
  if (keyframe < -1 || keyframe >= m.nkey)
    throw std::invalid_argument("keyframe " + std::to_string(keyframe) + " does not exist; the model has " +
                                std::to_string(m.nkey));
  auto fill = [&](auto* qpos, auto* qvel, auto* ctrl, auto* force, auto* wrench) {
    using T = std::remove_pointer_t<decltype(qpos)>;
    auto row = [](T* to, const double* from, int n) {
      for (int i = 0; i < n; ++i) to[i] = from ? static_cast<T>(from[i]) : T(0);
    };
    const bool key = keyframe >= 0;
    for (int64_t e = 0; e < num_envs(); ++e) {
      if (mask != nullptr && !mask[e]) continue;
      row(qpos + e * m.nq, key ? m.key_qpos.data() + keyframe * m.nq : m.qpos0.data(), m.nq);
      row(qvel + e * m.nv, key ? m.key_qvel.data() + keyframe * m.nv : nullptr, m.nv);
      row(ctrl + e * m.nu, key && m.nu ? m.key_ctrl.data() + keyframe * m.nu : nullptr, m.nu);
      row(force + e * m.nv, nullptr, m.nv), row(wrench + e * 6 * m.nbody, nullptr, 6 * m.nbody);
      buffer("time").as<double>()[e] = 0;
    }
  };
  if (options_.float64)
    fill(buffer("qpos").as<double>(), buffer("qvel").as<double>(), buffer("ctrl").as<double>(),
         buffer("qfrc_applied").as<double>(), buffer("xfrc_applied").as<double>());
  else
    fill(buffer("qpos").as<float>(), buffer("qvel").as<float>(), buffer("ctrl").as<float>(),
         buffer("qfrc_applied").as<float>(), buffer("xfrc_applied").as<float>());
  clear_records(mask);
  clear_status(mask);
  update_watched(mask);
}

}  // namespace stiction
