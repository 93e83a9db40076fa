#include "host/model/links.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace stiction {
namespace {

const Mat3<double> kIdentity{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};

/// Adds mass to a link: com and inertia about the new com.
void add_mass(LinkModel<double>& link, double mass, Vec3<double> com, const Mat3<double>& R, Vec3<double> principal) {
  if (mass <= 0) return;
  double total = link.mass + mass;
  Vec3<double> center = (link.com * link.mass + com * mass) * (1 / total);
  auto shift = [&](double m, Vec3<double> c) {  // m (|d|^2 - d d')
    Vec3<double> d = c - center;
    return SymMat3<double>{m * (d.y * d.y + d.z * d.z), -m * d.x * d.y, -m * d.x * d.z,
                           m * (d.x * d.x + d.z * d.z), -m * d.y * d.z, m * (d.x * d.x + d.y * d.y)};
  };
  Mat3<double> columns = transposed(R);
  SymMat3<double> own = in_world(columns, principal);
  link.inertia = link.inertia + shift(link.mass, link.com) + own + shift(mass, com);
  link.mass = total, link.com = center, link.has_body = 1;
}

class Builder {
 public:
  explicit Builder(const Model& m) : m_(m) {}

  LinkGraph build() {
    graph_.place.resize(m_.nbody);
    graph_.place[0] = {-1, {kIdentity, {0, 0, 0}}};
    for (int b = 1; b < m_.nbody; ++b) add_body(b);
    for (size_t i = 0; i < graph_.node.size(); ++i)
      if (graph_.node[i].parent >= 0) graph_.node[graph_.node[i].parent].children.push_back(static_cast<int>(i));
    return std::move(graph_);
  }

 private:
  void add_body(int b) {
    BodyPlace at = graph_.place[m_.body_parentid[b]];
    Vec3<double> pos = vec3_at(m_.body_pos, b);
    at.pose = {at.pose.R * rotation(quat_at(m_.body_quat, b)), at.pose * pos};
    const size_t first = graph_.node.size();
    for (int j = m_.body_jntadr[b]; j < m_.body_jntadr[b] + m_.body_jntnum[b]; ++j) add_joint(j, at);
    if (first < graph_.node.size() && !graph_.node[first].free) graph_.node[first].link.hung = b;
    graph_.place[b] = at;
    Pose<double> inertial{at.pose.R * rotation(quat_at(m_.body_iquat, b)), at.pose * vec3_at(m_.body_ipos, b)};
    if (at.node < 0) return;
    LinkNode& node = graph_.node[at.node];
    node.bodies.push_back(b);
    add_mass(node.link, m_.body_mass[b], inertial.p, inertial.R, vec3_at(m_.body_inertia, b));
    double buoyant = m_.body_gravcomp.empty() ? 0 : m_.body_gravcomp[b] * m_.body_mass[b];
    if (buoyant != 0) {
      double total = node.link.buoyant_mass + buoyant;
      node.link.buoyant_com = (node.link.buoyant_com * node.link.buoyant_mass + inertial.p * buoyant) * (1 / total);
      node.link.buoyant_mass = total;
    }
  }

  LinkNode& push(int parent, int joint, int kind) {
    LinkNode& node = graph_.node.emplace_back();
    node.parent = parent, node.joint = joint;
    int dof = m_.jnt_dofadr[joint];
    node.link.kind = kind, node.link.joint = joint, node.link.dof = dof, node.link.qpos = m_.jnt_qposadr[joint];
    node.link.armature = m_.dof_armature[dof];
    node.link.damping = m_.disableflags & kDisableDamper ? 0 : m_.dof_damping[dof];
    node.link.friction = m_.disableflags & kDisableFrictionloss ? 0 : m_.dof_frictionloss[dof];
    node.link.force_lower = -kUnlimited, node.link.force_upper = kUnlimited;
    return node;
  }

