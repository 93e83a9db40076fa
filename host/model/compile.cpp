#include "host/model/compile.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

#include "collision/world_slots.h"
#include "host/model/bodies.h"
#include "host/model/geometry.h"
#include "host/model/links.h"
#include "host/model/pair_places.h"
#include "host/model/ties.h"

namespace stiction {
namespace {

class Compiler {
 public:
  Compiler(const Model& m, const Room& room, int contacts)
      : m_(m),
        room_(room),
        contacts_(contacts),
        graph_(build_links(m)),
        out_(std::make_unique<ModelTables<double>>()) {}

  std::unique_ptr<ModelTables<double>> run() {
    options();
    choose_trunk();
    place_limbs();
    geoms();
    contacts();
    roll_round();
    reaches();
    stations();
    link_pairs();
    actuators();
    ties();
    bodies();
    out_->link();
    return std::move(out_);
  }

 private:
  using View = ModelView<Capacity, double>;
  View& view() { return out_->view; }
  const LinkNode& node(int i) const { return graph_.node[i]; }

  void options() {
    View& v = view();
    v.nq = m_.nq, v.nv = m_.nv, v.nu = m_.nu, v.nbody = m_.nbody, v.ngeom = m_.ngeom, v.nsite = m_.nsite;
    v.nmocap = m_.nmocap;
    if (!(m_.disableflags & kDisableGravity)) v.gravity = {m_.gravity[0], m_.gravity[1], m_.gravity[2]};
    double mass = 0;
    int moving = 0;
    for (int b = 1; b < m_.nbody; ++b)
      if (m_.body_weldid[b] != 0 && m_.body_mass[b] > 0) mass += m_.body_mass[b], ++moving;
    v.mean_mass = moving ? mass / moving : 0;
  }

  bool branches(int i) const {
    const auto& c = node(i).children;
    return c.size() > 1 || std::any_of(c.begin(), c.end(), [&](int k) { return branches(k); });
  }
  int size(int i) const {
    int n = 1;
    for (int c : node(i).children) n += size(c);
    return n;
  }

  /// The trunk's chain of nodes; empty where no tree branches.
  void choose_trunk() {
    int root = -1, largest = 0;
    for (size_t i = 0; i < graph_.node.size(); ++i)
      if (node(i).parent < 0 && branches(i) && size(i) > largest && (node(i).free || !is_ball(i)))
        root = static_cast<int>(i), largest = size(i);
    if (root < 0) return;
    trunk_ = {root};
    int most = node(root).free ? Capacity::kTrunkLinks : Capacity::kTrunkLinks - 1;
    while (static_cast<int>(trunk_.size()) < most) {
      std::vector<int> inner;
      for (int c : node(trunk_.back()).children)
        if (branches(c)) inner.push_back(c);
      // A chain that leads to the first branching goes on; below a branching, only where one child alone branches.
      if (inner.size() != 1 || is_ball(inner[0])) break;
      trunk_.push_back(inner[0]);
    }
    View& v = view();
    v.free_base_ = node(root).free;
    v.trunk_links_ = static_cast<int>(trunk_.size());
    if (!v.free_base_)
      while (v.trunk_leading < v.trunk_links_ && node(trunk_[v.trunk_leading]).link.kind == kSlideLink)
        ++v.trunk_leading;
    for (size_t t = 0; t < trunk_.size(); ++t) {
      v.trunk[t] = node(trunk_[t]).link;
      flat_[trunk_[t]] = static_cast<int>(t);
    }
  }
  bool is_ball(int i) const { return node(i).link.kind == kBallLink || node(i).link.kind == kBallNextLink; }

