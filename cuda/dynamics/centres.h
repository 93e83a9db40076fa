// Where centres of mass go: of all that a free root carries, a free base, or a free body that a limb begins with.
//
// While nothing acts from outside a centre keeps its velocity, and a tree its linear momentum P, whatever joints do. Coriolis forces
// c(u) at the geometry of the step's beginning would accelerate it by a = c_o / m, the part of the origin's moving, and in every
// step by the square of h at another geometry. So c loses M_o a, M_o the columns of M of the origin's moving (hold_centres): as if
// the origin had been accelerated by -a and carried all along. What the solve finds changes P by impulses alone. After it
//
//   x+ = x + h P / m + c - c+,     v+ = (P - p+) / m
//
// are the origin and its velocity: c, c+ from there to the centre before the step and where joints and the root's turn take it, p+ the
// momentum that they have there without the origin's (move_centres). So centres go straight, P is that of the solve, and nothing depends
// on where a root's frame is. docs/theory.md, (2.4).
#pragma once
#include "dynamics/integrate.h"
#include "kinematics/jacobian.h"
#include "math/turn.h"

namespace stiction {

template <class Real> HD Vec3<Real> zero3() { return {Real(0), Real(0), Real(0)}; }
template <class Real> HD Vec3<Real> three(const Real* x) { return {x[0], x[1], x[2]}; }
template <class Real> HD void put(const Vec3<Real>& x, Real* to) { to[0] = x.x, to[1] = x.y, to[2] = x.z; }

/// a / mass; 0 where there is none.
template <class Real>
HD Real over_mass(const Real& a, const Real& mass) {
  const Mask<Real> heavy = mass > Real(0);
  return select(heavy, a / select(heavy, mass, Real(1)), Real(0));
}

/// One that carries nothing.
template <class L>
HD bool is_lone_body(const LimbView<L>& limb) {
  if constexpr (L::Shape::kAnyJoint) return limb.links() == 6 && is_free_body(limb);
  else return false;
}

/// Whether a limb is a tree of several joints, or a part of one.
template <class L>
HD bool is_jointed(const LimbView<L>& limb) {
  if (limb.on_trunk()) return true;
  if (limb.links() == 1 || is_lone_body(limb)) return false;
  return !(L::Shape::kAnyJoint && limb.links() == 3 && limb.link(0).kind == kBallLink);
}
/// Whether the trunk is.
template <class L>
HD bool has_jointed_trunk(const typename L::Model& m) {
  bool limbs = m.trunk_links() > 1;
  for (int l = 0; l < m.limbs(); ++l) limbs = limbs || m.limb[l].attach >= 0;
  return m.trunk_dofs() > 0 && limbs;
}

/// A free base and what it carries.
template <class L>
struct BaseTree {
  using Real = typename L::Real;
  static constexpr bool kPlacesAll = true;  // whether `shift` leaves kin as forward kinematics have it, to the bit
  const typename L::Group& g;
  const typename L::Model& m;