  void add_joint(int j, BodyPlace& at) {
    int self = static_cast<int>(graph_.node.size());
    Vec3<double> anchor = at.pose * vec3_at(m_.jnt_pos, j);
    switch (static_cast<JointType>(m_.jnt_type[j])) {
      case JointType::kFree: {
        if (at.node >= 0) throw std::invalid_argument("joint " + name(j) + ": a free joint must hang from the world");
        LinkNode& node = push(-1, j, kHingeLink);
        node.free = true;
        const Reals& q = m_.qpos_spring;
        const int p = node.link.qpos;
        node.link.stiffness = stiffness(j);
        node.link.offset = {q[p], q[p + 1], q[p + 2]}, node.link.spring_quat = spring_quat(p + 3);
        at = {self, {kIdentity, {0, 0, 0}}};
        return;
      }
      case JointType::kBall: {
        Quat<double> frame = quat_of(at.pose.R);
        for (int i = 0; i < 3; ++i) {
          LinkNode& node = push(i == 0 ? at.node : self + i - 1, j, i == 0 ? kBallLink : kBallNextLink);
          node.link.dof += i;
          node.link.stiffness = stiffness(j);
          if (i > 0) continue;
          node.link.offset = anchor, node.link.ball_frame = frame;
          node.link.spring_quat = spring_quat(node.link.qpos);
          node.link.lower = m_.jnt_range[2 * j], node.link.upper = m_.jnt_range[2 * j + 1];
        }
        at = {self + 2, {kIdentity, -vec3_at(m_.jnt_pos, j)}};
        return;
      }
      case JointType::kSlide:
      case JointType::kHinge: {
        bool slide = static_cast<JointType>(m_.jnt_type[j]) == JointType::kSlide;
        LinkNode& node = push(at.node, j, slide ? kSlideLink : kHingeLink);
        LinkModel<double>& link = node.link;
        link.offset = anchor, link.axis = at.pose.R * vec3_at(m_.jnt_axis, j);
        int q = m_.jnt_qposadr[j];
        link.q0 = m_.qpos0[q];
        link.spring_ref = m_.qpos_spring[q];
        link.stiffness = stiffness(j);
        link.limited = m_.jnt_limited[j] && !(m_.disableflags & kDisableLimit);
        link.lower = m_.jnt_range[2 * j], link.upper = m_.jnt_range[2 * j + 1];
        if (m_.jnt_actfrclimited[j])
          link.force_lower = m_.jnt_actfrcrange[2 * j], link.force_upper = m_.jnt_actfrcrange[2 * j + 1];
        at = {self, {at.pose.R, at.pose.p - anchor}};
        return;
      }
    }
    throw std::invalid_argument("joint " + name(j) + ": unknown type " + std::to_string(m_.jnt_type[j]));
  }

  double stiffness(int j) const { return m_.disableflags & kDisableSpring ? 0 : m_.jnt_stiffness[j]; }
  Quat<double> spring_quat(int at) const {
    const double* q = &m_.qpos_spring[at];
    return normalized(Quat<double>{q[0], q[1], q[2], q[3]});
  }
  std::string name(int j) const {
    return m_.joint_names[j].empty() ? std::to_string(j) : "'" + m_.joint_names[j] + "'";
  }
  static constexpr double kUnlimited = 1e30;

  const Model& m_;
  LinkGraph graph_;
};

}  // namespace

LinkGraph build_links(const Model& model) { return Builder(model).build(); }

std::vector<LimbRoot> ordered_limbs(const LinkGraph& graph, std::vector<LimbRoot> roots) {
  auto free = [&](const LimbRoot& r) { return graph.node[r.second].free && graph.node[r.second].children.empty(); };
  const bool jointed_last = 2 * std::count_if(roots.begin(), roots.end(), free) > static_cast<long>(roots.size());
  auto key = [&](const LimbRoot& r) {
    const LinkModel<double>& link = graph.node[r.second].link;
    const SymMat3<double>& I = link.inertia;
    const bool last = free(r) != jointed_last;
    return std::make_pair(last, free(r) ? std::ilogb(std::sqrt((I.xx + I.yy + I.zz) / link.mass)) : 0);
  };
  std::stable_sort(roots.begin(), roots.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return roots;
}

LinkModel<double> free_body_link(const LinkModel<double>& body, int k) {
  LinkModel<double> link;
  if (k == 5) link = body;
  link.joint = body.joint;
  link.kind = k < 3 ? kSlideLink : k == 3 ? kBallLink : kBallNextLink;
  link.parent = k - 1;
  link.dof = body.dof + k;
  link.qpos = body.qpos + std::min(k, 3);
  link.axis = {k == 0 ? 1.0 : 0.0, k == 1 ? 1.0 : 0.0, k == 2 ? 1.0 : 0.0};
  link.offset = {0, 0, 0};
  link.ball_frame = {1, 0, 0, 0};
  link.armature = body.armature, link.damping = body.damping, link.friction = 0;
  link.stiffness = body.stiffness, link.spring_ref = dot(link.axis, body.offset), link.spring_quat = body.spring_quat;
  link.force_lower = -1e30, link.force_upper = 1e30;
  return link;
}

ActuatorModel<double> actuator_of(const Model& m, int a, double gear) {
  ActuatorModel<double> x;
  x.ctrl = a, x.gear = gear, x.gain = m.actuator_gainprm[a];
  x.bias0 = m.actuator_biasprm[3 * a], x.bias1 = m.actuator_biasprm[3 * a + 1], x.bias2 = m.actuator_biasprm[3 * a + 2];
  x.clamp_ctrl = m.actuator_ctrllimited[a] && !(m.disableflags & kDisableClampctrl);
  x.clamp_force = m.actuator_forcelimited[a];
  x.ctrl_lower = m.actuator_ctrlrange[2 * a], x.ctrl_upper = m.actuator_ctrlrange[2 * a + 1];
  x.force_lower = m.actuator_forcerange[2 * a], x.force_upper = m.actuator_forcerange[2 * a + 1];
  return x;
}

}  // namespace stiction
