// What the user may set, for all stages. S: plain number. Defaults are the product's; see the members of the Python class
// stiction.SolverOptions of the same names.
#pragma once
#include "core/platform.h"

namespace stiction {

enum PenaltyRule : int {
  kPenaltyNormalTangential,  // beta = |Z| / W_tt, |Z| / W_nn per contact (default)
  kPenaltyPerContact,        // beta = |Z| / mean(W_ii)
  kPenaltyPaper,             // one beta: harmonic mean over contacts of 1 / mean(W_ii); the paper's masses are bodies'
  kPenaltyAdaptive,  // the default's, scaled every few passes by what primal and dual residual say, within bounds
};

template <class S>
struct Options {
  S h = S(0.002);            // time step                                                      s
  int explicit_damping = 0;  // joint damping is a force (MuJoCo with eulerdamp disabled)
  int implicit = 1;          // joint and actuator stiffness and damping in A (SAP eq. 15); 0: MuJoCo's Euler
  S erp = S(0.2);            // part of an overlap to remove in one step                       1
  S max_recovery = S(1);     // bound on that velocity                                         m/s, rad/s
  S margin = S(0.002);       // gaps beyond it, and beyond what the free motion covers, are ignored m
  S merge = S(5e-4);         // contacts of two bodies this near to each other with one normal count once: the deeper  m
  S penetration_allowance = S(1e-6);  // overlap of a near-rigid contact under the weight of 1 / W_nn; 0: rigid  m
  S tangential_compliance = S(0);     // R_t of every contact as a part of its mean W: SAP's sigma               1
  int iterations = 100;               // at most; exactly, if tolerance is 0
  int convex = 0;  // SubADMM: the convex relaxation of Coulomb's law, for comparison; a contact that slides lifts off
  S tolerance = S(1e-5);  // stop a world when its residual is below tolerance * V
  S certify = S(1e-3);    // r_con / V beyond which a world is flagged kNotConverged (convex: r_ccp)
  int penalty = kPenaltyNormalTangential;
  int anderson = 1;       // Anderson acceleration (depth 3)
  S relaxation = S(1.5);  // alpha of over-relaxation; 1: the paper
  S tikhonov = S(1e-3);   // of Anderson's normal equations, relative to each column's square
  int body_split = 0;     // CPU: also small worlds walk the tree, contacts split between links, as on CUDA
  int warm_start = 1;
  int fallback = 1;      // Newton for worlds above `certify`
  int certificates = 1;  // how often a CPU step computes its certificate: more only tells the benches what one costs
};

}  // namespace stiction
