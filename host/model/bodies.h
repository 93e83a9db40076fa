// Bodies and sites of the compiled model: where they are on links, and what they weigh.
#pragma once
#include <functional>
#include <vector>

#include "host/model/links.h"

namespace stiction {

// flat(node): the flat link of a node, of a free body the last; -1: the world.

std::vector<BodyModel<double>> bodies_of(const Model& m, const LinkGraph& graph, const std::function<int(int)>& flat);

/// Of the bodies of each node, one after the other: the first of a node begins its sum.
std::vector<MassModel<double>> masses_of(const Model& m, const LinkGraph& graph, const std::function<int(int)>& flat);

std::vector<SiteModel<double>> sites_of(const Model& m, const LinkGraph& graph, const std::function<int(int)>& flat);

}  // namespace stiction
