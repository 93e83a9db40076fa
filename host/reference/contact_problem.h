// The dense contact problem of one world and one step, assembled from (q, v, ctrl) and a list of contacts.
//
//   A v = b + J' l + J_row' l_row
//   contacts: sigma = J v + e + R l, exact Signorini-Coulomb with mu; rows t1, t2, n
//   rows:     s = J_row v + e_row + R_row l,  l in [lower, upper],  s >= 0 at lower, s <= 0 at upper, s = 0 between
//
// Rules (docs/theory.md, sections 3 and 6). bias(x) = x / h for x > 0 (speculative), else max(erp x / h, -max_recovery);
// of contacts no faster than min(0.044 m/s, max(9.81 m/s^2 h, min(erp, 1/2) 50 max(allowance, 1 um) / h)): what closes
// more of an overlap moves positions only and is no part of the problem.
//   contact     J = frame (point Jacobian of geom2's body - geom1's), e = (0, 0, bias(dist)), R = (R_t, R_t, R_n),
//               R_t = tangential_compliance w, w = tr(J_i A^-1 J_i') / 3, R_n = 0
//   near rigid  where the overlap is below 100 allowances: with r = min(erp, 1/2), W_nn >= 1e-3 tr W of J_i A^-1 J_i',
//               R_n = W_nn min(k / 150, r allowance / (9.81 m/s^2 h^2)) / max(1, (dist / allowance)^2, sqrt(c)), k = 1
//               or with rounding, allowance over the option's, at most (2 ms / h)^2, at least 1; the
//               second only for dist < 0 or c <= 0, where
//               c = (-n'J v_free - max(dist, 0) / h) / (9.81 m/s^2 h); e_n = max(r dist / h, -max_recovery) when overlapping
//   compliant   where a geom has a stiffness: k = k1 k2 / (k1 + k2) (one of them 0: the other's), tau = (k2 tau1 + k1 tau2)
//               / (k1 + k2); R_n = 1 / (h k (h + tau)), e_n = dist / (h + tau) when overlapping, dist / h otherwise
//   restitution of the geoms the larger one; where the contact is not compliant, dist + h n'J v <= h f and n'J v < -2 9.81 m/s^2 h:
//               e_n = min(e_n, -u), R_n = 0, u >= 0 with u^2 + f u + 2 f d = restitution^2 ((n'J v)^2 - f n'J v + 2 f d),
//               f = max(n'J (v - v_free), 0), d = max(dist, 0) / h
//   friction    MuJoCo's: explicit pair, else the geom of higher priority, else the maximum; condim 1 means mu = 0
//   equality    of joints or tendons q1 - q1_0 = poly(q2 - q2_0): J = e1 - poly' e2, e = erp x / h clipped to +-max_recovery,
//               unbounded; connect: x = p1 - p2, world axes; weld: besides x = s v, (c, v) = conj(q_2) q_1 relpose, c >= 0,
//               J = s/2 (c 1 - [v]x) R_2' (w_1 - w_2); their e is cut as a vector, by threes, that of a turn then
//               times c; of three rows R = 1e-5 tr(J A^-1 J') / 3; where a mocap body pulls, 0.02 (|e| / max_recovery)^2 of that mean more
//   friction    of dofs and tendons: J v = 0 with |l| <= h frictionloss
//   limit       of hinge, slide, tendon: l >= 0, e = bias(distance to the limit); one row per side
//   soft        the rows of free_motion.h
// in this order of rows. disableflags are honoured (contact, limit, frictionloss, equality).
//
// Units: A kg, kg m^2; b N s; e m/s; R 1/kg; l N s. Errors: std::invalid_argument naming the contact or field.
#pragma once
#include <array>

#include "host/reference/free_motion.h"

namespace stiction::reference {

/// Impulses act on each geom where it will be touched: half the gap from pos, if that is open, and geom2 farther ahead; on spheres, on the
/// line of the normal through their middle.
struct Contact {
  int geom1, geom2;
  Vector3d pos;    // halfway between both surfaces
  Matrix3d frame;  // rows t1, t2, n; n from geom1 to geom2
  double dist;     // m, negative when overlapping
  Vector3d ahead = Vector3d::Zero();
};

struct StepOptions {
  double timestep = 0.002;
  Integrator integrator = Integrator::kImplicit;
  double erp = 0.2;
  double max_recovery = 1.0;            // m/s
  double penetration_allowance = 1e-6;  // m
  double tangential_compliance = 0;
  double rounding = 0;  // no allowance is below this part of the distance from the tree's origin; 1e-5 in float
};

enum class RowKind : int { kEquality = 0, kFriction = 1, kLimit = 2, kSoft = 3 };

struct ContactProblem {
  Matrix A;                                         // (nv, nv)
  Vector b;                                         // (nv)
  Matrix J;                                         // (3 nc, nv)
  Vector e, R;                                      // (3 nc)
  Vector mu, phi;                                   // (nc)
  std::vector<std::array<int, 2>> geoms;            // (nc)  empty when unknown
  Matrix J_row;                                     // (nr, nv)
  Vector e_row, R_row, lower, upper;                // (nr)
  std::vector<RowKind> kinds;                       // (nr)  empty when unknown
  double timestep = 0, gravity = 0, mean_mass = 0;  // scales of the certificate: h, g, mean mass of the moving bodies

  int contacts() const { return static_cast<int>(mu.size()); }
  int rows() const { return static_cast<int>(e_row.size()); }
};

/// Sliding friction and stiffness of a pair of geoms.
double pair_friction(const Model& model, int geom1, int geom2);
struct Compliance {
  double stiffness = 0, relaxation = 0;  // N/m, 0 = rigid; s
};
Compliance pair_compliance(const Model& model, int geom1, int geom2);

/// motion, if any: what it begins with.
ContactProblem assemble(const Model& model, const StepInput& input, const std::vector<Contact>& contacts,
                        const StepOptions& options, FreeMotion* motion = nullptr);

/// Throws std::invalid_argument if the sizes of the arrays disagree.
void check_sizes(const ContactProblem& problem);

}  // namespace stiction::reference