  void place_limbs() {
    std::vector<LimbRoot> roots;
    for (size_t i = 0; i < graph_.node.size(); ++i) {
      if (std::find(trunk_.begin(), trunk_.end(), static_cast<int>(i)) != trunk_.end()) continue;
      int up = node(i).parent;
      auto on_trunk = std::find(trunk_.begin(), trunk_.end(), up);
      if (up < 0) roots.push_back({-1, static_cast<int>(i)});
      else if (on_trunk != trunk_.end())
        roots.push_back({static_cast<int>(on_trunk - trunk_.begin()), static_cast<int>(i)});
    }
    for (auto [attach, root] : ordered_limbs(graph_, roots)) add_limb(attach, root);
    // A trunk link with contacts needs a limb that hosts its slots: the first that hangs from it, or one without links.
    for (int t = 0; t < view().trunk_links_; ++t) {
      int host = -1;
      for (int l = 0; l < view().limbs_ && host < 0; ++l)
        if (view().limb[l].attach == t) host = l;
      if (host < 0) {
        require_at_most("limbs", view().limbs_ + 1, room_, &Room::limbs);
        host = view().limbs_++;
        view().limb[host].attach = t;
        view().limb[host].first_link = links_;
      }
      host_.push_back(host);
    }
  }

  void add_limb(int attach, int root) {
    View& v = view();
    require_at_most("limbs (chains and free bodies)", v.limbs_ + 1, room_, &Room::limbs);
    const int joint = node(root).joint, dofs = size(root) + (node(root).free ? 5 : 0);
    const std::string& name = m_.joint_names[joint];
    require_at_most(
        "degrees of freedom in the limb from joint " + (name.empty() ? std::to_string(joint) : name) + " on", dofs,
        room_, &Room::limb_links);
    LimbModel& limb = v.limb[v.limbs_++];
    limb.attach = attach, limb.first_link = links_;
    std::map<int, int> local;  // node -> link of this limb, its last
    std::function<void(int)> add = [&](int i) {
      int up = node(i).parent;
      if (node(i).free) {
        for (int k = 0; k < 6; ++k) push_link(limb, free_body_link(node(i).link, k));
        local[i] = 5;
      } else {
        LinkModel<double> link = node(i).link;
        link.parent = i == root ? -1 : local.at(up);
        local[i] = push_link(limb, link);
      }
      flat_[i] = flat_link<Capacity>(limb.first_link + local[i]);
      for (int c : node(i).children) add(c);
    };
    add(root);
    limb.entries = limb.links * (limb.links + 1) / 2;
    entries_ += limb.entries;
    require_at_most("entries of its limbs' mass matrices", entries_, room_, &Room::entries);
    if (attach < 0)
      while (limb.leading < limb.links && v.link[limb.first_link + limb.leading].kind == kSlideLink &&
             v.link[limb.first_link + limb.leading].parent == limb.leading - 1)
        ++limb.leading;
  }

  int push_link(LimbModel& limb, const LinkModel<double>& link) {
    require_at_most("degrees of freedom in limbs", links_ + 1, room_, &Room::links);
    view().link[links_++] = link;
    return limb.links++;
  }

  int limb_of(int flat) const {
    for (int l = 0; l < out_->view.limbs_; ++l) {
      int k = flat - Capacity::kTrunkLinks - out_->view.limb[l].first_link;
      if (k >= 0 && k < out_->view.limb[l].links) return l;
    }
    return -1;
  }
  LinkModel<double>& link_at(int flat) {
    return flat < Capacity::kTrunkLinks ? view().trunk[flat] : view().link[flat - Capacity::kTrunkLinks];
  }

  void geoms() {
    for (int i = 0; i < m_.nmesh; ++i) out_->hull.push_back(measured_hull(m_, i, out_->hull_start));
    out_->hull_vert = m_.mesh_vert;
    // Neighbour lists are addressed from each mesh's first vertex on.
    out_->hull_edgeadr = m_.mesh_edgeadr, out_->hull_edge = m_.mesh_edge;
    for (int g = 0; g < m_.ngeom; ++g) {
      const BodyPlace& at = graph_.place[m_.geom_bodyid[g]];
      GeomModel<double> x;
      x.type = m_.geom_type[g], x.body = m_.geom_bodyid[g], x.mesh = m_.geom_dataid[g];
      if (x.type != GeomKind::kMesh) x.mesh = -1;
      x.link = at.node < 0 ? -1 : flat_.at(at.node), x.size = vec3_at(m_.geom_size, g);
      x.pose = {at.pose.R * rotation(quat_at(m_.geom_quat, g)), at.pose * vec3_at(m_.geom_pos, g)};
      inner_.push_back(bound(x.mesh >= 0 ? out_->hull[x.mesh] : HullView<double>{}, x));
      out_->geom.push_back(x);
    }
  }

