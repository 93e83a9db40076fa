// The model as the kernels see it: a trunk with limbs, geometry by link, and lists of what may touch what.
//
//   trunk   a chain of links: link 0 may float freely (6 dofs, its twist in world axes), the others have one dof each
//   limb    a tree of links with one dof each that hangs from one trunk link, its `attach`, or from the world (attach = -1)
//
//                     limb 0 o-o-o-+       +-o-o-o limb 1        A joint of several dofs is several links, all but the
//                                  |       |                     last without mass; a ball joint is three columns. A free
//                       trunk      0 ===== 1 ===== 2             body besides the trunk is a limb of six dofs that hangs
//                                                  |             from the world. Bodies without joints are merged into
//                                                  +-o-o-o limb 2  their parents.
//
// Link frames are parallel to the root of their tree at q = q0 (to the world for a tree without a free root): no fixed
// rotations. Points of a tree are relative to its origin O: the position of a free base, or of the last of the slides that
// lead from the world, or of the first joint.
//
// S is a plain number (equal in all worlds) or a Real (per-environment parameters). Topology is always plain int.
// Built by host/model/compile.h.
#pragma once
#include "math/spatial.h"
#include "model/shape.h"

namespace stiction {

enum LinkKind : int {
  kHingeLink,
  kSlideLink,
  kBallLink,      // first of the three columns of a ball joint; the quaternion lives in q of the three and in State::qw
  kBallNextLink,  // second and third: same pose as the first
};

/// The world slots of one station and what may fill them.
struct StationModel {
  int slots = 0, slot_begin = 0;      // slot_begin: within the limb
  int probes = 0, probe_begin = 0;    // candidates against planes, ModelView::probe
  int statics = 0, static_begin = 0;  // geom pairs against other static geometry, ModelView::pair
  float thin = 0;                     // inner radius of the thickest geom                                          m
  int rolls = 0;                      // a body's on its own that has one geom, which may roll: collision/rolling_rim.h
};

/// One dof and the body it carries; for a free base only the body counts.
template <class S>
struct LinkModel {
  int kind = kHingeLink;
  int parent = -1;  // limb: link of the same limb, -1 = attach; trunk: not used, the one before
  int dof = -1;     // place in qvel; free base: of the first of six
  int joint = -1;
  int qpos = -1;     // place in qpos; ball: of the quaternion (first column only)
  int hung = -1;     // the body whose place on its parent is part of offset: this is its first joint
  int has_body = 0;  // mass is not 0
  int limited = 0;
  int actuators = 0, actuator_begin = 0;        // ModelView::actuator
  int pulls = 0;                                // ties of actuators that its force range bounds, too
  StationModel station;                         // limb links; a trunk link's is LimbModel::station of its host
  Quat<S> ball_frame{S(1), S(0), S(0), S(0)};   // kBallLink: from the parent's axes to the body's at the identity
  Quat<S> spring_quat{S(1), S(0), S(0), S(0)};  // kBallLink, free base: where its spring rests
  Vec3<S> offset{};      // from the parent's frame to the joint; free base: to where its spring rests      m
  Vec3<S> axis{};        // unit vector
  S q0{};                // joint coordinate at which the frames are parallel                     rad, m
  S mass{};              //                                                                       kg
  Vec3<S> com{};         // from the link's origin                                                m
  SymMat3<S> inertia{};  // about com                                                             kg m^2
  S armature{}, damping{}, stiffness{}, spring_ref{}, friction{};  // friction: dry friction loss           N | N m
  S lower{}, upper{};              // joint limits                                                   rad, m
  S force_lower{}, force_upper{};  // bounds on the sum of the actuators' forces, tendons' too       N | N m
  S buoyant_mass{};                // sum of gravcomp * mass of the link's bodies                    kg
  Vec3<S> buoyant_com{};           // its centre                                                     m
  Vec3<S> bound_center{};          // sphere around the geoms that may touch other moving bodies     m
  S bound_radius{};
  S reach{};  // of its colliding geoms, from the link's origin                 m
};

struct LimbModel {
  int attach = -1;
  int links = 0, first_link = 0;                 // ModelView::link
  int entries = 0;                               // links (links + 1) / 2
  int leading = 0;                               // attach = -1: slides that lead from the world
  int slots = 0, first_slot = 0, actuators = 0;  // first_slot: in the records
  StationModel station;                          // of the trunk link it hangs from, if this limb is the link's host
};

/// A sphere fixed to a link (a whole sphere, an end of a capsule, a corner of a box with radius 0) against a plane.
template <class S>
struct ProbeModel {
  int plane = 0;               // ModelView::plane
  int geom1 = -1, geom2 = -1;  // the plane's, the link's
  int feature = 0;             // end of the capsule, corner of the box
  int friction_rule = 0;       // see friction_of
  Vec3<S> center{};            // in the link's frame                                                       m
  S radius{}, mu{};
  S stiffness{}, dissipation{};  // 0 = rigid                                                              N/m, s
  S restitution{};
  int dim = 3;             // MuJoCo's condim: which frictions there are
  S torsion{}, rolling{};  // of a couple about the normal, about the tangents: its largest arm              m
};
template <class S>
struct PlaneModel {
  int geom = -1;
  Mat3<S> frame{};  // rows t1, t2, n in world axes
  S distance{};     // n . p of its points                                                                 m
};
template <class S>
struct GeomModel {
  int type = 0, link = -1;  // flat link, see flat_link; -1: fixed to the world, pose in world axes
  int body = 0, mesh = -1, collides = 0;
  Vec3<S> size{};
  Pose<S> pose{};                            // in the link's frame
  S radius{};                                // bounding sphere about pose.p; 0 for planes
  Vec3<S> capsule_center{}, capsule_axis{};  // a capsule around it, in the link's frame; axis: half its segment     m
  S capsule_radius{};
};
/// Two geoms that may touch; geom types in ascending order.
template <class S>
struct PairModel {
  int geom1 = 0, geom2 = 0, id = 0;  // id: first of its candidates in the numbering of all pair features
  int friction_rule = 0;
  S mu{}, stiffness{}, dissipation{}, restitution{};
  int dim = 3;
  S torsion{}, rolling{};
  int candidates = 0;  // with `middle`
  // Middles of free geoms that are candidates, too, behind those of the shapes: 1 against static geometry; of two moving geoms 1 of
  // geom1, 2 of geom2, 3 of both.
  int middle = 0;
};
/// Two moving links with geoms that may touch.
struct LinkPairModel {
  int link1 = 0, link2 = 0;       // flat
  int pairs = 0, pair_begin = 0;  // ModelView::pair
  float thin = 0;                 // of the thinner one's thickest geom the inner radius                            m
};
template <class S>
struct ActuatorModel {
  int ctrl = 0;
  int clamp_ctrl = 0, clamp_force = 0;
  S gear{}, gain{}, bias0{}, bias1{}, bias2{};
  S ctrl_lower{}, ctrl_upper{}, force_lower{}, force_upper{};
};

enum TieKind : int { kTieEquality, kTieLimit, kTieFriction, kTieSpring, kTieActuator, kTieBallLimit };
/// A row over several dofs: an equality of joints or fixed tendons, what a fixed tendon does, or the limit of a ball joint,
/// whose range is that of its first link.
template <class S>
struct TieModel {
  int kind = kTieEquality, terms = 0;
  int link[Capacity::kTieTerms] = {};  // flat links
  S coef[Capacity::kTieTerms] = {};
  // equality: sum coef (q - q0) = poly(sum second (q - q0))
  S second[Capacity::kTieTerms] = {};
  S q0[Capacity::kTieTerms] = {};
  S poly[5] = {};
  S lower{}, upper{};  // limits; dead band of a spring
  S stiffness{}, damping{}, friction{};
  ActuatorModel<S> actuator{};
  int actuators = 1;               // that have their row here: of those of a tendon under one range the first has all
  int ranged = 0;                  // of its joints, those with a force range
  S force_lower{}, force_upper{};  // bounds on the sum of those actuators' forces                  N
};
enum BondKind : int { kBondPoint, kBondTurn };
/// Three rows that hold two frames together, on two links or on a link and the world. A connect is a point, a weld both.
///
///   point   x_1 - x_2 of their origins, world axes                                     m
///   turn    scale times the vector of the quaternion of R_2' R_1, their orientations   m
template <class S>
struct BondModel {
  int kind = kBondPoint;
  int link[2] = {};         // flat; of an end that no joint moves: the other's
  int still[2] = {};        // ends that no joint moves
  int mocap[2] = {-1, -1};  // of those, the ones on a mocap body
  int body[2] = {};
  Pose<S> frame[2] = {};  // in the link's, the mocap body's or the world's
  S scale{};              // m
};
template <class S>
struct BodyModel {
  int link = -1;   // flat; -1: fixed to the world
  int mocap = -1;  // the mocap body that carries it
  Pose<S> pose{};  // of the body's frame in the link's, or the mocap body's
  Quat<S> quat{};
  Vec3<S> com{};          // centre of mass in the link's frame, where xfrc_applied acts              m
  int parent = 0;         // the body above
  int jointed = 1;        // placed by joints of its own or as mocap body; else fixed to its parent
  Vec3<S> pos{}, ipos{};  // of its frame in its parent's; of its centre of mass in its own     m
};
/// What a body adds to its link; bodies of a link follow each other.
template <class S>
struct MassModel {
  int link = 0, body = 0, first = 0;  // first: of its link
  S mass{}, gravcomp{};               // gravcomp: the part of its weight that is compensated     kg, 1
  Vec3<S> com{}, inertia{};           // in the link's frame; principal                            m, kg m^2
  Mat3<S> axes{};                     // rows: the principal axes in the link's frame
};
template <class S>
struct SiteModel {
  int link = -1, mocap = -1, body = 0;
  Vec3<S> pos{};    // in the link's frame, or the mocap body's                                 m
  Vec3<S> local{};  // in its body's                                                            m
};
/// A convex hull in its geom's frame: `count` vertices (x, y, z in m), and the neighbours of vertex i at
/// edge[edgeadr[i] .. edgeadr[i + 1]). edgeadr may be null: every vertex is then visited.
template <class S>
struct HullView {
  const S* vert;
  const int* edgeadr;
  const int* edge;
  int count;
  S radius;                    // of the vertex farthest from the frame's origin   m
  const int* start = nullptr;  // of each of kHullWays directions the vertex farthest along it (hull_way); null: of none
  Vec3<S> low{-radius, -radius, -radius}, high{radius, radius, radius};  // the box around it   m
};
inline constexpr int kHullWays = 96;

/// Counts and features.
struct ModelCounts {
  int link_pairs = 0, ties = 0, bonds = 0, pair_slots = 0;
  int has_limits = 0, has_friction = 0, has_buoyancy = 0;
  int has_ranges = 0;  // some joint's servo has bounds of its force
  int has_pulls = 0;   // the force range of some joint bounds actuators on tendons, too
  int has_loops =
      0;  // welds, connects, equalities of joints or tendons but those of the first degree, whose rows stay as they are
  int has_spin = 0;  // some pair or probe has torsional or rolling friction
  int level = 0;     // all static geometry is level planes: the frames of world slots are the world's axes
};

template <class Shape_, class S>
struct ModelView : ModelCounts {
  using Shape = Shape_;
  using Tables = typename Shape::Tables;
  using Plain = Scalar<S>;

