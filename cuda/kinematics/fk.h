// Forward kinematics: link poses in world axes relative to the origin O of their tree, O itself, and the columns of the
// Jacobians as motions,   hinge S = (a, p x a),   slide S = (0, a),   a = R axis,   p from O to the joint.
#pragma once
#include "model/state_view.h"

namespace stiction {

/// Poses of all links and their motions; the origin of the trunk and of every limb of this lane.
template <class L>
struct Kinematics {
  using Real = typename L::Real;
  PerLink<L, Pose<Real>> pose;
  PerDof<L, Motion<Real>> S;  // trunk: from base_dofs() on
  Vec3<Real> trunk_origin;    // in the world                                                                       m
  Vec3<Real> limb_origin[L::kLimbs];
};

/// A link hung from its parent, `offset` from its origin; kBallNextLink is not for this.
template <class T, class Number, class N>
HD void hang(const Pose<T>& parent, const LinkModel<Number>& link, Vec3<N> offset, T q, Pose<T>& pose, Motion<T>& S) {
  Vec3<T> a = parent.R * link.axis, zero{T(0), T(0), T(0)};
  Vec3<T> p = parent.p + parent.R * offset;
  if (link.kind == kSlideLink) {
    pose = {parent.R, p + a * (q - link.q0)};
    S = {zero, a};
  } else {
    pose = {rotated(parent.R, link.axis, a, q - link.q0), p};
    S = {a, cross(p, a)};
  }
}

/// A ball joint: three columns about the body's axes (MuJoCo's dofs are body-frame angular velocities).
template <class T, class Number, class N>
HD void hang_ball(const Pose<T>& parent, const LinkModel<Number>& link, Vec3<N> offset, const Quat<T>& q, Pose<T>& pose,
                  Motion<T> (&S)[3]) {
  pose = {parent.R * rotation(normalized(quat_cast<T>(link.ball_frame) * q)), parent.p + parent.R * offset};
  UNROLL for (int i = 0; i < 3; ++i) {
    Vec3<T> a = column(pose.R, i);
    S[i] = {a, cross(pose.p, a)};
  }
}

/// Poses of links that hang from the world are first relative to it; moves the leading ones to O. `last`: their number.
template <class T>
HD Vec3<T> origin_of(const Pose<T>* pose, int leading) { return pose[leading > 0 ? leading - 1 : 0].p; }

/// offset_of(link): where a link hangs, for who has no tables of the environment.
template <class L, class OffsetOf>
HD void forward_kinematics(const typename L::Group& g, const typename L::Model& m, const State<L>& x, Kinematics<L>& kin,
                           OffsetOf offset_of) {
  using Real = typename L::Real;
  Real zero(0), one(1);
  const Pose<Real> world{{{{one, zero, zero}, {zero, one, zero}, {zero, zero, one}}}, {zero, zero, zero}};
  auto& pose = kin.pose;

  kin.trunk_origin = x.position;
  if (m.free_base()) pose.trunk[0] = {rotation(x.orientation), {zero, zero, zero}};
  UNROLL for (int t = m.base_links(); t < m.trunk_links(); ++t) {
    int dof = t + m.base_dofs() - m.base_links();
    hang(t == 0 ? world : pose.trunk[t - 1], m.trunk[t], offset_of(m.trunk[t]), x.q.trunk[dof], pose.trunk[t],
         kin.S.trunk[dof]);
    if (!m.free_base() && t + 1 == max(m.trunk_leading, 1)) {
      kin.trunk_origin = origin_of(pose.trunk, m.trunk_leading);
      UNROLL for (int u = 0; u <= t; ++u) pose.trunk[u].p = pose.trunk[u].p - kin.trunk_origin;
      if (m.trunk_leading == 0) kin.S.trunk[dof].v = {zero, zero, zero};  // p = 0
    }
  }

  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    bool on_trunk = limb.on_trunk();
    kin.limb_origin[at.limb] = kin.trunk_origin;
    Pose<Real> root = on_trunk ? pose.trunk[limb.attach()] : world;
    int leading = on_trunk ? 0 : max(limb.t.leading, 1);
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      const auto& link = limb.link(k);
      int i = at.link + k, up = limb.parent(k);
      Pose<Real> parent = up < 0 ? root : pose.limb[at.link + up];
      if (L::Shape::kAnyJoint && link.kind == kBallNextLink) continue;
      if (L::Shape::kAnyJoint && link.kind == kBallLink) {
        Motion<Real> S[3];
        hang_ball(parent, link, offset_of(link), {x.qw.limb[i], x.q.limb[i], x.q.limb[i + 1], x.q.limb[i + 2]},
                  pose.limb[i], S);
        UNROLL for (int j = 0; j < 3; ++j) kin.S.limb[i + j] = S[j];
        pose.limb[i + 1] = pose.limb[i + 2] = pose.limb[i];
      } else {
        hang(parent, link, offset_of(link), x.q.limb[i], pose.limb[i], kin.S.limb[i]);
      }
      if (!on_trunk && k + 1 == leading) {
        Vec3<Real> O = origin_of(pose.limb + at.link, limb.t.leading);
        kin.limb_origin[at.limb] = O;
        UNROLL for (int u = 0; u <= k; ++u) pose.limb[at.link + u].p = pose.limb[at.link + u].p - O;
        if (limb.t.leading == 0) {
          int columns = link.kind == kBallLink ? 3 : 1;
          for (int j = 0; j < columns; ++j) {
            pose.limb[i + j].p = {zero, zero, zero};
            if (link.kind != kSlideLink) kin.S.limb[i + j].v = {zero, zero, zero};
          }
        }
      }
    }
  });
}

template <class L>
HD void forward_kinematics(const typename L::Group& g, const typename L::Model& m, const State<L>& x, Kinematics<L>& kin) {
  forward_kinematics<L>(g, m, x, kin, [](const auto& link) { return link.offset; });
}

/// Inertias of all links about O.
template <class L>
HD void link_inertias(const typename L::Group& g, const typename L::Model& m, const Kinematics<L>& kin,
                      PerLink<L, RigidInertia<typename L::Real>>& I) {
  UNROLL for (int t = 0; t < m.trunk_links(); ++t)
    I.trunk[t] = placed(kin.pose.trunk[t], m.trunk[t].mass, m.trunk[t].com, m.trunk[t].inertia);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    UNROLL for (int k = 0; k < limb.links(); ++k)
      if (!L::Shape::kAnyJoint || limb.link(k).has_body)
        I.limb[at.link + k] = placed(kin.pose.limb[at.link + k], limb.link(k).mass, limb.link(k).com, limb.link(k).inertia);
  });
}

}  // namespace stiction