  /// Three dofs, the moving of the origin.
  HD Real* moving(TreeVector<L>& v) const { return v.trunk + 3; }
  HD const Real* moving(const TreeVector<L>& v) const { return v.trunk + 3; }
  /// body(own, column, x...) for all other dofs. column: what M has of it and the moving, momentum per speed; own: of this lane alone.
  template <class Body, class... Vectors>
  HD void each_column(const TreeMatrix<L>& M, Body body, Vectors&... x) const {
    const auto& H = M.trunk;
    UNROLL for (int t = 0; t < 3; ++t) body(false, Vec3<Real>{H[3][t], H[4][t], H[5][t]}, x.trunk[t]...);
    UNROLL for (int t = 6; t < m.trunk_dofs(); ++t) body(false, Vec3<Real>{H[t][3], H[t][4], H[t][5]}, x.trunk[t]...);
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!limb.on_trunk()) return;
      UNROLL for (int k = 0; k < limb.links(); ++k) {
        const Real* row = M.cross[at.link + k];
        body(true, Vec3<Real>{row[3], row[4], row[5]}, x.limb[at.link + k]...);
      }
    });
  }
  /// body(own, x...) for all links with bodies.
  template <class Body, class... PerLinks>
  HD void each_body(Body body, const PerLinks&... x) const {
    UNROLL for (int t = 0; t < m.trunk_links(); ++t) body(false, x.trunk[t]...);
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!limb.on_trunk()) return;
      UNROLL for (int k = 0; k < limb.links(); ++k)
        if (!L::Shape::kAnyJoint || limb.link(k).has_body) body(true, x.limb[at.link + k]...);
    });
  }
  /// body(x) for all links.
  template <class Body, class T>
  HD void each_link(Body body, PerLink<L, T>& x) const {
    UNROLL for (int t = 0; t < m.trunk_links(); ++t) body(x.trunk[t]);
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!limb.on_trunk()) return;
      UNROLL for (int k = 0; k < limb.links(); ++k) body(x.limb[at.link + k]);
    });
  }
  HD Real gathered(const Real& own) const { return g.sum(own); }
  HD Vec3<Real> gathered(const Vec3<Real>& own) const { return {g.sum(own.x), g.sum(own.y), g.sum(own.z)}; }
  /// Moves the origin, of `which` worlds.
  HD void shift(const Mask<Real>& which, const Vec3<Real>& by, State<L>& x, Kinematics<L>& kin) const {
    Real* low = x.low.trunk + 3;
    add_position(which, by.x, x.position.x, low[0]), add_position(which, by.y, x.position.y, low[1]);
    add_position(which, by.z, x.position.z, low[2]);
    kin.trunk_origin = x.position;
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (limb.on_trunk()) kin.limb_origin[at.limb] = x.position;
    });
  }
};

/// A free body that a limb of this lane begins with, and what it carries: likewise.
template <class L>
struct BodyTree {
  using Real = typename L::Real;
  static constexpr bool kPlacesAll = false;
  const LimbView<L>& limb;
  Place at;

  HD Real* moving(TreeVector<L>& v) const { return v.limb + at.link; }
  HD const Real* moving(const TreeVector<L>& v) const { return v.limb + at.link; }
  template <class Body, class... Vectors>
  HD void each_column(const TreeMatrix<L>& M, Body body, Vectors&... x) const {
    for (int k = 3; k < limb.links(); ++k) body(false, three(M.limb + at.entry + entry_of(k, 0)), x.limb[at.link + k]...);
  }
  template <class Body, class... PerLinks>
  HD void each_body(Body body, const PerLinks&... x) const {
    for (int k = 0; k < limb.links(); ++k)
      if (limb.link(k).has_body) body(false, x.limb[at.link + k]...);
  }
  template <class Body, class T>
  HD void each_link(Body body, PerLink<L, T>& x) const {
    for (int k = 0; k < limb.links(); ++k) body(x.limb[at.link + k]);
  }
  template <class T> HD T gathered(const T& own) const { return own; }
  HD void shift(const Mask<Real>& which, const Vec3<Real>& by, State<L>& x, Kinematics<L>&) const {
    Real *q = x.q.limb + at.link, *low = x.low.limb + at.link;
    add_position(which, by.x, q[0], low[0]), add_position(which, by.y, q[1], low[1]), add_position(which, by.z, q[2], low[2]);
  }
};

/// body(tree) for the trees of several joints on free roots; `lone`: and for bodies on their own.
template <class L, class Body>
HD void each_free_tree(const typename L::Group& g, const typename L::Model& m, bool lone, Body body) {
  if (m.free_base() && (lone || has_jointed_trunk<L>(m))) body(BaseTree<L>{g, m});
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (is_free_body(limb) && (lone || !is_lone_body(limb))) body(BodyTree<L>{limb, at});
    });
}

