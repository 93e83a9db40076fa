// Model: what is simulated, in MuJoCo's terms. Plain arrays with MuJoCo's field names, row-major, in double; immutable once
// built. This is what host/reference computes from and what host/model/compile.h turns into the tables of cuda/model.
//
// Made by ModelBuilder (C++) or by stiction.Model.from_mjcf (Python, through the compiled MjModel). Units: SI, rad, kg.
// Quaternions (w, x, y, z). Body 0 is the world. Enumerators have MuJoCo's numbers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stiction {

enum class JointType : int { kFree = 0, kBall = 1, kSlide = 2, kHinge = 3 };
enum class GeomType : int {
  kPlane = 0,
  kHeightfield = 1,
  kSphere = 2,
  kCapsule = 3,
  kEllipsoid = 4,
  kCylinder = 5,
  kBox = 6,
  kMesh = 7
};
enum class Transmission : int { kJoint = 0, kTendon = 3 };
enum class Equality : int { kConnect = 0, kWeld = 1, kJoint = 2, kTendon = 3 };

/// mjtDisableBit, those that we honour.
enum DisableFlag : int {
  kDisableEquality = 1 << 1,
  kDisableFrictionloss = 1 << 2,
  kDisableLimit = 1 << 3,
  kDisableContact = 1 << 4,
  kDisableSpring = 1 << 5,
  kDisableDamper = 1 << 6,
  kDisableGravity = 1 << 7,
  kDisableClampctrl = 1 << 8,
  kDisableFilterparent = 1 << 10,
  kDisableActuation = 1 << 11,
  kDisableEulerdamp = 1 << 15
};

using Reals = std::vector<double>;
using Ints = std::vector<int>;
using Names = std::vector<std::string>;

struct Model {
  // ---- sizes
  int nq = 0, nv = 0, nu = 0, nbody = 0, njnt = 0, ngeom = 0, nsite = 0, ntendon = 0, nwrap = 0, neq = 0, nkey = 0,
      nmesh = 0, npair = 0, nexclude = 0, nmocap = 0;

  // ---- options
  double timestep = 0.002;     // s
  Reals gravity{0, 0, -9.81};  // m/s^2
  int disableflags = 0;        // DisableFlag

  // ---- bodies
  Ints body_parentid, body_weldid;  // (nbody)   weldid: the nearest ancestor-or-self that has a joint, or 0
  Ints body_jntadr, body_jntnum;    // (nbody)   -1, 0 without joints
  Ints body_dofadr, body_dofnum;    // (nbody)
  Reals body_pos, body_quat;        // (nbody, 3 | 4)  in the parent's frame                        m
  Reals body_ipos, body_iquat;      // (nbody, 3 | 4)  inertial frame in the body's frame           m
  Reals body_mass, body_inertia;    // (nbody, | 3)    principal inertia                            kg, kg m^2
  Reals body_gravcomp;              // (nbody)         part of its weight that is compensated       1
  Ints body_mocapid;                // (nbody)         child of the world that the user moves, or -1

  // ---- joints and dofs
  Ints jnt_type, jnt_bodyid, jnt_qposadr, jnt_dofadr, jnt_limited, jnt_actfrclimited;  // (njnt)
  Reals jnt_pos, jnt_axis;           // (njnt, 3)       in the body's frame                          m, 1
  Reals jnt_stiffness;               // (njnt)          N/m or N m/rad
  Reals jnt_range, jnt_actfrcrange;  // (njnt, 2)
  Ints dof_bodyid, dof_jntid;        // (nv)
  Reals dof_armature, dof_damping, dof_frictionloss;  // (nv)  kg | kg m^2, N s/m | N m s/rad, N | N m
  Reals qpos0, qpos_spring;                           // (nq)

