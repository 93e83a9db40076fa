// What a lane derives from a state, stage by stage.
#pragma once
#include "collision/pair_slots.h"
#include "contact/impulses.h"
#include "dynamics/coriolis.h"
#include "dynamics/crba.h"
#include "dynamics/free_motion.h"

namespace stiction {

/// Memory besides the workspace, sized by model and options (step/world_memory.h): of each world that is stepped, shared by
/// its lanes. That of the rows takes contacts that are only looked for (step/find_contacts.h), and before there are rows what a tile looks
/// for pairs with (PairSearchMemory).
struct WorldMemory {
  void *rows = nullptr, *solver = nullptr, *fallback = nullptr;  // Real, Real, double
};

/// Everything derived from a state: a lane's scratch memory.
template <class L>
struct Workspace {
  using Real = typename L::Real;
  Kinematics<L> kin;
  PerLink<L, RigidInertia<Real>> I;
  Loads<L> loads, applied;
  Contacts<L> contacts;
  ContactProblem<L> problem;
  Impulses<L> impulses;
  TreeVector<L> v;
  MeanForces<L> mean;                    // of the free motion
  PerLink<L, Force<Real>> forces;        // scratch of passes inward
  PerLink<L, Motion<Real>> motions;      // and outward
  PerLink<L, Motion<Real>> free, bends;  // of the free motion: see StepReach
  PerLink<L, LinkBound<Real>> bound;
  PerLink<L, Real> margin, travel;  // of collision: see LinkBound and StepReach
  WorldMemory memory;

  HD void bind(const WorldMemory& shared) {
    memory = shared;
    problem.table.memory = static_cast<Real*>(shared.rows);
  }
};

}  // namespace stiction
