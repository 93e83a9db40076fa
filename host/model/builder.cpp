// ModelBuilder: see the header.
#include "host/model/builder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <sstream>
#include <stdexcept>

namespace stiction {
namespace {

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

template <class Array>
void append(Reals& to, const Array& values) {
  to.insert(to.end(), values.begin(), values.end());
}

/// Throws unless number is one of the `count` things added so far.
void expect_added(const std::string& where, const char* thing, int number, int count) {
  if (number < 0 || number >= count)
    fail(where, ": ", thing, " is ", number, ", expected one of the ", count, " added");
}

/// The range and whether there is one, as MuJoCo stores it: (0, 0) without.
void append_range(const std::optional<Range>& range, Reals& ranges, Ints& limited) {
  append(ranges, range.value_or(Range{}));
  limited.push_back(range.has_value());
}

template <class Array>
Array normalised(const Array& values, const std::string& where) {
  double square = 0;
  for (double x : values) square += x * x;
  if (!(square > 1e-28) || !std::isfinite(square))
    fail(where, " has norm ", std::sqrt(square), ", expected one to normalise");
  Array unit = values;
  for (double& x : unit) x /= std::sqrt(square);
  return unit;
}

bool is_scalar(const Model& m, int joint) { return m.jnt_type[joint] >= static_cast<int>(JointType::kSlide); }

}  // namespace

Triple ellipsoid_inertia(double mass, Triple r) {
  const double x = r[0] * r[0], y = r[1] * r[1], z = r[2] * r[2];
  return {mass * (y + z) / 5, mass * (x + z) / 5, mass * (x + y) / 5};
}

Triple sphere_inertia(double mass, double radius) { return ellipsoid_inertia(mass, {radius, radius, radius}); }

Triple box_inertia(double mass, Triple half) {
  const double x = half[0] * half[0], y = half[1] * half[1], z = half[2] * half[2];
  return {mass * (y + z) / 3, mass * (x + z) / 3, mass * (x + y) / 3};
}

Triple cylinder_inertia(double mass, double radius, double half_length) {
  const double across = mass * (3 * radius * radius + 4 * half_length * half_length) / 12;
  return {across, across, mass * radius * radius / 2};
}

Triple capsule_inertia(double mass, double radius, double half_length) {
  // A cylinder and a sphere cut in two halves, by volume; a half's centre is 3/8 r away from its flat side.
  const double height = 2 * half_length, sphere_height = 4 * radius / 3;
  const double sphere = mass * sphere_height / (height + sphere_height), cylinder = mass - sphere;
  const Triple middle = cylinder_inertia(cylinder, radius, half_length);
  const double ball = 2 * sphere * radius * radius / 5;
  const double across = middle[0] + ball + sphere * height * (3 * radius + 2 * height) / 8;
  return {across, across, middle[2] + ball};
}

ModelBuilder::ModelBuilder(ModelOptions options) {
  model_.timestep = options.timestep;
  append((model_.gravity.clear(), model_.gravity), options.gravity);
  model_.disableflags = options.disableflags;
  model_.nbody = 1;
  model_.body_names = {"world"};
  model_.body_parentid = {0};
  append(model_.body_pos, Triple{}), append(model_.body_quat, Quadruple{1, 0, 0, 0});
  append(model_.body_ipos, Triple{}), append(model_.body_iquat, Quadruple{1, 0, 0, 0});
  model_.body_mass = {0}, model_.body_gravcomp = {0}, model_.body_mocapid = {-1};
  append(model_.body_inertia, Triple{});
}

int ModelBuilder::add_body(const BodySpec& spec) {
  const std::string where = "body '" + spec.name + "'";
  Model& m = model_;
  expect_added(where, "parent", spec.parent, m.nbody);
  m.body_names.push_back(spec.name);
  m.body_parentid.push_back(spec.parent);
  append(m.body_pos, spec.pos), append(m.body_quat, normalised(spec.quat, where + ": quat"));
  append(m.body_ipos, spec.ipos), append(m.body_iquat, normalised(spec.iquat, where + ": iquat"));
  m.body_mass.push_back(spec.mass);
  append(m.body_inertia, spec.inertia);
  m.body_gravcomp.push_back(spec.gravcomp);
  m.body_mocapid.push_back(spec.mocap ? m.nmocap++ : -1);
  return m.nbody++;
}

int ModelBuilder::add_joint(const JointSpec& spec) {
  const std::string where = "joint '" + spec.name + "'";
  Model& m = model_;
  expect_added(where, "body", spec.body, m.nbody);
  if (m.njnt > 0 && spec.body < m.jnt_bodyid.back()) {
    fail(where, ": body is ", spec.body, ", expected joints in body order: the last one was added to body ",
         m.jnt_bodyid.back());
  }
  const int dofs[] = {6, 3, 1, 1};
  const int type = static_cast<int>(spec.type);
  m.joint_names.push_back(spec.name);
  m.jnt_type.push_back(type), m.jnt_bodyid.push_back(spec.body);
  m.jnt_qposadr.push_back(m.nq), m.jnt_dofadr.push_back(m.nv);
  // A free joint is the body's own frame: MuJoCo gives it no anchor and the axis z.
  append(m.jnt_pos, spec.type == JointType::kFree ? Triple{} : spec.pos);
  append(m.jnt_axis, type < 2 ? Triple{0, 0, 1} : normalised(spec.axis, where + ": axis"));
  m.jnt_stiffness.push_back(spec.stiffness);
  append_range(spec.range, m.jnt_range, m.jnt_limited);
  append_range(spec.actuatorfrcrange, m.jnt_actfrcrange, m.jnt_actfrclimited);
  for (int k = 0; k < dofs[type]; ++k) {
    m.dof_bodyid.push_back(spec.body), m.dof_jntid.push_back(m.njnt);
    m.dof_armature.push_back(spec.armature), m.dof_damping.push_back(spec.damping);
    m.dof_frictionloss.push_back(spec.frictionloss);
  }
  if (spec.type == JointType::kFree) {
    const double *pos = &m.body_pos[3 * spec.body], *quat = &m.body_quat[4 * spec.body];
    m.qpos0.insert(m.qpos0.end(), pos, pos + 3), m.qpos0.insert(m.qpos0.end(), quat, quat + 4);
  } else if (spec.type == JointType::kBall) {
    append(m.qpos0, Quadruple{1, 0, 0, 0});
  } else {
    m.qpos0.push_back(spec.ref);
  }
  m.qpos_spring.insert(m.qpos_spring.end(), m.qpos0.begin() + m.nq, m.qpos0.end());
  if (type >= 2) m.qpos_spring.back() = spec.springref;
  m.nq = static_cast<int>(m.qpos0.size());
  m.nv += dofs[type];
  return m.njnt++;
}

int ModelBuilder::add_geom(const GeomSpec& spec) {
  const std::string where = "geom '" + spec.name + "'";
  Model& m = model_;
  expect_added(where, "body", spec.body, m.nbody);
  if (spec.type == GeomType::kMesh) expect_added(where, "mesh", spec.mesh, m.nmesh);
  m.geom_names.push_back(spec.name);
  m.geom_type.push_back(static_cast<int>(spec.type)), m.geom_bodyid.push_back(spec.body);
  m.geom_contype.push_back(spec.contype), m.geom_conaffinity.push_back(spec.conaffinity);
  m.geom_condim.push_back(spec.condim), m.geom_priority.push_back(spec.priority);
  m.geom_dataid.push_back(spec.type == GeomType::kMesh ? spec.mesh : -1);
  append(m.geom_size, spec.size), append(m.geom_pos, spec.pos);
  append(m.geom_quat, normalised(spec.quat, where + ": quat"));
  append(m.geom_friction, Triple{spec.friction, 0.005, 0.0001});
  m.geom_stiffness.push_back(spec.stiffness), m.geom_dissipation.push_back(spec.dissipation);
  m.geom_restitution.push_back(spec.restitution);
  return m.ngeom++;
}

int ModelBuilder::add_mesh(const MeshSpec& spec) {
  const int count = static_cast<int>(spec.vertices.size());
  std::vector<std::set<int>> neighbours(count);
  for (const auto& triangle : spec.triangles) {
    for (int vertex : triangle) expect_added("mesh", "a triangle's vertex", vertex, count);
    for (int k = 0; k < 3; ++k) {
      neighbours[triangle[k]].insert(triangle[(k + 1) % 3]);
      neighbours[triangle[(k + 1) % 3]].insert(triangle[k]);
    }
  }
  Model& m = model_;
  if (m.mesh_edgeadr.empty()) m.mesh_edgeadr.push_back(0);
  m.mesh_vertadr.push_back(static_cast<int>(m.mesh_vert.size() / 3)), m.mesh_vertnum.push_back(count);
  for (int v = 0; v < count; ++v) {
    if (neighbours[v].size() < 3)
      fail("mesh: vertex ", v, " has ", neighbours[v].size(), " neighbours, expected at least 3");
    append(m.mesh_vert, spec.vertices[v]);
    m.mesh_edge.insert(m.mesh_edge.end(), neighbours[v].begin(), neighbours[v].end());
    m.mesh_edgeadr.push_back(static_cast<int>(m.mesh_edge.size()));
  }
  return m.nmesh++;
}

int ModelBuilder::add_site(const SiteSpec& spec) {
  const std::string where = "site '" + spec.name + "'";
  expect_added(where, "body", spec.body, model_.nbody);
  model_.site_names.push_back(spec.name);
  model_.site_bodyid.push_back(spec.body);
  append(model_.site_pos, spec.pos), append(model_.site_quat, normalised(spec.quat, where + ": quat"));
  return model_.nsite++;
}

int ModelBuilder::add_tendon(const TendonSpec& spec) {
  const std::string where = "tendon '" + spec.name + "'";
  Model& m = model_;
  for (const auto& term : spec.terms) expect_added(where, "joint", term.first, m.njnt);
  m.tendon_names.push_back(spec.name);
  m.tendon_adr.push_back(m.nwrap), m.tendon_num.push_back(static_cast<int>(spec.terms.size()));
  for (const auto& [joint, coefficient] : spec.terms) {
    if (!is_scalar(m, joint)) fail(where, ": joint ", joint, " is free or ball, expected slide or hinge");
    m.wrap_jntid.push_back(joint), m.wrap_coef.push_back(coefficient);
    ++m.nwrap;
  }
  m.tendon_stiffness.push_back(spec.stiffness), m.tendon_damping.push_back(spec.damping);
  m.tendon_frictionloss.push_back(spec.frictionloss);
  append(m.tendon_lengthspring, spec.lengthspring.value_or(Range{}));
  default_lengthspring_.push_back(!spec.lengthspring);
  append_range(spec.range, m.tendon_range, m.tendon_limited);
  append_range(spec.actuatorfrcrange, m.tendon_actfrcrange, m.tendon_actfrclimited);
  return m.ntendon++;
}

int ModelBuilder::add_equality(const EqualitySpec& spec) {
  const auto& c = spec.coefficients;
  return add_equality(Equality::kJoint, model_.njnt, "joint", spec.joint1, spec.joint2, {c.begin(), c.end()},
                      spec.active);
}

int ModelBuilder::add_equality(const TendonEqualitySpec& spec) {
  const auto& c = spec.coefficients;
  return add_equality(Equality::kTendon, model_.ntendon, "tendon", spec.tendon1, spec.tendon2, {c.begin(), c.end()},
                      spec.active);
}

int ModelBuilder::add_connect(const ConnectSpec& spec) {
  Reals data;
  append(data, spec.anchor1), append(data, spec.anchor2);
  return add_equality(Equality::kConnect, model_.nbody, "body", spec.body1, spec.body2, data, spec.active);
}

int ModelBuilder::add_weld(const WeldSpec& spec) {
  Reals data;
  append(data, spec.anchor), append(data, spec.pos), append(data, normalised(spec.quat, "weld: quat"));
  data.push_back(spec.torquescale);
  return add_equality(Equality::kWeld, model_.nbody, "body", spec.body1, spec.body2, data, spec.active);
}

int ModelBuilder::add_equality(Equality type, int count, const char* what, int obj1, int obj2, const Reals& data,
                               bool active) {
  const std::string thing = what;
  expect_added("equality", (thing + "1").c_str(), obj1, count);
  if (obj2 != -1) expect_added("equality", (thing + "2").c_str(), obj2, count);
  model_.eq_type.push_back(static_cast<int>(type));
  model_.eq_obj1id.push_back(obj1), model_.eq_obj2id.push_back(obj2);
  model_.eq_active.push_back(active);
  append(model_.eq_data, data);
  model_.eq_data.resize(11 * (model_.neq + 1), 0);
  if (data.size() < 11) model_.eq_data.back() = 1;  // MuJoCo's torquescale of what has none
  return model_.neq++;
}

int ModelBuilder::add_actuator(const ActuatorSpec& spec) {
  const std::string where = "actuator '" + spec.name + "'";
  Model& m = model_;
  if ((spec.joint >= 0) == (spec.tendon >= 0)) {
    fail(where, ": joint is ", spec.joint, " and tendon is ", spec.tendon, ", expected exactly one of them");
  }
  if (spec.joint >= 0) expect_added(where, "joint", spec.joint, m.njnt);
  if (spec.tendon >= 0) expect_added(where, "tendon", spec.tendon, m.ntendon);
  m.actuator_names.push_back(spec.name);
  m.actuator_trntype.push_back(static_cast<int>(spec.joint >= 0 ? Transmission::kJoint : Transmission::kTendon));
  m.actuator_trnid.push_back(std::max(spec.joint, spec.tendon));
  append(m.actuator_gear, spec.gear);
  m.actuator_gainprm.push_back(spec.gain);
  append(m.actuator_biasprm, spec.bias);
  append_range(spec.ctrlrange, m.actuator_ctrlrange, m.actuator_ctrllimited);
  append_range(spec.forcerange, m.actuator_forcerange, m.actuator_forcelimited);
  return m.nu++;
}

int ModelBuilder::add_pair(const PairSpec& spec) {
  expect_added("pair", "geom1", spec.geom1, model_.ngeom), expect_added("pair", "geom2", spec.geom2, model_.ngeom);
  model_.pair_geom1.push_back(spec.geom1), model_.pair_geom2.push_back(spec.geom2);
  model_.pair_condim.push_back(spec.condim), append(model_.pair_friction, Triple{spec.friction, 0.005, 0.0001});
  return model_.npair++;
}

int ModelBuilder::add_exclude(const ExcludeSpec& spec) {
  expect_added("exclude", "body1", spec.body1, model_.nbody),
      expect_added("exclude", "body2", spec.body2, model_.nbody);
  model_.exclude_body1.push_back(spec.body1), model_.exclude_body2.push_back(spec.body2);
  return model_.nexclude++;
}

int ModelBuilder::add_keyframe(const KeyframeSpec& spec) {
  keyframes_.push_back(spec);
  return static_cast<int>(keyframes_.size()) - 1;
}

Model ModelBuilder::build() const {
  Model m = model_;
  m.body_jntnum.assign(m.nbody, 0), m.body_dofnum.assign(m.nbody, 0);
  m.body_jntadr.assign(m.nbody, -1), m.body_dofadr.assign(m.nbody, -1);
  for (int j = m.njnt - 1; j >= 0; --j) m.body_jntadr[m.jnt_bodyid[j]] = j, ++m.body_jntnum[m.jnt_bodyid[j]];
  for (int d = m.nv - 1; d >= 0; --d) m.body_dofadr[m.dof_bodyid[d]] = d, ++m.body_dofnum[m.dof_bodyid[d]];
  m.body_weldid.assign(m.nbody, 0);
  for (int b = 1; b < m.nbody; ++b) m.body_weldid[b] = m.body_jntnum[b] > 0 ? b : m.body_weldid[m.body_parentid[b]];
  for (int t = 0; t < m.ntendon; ++t) {
    if (!default_lengthspring_[t]) continue;
    double length = 0;
    for (int w = m.tendon_adr[t]; w < m.tendon_adr[t] + m.tendon_num[t]; ++w) {
      length += m.wrap_coef[w] * m.qpos_spring[m.jnt_qposadr[m.wrap_jntid[w]]];
    }
    m.tendon_lengthspring[2 * t] = m.tendon_lengthspring[2 * t + 1] = length;
  }
  Reals mocap_pos, mocap_quat;
  for (int b = 0; b < m.nbody; ++b) {
    if (m.body_mocapid[b] < 0) continue;
    mocap_pos.insert(mocap_pos.end(), &m.body_pos[3 * b], &m.body_pos[3 * b] + 3);
    mocap_quat.insert(mocap_quat.end(), &m.body_quat[4 * b], &m.body_quat[4 * b] + 4);
  }
  for (const KeyframeSpec& key : keyframes_) {
    const auto add = [&key](Reals& to, const Reals& values, const Reals& otherwise, const char* field) {
      if (!values.empty() && values.size() != otherwise.size()) {
        fail("keyframe '", key.name, "': ", field, " has ", values.size(), " entries, expected ", otherwise.size());
      }
      append(to, values.empty() ? otherwise : values);
    };
    m.key_names.push_back(key.name);
    add(m.key_qpos, key.qpos, m.qpos0, "qpos");
    add(m.key_qvel, key.qvel, Reals(m.nv, 0), "qvel");
    add(m.key_ctrl, key.ctrl, Reals(m.nu, 0), "ctrl");
    append(m.key_mpos, mocap_pos), append(m.key_mquat, mocap_quat);
    ++m.nkey;
  }
  validate(m);
  return m;
}

}  // namespace stiction
