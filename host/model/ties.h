// Rows that hold several dofs, or two bodies, together: equalities, what fixed tendons do, limits of ball joints.
#pragma once
#include <functional>

#include "host/model/capacity.h"
#include "host/model/links.h"

namespace stiction {

/// link(joint): its (first) flat link. Throws std::invalid_argument beyond the room.
std::vector<TieModel<double>> ties_of(const Model& model, const Room& room, const std::function<int(int)>& link);

/// Counts which of them, actuators on tendons, the force ranges of joints bound, on both sides.
void bound_pulls(ModelView<Capacity, double>& view, std::vector<TieModel<double>>& ties);

/// Connects and welds; those that hold nothing that moves are left out. link(body): flat, -1 of the world.
std::vector<BondModel<double>> bonds_of(const Model& model, const LinkGraph& graph, const Room& room,
                                        const std::function<int(int)>& link);

/// The mocap body that carries a body that no joint moves, or -1.
int mocap_of(const Model& model, int body);
/// The pose of a body in what carries it: its link, a mocap body or the world.
Pose<double> in_carrier(const Model& model, const LinkGraph& graph, int body);

}  // namespace stiction
