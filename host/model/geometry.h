// Geoms of the compiled model: what bounds them, what their surfaces are made of.
#pragma once
#include "host/model/compile.h"

namespace stiction {

/// How far a geom reaches, and a capsule around it: tighter than its ball for what is long. Its segment lies along the axis of a capsule or
/// cylinder, else along the longest of the geom's axes. hull: of a mesh. Returns the inner radius.
double bound(const HullView<double>& hull, GeomModel<double>& x);

/// Bounds of a mesh's hull, and of each of kHullWays directions the vertex farthest along it, which is added to `start`.
HullView<double> measured_hull(const Model& m, int mesh, std::vector<int>& start);

/// Friction, stiffness and dissipation of two geoms that may touch; springs in series.
PairModel<double> surface_of(const Model& m, const GeomPair& p);
/// What a plane and a fixed point of a geom have of their pair.
ProbeModel<double> probe_against(int plane, const PairModel<double>& pair);
/// Whether a geom of a free body on its own rolls, as it does not where it is alike all around its centre of mass.
bool rolls(const GeomModel<double>& geom, const Vec3<double>& centre);

}  // namespace stiction
