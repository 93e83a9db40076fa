// Bodies to links: the intermediate form of compile(). A node is one dof, or a floating root with six.
#pragma once
#include <utility>
#include <vector>

#include "host/model/model.h"
#include "math/pose.h"
#include "math/spatial.h"
#include "model/model_view.h"

namespace stiction {

struct LinkNode {
  int parent = -1;    // node; -1: the world
  bool free = false;  // a floating root: six dofs
  int joint = -1;
  LinkModel<double> link;  // all but the numbers of geometry and slots
  std::vector<int> children, bodies;
};

/// Where a body is: on a node, or in the world (node = -1), and its pose in that frame.
struct BodyPlace {
  int node = -1;
  Pose<double> pose;
};

struct LinkGraph {
  std::vector<LinkNode> node;    // parents before children; the three of a ball joint side by side
  std::vector<BodyPlace> place;  // per body
};

LinkGraph build_links(const Model& model);

using LimbRoot = std::pair<int, int>;  // link of the trunk that it hangs from or -1, node
/// In which order limbs are numbered, and so eliminated where their rows are factored (linalg/block_cholesky.h): what touches many of the
/// others comes last, for it couples all those that it touches once it is gone. That is a tray, a table or an arm among things, and a
/// cube among fingers: whichever is fewer, free bodies or jointed limbs, and of free bodies those that are larger by octaves.
std::vector<LimbRoot> ordered_limbs(const LinkGraph& graph, std::vector<LimbRoot> roots);

/// Link k of the six of a free body beside the trunk: three slides along the world's axes and a ball joint with the mass.
LinkModel<double> free_body_link(const LinkModel<double>& body, int k);

/// One actuator at one dof or tendon that it drives with this gear.
ActuatorModel<double> actuator_of(const Model& m, int a, double gear);

inline Vec3<double> vec3_at(const Reals& a, int i) { return {a[3 * i], a[3 * i + 1], a[3 * i + 2]}; }
inline Quat<double> quat_at(const Reals& a, int i) {
  return normalized(Quat<double>{a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3]});
}

}  // namespace stiction