  void contacts() {
    for (const GeomPair& p : collision_pairs(m_)) {
      const auto &g1 = out_->geom[p.geom1], &g2 = out_->geom[p.geom2];
      for (int g : {p.geom1, p.geom2})
        if (mocap_of(m_, m_.geom_bodyid[g]) >= 0)
          throw std::invalid_argument("geom " + std::to_string(g) + ": contact with a mocap body is not supported");
      if (candidate_count(g1.type, g2.type) == 0) {
        if (g1.type == GeomKind::kHeightfield || g2.type == GeomKind::kHeightfield)
          throw std::invalid_argument("geom " + std::to_string(g1.type == GeomKind::kHeightfield ? p.geom1 : p.geom2) +
                                      ": contact with heightfields is not supported");
        continue;
      }
      if (g1.link >= 0 && g1.type == GeomKind::kPlane)
        throw std::invalid_argument("geom " + std::to_string(p.geom1) + ": a moving plane cannot collide");
      if (g1.link >= 0 && g2.link >= 0) {
        PairModel<double> pair = surface_of(m_, p);
        const int turns1 = has_middle(g1), turns2 = has_middle(g2);
        pair.middle = turns1 + 2 * turns2, pair.candidates = candidate_count(g1.type, g2.type) + turns1 + turns2;
        moving_[std::minmax(g1.link, g2.link)].push_back(pair);
      } else {
        const auto &own = g1.link >= 0 ? g1 : g2, &fixed = g1.link >= 0 ? g2 : g1;
        const bool free = is_alone(own.link);
        const int probes = g1.type == GeomKind::kPlane ? probe_count(g2.type, g2.size, free) : 0,
                  shaped = free ? free_count(own.type, fixed.type) : candidate_count(g1.type, g2.type);
        PairModel<double> pair = surface_of(m_, p);
        pair.middle = probes == 0 && has_middle(own), pair.candidates = (probes > 0 ? probes : shaped) + pair.middle;
        (probes > 0 ? probes_ : statics_)[own.link].push_back(pair);
      }
    }
  }

  /// Whether a link is a free body that carries nothing.
  bool is_alone(int link) const {
    for (size_t i = 0; i < graph_.node.size(); ++i)
      if (flat_.at(static_cast<int>(i)) == link) return node(i).free && node(i).children.empty();
    return false;
  }

  /// The geom of a free body that has no other among the pairs with static ones, where it rolls (collision/rolling_rim.h); else -1.
  int rolling_geom(int link) {
    if (!is_alone(link)) return -1;
    int found = -1;
    for (auto* lists : {&probes_, &statics_})
      for (const PairModel<double>& p : (*lists)[link]) {
        const int own = out_->geom[p.geom1].link == link ? p.geom1 : p.geom2;
        if (found >= 0 && own != found) return -1;
        found = own;
      }
    return found >= 0 && rolls(out_->geom[found], link_at(link).com) ? found : -1;
  }

  /// A sphere that rolls, or a capsule's end, is no fixed point of its body.
  void roll_round() {
    for (auto& [link, pairs] : probes_) {
      if (rolling_geom(link) < 0) continue;
      for (PairModel<double> p : pairs) p.middle = has_middle(out_->geom[p.geom2]), statics_[link].push_back(p);
      pairs.clear();
    }
  }

  /// A free geom that stays where it is however it turns needs no other point.
  bool has_middle(const GeomModel<double>& geom) const { return geom.type != GeomKind::kSphere && is_alone(geom.link); }

