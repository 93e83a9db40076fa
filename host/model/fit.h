// A compiled model in the tables of a FixedShape, padded with ghosts: links with neither mass nor axis and no dof, probes that
// are never near. What the shape has no place for is refused by name; nothing is left out silently.
//
//   limbs     chains of hinges and slides on the trunk, at most Shape::kLimbs of Shape::kLimbLinks links
//   contacts  probes against planes, one slot each; a trunk link's are dealt to the limbs that hang from it
//
// Throws std::invalid_argument naming what does not fit.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/model/compile.h"

namespace stiction {

/// The tables, and the vectors that their pointers lead to. Not copyable.
template <class Shape, class S>
struct FittedTables {
  ModelView<Shape, S> view;
  std::vector<ProbeModel<S>> probe;  // Shape::kLimbSlots per limb, in the order of slots
  std::vector<PlaneModel<S>> plane;
  std::vector<ActuatorModel<S>> actuator;
  std::vector<BodyModel<S>> body;

  FittedTables() = default;
  FittedTables(const FittedTables&) = delete;
  FittedTables& operator=(const FittedTables&) = delete;
};

namespace detail {

[[noreturn]] inline void does_not_fit(const std::string& what, int got, int expected) {
  throw std::invalid_argument("the model does not fit the shape: it has " + std::to_string(got) + " " + what +
                              ", expected " + std::to_string(expected));
}
inline void require_fits(const std::string& what, int got, int most) {
  if (got > most) does_not_fit(what, got, most);
}

/// What a link of a FixedShape may be.
template <class Shape, class S>
void require_fitting_link(const LinkModel<S>& link) {
  require_fits("joints with three dofs", link.kind == kBallLink || link.kind == kBallNextLink, 0);
  require_fits("actuators on one joint", link.actuators, 1);
  require_fits("joint limits", link.limited && !Shape::kLimits, 0);
  require_fits("joints with dry friction", link.friction > 0 && !Shape::kFriction, 0);
  require_fits("bodies with weight compensation", link.buoyant_mass != 0, 0);
  require_fits("geoms that touch other things than planes", link.station.statics, 0);
}

template <class S>
LinkModel<S> ghost_link(int k) {
  LinkModel<S> link;
  link.parent = k - 1, link.force_lower = S(-1e30), link.force_upper = S(1e30);
  return link;
}
template <class S>
ProbeModel<S> ghost_probe() {
  ProbeModel<S> probe;
  probe.radius = S(-1e6);
  return probe;
}

/// Fills the shape's slots of one station: the next of `probes` from `taken` on, then ghosts.
template <class S>
void fit_station(const ModelTables<S>& from, const StationModel& source, int slots, int& taken, StationModel& station,
                 std::vector<ProbeModel<S>>& out) {
  station = {};
  station.probe_begin = static_cast<int>(out.size()), station.probes = station.slots = slots;
  for (int i = 0; i < slots; ++i)
    out.push_back(taken < source.probes ? from.probe[source.probe_begin + taken++] : ghost_probe<S>());
}

}  // namespace detail

template <class Shape, class S>
std::unique_ptr<FittedTables<Shape, S>> fit(const ModelTables<S>& from) {
  static_assert(Shape::kFixed);
  using detail::require_fits;
  const ModelView<Capacity, S>& a = from.view;
  if ((a.free_base_ != 0) != Shape::kFreeBase)
    throw std::invalid_argument(std::string("the model does not fit the shape: its base is ") +
                                (a.free_base_ ? "free" : "fixed"));
  if (a.trunk_links_ != Shape::kTrunkLinks) detail::does_not_fit("trunk links", a.trunk_links_, Shape::kTrunkLinks);
  require_fits("limbs", a.limbs_, Shape::kLimbs);
  require_fits("pairs of links that may touch", a.link_pairs, 0);
  require_fits("joint equalities and tendon rows", a.ties, 0);
  require_fits("equalities of bodies", a.bonds, 0);
  require_fits("springs on its base", a.has_base_spring, 0);
  for (int t = 0; t < a.trunk_links_; ++t) detail::require_fitting_link<Shape>(a.trunk[t]);
  require_fits("contacts with torsional or rolling friction", a.has_spin, 0);
  for (const ProbeModel<S>& p : from.probe)
    require_fits("compliant contacts", p.stiffness > 0 && !Shape::kCompliance, 0);

  auto out = std::make_unique<FittedTables<Shape, S>>();
  ModelView<Shape, S>& v = out->view;
  v.trunk_links_ = a.trunk_links_, v.limbs_ = Shape::kLimbs, v.free_base_ = a.free_base_,
  v.trunk_leading = a.trunk_leading;
  v.nq = a.nq, v.nv = a.nv, v.nu = a.nu, v.nbody = a.nbody, v.has_springs = a.has_springs,
  v.has_restitution = a.has_restitution;
  v.world_slots = Shape::kSlots, v.mean_mass = a.mean_mass, v.gravity = a.gravity;
  for (int t = 0; t < a.trunk_links_; ++t) v.trunk[t] = a.trunk[t];
  out->plane = from.plane, out->actuator = from.actuator, out->body = from.body;
  if (out->plane.empty()) out->plane.push_back({-1, frame_of_normal(Vec3<S>{S(0), S(0), S(1)}), S(0)});  // the ghosts'
  v.planes = static_cast<int>(out->plane.size());

  // Trunk links' probes lie with one limb each, their host; all limbs of that trunk link take their share.
  std::vector<int> taken(Shape::kTrunkLinks, 0);
  std::vector<const StationModel*> trunk(Shape::kTrunkLinks, nullptr);
  static const StationModel kNone;
  for (int l = 0; l < a.limbs_; ++l) {
    if (a.limb[l].attach < 0) detail::does_not_fit("limbs that hang from the world", 1, 0);
    if (a.limb[l].station.probes || a.limb[l].station.statics) trunk[a.limb[l].attach] = &a.limb[l].station;
    require_fits("geoms of the trunk that touch other things than planes", a.limb[l].station.statics, 0);
  }
  std::vector<int> place(Capacity::kLinks, -1);  // link -> link of the shape
  for (int l = 0; l < Shape::kLimbs; ++l) {
    const LimbModel* source = l < a.limbs_ ? &a.limb[l] : nullptr;
    LimbModel& limb = v.limb[l];
    limb.attach = source ? source->attach : 0;
    limb.links = Shape::kLimbLinks, limb.first_link = l * Shape::kLimbLinks, limb.entries = Shape::kLimbEntries;
    limb.slots = Shape::kLimbSlots, limb.first_slot = l * Shape::kLimbSlots;
    if (source) require_fits("links in a limb", source->links, Shape::kLimbLinks);
    const int ghosts = Shape::kLimbLinks - (source ? source->links : 0);  // at the root: feet are on the last link
    const StationModel* share = trunk[limb.attach] ? trunk[limb.attach] : &kNone;
    detail::fit_station(from, *share, Shape::begin_of(1), taken[limb.attach], limb.station, out->probe);
    for (int k = 0; k < Shape::kLimbLinks; ++k) {
      LinkModel<S>& link = v.link[limb.first_link + k];
      const bool real = k >= ghosts;
      link = real ? a.link[source->first_link + k - ghosts] : detail::ghost_link<S>(k);
      detail::require_fitting_link<Shape>(link);
      if (real && link.parent != k - ghosts - 1) detail::does_not_fit("branching limbs", 1, 0);
      if (real) place[source->first_link + k - ghosts] = limb.first_link + k;
      link.parent = k - 1;
      const StationModel station = link.station;
      int own = 0;
      detail::fit_station(from, station, Shape::begin_of(k + 2) - Shape::begin_of(k + 1), own, link.station,
                          out->probe);
      require_fits("candidate contacts of one link with planes", station.probes, own);
    }
  }
  for (int t = 0; t < Shape::kTrunkLinks; ++t)
    if (trunk[t]) require_fits("candidate contacts of a trunk link with planes", trunk[t]->probes, taken[t]);
  for (BodyModel<S>& b : out->body)
    if (b.link >= Capacity::kTrunkLinks) b.link = Shape::kTrunkLinks + place[b.link - Capacity::kTrunkLinks];
  v.probe = out->probe.data(), v.plane = out->plane.data(), v.actuator = out->actuator.data(),
  v.body = out->body.data();
  return out;
}

}  // namespace stiction
