#include "host/model/model_shape.h"

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "kernels/job.h"
#include "model/geom_kind.h"

namespace stiction {
namespace {

using View = ModelView<Capacity, double>;

/// What all limbs, or all links, have in common.
class Common {
 public:
  void add(int value) { some_ ? same_ = same_ && value == value_ : (value_ = value, some_ = true); }
  bool is_same() const { return some_ && same_; }
  int value() const { return value_; }

 private:
  bool some_ = false, same_ = true;
  int value_ = 0;
};

/// The same of a model's limbs and of their links.
struct LimbsInCommon {
  Common attach, links, spread, chain,
      actuators;  // spread: links lie limb by limb; chain: each hangs from the one before
  template <class S> explicit LimbsInCommon(const ModelView<Capacity, S>& m) {
    for (int l = 0; l < m.limbs_; ++l) {
      const LimbModel& limb = m.limb[l];
      attach.add(limb.attach), links.add(limb.links), spread.add(limb.first_link == l * limb.links);
      for (int k = 0; k < limb.links; ++k) {
        const LinkModel<S>& link = m.link[limb.first_link + k];
        chain.add(link.parent == k - 1), actuators.add(link.actuators);
      }
    }
  }
  bool are_chains() const { return chain.is_same() && chain.value(); }
  bool are_even() const { return links.is_same() && spread.is_same() && spread.value(); }
  /// Capacity::kAlike
  bool are_alike() const { return are_chains() && are_even() && actuators.is_same(); }
};

/// Of limbs: of all, and the most of a lane of a tile.
struct Held {
  int limbs = 0, links = 0, entries = 0, slots = 0;
  void add(const LimbModel& l) { ++limbs, links += l.links, entries += l.entries, slots += l.slots; }
  void widen(const Held& h) {
    limbs = std::max(limbs, h.limbs), links = std::max(links, h.links);
    entries = std::max(entries, h.entries), slots = std::max(slots, h.slots);
  }
};

template <class Visit>
void each_station(const View& m, Visit visit) {
  for (int l = 0; l < m.limbs_; ++l) {
    visit(m.limb[l].station);
    for (int k = 0; k < m.limb[l].links; ++k) visit(m.link[m.limb[l].first_link + k].station);
  }
}

/// Bit 8 type1 + type2 of each pair of kinds that the narrow phase may be asked for.
uint64_t kinds_that_meet(const View& m) {
  uint64_t met = 0;
  auto add = [&](int a, int b) { met |= uint64_t{1} << (8 * std::min(a, b) + std::max(a, b)); };
  for (int i = 0; i < m.pairs; ++i) {
    const GeomModel<double>&g1 = m.geom[m.pair[i].geom1], &g2 = m.geom[m.pair[i].geom2];
    add(g1.type, g2.type);
    if (g1.link < 0 || g2.link < 0) continue;
    if (m.pair[i].middle & 1) add(GeomKind::kSphere, g2.type);  // what is under it: middle.h
    if (m.pair[i].middle & 2) add(GeomKind::kSphere, g1.type);
  }
  each_station(m, [&](const StationModel& st) {
    for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) {
      const GeomModel<double>&g1 = m.geom[m.pair[i].geom1], &g2 = m.geom[m.pair[i].geom2];
      add(GeomKind::kPlane, g1.link < 0 ? g2.type : g1.type);   // what turns, against planes that touch it: turning.h
      add(GeomKind::kSphere, g1.link < 0 ? g1.type : g2.type);  // a point in what is solid: world_slots.h
    }
  });
  return met;
}

/// Whether some joint or actuator is not one of the plain kind: see Capacity::kAnyJoint.
template <class S>
bool has_any_joint(const ModelView<Capacity, S>& m, bool springs_vary) {
  auto is_plain = [](const LinkModel<S>& link) {
    return (link.kind == kHingeLink || link.kind == kSlideLink) && link.has_body && link.actuators <= 1;
  };
  bool plain = !m.has_base_spring && !(springs_vary && m.free_base_);
  for (int t = 0; t < m.trunk_links_; ++t) plain = plain && is_plain(m.trunk[t]);
  for (int l = 0; l < m.limbs_; ++l)
    for (int k = 0; k < m.limb[l].links; ++k) plain = plain && is_plain(m.link[m.limb[l].first_link + k]);
  return !plain;
}

bool has_walls(const View& m) {
  bool found = false;
  each_station(m, [&](const StationModel& st) {
    for (int i = st.static_begin; i < st.static_begin + st.statics; ++i)
      for (const int geom : {m.pair[i].geom1, m.pair[i].geom2})
        found = found || (m.geom[geom].link < 0 && m.geom[geom].type != GeomKind::kPlane);
  });
  return found;
}

bool has_only_probes(const View& m) {
  bool only = true;
  each_station(m, [&](const StationModel& st) { only = only && st.statics == 0 && st.probes <= st.slots; });
  return only;
}

}  // namespace