  int plane_of(int geom) {
    auto [it, fresh] = planes_.try_emplace(geom, static_cast<int>(out_->plane.size()));
    if (fresh) {
      const Pose<double>& x = out_->geom[geom].pose;
      Vec3<double> n = column(x.R, 2);
      // A plane that is level to rounding is level: its frame is then the world's axes.
      if (n.z > 1 - 1e-15) n = {0, 0, 1};
      out_->plane.push_back({geom, frame_of_normal(n), dot(n, x.p)});
    }
    return it->second;
  }

  void add_probes(const PairModel<double>& pair, StationModel& station) {
    const auto& geom = out_->geom[pair.geom2];
    ProbeModel<double> probe = probe_against(plane_of(pair.geom1), pair);
    for (int k = 0; k < pair.candidates; ++k) {
      const Probe<double> own = probe_of(geom.type, geom.size, k);
      probe.center = geom.pose * own.center, probe.radius = own.radius, probe.feature = k;
      out_->probe.push_back(probe);
      ++station.probes;
    }
  }

  void fill_station(int link, StationModel& station, int& slots) {
    station.slot_begin = slots;
    station.probe_begin = static_cast<int>(out_->probe.size());
    station.static_begin = static_cast<int>(out_->pair.size());
    station.thin = static_cast<float>(thickest_[link]);
    for (const auto& p : probes_[link]) add_probes(p, station);
    int candidates = station.probes;
    auto own = [&](const auto& p) { return out_->geom[p.geom2].link < 0 ? p.geom1 : p.geom2; };  // stand together
    std::stable_sort(statics_[link].begin(), statics_[link].end(), [&](auto& a, auto& b) { return own(a) < own(b); });
    for (auto p : statics_[link]) {
      p.id = candidates;
      candidates += p.candidates;
      out_->pair.push_back(p);
      ++station.statics;
    }
    station.rolls = rolling_geom(link) >= 0;
    station.slots = std::min(candidates, station_room(link));
    slots += station.slots;
  }

  /// World slots of a link, at most: 8 for one pair of geoms, 16 for more (a peg in a hole, a table's legs), or as many as were asked for.
  int station_room(int link) const {
    auto count = [&](const auto& lists) { return lists.count(link) ? lists.at(link).size() : size_t{0}; };
    return std::min(std::max(contacts_, count(probes_) + count(statics_) > 1 ? 16 : 8), station_slots_);
  }

  void share_slots() {              // to every link's station as many world slots as fit for all
    std::map<int, int> candidates;  // by link
    for (const auto* lists : {&probes_, &statics_})
      for (const auto& [link, pairs] : *lists)
        for (const auto& p : pairs) candidates[link] += p.candidates;
    for (int total = room_.slots + 1; total > room_.slots && station_slots_ > 1;) {
      total = 0;
      for (const auto& [link, count] : candidates) total += std::min(count, station_room(link));
      station_slots_ -= total > room_.slots;
    }
  }

  void stations() {
    View& v = view();
    share_slots();
    for (int l = 0; l < v.limbs_; ++l) {
      LimbModel& limb = v.limb[l];
      limb.first_slot = v.world_slots;
      if (limb.attach >= 0 && host_[limb.attach] == l) fill_station(limb.attach, limb.station, limb.slots);
      for (int k = 0; k < limb.links; ++k)
        fill_station(flat_link<Capacity>(limb.first_link + k), v.link[limb.first_link + k].station, limb.slots);
      v.world_slots += limb.slots;
    }
    require_at_most("contact slots against static geometry", v.world_slots, room_, &Room::slots);
    v.planes = static_cast<int>(out_->plane.size());
    v.level =
        std::all_of(out_->plane.begin(), out_->plane.end(), [](const auto& p) { return p.frame.row[2].z == 1; }) &&
        std::all_of(statics_.begin(), statics_.end(), [](const auto& of_link) { return of_link.second.empty(); });
  }

