// Per-environment parameters: tables of a pack or a world whose numbers differ from environment to environment, derived in the
// step from users' row-major arrays. A write into those arrays is all that randomisation needs.
//
// body_mass scales the body's inertia unless body_inertia is per environment too. Friction combines as in MuJoCo. Sizes of
// spheres, capsules, cylinders, ellipsoids and boxes may differ; types and meshes do not.
//
// Bodies without joints are merged into what carries them, so that a change of body_pos moves all that they bring along in the
// frame of their carrier, a link, a mocap body or the world: shift_of(). A body with joints moves where its first one hangs.
#pragma once
#include "model/geom_kind.h"
#include "model/model_view.h"

namespace stiction {

/// Pointers to (num_envs, ...) arrays with MuJoCo's names; null: the model's own, the same for all.
template <class T>
struct ParameterArrays {
  const T *body_mass = nullptr, *body_inertia = nullptr;                                 // (N, nbody), (N, nbody, 3)
  const T *geom_friction = nullptr, *geom_size = nullptr;                                // (N, ngeom, 3) both
  const T *dof_damping = nullptr, *dof_armature = nullptr, *dof_frictionloss = nullptr;  // (N, nv)
  const T *jnt_stiffness = nullptr, *jnt_range = nullptr;                                // (N, njnt), (N, njnt, 2)
  const T *actuator_gainprm = nullptr, *actuator_biasprm = nullptr;                      // (N, nu), (N, nu, 3)
  const T *body_pos = nullptr, *body_ipos = nullptr, *site_pos = nullptr;  // (N, nbody, 3) both, (N, nsite, 3)
  const T* gravity = nullptr;                                              // (N, 3)
};

/// Writable tables behind a ModelView<Shape, Real>; the caller owns the memory and has filled it from the shared model.
template <class Shape, class Real>
struct ParameterTables {
  ModelView<Shape, Real> view;
  ProbeModel<Real>* probe;
  PlaneModel<Real>* plane;
  GeomModel<Real>* geom;
  PairModel<Real>* pair;
  ActuatorModel<Real>* actuator;
  TieModel<Real>* tie;
  BondModel<Real>* bond;
  BodyModel<Real>* body;
};

/// The friction of two geoms by rule: 0 the larger, 1 the first's, 2 the second's, 3 fixed.
template <class Real>
HD Real friction_of(int rule, Real first, Real second, Real fixed) {
  return rule == 0 ? max(first, second) : rule == 1 ? first : rule == 2 ? second : fixed;
}

/// What is read of each environment of a pack: get(array, stride, i).
template <class Real, class Get>
HD Vec3<Real> get_vec(const Scalar<Real>* array, int count, int i, Get get) {
  return {get(array, 3 * count, 3 * i), get(array, 3 * count, 3 * i + 1), get(array, 3 * count, 3 * i + 2)};
}

/// How far a body's place on its parent, and so what hangs there, is from the model's, in the axes of what carries it.
template <class Real, class Shared, class Get>
HD Vec3<Real> seat_of(const Shared& m, const ParameterArrays<Scalar<Real>>& a, int body, Get get) {
  Vec3<Real> sum{Real(0), Real(0), Real(0)};
  if (a.body_pos == nullptr) return sum;
  do {
    const auto& b = m.body[body];
    const Mat3<Real> axes = mat<Real>(m.body[b.parent].pose.R);
    sum = sum + axes * (get_vec<Real>(a.body_pos, m.nbody, body, get) - vec<Real>(b.pos));
    body = b.parent;
  } while (!m.body[body].jointed);
  return sum;
}
/// The same of its frame, and of all that is fixed to it.
template <class Real, class Shared, class Get>
HD Vec3<Real> shift_of(const Shared& m, const ParameterArrays<Scalar<Real>>& a, int body, Get get) {
  return m.body[body].jointed ? Vec3<Real>{Real(0), Real(0), Real(0)} : seat_of<Real>(m, a, body, get);
}
template <class Real, class Shared, class Get>
HD Vec3<Real> com_shift_of(const Shared& m, const ParameterArrays<Scalar<Real>>& a, int body, Get get) {
  const Vec3<Real> shift = shift_of<Real>(m, a, body, get);
  if (a.body_ipos == nullptr) return shift;
  const auto& b = m.body[body];
  return shift + mat<Real>(b.pose.R) * (get_vec<Real>(a.body_ipos, m.nbody, body, get) - vec<Real>(b.ipos));
}
template <class Real, class Shared, class Get>
HD Vec3<Real> site_shift_of(const Shared& m, const ParameterArrays<Scalar<Real>>& a, int site, Get get) {
  const auto& s = m.site[site];
  const Vec3<Real> shift = shift_of<Real>(m, a, s.body, get);
  if (a.site_pos == nullptr) return shift;
  return shift +
         mat<Real>(m.body[s.body].pose.R) * (get_vec<Real>(a.site_pos, m.nsite, site, get) - vec<Real>(s.local));
}

/// Where links hang, bodies and bonds are.
template <class Shape, class Real, class Shared, class Get>
HD void update_places(const Shared& m, const ParameterArrays<Scalar<Real>>& a, Get get,
                      ParameterTables<Shape, Real>& t) {
  for (int b = 1; b < m.nbody; ++b) {
    t.body[b].pose.p = vec<Real>(m.body[b].pose.p) + shift_of<Real>(m, a, b, get);
    t.body[b].com = vec<Real>(m.body[b].com) + com_shift_of<Real>(m, a, b, get);
  }
  if (a.body_pos == nullptr) return;
  auto hang = [&](const auto& shared, LinkModel<Real>& link) {
    if (shared.hung >= 0) link.offset = vec<Real>(shared.offset) + seat_of<Real>(m, a, shared.hung, get);
  };
  for (int i = 0; i < m.trunk_links(); ++i) hang(m.trunk[i], t.view.trunk[i]);
  for (int l = 0; l < m.limbs(); ++l)
    for (int k = m.limb[l].first_link; k < m.limb[l].first_link + m.limb[l].links; ++k) hang(m.link[k], t.view.link[k]);
  for (int i = 0; i < m.bonds; ++i)
    for (int end = 0; end < 2; ++end)
      t.bond[i].frame[end].p = vec<Real>(m.bond[i].frame[end].p) + shift_of<Real>(m, a, m.bond[i].body[end], get);
}

template <class Shape, class Real, class Shared, class Get>
HD void update_masses(const Shared& m, const ParameterArrays<Scalar<Real>>& a, Get get,
                      ParameterTables<Shape, Real>& t) {
  auto link_of = [&](int flat) -> LinkModel<Real>& {
    return flat < kLimbsFrom<Shape> ? t.view.trunk[flat] : t.view.link[flat - kLimbsFrom<Shape>];
  };
  const Real zero(0), one(1);
  const Vec3<Real> none{zero, zero, zero};
  auto com_of = [&](const auto& b) { return vec<Real>(b.com) + com_shift_of<Real>(m, a, b.body, get); };
  Real total(0), bodies(0);
  for (int i = 0; i < m.masses; ++i) {  // first sums of mass and moment, body by body
    const auto& b = m.mass[i];
    LinkModel<Real>& link = link_of(b.link);
    const Real mass = a.body_mass ? get(a.body_mass, m.nbody, b.body) : Real(b.mass), buoyant = mass * Real(b.gravcomp);
    if (b.first)
      link.mass = link.buoyant_mass = zero, link.com = link.buoyant_com = none,
      link.inertia = {zero, zero, zero, zero, zero, zero};
    link.mass = link.mass + mass, link.buoyant_mass = link.buoyant_mass + buoyant;
    const Vec3<Real> com = com_of(b);
    link.com = link.com + com * mass, link.buoyant_com = link.buoyant_com + com * buoyant;
    total = total + mass, bodies = bodies + select(mass > zero, one, zero);
  }
  t.view.mean_mass = total / max(bodies, one);
  for (int i = 0; i < m.masses; ++i) {
    LinkModel<Real>& link = link_of(m.mass[i].link);
    if (!m.mass[i].first) continue;
    link.com = link.com * (one / max(link.mass, Real(1e-12f)));
    const Mask<Real> lifted = abs(link.buoyant_mass) > zero;
    link.buoyant_com = link.buoyant_com * select(lifted, one / select(lifted, link.buoyant_mass, one), zero);
  }
  for (int i = 0; i < m.masses; ++i) {
    const auto& b = m.mass[i];
    LinkModel<Real>& link = link_of(b.link);
    Real mass = a.body_mass ? get(a.body_mass, m.nbody, b.body) : Real(b.mass);
    Vec3<Real> principal = vec<Real>(b.inertia);
    if (a.body_inertia) principal = get_vec<Real>(a.body_inertia, m.nbody, b.body, get);
    else if (b.mass > 0) principal = principal * (mass * (Scalar<Real>(1) / b.mass));
    Mat3<Real> axes = mat<Real>(b.axes);
    Vec3<Real> d = com_of(b) - link.com;
    SymMat3<Real> shift{mass * (d.y * d.y + d.z * d.z), -(mass * d.x * d.y), -(mass * d.x * d.z),
                        mass * (d.x * d.x + d.z * d.z), -(mass * d.y * d.z), mass * (d.x * d.x + d.y * d.y)};
    link.inertia = link.inertia + in_world(axes, principal) + shift;
  }
}

template <class Shape, class Real, class Shared, class Get>
HD void update_joints(const Shared& m, const ParameterArrays<Scalar<Real>>& a, Get get,
                      ParameterTables<Shape, Real>& t) {
  auto update = [&](const auto& shared, LinkModel<Real>& link) {
    if (a.dof_damping) link.damping = get(a.dof_damping, m.nv, shared.dof);
    if (a.dof_armature) link.armature = get(a.dof_armature, m.nv, shared.dof);
    if (a.dof_frictionloss) link.friction = get(a.dof_frictionloss, m.nv, shared.dof);
    if (shared.joint < 0) return;
    if (a.jnt_stiffness) link.stiffness = get(a.jnt_stiffness, m.njnt, shared.joint);
    if (a.jnt_range && (shared.limited || shared.kind == kBallLink))
      link.lower = get(a.jnt_range, 2 * m.njnt, 2 * shared.joint),
      link.upper = get(a.jnt_range, 2 * m.njnt, 2 * shared.joint + 1);
  };
  for (int i = 0; i < m.trunk_links(); ++i) update(m.trunk[i], t.view.trunk[i]);
  for (int l = 0; l < m.limbs(); ++l)
    for (int k = m.limb[l].first_link; k < m.limb[l].first_link + m.limb[l].links; ++k)
      update(m.link[k], t.view.link[k]);
  if (a.jnt_stiffness) t.view.has_springs = t.view.has_base_spring = 1;
  if (a.dof_frictionloss) t.view.has_friction = 1;
  if (a.gravity) t.view.gravity = {get(a.gravity, 3, 0), get(a.gravity, 3, 1), get(a.gravity, 3, 2)};
  auto drive = [&](ActuatorModel<Real>& x) {
    if (a.actuator_gainprm) x.gain = get(a.actuator_gainprm, m.nu, x.ctrl);
    if (a.actuator_biasprm)
      x.bias0 = get(a.actuator_biasprm, 3 * m.nu, 3 * x.ctrl),
      x.bias1 = get(a.actuator_biasprm, 3 * m.nu, 3 * x.ctrl + 1),
      x.bias2 = get(a.actuator_biasprm, 3 * m.nu, 3 * x.ctrl + 2);
  };
  for (int i = 0; i < m.actuators; ++i) drive(t.actuator[i]);
  for (int i = 0; i < m.ties; ++i)
    if (m.tie[i].kind == kTieActuator) drive(t.tie[i].actuator);
}

template <class Shape, class Real, class Shared, class Get>
HD void update_surfaces(const Shared& m, const ParameterArrays<Scalar<Real>>& a, Get get,
                        ParameterTables<Shape, Real>& t) {
  auto put_friction = [&](const auto& shared, auto& x) {
    auto of = [&](int k, Real fixed) {
      return friction_of(shared.friction_rule, get(a.geom_friction, 3 * m.ngeom, 3 * shared.geom1 + k),
                         get(a.geom_friction, 3 * m.ngeom, 3 * shared.geom2 + k), fixed);
    };
    x.mu = of(0, Real(shared.mu));
    if (shared.dim > 3) x.torsion = of(1, Real(shared.torsion));
    if (shared.dim > 4) x.rolling = of(2, Real(shared.rolling));
  };
  if (a.geom_friction) {
    for (int i = 0; i < m.probes; ++i) put_friction(m.probe[i], t.probe[i]);
    for (int i = 0; i < m.pairs; ++i) put_friction(m.pair[i], t.pair[i]);
  }
  if (!a.geom_size && !a.body_pos) return;
  const Real zero(0);
  for (int i = 0; i < m.ngeom; ++i) {
    GeomModel<Real>& x = t.geom[i];
    const int type = m.geom[i].type;
    const Vec3<Real> shift = shift_of<Real>(m, a, m.geom[i].body, get);
    x.pose.p = vec<Real>(m.geom[i].pose.p) + shift, x.capsule_center = vec<Real>(m.geom[i].capsule_center) + shift;
    if (!a.geom_size || type < GeomKind::kSphere || m.geom[i].mesh >= 0) continue;
    x.size = get_vec<Real>(a.geom_size, m.ngeom, i, get);
    x.radius = bounding_radius(type, x.size, zero);
    x.capsule_center = x.pose.p, x.capsule_axis = {zero, zero, zero}, x.capsule_radius = x.radius;
  }
  for (int i = 0; i < m.planes; ++i) {
    const auto& plane = m.plane[i];
    const Vec3<Real> shift = shift_of<Real>(m, a, m.geom[plane.geom].body, get);
    t.plane[i].distance = Real(plane.distance) + dot(vec<Real>(plane.frame.row[2]), shift);
  }
  for (int i = 0; i < m.probes; ++i) {
    const GeomModel<Real>& g = t.geom[m.probe[i].geom2];
    if (!a.geom_size) {
      t.probe[i].center = vec<Real>(m.probe[i].center) + shift_of<Real>(m, a, m.geom[m.probe[i].geom2].body, get);
      continue;
    }
    const Probe<Real> own = probe_of(m.geom[m.probe[i].geom2].type, g.size, m.probe[i].feature);
    t.probe[i].center = g.pose * own.center, t.probe[i].radius = own.radius;
  }
  // How far geoms reach from their links, for the margins and the broad phase.
  for (int i = 0; i < m.trunk_links(); ++i) t.view.trunk[i].reach = t.view.trunk[i].bound_radius = zero;
  for (int l = 0; l < m.limbs(); ++l)
    for (int k = m.limb[l].first_link; k < m.limb[l].first_link + m.limb[l].links; ++k)
      t.view.link[k].reach = t.view.link[k].bound_radius = zero;
  auto widen = [&](LinkModel<Real>& link, const GeomModel<Real>& g) {
    link.reach = max(link.reach, norm(g.pose.p) + g.radius);
    link.bound_radius = max(link.bound_radius, norm(g.pose.p - link.bound_center) + g.radius);
  };
  for (int i = 0; i < m.ngeom; ++i) {
    const int flat = m.geom[i].link;
    if (flat < 0 || !m.geom[i].collides) continue;
    widen(flat < kLimbsFrom<Shape> ? t.view.trunk[flat] : t.view.link[flat - kLimbsFrom<Shape>], t.geom[i]);
  }
}

/// Everything that is per environment, of the worlds of `rows` (its get(array, stride, i) reads one number of each). NaN in a
/// comparison hides: a world with a parameter that is no number gets such a gravity, which its step reports.
template <class Shape, class Real, class Shared, class Rows>
HD_ONCE void update_environment(const Shared& m, const ParameterArrays<Scalar<Real>>& a, const Rows& rows,
                                ParameterTables<Shape, Real>& t) {
  auto unsound = mask_of<Real>(false);
  auto get = [&](const Scalar<Real>* array, int stride, int i) {
    Real x = rows.get(array, stride, i);
    unsound = unsound | negate(is_finite(x));
    return x;
  };
  if (a.body_pos || a.body_ipos) update_places<Shape, Real>(m, a, get, t);
  if (a.body_mass || a.body_inertia || a.body_pos || a.body_ipos) update_masses<Shape, Real>(m, a, get, t);
  update_joints<Shape, Real>(m, a, get, t);
  update_surfaces<Shape, Real>(m, a, get, t);
  const Scalar<Real> zero(0);
  const Real none(zero / zero);
  const Vec3<Real> gravity = a.gravity ? t.view.gravity : vec<Real>(m.gravity);
  t.view.gravity = select(unsound, Vec3<Real>{none, none, none}, gravity);
}

}  // namespace stiction
