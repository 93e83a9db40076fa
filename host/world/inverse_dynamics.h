// Inverse dynamics with contact: the generalized forces that make a step end with a given velocity. docs/theory.md, section 18;
// [Carpentier2024] Algorithm 2.
#pragma once
#include <optional>
#include <vector>

#include "host/world/world.h"

namespace stiction {

/// Of one environment.
struct InverseDynamics {
  std::vector<double> qfrc;  // (nv), in the place of qfrc_applied                   N, N m
  std::vector<double> impulse, row_impulse,
      spin_impulse;  // (3 contacts) t1, t2, n; (rows); (3 spins) of DenseProblem   N s
  double
      residual;  // the worst of r_dyn, r_con / V, r_split / 10 V and r_row / V_row of these with the velocity asked for
};

/// What the velocity does not say of impulses: normal forces and sticking friction of rigid contacts.
struct ImpulseGuess {
  bool warm = false;                           // from the last step, else 0
  std::optional<std::vector<double>> given{};  // or these of contacts, rows and spins, one after the other   N s
};

/// For v = qvel + h qacc at the end of a step from the present state, under the present controls and body forces. qacc (nv).
/// Throws std::invalid_argument: env, a device that is no CPU, a guess of other contacts and rows than act.
InverseDynamics inverse_dynamics(World& world, int env, const double* qacc, const ImpulseGuess& guess);

}  // namespace stiction