  /// How far colliding geoms reach from their link's origin: with its speed, how far they may move in a step.
  void reaches() {
    auto extend = [&](int link, const PairModel<double>& p) {
      for (int g : {p.geom1, p.geom2}) {
        GeomModel<double>& geom = out_->geom[g];
        if (geom.link != link) continue;
        geom.collides = 1, thickest_[link] = std::max(thickest_[link], inner_[g]);
        double& reach = link_at(link).reach;
        reach = std::max(reach, norm(geom.pose.p) + geom.radius);
      }
    };
    for (const auto* lists : {&probes_, &statics_})
      for (const auto& [link, pairs] : *lists)
        for (const auto& p : pairs) extend(link, p);
    for (const auto& [links, pairs] : moving_)
      for (const auto& p : pairs) extend(links.first, p), extend(links.second, p);
  }

  void link_pairs() {
    int features = 0;
    std::map<int, std::vector<int>> touching;  // link -> its geoms that may touch other links
    std::set<int> free;                        // links of free bodies
    for (const LimbModel& limb : view().limb)
      if (limb.leading == 3) free.insert(flat_link<Capacity>(limb.first_link + limb.links - 1));
    PairPlaces room;
    for (auto& [links, pairs] : moving_) {
      LinkPairModel lp{links.first, links.second, static_cast<int>(pairs.size()), static_cast<int>(out_->pair.size())};
      int places = 0;
      for (auto& p : pairs) {
        p.id = features;
        features += p.candidates, places += std::min(p.candidates, PairPlaces::kFace);
        out_->pair.push_back(p);
        for (int g : {p.geom1, p.geom2}) touching[out_->geom[g].link].push_back(g);
      }
      lp.thin = static_cast<float>(std::min(thickest_[links.first], thickest_[links.second]));
      out_->link_pair.push_back(lp);
      const bool second = free.contains(links.second);
      room.add(second ? links.first : links.second, second || free.contains(links.first), places);
    }
    for (auto& [flat, geoms] : touching) {
      LinkModel<double>& link = link_at(flat);
      Vec3<double> low{1e30, 1e30, 1e30}, high{-1e30, -1e30, -1e30};
      for (int g : geoms) {
        Vec3<double> p = out_->geom[g].pose.p;
        low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
        high = {std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z)};
      }
      link.bound_center = (low + high) * 0.5;
      link.bound_radius = 0;
      for (int g : geoms)
        link.bound_radius =
            std::max(link.bound_radius, norm(out_->geom[g].pose.p - link.bound_center) + out_->geom[g].radius);
    }
    View& v = view();
    v.link_pairs = static_cast<int>(out_->link_pair.size());
    v.pair_slots = std::min({features, room_.pairs, std::max(room.number(static_cast<int>(free.size())), contacts_)});
  }

  void actuators() {
    std::map<int, std::vector<ActuatorModel<double>>> of_dof;
    for (int a = 0; a < m_.nu && !(m_.disableflags & kDisableActuation); ++a) {
      if (static_cast<Transmission>(m_.actuator_trntype[a]) != Transmission::kJoint) continue;
      int j = m_.actuator_trnid[a], dof = m_.jnt_dofadr[j];
      auto type = static_cast<JointType>(m_.jnt_type[j]);
      int dofs = type == JointType::kFree ? 6 : type == JointType::kBall ? 3 : 1;
      bool servo = m_.actuator_biasprm[3 * a + 1] != 0 || m_.actuator_biasprm[3 * a + 2] != 0;
      if (type == JointType::kFree || (dofs > 1 && servo))
        throw std::invalid_argument("actuator " + std::to_string(a) +
                                    ": only motors may drive a ball joint, and nothing a free one");
      for (int i = 0; i < dofs; ++i)
        if (double gear = m_.actuator_gear[6 * a + i]; gear != 0 || dofs == 1)
          of_dof[dof + i].push_back(actuator_of(m_, a, gear));
    }
    auto place = [&](LinkModel<double>& link) {
      link.actuator_begin = static_cast<int>(out_->actuator.size());
      View& v = view();
      const bool bounded = link.force_lower > -1e29 || link.force_upper < 1e29;
      for (const auto& x : of_dof[link.dof]) {
        out_->actuator.push_back(x), ++link.actuators;
        v.has_ranges |= (bounded || x.clamp_force) && (x.bias1 < 0 || x.bias2 < 0);
      }
      v.has_limits |= link.limited;
      v.has_friction |= link.friction > 0;
      v.has_springs |= link.stiffness != 0;
      v.has_buoyancy |= link.buoyant_mass != 0;
    };
    View& v = view();
    for (double restitution : m_.geom_restitution) v.has_restitution |= restitution > 0;
    for (const auto& pair : out_->pair) v.has_spin |= pair.dim > 3;
    for (const auto& probe : out_->probe) v.has_spin |= probe.dim > 3;
    for (int t = v.free_base_; t < v.trunk_links_; ++t) place(v.trunk[t]);
    if (v.free_base_) v.has_buoyancy |= v.trunk[0].buoyant_mass != 0, v.has_base_spring = v.trunk[0].stiffness != 0;
    for (int l = 0; l < v.limbs_; ++l)
      for (int k = 0; k < v.limb[l].links; ++k) {
        place(v.link[v.limb[l].first_link + k]);
        v.limb[l].actuators += v.link[v.limb[l].first_link + k].actuators;
      }
    require_at_most("actuators", static_cast<int>(out_->actuator.size()), room_, &Room::actuators);
  }