  int trunk_links_ = 0, limbs_ = 0, free_base_ = 0, trunk_leading = 0;
  int nq = 0, nv = 0, nu = 0, nbody = 0, ngeom = 0, nsite = 0, nmocap = 0;
  int njnt = 0, probes = 0, pairs = 0, actuators = 0, masses = 0;
  int planes = 0, world_slots = 0;
  int has_springs = 0, has_base_spring = 0;  // of joints; of a free base
  int has_restitution = 0;                   // of some pair or probe
  S mean_mass{};      // of the moving bodies, for the certificate's scale                           kg
  Vec3<S> gravity{};  // m/s^2

  LinkModel<S> trunk[Tables::kTrunkLinks];
  LimbModel limb[Tables::kLimbs];
  LinkModel<S> link[Tables::kLinks];

  const ProbeModel<S>* probe = nullptr;
  const PlaneModel<S>* plane = nullptr;
  const GeomModel<S>* geom = nullptr;
  const PairModel<S>* pair = nullptr;
  const LinkPairModel* link_pair = nullptr;
  const ActuatorModel<S>* actuator = nullptr;
  const TieModel<S>* tie = nullptr;
  const BondModel<S>* bond = nullptr;
  const BodyModel<S>* body = nullptr;
  const SiteModel<S>* site = nullptr;
  const MassModel<S>* mass = nullptr;
  const HullView<Plain>* hull = nullptr;

  HD int trunk_links() const { return Shape::trunk_links(trunk_links_); }
  HD int limbs() const { return Shape::limbs(limbs_); }
  HD bool free_base() const { return Shape::free_base(free_base_); }
  HD int base_dofs() const { return free_base() ? 6 : 0; }
  HD int base_links() const { return free_base() ? 1 : 0; }
  HD int trunk_dofs() const { return trunk_links() + (free_base() ? 5 : 0); }
  /// The trunk link that carries trunk dof t (t >= base_dofs()).
  HD int link_of_dof(int t) const { return t - (free_base() ? 5 : 0); }
};

/// Flat links number the trunk's first, then all limbs': trunk t -> t, link k of limb l -> kLimbsFrom + first_link + k.
template <class Shape> inline constexpr int kLimbsFrom = Shape::Tables::kTrunkLinks;
template <class Shape>
HD constexpr int flat_link(int limb_link) {
  return kLimbsFrom<Shape> + limb_link;
}

}  // namespace stiction
