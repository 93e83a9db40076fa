// Tables in double to tables of another number.
#include "host/model/compile.h"

namespace stiction {
namespace {

template <class S> Vec3<S> to(const Vec3<double>& a) { return {S(a.x), S(a.y), S(a.z)}; }
template <class S> Mat3<S> to(const Mat3<double>& M) { return {{to<S>(M.row[0]), to<S>(M.row[1]), to<S>(M.row[2])}}; }
template <class S> SymMat3<S> to(const SymMat3<double>& M) { return {S(M.xx), S(M.xy), S(M.xz), S(M.yy), S(M.yz), S(M.zz)}; }
template <class S> Pose<S> to(const Pose<double>& x) { return {to<S>(x.R), to<S>(x.p)}; }
template <class S> Quat<S> to(const Quat<double>& q) { return {S(q.w), S(q.x), S(q.y), S(q.z)}; }

template <class S>
LinkModel<S> to(const LinkModel<double>& a) {
  LinkModel<S> b;
  b.kind = a.kind, b.parent = a.parent, b.dof = a.dof, b.qpos = a.qpos, b.has_body = a.has_body, b.limited = a.limited;
  b.actuators = a.actuators, b.actuator_begin = a.actuator_begin, b.station = a.station;
  b.ball_frame = to<S>(a.ball_frame), b.offset = to<S>(a.offset), b.axis = to<S>(a.axis), b.q0 = S(a.q0);
  b.mass = S(a.mass), b.com = to<S>(a.com), b.inertia = to<S>(a.inertia);
  b.armature = S(a.armature), b.damping = S(a.damping), b.stiffness = S(a.stiffness), b.spring_ref = S(a.spring_ref);
  b.friction = S(a.friction), b.lower = S(a.lower), b.upper = S(a.upper);
  b.force_lower = S(a.force_lower), b.force_upper = S(a.force_upper);
  b.buoyant_mass = S(a.buoyant_mass), b.buoyant_com = to<S>(a.buoyant_com);
  b.bound_center = to<S>(a.bound_center), b.bound_radius = S(a.bound_radius), b.reach = S(a.reach);
  return b;
}
template <class S>
ProbeModel<S> to(const ProbeModel<double>& a) {
  return {a.plane, a.geom1, a.geom2, to<S>(a.center), S(a.radius), S(a.mu), S(a.stiffness), S(a.dissipation)};
}
template <class S> PlaneModel<S> to(const PlaneModel<double>& a) { return {to<S>(a.frame), S(a.distance)}; }
template <class S>
GeomModel<S> to(const GeomModel<double>& a) {
  return {a.type, a.link, a.body, a.mesh, to<S>(a.size), to<S>(a.pose), S(a.radius),
          to<S>(a.capsule_center), to<S>(a.capsule_axis), S(a.capsule_radius)};
}
template <class S>
PairModel<S> to(const PairModel<double>& a) {
  return {a.geom1, a.geom2, a.id, S(a.mu), S(a.stiffness), S(a.dissipation)};
}
template <class S>
ActuatorModel<S> to(const ActuatorModel<double>& a) {
  return {a.ctrl, a.clamp_ctrl, a.clamp_force, S(a.gear), S(a.gain), S(a.bias0), S(a.bias1), S(a.bias2),
          S(a.ctrl_lower), S(a.ctrl_upper), S(a.force_lower), S(a.force_upper)};
}
template <class S>
TieModel<S> to(const TieModel<double>& a) {
  TieModel<S> b;
  b.kind = a.kind, b.terms = a.terms;
  for (int i = 0; i < Capacity::kTieTerms; ++i) b.link[i] = a.link[i], b.coef[i] = S(a.coef[i]), b.q0[i] = S(a.q0[i]);
  for (int i = 0; i < 5; ++i) b.poly[i] = S(a.poly[i]);
  b.lower = S(a.lower), b.upper = S(a.upper), b.stiffness = S(a.stiffness), b.damping = S(a.damping);
  b.friction = S(a.friction), b.actuator = to<S>(a.actuator);
  return b;
}
template <class S>
BodyModel<S> to(const BodyModel<double>& a) {
  return {a.link, to<S>(a.pose), to<S>(a.quat), to<S>(a.com)};
}
template <class S> SiteModel<S> to(const SiteModel<double>& a) { return {a.link, to<S>(a.pos)}; }

template <class S, class From>
auto all(const std::vector<From>& from) {
  std::vector<decltype(to<S>(from[0]))> result;
  for (const From& x : from) result.push_back(to<S>(x));
  return result;
}

}  // namespace

template <class S>
void ModelTables<S>::link() {
  view.probe = probe.data(), view.plane = plane.data(), view.geom = geom.data(), view.pair = pair.data();
  view.link_pair = link_pair.data(), view.actuator = actuator.data(), view.tie = tie.data(), view.body = body.data();
  view.site = site.data(), view.hull = hull.data();
  int first = 0;
  for (HullView<S>& h : hull) {
    h.vert = hull_vert.data() + 3 * first;
    h.edgeadr = hull_edgeadr.empty() ? nullptr : hull_edgeadr.data() + first;
    h.edge = hull_edge.data();
    first += h.count;
  }
}

template <class S>
std::unique_ptr<ModelTables<S>> convert(const ModelTables<double>& from) {
  auto out = std::make_unique<ModelTables<S>>();
  ModelView<Capacity, S>& v = out->view;
  const ModelView<Capacity, double>& a = from.view;
  v.trunk_links_ = a.trunk_links_, v.limbs_ = a.limbs_, v.free_base_ = a.free_base_, v.trunk_leading = a.trunk_leading;
  v.nq = a.nq, v.nv = a.nv, v.nu = a.nu, v.nbody = a.nbody, v.ngeom = a.ngeom, v.nsite = a.nsite;
  v.planes = a.planes, v.link_pairs = a.link_pairs, v.ties = a.ties;
  v.pair_slots = a.pair_slots, v.world_slots = a.world_slots;
  v.has_limits = a.has_limits, v.has_friction = a.has_friction, v.has_springs = a.has_springs;
  v.has_buoyancy = a.has_buoyancy;
  v.mean_mass = S(a.mean_mass), v.gravity = to<S>(a.gravity);
  for (int t = 0; t < Capacity::kTrunkLinks; ++t) v.trunk[t] = to<S>(a.trunk[t]);
  for (int l = 0; l < Capacity::kLimbs; ++l) v.limb[l] = a.limb[l];
  for (int k = 0; k < Capacity::kLinks; ++k) v.link[k] = to<S>(a.link[k]);
  out->probe = all<S>(from.probe), out->plane = all<S>(from.plane), out->geom = all<S>(from.geom);
  out->pair = all<S>(from.pair), out->link_pair = from.link_pair, out->actuator = all<S>(from.actuator);
  out->tie = all<S>(from.tie), out->body = all<S>(from.body), out->site = all<S>(from.site);
  for (const auto& h : from.hull) out->hull.push_back({nullptr, nullptr, nullptr, h.count});
  out->hull_vert.assign(from.hull_vert.begin(), from.hull_vert.end());
  out->hull_edgeadr = from.hull_edgeadr, out->hull_edge = from.hull_edge;
  out->link();
  return out;
}

template struct ModelTables<float>;
template struct ModelTables<double>;
template std::unique_ptr<ModelTables<float>> convert(const ModelTables<double>&);
template std::unique_ptr<ModelTables<double>> convert(const ModelTables<double>&);

}  // namespace stiction