  int flat_of_joint(int j) {
    for (size_t i = 0; i < graph_.node.size(); ++i)
      if (graph_.node[i].joint == j) return flat_.at(static_cast<int>(i));
    throw std::invalid_argument("joint " + std::to_string(j) + " moves nothing");
  }

  void ties() {
    const auto link = [this](int joint) { return flat_of_joint(joint); };
    out_->tie = ties_of(m_, room_, link);
    bound_pulls(view(), out_->tie);
    const auto flat = [this](int body) {
      const int node = graph_.place[body].node;
      return node < 0 ? -1 : flat_.at(node);
    };
    out_->bond = bonds_of(m_, graph_, room_, flat);
    view().ties = static_cast<int>(out_->tie.size()), view().bonds = static_cast<int>(out_->bond.size());
    view().has_loops = view().bonds > 0;
    for (const TieModel<double>& tie : out_->tie)
      if (tie.kind == kTieEquality)
        view().has_loops |= std::any_of(tie.poly + 2, tie.poly + 5, [](double c) { return c != 0; });
  }

  void bodies() {
    const auto flat = [this](int node) { return node < 0 ? -1 : flat_.at(node); };
    out_->body = bodies_of(m_, graph_, flat), out_->mass = masses_of(m_, graph_, flat);
    out_->site = sites_of(m_, graph_, flat);
    View& v = view();
    v.njnt = m_.njnt, v.masses = static_cast<int>(out_->mass.size()), v.probes = static_cast<int>(out_->probe.size());
    v.pairs = static_cast<int>(out_->pair.size()), v.actuators = static_cast<int>(out_->actuator.size());
  }

  const Model& m_;
  const Room room_;
  const int contacts_;
  LinkGraph graph_;
  std::unique_ptr<ModelTables<double>> out_;
  std::vector<int> trunk_, host_;
  std::map<int, int> flat_;  // node -> flat link (of a free body: the last)
  int links_ = 0, entries_ = 0;
  std::map<int, std::vector<PairModel<double>>> probes_, statics_;
  std::map<std::pair<int, int>, std::vector<PairModel<double>>> moving_;
  std::map<int, double> thickest_;  // by link, of geoms that collide the largest inner radius
  std::vector<double> inner_;       // of geoms
  std::map<int, int> planes_;
  int station_slots_ = room_.station_slots;
};

}  // namespace

std::unique_ptr<ModelTables<double>> compile(const Model& model, const Room& room, int contacts) {
  validate(model);
  if (model.nv == 0) throw std::invalid_argument("the model has no joints: nothing moves");
  return Compiler(model, room, contacts).run();
}

}  // namespace stiction
