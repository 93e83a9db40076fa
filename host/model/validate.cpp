// validate: the conditions every Model must meet, whoever made it. Order: shapes first, so that the later checks may index.
//
// Errors: std::invalid_argument naming the field, its entry, what was got and what was expected.
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <stdexcept>

#include "host/model/fields.h"

namespace stiction {
namespace {

/// Throws with the parts joined: `fail("body_mass[", 3, "] is ", -1, ", expected >= 0")`.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

void expect(bool holds, const char* field, int entry, double got, const char* expected) {
  if (!holds) fail(field, "[", entry, "] is ", got, ", expected ", expected);
}

/// Index in [low, high).
void expect_index(const char* field, int entry, int got, int low, int high) {
  if (got < low || got >= high) fail(field, "[", entry, "] is ", got, ", expected an index in [", low, ", ", high, ")");
}

void expect_indices(const char* field, const Ints& values, int low, int high) {
  for (std::size_t i = 0; i < values.size(); ++i) expect_index(field, static_cast<int>(i), values[i], low, high);
}

void expect_not_negative(const char* field, const Reals& values) {
  for (std::size_t i = 0; i < values.size(); ++i) expect(values[i] >= 0, field, static_cast<int>(i), values[i], ">= 0");
}

void expect_unit(const char* field, const Reals& values, int width) {
  for (std::size_t i = 0; i * width < values.size(); ++i) {
    double square = 0;
    for (int k = 0; k < width; ++k) square += values[i * width + k] * values[i * width + k];
    if (std::abs(square - 1) > 1e-6) fail(field, "[", i, "] has norm ", std::sqrt(square), ", expected 1");
  }
}

/// low <= high wherever `limited` is set.
void expect_ranges(const char* field, const Reals& range, const Ints& limited) {
  for (std::size_t i = 0; i < limited.size(); ++i) {
    const double low = range[2 * i], high = range[2 * i + 1];
    if (limited[i] && low > high) fail(field, "[", i, "] is (", low, ", ", high, "), expected low <= high");
  }
}

void check_shapes(const Model& m) {
  visit_sizes(m, [](const char* name, int count) {
    if (count < 0) fail(name, " is ", count, ", expected >= 0");
  });
  if (m.nbody < 1) fail("nbody is ", m.nbody, ", expected at least the world");
  for (std::size_t i = 0; i < m.mesh_vertnum.size(); ++i) {
    if (m.mesh_vertnum[i] < 1) fail("mesh_vertnum[", i, "] is ", m.mesh_vertnum[i], ", expected >= 1");
  }
  visit_fields(m, [](const char* name, const auto& field, int rows, int cols) {
    const std::size_t expected = static_cast<std::size_t>(rows) * cols;
    if (field.size() != expected) {
      fail(name, " has ", field.size(), " entries, expected ", expected, " (", rows, " x ", cols, ")");
    }
    for (std::size_t i = 0; i < field.size(); ++i) {
      if (!std::isfinite(static_cast<double>(field[i]))) fail(name, " has a non-finite entry at ", i);
    }
  });
  visit_names(m, [](const char* name, const Names& names, int count) {
    if (names.size() != static_cast<std::size_t>(count)) {
      fail(name, " has ", names.size(), " entries, expected ", count, " (empty strings where there is no name)");
    }
    std::set<std::string> seen;
    for (const std::string& entry : names) {
      if (!entry.empty() && !seen.insert(entry).second) fail(name, " has '", entry, "' twice");
    }
  });
}

void check_options(const Model& m) {
  if (!(m.timestep > 0) || !std::isfinite(m.timestep)) fail("timestep is ", m.timestep, ", expected a number > 0");
  if (m.gravity.size() != 3) fail("gravity has ", m.gravity.size(), " entries, expected 3");
  for (double g : m.gravity) {
    if (!std::isfinite(g)) fail("gravity has a non-finite entry");
  }
}

/// Consecutive blocks: body i owns joints [adr, adr + num), in body order, covering all of them.
void check_blocks(const char* adr_name, const char* num_name, const Ints& adr, const Ints& num, int total) {
  int next = 0;
  for (std::size_t i = 0; i < adr.size(); ++i) {
    if (num[i] < 0) fail(num_name, "[", i, "] is ", num[i], ", expected >= 0");
    const int expected = num[i] > 0 ? next : -1;
    if (adr[i] != expected) fail(adr_name, "[", i, "] is ", adr[i], ", expected ", expected);
    next += num[i];
  }
  if (next != total) fail(num_name, " adds up to ", next, ", expected ", total);
}

void check_tree(const Model& m) {
  if (m.body_parentid[0] != 0) fail("body_parentid[0] is ", m.body_parentid[0], ", expected 0: body 0 is the world");
  if (m.body_jntnum[0] != 0) fail("body_jntnum[0] is ", m.body_jntnum[0], ", expected 0: the world has no joint");
  check_blocks("body_jntadr", "body_jntnum", m.body_jntadr, m.body_jntnum, m.njnt);
  check_blocks("body_dofadr", "body_dofnum", m.body_dofadr, m.body_dofnum, m.nv);
  for (int b = 1; b < m.nbody; ++b) {
    expect_index("body_parentid", b, m.body_parentid[b], 0, b);
    const int weld = m.body_jntnum[b] > 0 ? b : m.body_weldid[m.body_parentid[b]];
    if (m.body_weldid[b] != weld) fail("body_weldid[", b, "] is ", m.body_weldid[b], ", expected ", weld);
  }
  if (m.body_weldid[0] != 0) fail("body_weldid[0] is ", m.body_weldid[0], ", expected 0");
  int mocaps = 0;
  for (int b = 0; b < m.nbody; ++b) {
    const int id = m.body_mocapid[b];
    if (id < 0) continue;
    if (id != mocaps++) fail("body_mocapid[", b, "] is ", id, ", expected ", mocaps - 1);
    if (b == 0 || m.body_parentid[b] != 0 || m.body_jntnum[b] != 0)
      fail("body ", b, " '", m.body_names[b], "' is a mocap body, expected a child of the world without joints");
  }
  for (int b = 1; b < m.nbody; ++b) {
    int root = b;
    while (m.body_parentid[root] != 0) root = m.body_parentid[root];
    if (m.body_mocapid[root] >= 0 && m.body_jntnum[b] > 0)
      fail("body ", b, " '", m.body_names[b], "' has joints, expected none on a mocap body");
  }
  if (mocaps != m.nmocap) fail("nmocap is ", m.nmocap, ", expected ", mocaps, " from body_mocapid");
}

/// Each rigid group that a joint moves needs mass, and inertia unless it can only slide; inertias must be those of a body.
void check_inertia(const Model& m) {
  Reals mass(m.nbody, 0), inertia(m.nbody, 0);
  for (int b = 0; b < m.nbody; ++b) {
    expect(m.body_mass[b] >= 0, "body_mass", b, m.body_mass[b], ">= 0");
    const double* i = &m.body_inertia[3 * b];
    const double trace = i[0] + i[1] + i[2];
    for (int k = 0; k < 3; ++k) {
      expect(i[k] >= 0, "body_inertia", 3 * b + k, i[k], ">= 0");
      if (2 * i[k] > trace * (1 + 1e-6)) {
        fail("body_inertia[", b, "] is (", i[0], ", ", i[1], ", ", i[2],
             "), expected each principal moment to be at most the sum of the other two");
      }
    }
    mass[m.body_weldid[b]] += m.body_mass[b];
    inertia[m.body_weldid[b]] += std::min({i[0], i[1], i[2]});
  }
  for (int b = 1; b < m.nbody; ++b) {
    if (m.body_jntnum[b] == 0) continue;
    if (!(mass[b] > 0)) fail("body ", b, " '", m.body_names[b], "' moves but has mass ", mass[b], ", expected > 0");
    bool turns = false;
    for (int j = 0; j < m.body_jntnum[b]; ++j) {
      turns |= m.jnt_type[m.body_jntadr[b] + j] != static_cast<int>(JointType::kSlide);
    }
    if (turns && !(inertia[b] > 0)) {
      fail("body ", b, " '", m.body_names[b], "' turns but has no inertia, expected body_inertia > 0");
    }
  }
}

void check_joints(const Model& m) {
  constexpr int kPositions[] = {7, 4, 1, 1}, kDofs[] = {6, 3, 1, 1};
  int qpos = 0, dof = 0;
  for (int j = 0; j < m.njnt; ++j) {
    expect_index("jnt_type", j, m.jnt_type[j], 0, 4);
    const int type = m.jnt_type[j], body = m.jnt_bodyid[j];
    expect_index("jnt_bodyid", j, body, 1, m.nbody);
    if (j < m.body_jntadr[body] || j >= m.body_jntadr[body] + m.body_jntnum[body]) {
      fail("jnt_bodyid[", j, "] is ", body, ", but that body's joints are others");
    }
    if (m.jnt_qposadr[j] != qpos) fail("jnt_qposadr[", j, "] is ", m.jnt_qposadr[j], ", expected ", qpos);
    if (m.jnt_dofadr[j] != dof) fail("jnt_dofadr[", j, "] is ", m.jnt_dofadr[j], ", expected ", dof);
    for (int k = 0; k < kDofs[type] && dof + k < m.nv; ++k) {
      if (m.dof_jntid[dof + k] != j) fail("dof_jntid[", dof + k, "] is ", m.dof_jntid[dof + k], ", expected ", j);
      if (m.dof_bodyid[dof + k] != body)
        fail("dof_bodyid[", dof + k, "] is ", m.dof_bodyid[dof + k], ", expected ", body);
    }
    if (type == 0 && (m.body_jntnum[body] != 1 || m.body_parentid[body] != 0)) {
      fail("joint ", j, " is free on body ", body, ", expected the only joint of a child of the world");
    }
    if (type == 0 && m.jnt_limited[j])
      fail("jnt_limited[", j, "] is set, expected only on slide, hinge and ball joints");
    if (type == 0 && m.nv >= dof + 6) {
      for (int k = 0; k < 6; ++k) {
        expect(m.dof_frictionloss[dof + k] == 0, "dof_frictionloss", dof + k, m.dof_frictionloss[dof + k],
               "0 on a free joint");
      }
    }
    qpos += kPositions[type], dof += kDofs[type];
  }
  if (qpos != m.nq) fail("nq is ", m.nq, ", expected ", qpos, " from jnt_type");
  if (dof != m.nv) fail("nv is ", m.nv, ", expected ", dof, " from jnt_type");
}

void check_joint_numbers(const Model& m) {
  for (int j = 0; j < m.njnt; ++j) {
    if (m.jnt_type[j] == static_cast<int>(JointType::kSlide) || m.jnt_type[j] == static_cast<int>(JointType::kHinge)) {
      expect_unit("jnt_axis", Reals(&m.jnt_axis[3 * j], &m.jnt_axis[3 * j] + 3), 3);
      continue;
    }
    const int at = m.jnt_qposadr[j] + (m.jnt_type[j] == 0 ? 3 : 0);
    const double *q = &m.qpos0[at], *spring = &m.qpos_spring[at];
    expect_unit("qpos0 quaternion", Reals(q, q + 4), 4);
    expect_unit("qpos_spring quaternion", Reals(spring, spring + 4), 4);
    if (m.jnt_limited[j])
      expect(m.jnt_range[2 * j + 1] >= 0, "jnt_range", 2 * j + 1, m.jnt_range[2 * j + 1], ">= 0 on a ball joint");
  }
  expect_ranges("jnt_range", m.jnt_range, m.jnt_limited);
  expect_ranges("jnt_actfrcrange", m.jnt_actfrcrange, m.jnt_actfrclimited);
  expect_not_negative("jnt_stiffness", m.jnt_stiffness);
  expect_not_negative("dof_armature", m.dof_armature);
  expect_not_negative("dof_damping", m.dof_damping);
  expect_not_negative("dof_frictionloss", m.dof_frictionloss);
}

void check_meshes(const Model& m) {
  int next = 0;
  for (int i = 0; i < m.nmesh; ++i) {
    if (m.mesh_vertadr[i] != next) fail("mesh_vertadr[", i, "] is ", m.mesh_vertadr[i], ", expected ", next);
    for (int v = next; v < next + m.mesh_vertnum[i]; ++v) {
      const int begin = m.mesh_edgeadr[v], end = m.mesh_edgeadr[v + 1];
      if (begin < 0 || end < begin || end > static_cast<int>(m.mesh_edge.size())) {
        fail("mesh_edgeadr[", v, "] is ", begin, " followed by ", end, ", expected ascending addresses");
      }
      for (int e = begin; e < end; ++e) expect_index("mesh_edge", e, m.mesh_edge[e], 0, m.mesh_vertnum[i]);
    }
    next += m.mesh_vertnum[i];
  }
  if (m.nmesh > 0 && m.mesh_edgeadr[0] != 0) fail("mesh_edgeadr[0] is ", m.mesh_edgeadr[0], ", expected 0");
}

void check_geoms(const Model& m) {
  // Sizes that must be positive, by GeomType: plane and mesh need none, heightfields are not read here.
  constexpr int kSizes[] = {0, 0, 1, 2, 3, 2, 3, 0};
  check_meshes(m);
  expect_indices("geom_type", m.geom_type, 0, 8);
  expect_indices("geom_bodyid", m.geom_bodyid, 0, m.nbody);
  expect_indices("pair_geom1", m.pair_geom1, 0, m.ngeom);
  expect_indices("pair_geom2", m.pair_geom2, 0, m.ngeom);
  expect_indices("exclude_body1", m.exclude_body1, 0, m.nbody);
  expect_indices("exclude_body2", m.exclude_body2, 0, m.nbody);
  for (int g = 0; g < m.ngeom; ++g) {
    const int type = m.geom_type[g];
    for (int k = 0; k < kSizes[type]; ++k) {
      expect(m.geom_size[3 * g + k] > 0, "geom_size", 3 * g + k, m.geom_size[3 * g + k], "> 0 for this geom_type");
    }
    const bool needs_mesh = type == static_cast<int>(GeomType::kMesh) && may_collide(m, g);
    expect_index("geom_dataid", g, m.geom_dataid[g], needs_mesh ? 0 : -1, m.nmesh);
    if (m.geom_condim[g] < 1) fail("geom_condim[", g, "] is ", m.geom_condim[g], ", expected 1, 3, 4 or 6");
  }
  for (int p = 0; p < m.npair; ++p) {
    if (m.pair_geom1[p] == m.pair_geom2[p]) fail("pair ", p, " joins geom ", m.pair_geom1[p], " to itself");
    if (m.pair_condim[p] < 1) fail("pair_condim[", p, "] is ", m.pair_condim[p], ", expected 1, 3, 4 or 6");
  }
  expect_unit("geom_quat", m.geom_quat, 4);
  expect_not_negative("geom_friction", m.geom_friction);
  expect_not_negative("geom_stiffness", m.geom_stiffness);
  expect_not_negative("geom_dissipation", m.geom_dissipation);
  for (int g = 0; g < m.ngeom; ++g)
    if (!(m.geom_restitution[g] >= 0 && m.geom_restitution[g] <= 1))
      fail("geom_restitution[", g, "] is ", m.geom_restitution[g], ", expected 0 to 1");
  expect_not_negative("pair_friction", m.pair_friction);
}

bool is_scalar_joint(const Model& m, int joint) { return m.jnt_type[joint] >= static_cast<int>(JointType::kSlide); }

void check_tendons(const Model& m) {
  int next = 0;
  for (int t = 0; t < m.ntendon; ++t) {
    if (m.tendon_adr[t] != next) fail("tendon_adr[", t, "] is ", m.tendon_adr[t], ", expected ", next);
    if (m.tendon_num[t] < 1) fail("tendon_num[", t, "] is ", m.tendon_num[t], ", expected >= 1");
    next += m.tendon_num[t];
    const double low = m.tendon_lengthspring[2 * t], high = m.tendon_lengthspring[2 * t + 1];
    if (low > high) fail("tendon_lengthspring[", t, "] is (", low, ", ", high, "), expected low <= high");
  }
  if (next != m.nwrap) fail("tendon_num adds up to ", next, ", expected nwrap = ", m.nwrap);
  expect_indices("wrap_jntid", m.wrap_jntid, 0, m.njnt);
  for (int w = 0; w < m.nwrap; ++w) {
    if (!is_scalar_joint(m, m.wrap_jntid[w])) fail("wrap_jntid[", w, "] is no slide or hinge joint");
  }
  expect_ranges("tendon_range", m.tendon_range, m.tendon_limited);
  expect_ranges("tendon_actfrcrange", m.tendon_actfrcrange, m.tendon_actfrclimited);
  expect_not_negative("tendon_stiffness", m.tendon_stiffness);
  expect_not_negative("tendon_damping", m.tendon_damping);
  expect_not_negative("tendon_frictionloss", m.tendon_frictionloss);
}

void check_equalities(const Model& m) {
  expect_indices("eq_type", m.eq_type, 0, 4);
  for (int e = 0; e < m.neq; ++e) {
    const auto type = static_cast<Equality>(m.eq_type[e]);
    const bool joint = type == Equality::kJoint, bodies = type == Equality::kConnect || type == Equality::kWeld;
    const int count = joint ? m.njnt : bodies ? m.nbody : m.ntendon, first = m.eq_obj1id[e], second = m.eq_obj2id[e];
    expect_index("eq_obj1id", e, first, 0, count), expect_index("eq_obj2id", e, second, bodies ? 0 : -1, count);
    if (first == second)
      fail("equality ", e, " joins ", joint ? "joint " : bodies ? "body " : "tendon ", first, " to itself");
    if (type == Equality::kWeld) {
      const double* data = &m.eq_data[11 * e];
      expect_unit("eq_data quaternion", Reals(data + 6, data + 10), 4);
      if (data[10] < 0) fail("eq_data[", e, "] has torquescale ", data[10], ", expected >= 0");
    }
    if (joint && (!is_scalar_joint(m, first) || (second >= 0 && !is_scalar_joint(m, second)))) {
      fail("equality ", e, " joins joints ", first, " and ", second, ", expected slide or hinge joints");
    }
  }
}

void check_actuators(const Model& m) {
  for (int a = 0; a < m.nu; ++a) {
    const bool joint = m.actuator_trntype[a] == static_cast<int>(Transmission::kJoint);
    if (!joint && m.actuator_trntype[a] != static_cast<int>(Transmission::kTendon)) {
      fail("actuator_trntype[", a, "] is ", m.actuator_trntype[a], ", expected 0 (joint) or 3 (tendon)");
    }
    expect_index("actuator_trnid", a, m.actuator_trnid[a], 0, joint ? m.njnt : m.ntendon);
    if (joint && !is_scalar_joint(m, m.actuator_trnid[a]) && m.actuator_biasprm[3 * a + 1] != 0) {
      fail("actuator_biasprm[", a, "] depends on length, expected a slide or hinge joint or a tendon");
    }
  }
  expect_ranges("actuator_ctrlrange", m.actuator_ctrlrange, m.actuator_ctrllimited);
  expect_ranges("actuator_forcerange", m.actuator_forcerange, m.actuator_forcelimited);
}

}  // namespace

void validate(const Model& model) {
  check_shapes(model);
  check_options(model);
  check_tree(model);
  check_joints(model);
  check_joint_numbers(model);
  check_inertia(model);
  expect_unit("body_quat", model.body_quat, 4);
  expect_unit("body_iquat", model.body_iquat, 4);
  check_geoms(model);
  expect_indices("site_bodyid", model.site_bodyid, 0, model.nbody);
  expect_unit("site_quat", model.site_quat, 4);
  check_tendons(model);
  check_equalities(model);
  check_actuators(model);
}

}  // namespace stiction