/// Sum of term(x...) over a tree's bodies.
template <class T, class Tree, class Term, class... PerLinks>
HD T sum_of_bodies(const Tree& tree, const T& zero, Term term, const PerLinks&... x) {
  T shared = zero, own = zero;
  tree.each_body(
      [&](bool is_own, const auto&... xi) {
        T& sum = is_own ? own : shared;
        sum = sum + term(xi...);
      },
      x...);
  return shared + tree.gathered(own);
}
/// Its mass; times that, its centre of mass from the origin; its momentum.   kg, kg m, N s
template <class L, class Tree, class Real = typename L::Real>
HD Real mass_of(const Tree& tree, const PerLink<L, RigidInertia<Real>>& I) {
  return sum_of_bodies(tree, Real(0), [](const RigidInertia<Real>& i) { return i.m; }, I);
}
template <class L, class Tree, class Real = typename L::Real>
HD Vec3<Real> centre_of(const Tree& tree, const PerLink<L, RigidInertia<Real>>& I) {
  return sum_of_bodies(tree, zero3<Real>(), [](const RigidInertia<Real>& i) { return i.h; }, I);
}
template <class L, class Tree, class Real = typename L::Real>
HD Vec3<Real> momentum_of(const Tree& tree, const PerLink<L, RigidInertia<Real>>& I, const PerLink<L, Motion<Real>>& V) {
  return sum_of_bodies(
      tree, zero3<Real>(), [](const RigidInertia<Real>& i, const Motion<Real>& u) { return u.v * i.m + cross(u.w, i.h); }, I, V);
}
/// The same of M v, but for the origin's moving. Off its diagonal A is M.
template <class L, class Tree, class Real = typename L::Real>
HD Vec3<Real> momentum_of(const Tree& tree, const TreeMatrix<L>& M, const TreeVector<L>& v) {
  Vec3<Real> shared = zero3<Real>(), own = shared;
  tree.each_column(
      M,
      [&](bool is_own, const Vec3<Real>& column, const Real& vi) {
        Vec3<Real>& sum = is_own ? own : shared;
        sum = sum + column * vi;
      },
      v);
  return shared + tree.gathered(own);
}

/// Inverse dynamics tau without what Coriolis forces accelerate centres of mass by; `lone`: of bodies on their own, too. without(tree): tau
/// of the origin's moving without that.   M: off its diagonal A will do.
template <class L, class Without, class Real = typename L::Real>
HD void hold_centres(const typename L::Group& g, const typename L::Model& m, const PerLink<L, RigidInertia<Real>>& I,
                     const TreeMatrix<L>& M, bool lone, Without without, TreeVector<L>& tau) {
  each_free_tree<L>(g, m, lone, [&](const auto& tree) {
    const Vec3<Real> held = without(tree);
    const Vec3<Real> a = (three(tree.moving(tau)) - held) * over_mass(Real(1), mass_of<L>(tree, I));
    tree.each_column(M, [&](bool, const Vec3<Real>& column, Real& t) { t = t - dot(column, a); }, tau);
    put(held, tree.moving(tau));
  });
}

/// kin and I where a step has taken x, from where a free base stood as R says, and twists of the velocities v, whose spin turns with it.
template <class L, class Real = typename L::Real>
HD void place_links(const typename L::Group& g, const typename L::Model& m, const Mat3<Real>& R, const Mask<Real>& moving,
                    TreeVector<L>& v, Kinematics<L>& kin, PerLink<L, RigidInertia<Real>>& I, PerLink<L, Motion<Real>>& V,
                    State<L>& x) {
  if (m.free_base()) {
    const Quat<Real> stands = unit(x.orientation);  // as the next step finds it
    blend(moving, stands.w, x.orientation.w), blend(moving, stands.x, x.orientation.x);
    blend(moving, stands.y, x.orientation.y), blend(moving, stands.z, x.orientation.z);
  }
  forward_kinematics<L>(g, m, x, kin);
  link_inertias<L>(g, m, kin, I);
  turn_spin<L>(m, R, kin.pose.trunk[0].R, v);
  link_motions<L>(g, m, kin, v, V);
}

/// Of a body on its own, whose centre of mass turns about the axis of w: from velocities v of the solve the origin's, `along` to where it
/// goes straight, `end` there. kin, I: before.
template <class L, class Real = typename L::Real>
HD void move_lone_centres(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const Kinematics<L>& kin,
                          const PerLink<L, RigidInertia<Real>>& I, TreeVector<L>& along, TreeVector<L>& end) {
  auto move = [&](const RigidInertia<Real>& body, const Vec3<Real>& w, const Vec3<Real>& w_end, Real* p, Real* v) {
    const Vec3<Real> c = body.h * over_mass(Real(1), body.m), u = cross(w, c);
    const RootTurn<Real> turn(w, h);
    put(three(p) + u - turn.change(u) * (Real(1) / (turn.rate * h)), p), put(three(v) - turn.lost(cross(w_end, c)), v);
  };
  if (m.free_base() && !has_jointed_trunk<L>(m))
    move(I.trunk[0], three(along.trunk), three(end.trunk), along.trunk + 3, end.trunk + 3);
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!is_lone_body(limb)) return;
      Real *p = along.limb + at.link, *v = end.limb + at.link;
      const Mat3<Real>& R = kin.pose.limb[at.link + 3].R;
      move(I.limb[at.link + 5], R * three(p + 3), R * three(v + 3), p, v);
    });
}

