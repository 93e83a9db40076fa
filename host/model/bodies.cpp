#include "host/model/bodies.h"

#include "host/model/ties.h"

namespace stiction {

std::vector<BodyModel<double>> bodies_of(const Model& m, const LinkGraph& graph, const std::function<int(int)>& flat) {
  std::vector<BodyModel<double>> bodies;
  for (int b = 0; b < m.nbody; ++b) {
    const BodyPlace& at = graph.place[b];
    BodyModel<double> x;
    x.link = flat(at.node), x.mocap = mocap_of(m, b);
    x.pose = in_carrier(m, graph, b), x.quat = quat_of(x.pose.R);
    x.com = at.pose * vec3_at(m.body_ipos, b);
    x.parent = m.body_parentid[b];
    x.jointed = b == 0 || m.body_jntnum[b] > 0 || m.body_mocapid[b] >= 0;
    x.pos = vec3_at(m.body_pos, b), x.ipos = vec3_at(m.body_ipos, b);
    bodies.push_back(x);
  }
  return bodies;
}

std::vector<MassModel<double>> masses_of(const Model& m, const LinkGraph& graph, const std::function<int(int)>& flat) {
  std::vector<MassModel<double>> masses;
  for (size_t i = 0; i < graph.node.size(); ++i) {
    const std::vector<int>& of_node = graph.node[i].bodies;
    for (size_t j = 0; j < of_node.size(); ++j) {
      const int b = of_node[j];
      const BodyPlace& at = graph.place[b];
      MassModel<double> x;
      x.link = flat(static_cast<int>(i)), x.body = b, x.first = j == 0, x.mass = m.body_mass[b];
      x.gravcomp = m.body_gravcomp.empty() ? 0 : m.body_gravcomp[b];
      x.com = at.pose * vec3_at(m.body_ipos, b), x.inertia = vec3_at(m.body_inertia, b);
      x.axes = transposed(at.pose.R * rotation(quat_at(m.body_iquat, b)));
      masses.push_back(x);
    }
  }
  return masses;
}

std::vector<SiteModel<double>> sites_of(const Model& m, const LinkGraph& graph, const std::function<int(int)>& flat) {
  std::vector<SiteModel<double>> sites;
  for (int s = 0; s < m.nsite; ++s) {
    const int b = m.site_bodyid[s];
    const Vec3<double> local = vec3_at(m.site_pos, s);
    sites.push_back({flat(graph.place[b].node), mocap_of(m, b), b, in_carrier(m, graph, b) * local, local});
  }
  return sites;
}

}  // namespace stiction
