// Small models for the tests of host/reference, written out by hand.
#pragma once
#include "host/model/model.h"

namespace stiction::reference::test {

/// Appends a body with one inertia and returns its number.
inline int add_body(Model& m, int parent, Reals pos, double mass, Reals inertia) {
  auto append = [](Reals& to, const Reals& values) { to.insert(to.end(), values.begin(), values.end()); };
  int b = m.nbody++;
  m.body_parentid.push_back(parent);
  m.body_weldid.push_back(b);
  m.body_jntadr.push_back(-1);
  m.body_jntnum.push_back(0);
  m.body_dofadr.push_back(-1);
  m.body_dofnum.push_back(0);
  append(m.body_pos, pos);
  append(m.body_quat, {1, 0, 0, 0});
  append(m.body_ipos, {0.01 * b, -0.02, 0.03});
  append(m.body_iquat, {1, 0, 0, 0});
  m.body_mass.push_back(mass);
  append(m.body_inertia, inertia);
  m.body_gravcomp.push_back(0);
  return b;
}

/// Appends a joint to the newest body.
inline void add_joint(Model& m, JointType type, Reals pos, Reals axis) {
  auto append = [](Reals& to, const Reals& values) { to.insert(to.end(), values.begin(), values.end()); };
  int b = m.nbody - 1, j = m.njnt++;
  int nq = type == JointType::kFree ? 7 : type == JointType::kBall ? 4 : 1;
  int nv = type == JointType::kFree ? 6 : type == JointType::kBall ? 3 : 1;
  if (m.body_jntnum[b]++ == 0) m.body_jntadr[b] = j, m.body_dofadr[b] = m.nv;
  m.body_dofnum[b] += nv;
  m.jnt_type.push_back(static_cast<int>(type));
  m.jnt_bodyid.push_back(b);
  m.jnt_qposadr.push_back(m.nq);
  m.jnt_dofadr.push_back(m.nv);
  m.jnt_limited.push_back(0);
  m.jnt_actfrclimited.push_back(0);
  append(m.jnt_pos, pos);
  append(m.jnt_axis, axis);
  m.jnt_stiffness.push_back(0);
  append(m.jnt_range, {0, 0});
  append(m.jnt_actfrcrange, {0, 0});
  for (int i = 0; i < nv; ++i) {
    m.dof_bodyid.push_back(b);
    m.dof_jntid.push_back(j);
    m.dof_armature.push_back(0);
    m.dof_damping.push_back(0);
    m.dof_frictionloss.push_back(0);
  }
  Reals rest = type == JointType::kFree   ? Reals{0, 0, 0, 1, 0, 0, 0}
               : type == JointType::kBall ? Reals{1, 0, 0, 0}
                                          : Reals{0.2};
  append(m.qpos0, rest);
  append(m.qpos_spring, rest);
  m.nq += nq;
  m.nv += nv;
}

/// Appends a rigid geom to a body, with sliding friction mu.
inline int add_geom(Model& m, int body, GeomType type, Reals size, double mu) {
  auto append = [](Reals& to, const Reals& values) { to.insert(to.end(), values.begin(), values.end()); };
  m.geom_type.push_back(static_cast<int>(type));
  m.geom_bodyid.push_back(body);
  m.geom_contype.push_back(1);
  m.geom_conaffinity.push_back(1);
  m.geom_condim.push_back(3);
  m.geom_priority.push_back(0);
  m.geom_dataid.push_back(-1);
  append(m.geom_size, size);
  append(m.geom_pos, {0, 0, 0});
  append(m.geom_quat, {1, 0, 0, 0});
  append(m.geom_friction, {mu, 0, 0});
  m.geom_stiffness.push_back(0);
  m.geom_dissipation.push_back(0), m.geom_restitution.push_back(0);
  return m.ngeom++;
}

inline Model world_only() {
  Model m;
  add_body(m, 0, {0, 0, 0}, 0, {0, 0, 0});
  m.body_weldid[0] = 0;
  for (int c = 0; c < 3; ++c) m.body_ipos[c] = 0;
  return m;
}

/// Free trunk, a body on a slide and a hinge off its origin, a body on a ball and a slide, and a fixed-base hinge.
inline Model mixed_chain() {
  Model m = world_only();
  add_body(m, 0, {0, 0, 1}, 2, {0.02, 0.03, 0.04});
  add_joint(m, JointType::kFree, {0, 0, 0}, {0, 0, 1});
  add_body(m, 1, {0.3, 0.1, 0}, 1, {0.01, 0.005, 0.012});
  add_joint(m, JointType::kSlide, {0, 0, 0}, {0.6, 0, 0.8});
  add_joint(m, JointType::kHinge, {0.1, 0.2, -0.1}, {0, 0.8, 0.6});
  add_body(m, 2, {0, 0.2, 0.3}, 0.7, {0.004, 0.005, 0.006});
  add_joint(m, JointType::kBall, {-0.1, 0, 0.05}, {0, 0, 1});
  add_joint(m, JointType::kSlide, {0, 0, 0}, {0, 1, 0});
  add_body(m, 0, {1, 0, 0}, 1.5, {0.03, 0.03, 0.01});
  add_joint(m, JointType::kHinge, {0, 0, 0.2}, {1, 0, 0});
  return m;
}

/// A unit-mass-like box of half side 0.1 m, free, with a geom, and the ground (geom 0).
inline Model box_on_ground(double mass, double mu) {
  Model m = world_only();
  add_geom(m, 0, GeomType::kPlane, {0, 0, 0.1}, mu);
  double inertia = mass * 0.2 * 0.2 / 6;
  add_body(m, 0, {0, 0, 0}, mass, {inertia, inertia, inertia});
  for (int c = 0; c < 3; ++c) m.body_ipos[3 + c] = 0;
  add_joint(m, JointType::kFree, {0, 0, 0}, {0, 0, 1});
  add_geom(m, 1, GeomType::kBox, {0.1, 0.1, 0.1}, mu);
  m.qpos0[2] = 0.1;
  return m;
}

}  // namespace stiction::reference::test
