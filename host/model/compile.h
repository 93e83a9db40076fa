// From a Model to the tables of cuda/model: which bodies move together, which chain is the trunk, what may touch what.
//
//   links    bodies without joints are merged into their parents; a joint of n dofs is n links
//   trunk    of the largest tree that branches: its root, and below it the one child at a time that still branches;
//            everything else is limbs. A scene without a branching tree has no trunk.
//   contacts filtered as in MuJoCo (contype, conaffinity, parent-child, excludes, explicit pairs); spheres, capsules and
//            boxes against planes become probes
//
// Throws std::invalid_argument for what a slot world of that room cannot hold and for what we do not simulate.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "host/model/capacity.h"
#include "host/model/model.h"
#include "model/model_view.h"

namespace stiction {

/// What a view points to, but for hulls.
template <class S>
struct TableVectors {
  std::vector<ProbeModel<S>> probe;
  std::vector<PlaneModel<S>> plane;
  std::vector<GeomModel<S>> geom;
  std::vector<PairModel<S>> pair;
  std::vector<LinkPairModel> link_pair;
  std::vector<ActuatorModel<S>> actuator;
  std::vector<TieModel<S>> tie;
  std::vector<BondModel<S>> bond;
  std::vector<BodyModel<S>> body;
  std::vector<SiteModel<S>> site;
  std::vector<MassModel<S>> mass;
};

/// The tables, and the vectors that their pointers lead to. Not copyable.
template <class S>
struct ModelTables : TableVectors<S> {
  ModelView<Capacity, S> view;
  std::vector<HullView<S>> hull;
  std::vector<S> hull_vert;
  std::vector<int> hull_edgeadr, hull_edge, hull_start;

  ModelTables() = default;
  ModelTables(const ModelTables&) = delete;
  ModelTables& operator=(const ModelTables&) = delete;
  /// Sets the view's pointers to the vectors.
  void link();
};

/// integrator "euler" with damping switched off implicitly: see Options::explicit_damping.
/// contacts: a world has room for so many between moving bodies, as far as its geoms can make them and `room` allows; 0: what seems enough.
std::unique_ptr<ModelTables<double>> compile(const Model& model, const Room& room = room_of<Capacity>(),
                                             int contacts = 0);

/// The same tables in float (or double).
template <class S>
std::unique_ptr<ModelTables<S>> convert(const ModelTables<double>& tables);

/// May they touch? The pairs of geoms in order of (geom1, geom2); explicit pairs first, with their own friction.
struct GeomPair {
  int geom1, geom2;
  double friction, torsion, rolling;
  int rule, dim;  // see friction_of; condim
};
std::vector<GeomPair> collision_pairs(const Model& model);

}  // namespace stiction