  // ---- geoms. condim is the file's (1, 3, 4, 6): the pair's decides (priority, else maximum); 1: no friction, 3:
  // sliding, 4: torsional, too, 6: rolling, too
  Ints geom_type, geom_bodyid, geom_contype, geom_conaffinity, geom_condim, geom_priority;  // (ngeom)
  Ints geom_dataid;                      // (ngeom)         mesh, or -1 (also for meshes that cannot collide)
  Reals geom_size, geom_pos, geom_quat;  // (ngeom, 3 | 3 | 4)  MuJoCo's half sizes                      m
  Reals geom_friction;                   // (ngeom, 3)      sliding, torsional, rolling               1, m, m
  Reals geom_stiffness;                  // (ngeom)         contact stiffness; 0 = rigid                 N/m
  Reals geom_restitution;  // (ngeom)         part of the speed of a hit that comes back: of two geoms the larger 1
  Reals geom_dissipation;  // (ngeom)         relaxation time tau_d of a compliant contact s
  Ints mesh_vertadr, mesh_vertnum;  // (nmesh)         convex hull vertices only
  Reals mesh_vert;                  // (sum, 3)        in the geom's frame                          m
  Ints mesh_edgeadr;                // (sum + 1)       hull neighbours of vertex i: edge[edgeadr[i] .. edgeadr[i + 1])
  Ints mesh_edge;                   //                 numbers of vertices within their mesh
  Ints pair_geom1, pair_geom2, pair_condim;  // (npair)       explicit pairs
  Reals pair_friction;                       // (npair, 3)      the same
  Ints exclude_body1, exclude_body2;         // (nexclude)

  // ---- sites, fixed tendons, equalities, actuators, keyframes
  Ints site_bodyid;                                             // (nsite)
  Reals site_pos, site_quat;                                    // (nsite, 3 | 4)
  Ints tendon_adr, tendon_num;                                  // (ntendon)       its terms in wrap_*
  Ints wrap_jntid;                                              // (nwrap)         hinge or slide
  Reals wrap_coef;                                              // (nwrap)         length = sum of coef * q
  Reals tendon_stiffness, tendon_damping, tendon_frictionloss;  // (ntendon)
  Reals tendon_lengthspring, tendon_range;                      // (ntendon, 2)    dead band of the spring; limits
  Reals tendon_actfrcrange;                                     // (ntendon, 2)    of its actuators' sum without gears
  Ints tendon_limited, tendon_actfrclimited;                    // (ntendon)
  // joint, tendon: y1 - y1_0 = poly(y2 - y2_0), obj2 = -1: y1 - y1_0 = data[0]. connect: the anchor on body 1, the same on
  // body 2. weld: the anchor on body 2; position and orientation, in body 1, of a frame at it parallel to body 2;
  // torquescale. m, 1
  Ints eq_type, eq_obj1id, eq_obj2id, eq_active;  // (neq)           Equality; joints, tendons or bodies
  Reals eq_data;                                  // (neq, 11)       polynomial coefficients (5); points, poses
  Ints actuator_trntype, actuator_trnid;          // (nu)            Transmission; joint or tendon
  Reals actuator_gear;  // (nu, 6)         first entry for hinge, slide, tendon; 3 for ball, 6 for free
  Reals actuator_gainprm, actuator_biasprm;          // (nu) | (nu, 3)  force = gain ctrl + bias . (1, length, velocity)
  Ints actuator_ctrllimited, actuator_forcelimited;  // (nu)
  Reals actuator_ctrlrange, actuator_forcerange;     // (nu, 2)
  Reals key_qpos, key_qvel, key_ctrl;                // (nkey, nq | nv | nu)
  Reals key_mpos, key_mquat;                         // (nkey, 3 | 4 nmocap)

  // ---- names, by number; empty where there is none
  Names body_names, joint_names, geom_names, site_names, actuator_names, tendon_names, key_names;
};

/// Throws std::invalid_argument naming the field, what was got and what was expected: sizes that disagree, indices out of
/// range, non-finite numbers, negative masses, moving bodies without inertia, unnormalisable quaternions.
void validate(const Model& model);

}  // namespace stiction