/// Positions move with `along` (lost), to velocities `to`, both as solves find them but for the trees, where centres go straight. One differs
/// from the other where overlaps are recovered. kin, I: of x on entry; on exit, too, where true is returned. A: off its diagonal M.
/// V: scratch.
template <class L, class Real = typename L::Real>
HD_ONCE bool move_centres(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const TreeMatrix<L>& A,
                          const Mask<Real>& moving, TreeVector<L>& along, const TreeVector<L>& to, Kinematics<L>& kin,
                          PerLink<L, RigidInertia<Real>>& I, PerLink<L, Motion<Real>>& V, State<L>& x) {
  lies_in_memory(m), lies_in_lane<typename L::Shape>(A, along, kin, I, V, x);
  bool some = false, placed = true;
  TreeVector<L> end;
  copy_dofs<L>(g, m, to, end);
  const Mat3<Real> R = kin.pose.trunk[0].R;
  auto per_mass = [&](const auto& tree) { return over_mass(Real(1), mass_of<L>(tree, I)); };
  move_lone_centres<L>(g, m, h, kin, I, along, end);
  each_free_tree<L>(g, m, false, [&](const auto& tree) {
    some = true, placed = placed && tree.kPlacesAll;
    const Real part = per_mass(tree);
    for (TreeVector<L>* v : {&along, &end}) put(three(tree.moving(*v)) + momentum_of<L>(tree, A, *v) * part, tree.moving(*v));
  });
  TreeVector<L> lower;  // by how much: where joints are depends on low, too
  if (some) copy_dofs<L>(g, m, x.low, lower);
  integrate<L>(g, m, h, R, along, end, moving, x);
  if (!some) return false;
  each_dof<L>(g, m, [](Real low, Real& by) { by = by - low; }, x.low, lower);
  each_free_tree<L>(g, m, false, [&](const auto& tree) {  // `along` has where centres were, `end` what the origins do not move
    put(centre_of<L>(tree, I), tree.moving(along)), put(zero3<Real>(), tree.moving(end));
  });
  place_links<L>(g, m, R, moving, end, kin, I, V, x);
  each_free_tree<L>(g, m, false, [&](const auto& tree) {
    const Real part = per_mass(tree);
    const Vec3<Real> of_low = momentum_of<L>(tree, A, lower);
    tree.shift(moving, (three(tree.moving(along)) - centre_of<L>(tree, I) + of_low) * part, x, kin);
    Real* v = tree.moving(x.v);
    put(select(moving, three(v) - momentum_of<L>(tree, I, V) * part, three(v)), v);
  });
  return placed;
}

/// The velocities x.v after a step from x become those of its solve. along: that moves positions, where a body on its own turns otherwise
/// (late_turn.h); lost.   Positions, kin, I, V: scratch, kin and I of x on entry.
template <class L, class Real = typename L::Real>
HD void unmove_centres(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const TreeMatrix<L>& A,
                       Kinematics<L>& kin, PerLink<L, RigidInertia<Real>>& I, PerLink<L, Motion<Real>>& V,
                       TreeVector<L>& along, State<L>& x) {
  const Mat3<Real> R = kin.pose.trunk[0].R;
  TreeVector<L> solved = x.v, end = x.v;
  move_lone_centres<L>(g, m, h, kin, I, along, end);
  each_dof<L>(g, m, [](Real v, Real less, Real& to) { to = v + (v - less); }, x.v, end, solved);
  const TreeVector<L> v = x.v;
  integrate<L>(g, m, h, R, v, v, mask_of<Real>(true), x);
  end = v;
  place_links<L>(g, m, R, mask_of<Real>(true), end, kin, I, V, x);
  each_free_tree<L>(g, m, false, [&](const auto& tree) {
    put((momentum_of<L>(tree, I, V) - momentum_of<L>(tree, A, v)) * over_mass(Real(1), mass_of<L>(tree, I)), tree.moving(solved));
  });
  x.v = solved;
}

}  // namespace stiction