template <class S>
int links_of_four_limbs(const ModelView<Capacity, S>& m) {
  const LimbsInCommon limbs(m);
  const bool plain = m.ties == 0 && m.bonds == 0 && !m.has_pulls && !m.has_loops && !has_any_joint(m, false);
  const bool on_base = m.free_base_ && m.trunk_links_ == 1 && limbs.attach.is_same() && limbs.attach.value() == 0;
  return plain && on_base && m.limbs_ == 4 && limbs.are_alike() ? limbs.links.value() : 0;
}
template int links_of_four_limbs(const ModelView<Capacity, float>& m);
template int links_of_four_limbs(const ModelView<Capacity, double>& m);

std::string model_shape(const ModelTables<double>& tables, bool springs_vary) {
  const View& m = tables.view;
  const LimbsInCommon limbs(m);
  Held all, lane;
  int most_links = 1, station_slots = 1, candidates = 1, terms = 1;
  for (int rank = 0; rank < kTreeTile; ++rank) {
    Held held;
    for (int l = rank; l < m.limbs_; l += kTreeTile) held.add(m.limb[l]);
    lane.widen(held);
  }
  for (int l = 0; l < m.limbs_; ++l) all.add(m.limb[l]), most_links = std::max(most_links, m.limb[l].links);
  each_station(m, [&](const StationModel& st) {
    station_slots = std::max(station_slots, st.slots);
    int near = st.probes;
    for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) near += m.pair[i].candidates;
    candidates = std::max(candidates, std::min(near, Capacity::kCandidates));
  });
  for (int i = 0; i < m.ties; ++i) terms = std::max(terms, m.tie[i].terms);
  const int dofs = m.trunk_links_ + (m.free_base_ ? 5 : 0);

  std::ostringstream out;
  auto number = [&](const char* name, int value) {
    out << "  static constexpr int k" << name << " = " << value << ";\n";
  };
  auto known = [&](const std::string& head, const std::string& value) {
    out << "  " << head << " { return " << value << "; }\n";
  };
  out << "#pragma once\n#include \"model/shape.h\"\nnamespace stiction {\nstruct ModelShape : TileCapacity {\n";
  number("TrunkLinks", at_least_one(m.trunk_links_)), number("TrunkDofs", at_least_one(dofs));
  number("Limbs", at_least_one(all.limbs)), number("LimbLinks", most_links), number("Links", at_least_one(all.links));
  number("Entries", at_least_one(all.entries)), number("Slots", at_least_one(m.world_slots));
  number("StationSlots", station_slots), number("Candidates", candidates), number("Pairs", m.pair_slots);
  number("Ties", m.ties), number("TieTerms", terms), number("Bonds", m.bonds), number("Actuators", m.actuators);
  number("Dofs", at_least_one(dofs + all.links));
  number("LaneLimbs", at_least_one(lane.limbs)), number("LaneLinks", at_least_one(lane.links));
  number("LaneEntries", at_least_one(lane.entries)), number("LaneSlots", at_least_one(lane.slots));
  out << "  static constexpr bool kAnyJoint = " << (has_any_joint(m, springs_vary) ? "true" : "false") << ";\n";
  out << "  static constexpr bool kOnStack = true;\n";
  out << "  static constexpr bool kRanges = " << (m.has_ranges ? "true" : "false") << ";\n";
  out << "  static constexpr bool kPulls = " << (m.has_pulls ? "true" : "false") << ";\n";
  out << "  static constexpr bool kWalls = " << (has_walls(m) ? "true" : "false") << ";\n";
  out << "  static constexpr bool kLoops = " << (m.has_loops ? "true" : "false") << ";\n";
  out << "  static constexpr bool kOnlyProbes = " << (has_only_probes(m) ? "true" : "false") << ";\n";
  out << "  HD static constexpr bool has_pair(int a, int b) { return 0x" << std::hex << kinds_that_meet(m) << std::dec
      << "ull >> (8 * a + b) & 1; }\n";
  known("HD static constexpr int trunk_links(int)", std::to_string(m.trunk_links_));
  known("HD static constexpr int limbs(int)", std::to_string(m.limbs_));
  known("HD static constexpr bool free_base(int)", m.free_base_ ? "true" : "false");
  if (limbs.attach.is_same()) known("HD static constexpr int attach(int)", std::to_string(limbs.attach.value()));
  if (limbs.are_even()) {
    const std::string own = std::to_string(limbs.links.value());
    known("template <class Limb> HD static constexpr int links(const Limb&)", own);
    known("template <class Limb> HD static constexpr int first_link(const Limb&, int limb)", own + " * limb");
  }
  if (limbs.are_chains()) known("template <class Link> HD static constexpr int parent(const Link&, int k)", "k - 1");
  if (limbs.actuators.is_same())
    known("template <class Link> HD static constexpr int actuators(const Link&)",
          std::to_string(limbs.actuators.value()));
  out << "  static constexpr bool kAlike = " << (limbs.are_alike() ? "true" : "false") << ";\n";
  out << "};\n}  // namespace stiction\n";
  return out.str();
}

}  // namespace stiction
