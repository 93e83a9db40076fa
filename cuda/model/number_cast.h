// The model's structs with another number: double to float for kernels, a plain number to a Real for per-environment tables.
#pragma once
#include "model/model_view.h"

namespace stiction {

template <class S, class F>
Vec3<S> number_cast(const Vec3<F>& a) {
  return {S(a.x), S(a.y), S(a.z)};
}
template <class S, class F>
Mat3<S> number_cast(const Mat3<F>& M) {
  return {{number_cast<S>(M.row[0]), number_cast<S>(M.row[1]), number_cast<S>(M.row[2])}};
}
template <class S, class F>
SymMat3<S> number_cast(const SymMat3<F>& M) {
  return {S(M.xx), S(M.xy), S(M.xz), S(M.yy), S(M.yz), S(M.zz)};
}
template <class S, class F>
Pose<S> number_cast(const Pose<F>& x) {
  return {number_cast<S>(x.R), number_cast<S>(x.p)};
}
template <class S, class F>
Quat<S> number_cast(const Quat<F>& q) {
  return {S(q.w), S(q.x), S(q.y), S(q.z)};
}

template <class S, class F>
LinkModel<S> number_cast(const LinkModel<F>& a) {
  LinkModel<S> b;
  b.kind = a.kind, b.joint = a.joint, b.parent = a.parent, b.dof = a.dof, b.qpos = a.qpos, b.has_body = a.has_body,
  b.limited = a.limited, b.hung = a.hung;
  b.actuators = a.actuators, b.actuator_begin = a.actuator_begin, b.pulls = a.pulls, b.station = a.station;
  b.ball_frame = number_cast<S>(a.ball_frame), b.spring_quat = number_cast<S>(a.spring_quat);
  b.offset = number_cast<S>(a.offset), b.axis = number_cast<S>(a.axis), b.q0 = S(a.q0);
  b.mass = S(a.mass), b.com = number_cast<S>(a.com), b.inertia = number_cast<S>(a.inertia);
  b.armature = S(a.armature), b.damping = S(a.damping), b.stiffness = S(a.stiffness), b.spring_ref = S(a.spring_ref);
  b.friction = S(a.friction), b.lower = S(a.lower), b.upper = S(a.upper);
  b.force_lower = S(a.force_lower), b.force_upper = S(a.force_upper);
  b.buoyant_mass = S(a.buoyant_mass), b.buoyant_com = number_cast<S>(a.buoyant_com);
  b.bound_center = number_cast<S>(a.bound_center), b.bound_radius = S(a.bound_radius), b.reach = S(a.reach);
  return b;
}
template <class S, class F>
ProbeModel<S> number_cast(const ProbeModel<F>& a) {
  return {a.plane,      a.geom1,     a.geom2,        a.feature,        a.friction_rule,  number_cast<S>(a.center),
          S(a.radius),  S(a.mu),     S(a.stiffness), S(a.dissipation), S(a.restitution), a.dim,
          S(a.torsion), S(a.rolling)};
}
template <class S, class F>
PlaneModel<S> number_cast(const PlaneModel<F>& a) {
  return {a.geom, number_cast<S>(a.frame), S(a.distance)};
}
template <class S, class F>
GeomModel<S> number_cast(const GeomModel<F>& a) {
  return {a.type,
          a.link,
          a.body,
          a.mesh,
          a.collides,
          number_cast<S>(a.size),
          number_cast<S>(a.pose),
          S(a.radius),
          number_cast<S>(a.capsule_center),
          number_cast<S>(a.capsule_axis),
          S(a.capsule_radius)};
}
template <class S, class F>
PairModel<S> number_cast(const PairModel<F>& a) {
  return {a.geom1,          a.geom2, a.id,         a.friction_rule, S(a.mu),      S(a.stiffness), S(a.dissipation),
          S(a.restitution), a.dim,   S(a.torsion), S(a.rolling),    a.candidates, a.middle};
}
template <class S>
LinkPairModel number_cast(const LinkPairModel& a) {
  return a;
}
template <class S, class F>
ActuatorModel<S> number_cast(const ActuatorModel<F>& a) {
  return {a.ctrl,     a.clamp_ctrl, a.clamp_force,   S(a.gear),       S(a.gain),        S(a.bias0),
          S(a.bias1), S(a.bias2),   S(a.ctrl_lower), S(a.ctrl_upper), S(a.force_lower), S(a.force_upper)};
}
template <class S, class F>
TieModel<S> number_cast(const TieModel<F>& a) {
  TieModel<S> b;
  b.kind = a.kind, b.terms = a.terms;
  for (int i = 0; i < Capacity::kTieTerms; ++i) {
    b.link[i] = a.link[i], b.coef[i] = S(a.coef[i]), b.second[i] = S(a.second[i]), b.q0[i] = S(a.q0[i]);
  }
  for (int i = 0; i < 5; ++i) b.poly[i] = S(a.poly[i]);
  b.lower = S(a.lower), b.upper = S(a.upper), b.stiffness = S(a.stiffness), b.damping = S(a.damping);
  b.friction = S(a.friction), b.actuator = number_cast<S>(a.actuator);
  b.actuators = a.actuators, b.ranged = a.ranged;
  b.force_lower = S(a.force_lower), b.force_upper = S(a.force_upper);
  return b;
}
template <class S, class F>
BondModel<S> number_cast(const BondModel<F>& a) {
  BondModel<S> b;
  b.kind = a.kind, b.scale = S(a.scale);
  for (int i = 0; i < 2; ++i) {
    b.link[i] = a.link[i], b.still[i] = a.still[i], b.mocap[i] = a.mocap[i], b.body[i] = a.body[i];
    b.frame[i] = number_cast<S>(a.frame[i]);
  }
  return b;
}
template <class S, class F>
BodyModel<S> number_cast(const BodyModel<F>& a) {
  return {a.link,   a.mocap,   number_cast<S>(a.pose), number_cast<S>(a.quat), number_cast<S>(a.com),
          a.parent, a.jointed, number_cast<S>(a.pos),  number_cast<S>(a.ipos)};
}
template <class S, class F>
SiteModel<S> number_cast(const SiteModel<F>& a) {
  return {a.link, a.mocap, a.body, number_cast<S>(a.pos), number_cast<S>(a.local)};
}

template <class S, class F>
MassModel<S> number_cast(const MassModel<F>& a) {
  return {a.link,
          a.body,
          a.first,
          S(a.mass),
          S(a.gravcomp),
          number_cast<S>(a.com),
          number_cast<S>(a.inertia),
          number_cast<S>(a.axes)};
}

/// Counts, trunk, limbs and links of a view, which another shape has room for; the pointers stay as they are.
template <class S, class From, class Shape, class F>
void cast_view(const ModelView<From, F>& a, ModelView<Shape, S>& v) {
  static_cast<ModelCounts&>(v) = a;
  v.trunk_links_ = a.trunk_links_, v.limbs_ = a.limbs_, v.free_base_ = a.free_base_, v.trunk_leading = a.trunk_leading;
  v.nq = a.nq, v.nv = a.nv, v.nu = a.nu, v.nbody = a.nbody, v.ngeom = a.ngeom, v.nsite = a.nsite, v.nmocap = a.nmocap;
  v.njnt = a.njnt, v.probes = a.probes, v.pairs = a.pairs, v.actuators = a.actuators, v.masses = a.masses;
  v.planes = a.planes, v.world_slots = a.world_slots, v.has_springs = a.has_springs,
  v.has_restitution = a.has_restitution, v.has_base_spring = a.has_base_spring;
  v.mean_mass = S(a.mean_mass), v.gravity = number_cast<S>(a.gravity);
  for (int t = 0; t < Shape::kTrunkLinks; ++t) v.trunk[t] = number_cast<S>(a.trunk[t]);
  for (int l = 0; l < min(From::kLimbs, Shape::kLimbs); ++l) v.limb[l] = a.limb[l];
  for (int k = 0; k < min(From::kLinks, Shape::kLinks); ++k) v.link[k] = number_cast<S>(a.link[k]);
}

}  // namespace stiction
