// visit_fields: every array of a Model with its name and shape, once, so that the size check, the Python binding and the
// archive cannot disagree. f(name, field, rows, cols); a field with cols == 1 is one-dimensional. visit_sizes: the counts.
//
// Preconditions: the counts are set; a Model whose mesh tables are inconsistent gets the shapes its counts imply.
#pragma once
#include "host/model/model.h"

namespace stiction {

/// f(name, count) for every size of the model.
template <class M, class F>
void visit_sizes(M& m, F&& f) {
  f("nq", m.nq), f("nv", m.nv), f("nu", m.nu), f("nbody", m.nbody), f("njnt", m.njnt), f("ngeom", m.ngeom);
  f("nsite", m.nsite), f("ntendon", m.ntendon), f("nwrap", m.nwrap), f("neq", m.neq), f("nkey", m.nkey);
  f("nmesh", m.nmesh), f("npair", m.npair), f("nexclude", m.nexclude), f("nmocap", m.nmocap);
}

namespace detail {

/// Hull vertices of all meshes, from mesh_vertnum; negative counts are left to validate().
inline int total_mesh_vertices(const Model& m) {
  int total = 0;
  for (int count : m.mesh_vertnum) total += count > 0 ? count : 0;
  return total;
}

template <class M, class F>
void visit_tree_fields(M& m, F&& f) {
  f("body_parentid", m.body_parentid, m.nbody, 1), f("body_weldid", m.body_weldid, m.nbody, 1);
  f("body_jntadr", m.body_jntadr, m.nbody, 1), f("body_jntnum", m.body_jntnum, m.nbody, 1);
  f("body_dofadr", m.body_dofadr, m.nbody, 1), f("body_dofnum", m.body_dofnum, m.nbody, 1);
  f("body_pos", m.body_pos, m.nbody, 3), f("body_quat", m.body_quat, m.nbody, 4);
  f("body_ipos", m.body_ipos, m.nbody, 3), f("body_iquat", m.body_iquat, m.nbody, 4);
  f("body_mass", m.body_mass, m.nbody, 1), f("body_inertia", m.body_inertia, m.nbody, 3);
  f("body_gravcomp", m.body_gravcomp, m.nbody, 1), f("body_mocapid", m.body_mocapid, m.nbody, 1);
  f("jnt_type", m.jnt_type, m.njnt, 1), f("jnt_bodyid", m.jnt_bodyid, m.njnt, 1);
  f("jnt_qposadr", m.jnt_qposadr, m.njnt, 1), f("jnt_dofadr", m.jnt_dofadr, m.njnt, 1);
  f("jnt_limited", m.jnt_limited, m.njnt, 1), f("jnt_actfrclimited", m.jnt_actfrclimited, m.njnt, 1);
  f("jnt_pos", m.jnt_pos, m.njnt, 3), f("jnt_axis", m.jnt_axis, m.njnt, 3);
  f("jnt_stiffness", m.jnt_stiffness, m.njnt, 1), f("jnt_range", m.jnt_range, m.njnt, 2);
  f("jnt_actfrcrange", m.jnt_actfrcrange, m.njnt, 2);
  f("dof_bodyid", m.dof_bodyid, m.nv, 1), f("dof_jntid", m.dof_jntid, m.nv, 1);
  f("dof_armature", m.dof_armature, m.nv, 1), f("dof_damping", m.dof_damping, m.nv, 1);
  f("dof_frictionloss", m.dof_frictionloss, m.nv, 1);
  f("qpos0", m.qpos0, m.nq, 1), f("qpos_spring", m.qpos_spring, m.nq, 1);
}

template <class M, class F>
void visit_contact_fields(M& m, F&& f) {
  const int vertices = total_mesh_vertices(m);
  const int edges = m.mesh_edgeadr.empty() ? 0 : m.mesh_edgeadr.back();
  f("geom_type", m.geom_type, m.ngeom, 1), f("geom_bodyid", m.geom_bodyid, m.ngeom, 1);
  f("geom_contype", m.geom_contype, m.ngeom, 1), f("geom_conaffinity", m.geom_conaffinity, m.ngeom, 1);
  f("geom_condim", m.geom_condim, m.ngeom, 1), f("geom_priority", m.geom_priority, m.ngeom, 1);
  f("geom_dataid", m.geom_dataid, m.ngeom, 1), f("geom_size", m.geom_size, m.ngeom, 3);
  f("geom_pos", m.geom_pos, m.ngeom, 3), f("geom_quat", m.geom_quat, m.ngeom, 4);
  f("geom_friction", m.geom_friction, m.ngeom, 3), f("geom_stiffness", m.geom_stiffness, m.ngeom, 1);
  f("geom_dissipation", m.geom_dissipation, m.ngeom, 1), f("geom_restitution", m.geom_restitution, m.ngeom, 1);
  f("mesh_vertadr", m.mesh_vertadr, m.nmesh, 1), f("mesh_vertnum", m.mesh_vertnum, m.nmesh, 1);
  f("mesh_vert", m.mesh_vert, vertices, 3);
  f("mesh_edgeadr", m.mesh_edgeadr, m.nmesh > 0 ? vertices + 1 : 0, 1), f("mesh_edge", m.mesh_edge, edges, 1);
  f("pair_geom1", m.pair_geom1, m.npair, 1), f("pair_geom2", m.pair_geom2, m.npair, 1);
  f("pair_condim", m.pair_condim, m.npair, 1), f("pair_friction", m.pair_friction, m.npair, 3);
  f("exclude_body1", m.exclude_body1, m.nexclude, 1), f("exclude_body2", m.exclude_body2, m.nexclude, 1);
}

template <class M, class F>
void visit_mechanism_fields(M& m, F&& f) {
  f("site_bodyid", m.site_bodyid, m.nsite, 1), f("site_pos", m.site_pos, m.nsite, 3);
  f("site_quat", m.site_quat, m.nsite, 4);
  f("tendon_adr", m.tendon_adr, m.ntendon, 1), f("tendon_num", m.tendon_num, m.ntendon, 1);
  f("wrap_jntid", m.wrap_jntid, m.nwrap, 1), f("wrap_coef", m.wrap_coef, m.nwrap, 1);
  f("tendon_stiffness", m.tendon_stiffness, m.ntendon, 1), f("tendon_damping", m.tendon_damping, m.ntendon, 1);
  f("tendon_frictionloss", m.tendon_frictionloss, m.ntendon, 1);
  f("tendon_lengthspring", m.tendon_lengthspring, m.ntendon, 2), f("tendon_range", m.tendon_range, m.ntendon, 2);
  f("tendon_limited", m.tendon_limited, m.ntendon, 1), f("tendon_actfrcrange", m.tendon_actfrcrange, m.ntendon, 2);
  f("tendon_actfrclimited", m.tendon_actfrclimited, m.ntendon, 1);
  f("eq_type", m.eq_type, m.neq, 1), f("eq_obj1id", m.eq_obj1id, m.neq, 1), f("eq_obj2id", m.eq_obj2id, m.neq, 1);
  f("eq_active", m.eq_active, m.neq, 1), f("eq_data", m.eq_data, m.neq, 11);
  f("actuator_trntype", m.actuator_trntype, m.nu, 1), f("actuator_trnid", m.actuator_trnid, m.nu, 1);
  f("actuator_gear", m.actuator_gear, m.nu, 6), f("actuator_gainprm", m.actuator_gainprm, m.nu, 1);
  f("actuator_biasprm", m.actuator_biasprm, m.nu, 3);
  f("actuator_ctrllimited", m.actuator_ctrllimited, m.nu, 1);
  f("actuator_forcelimited", m.actuator_forcelimited, m.nu, 1);
  f("actuator_ctrlrange", m.actuator_ctrlrange, m.nu, 2), f("actuator_forcerange", m.actuator_forcerange, m.nu, 2);
  f("key_qpos", m.key_qpos, m.nkey, m.nq), f("key_qvel", m.key_qvel, m.nkey, m.nv);
  f("key_ctrl", m.key_ctrl, m.nkey, m.nu);
  f("key_mpos", m.key_mpos, m.nkey, 3 * m.nmocap), f("key_mquat", m.key_mquat, m.nkey, 4 * m.nmocap);
}

}  // namespace detail

/// f(name, array, rows, cols) for every numeric array (Reals or Ints) but gravity.
template <class M, class F>
void visit_fields(M& m, F&& f) {
  detail::visit_tree_fields(m, f);
  detail::visit_contact_fields(m, f);
  detail::visit_mechanism_fields(m, f);
}

/// f(name, names, count) for every list of names.
template <class M, class F>
void visit_names(M& m, F&& f) {
  f("body_names", m.body_names, m.nbody), f("joint_names", m.joint_names, m.njnt);
  f("geom_names", m.geom_names, m.ngeom), f("site_names", m.site_names, m.nsite);
  f("actuator_names", m.actuator_names, m.nu), f("tendon_names", m.tendon_names, m.ntendon);
  f("key_names", m.key_names, m.nkey);
}

/// Whether explicit pairs or the contact bits let the geom take part in a contact (whatever the other geoms are).
inline bool may_collide(const Model& m, int geom) {
  if (m.geom_contype[geom] != 0 || m.geom_conaffinity[geom] != 0) return true;
  for (int p = 0; p < m.npair; ++p) {
    if (m.pair_geom1[p] == geom || m.pair_geom2[p] == geom) return true;
  }
  return false;
}

}  // namespace stiction
