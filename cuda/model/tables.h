// The tables that a ModelView points to, named once for all who copy them. On the host.
#pragma once
#include "model/number_cast.h"

namespace stiction {

/// visit(count, of.table...) for every table but the hulls. of: ModelViews, or structs with vectors of the same names.
template <class S, class Visit, class... Of>
void each_table(const ModelView<Capacity, S>& m, Visit visit, Of&... of) {
  visit(m.probes, of.probe...), visit(m.planes, of.plane...), visit(m.ngeom, of.geom...), visit(m.pairs, of.pair...);
  visit(m.link_pairs, of.link_pair...), visit(m.actuators, of.actuator...), visit(m.ties, of.tie...);
  visit(m.bonds, of.bond...), visit(m.nbody, of.body...), visit(m.nsite, of.site...), visit(m.masses, of.mass...);
}

/// The same for the tables that parameters write; ParameterTables have no others.
template <class S, class Visit, class... Of>
void each_own_table(const ModelView<Capacity, S>& m, Visit visit, Of&... of) {
  visit(m.probes, of.probe...), visit(m.planes, of.plane...), visit(m.ngeom, of.geom...), visit(m.pairs, of.pair...);
  visit(m.actuators, of.actuator...), visit(m.ties, of.tie...), visit(m.bonds, of.bond...), visit(m.nbody, of.body...);
}

}  // namespace stiction
