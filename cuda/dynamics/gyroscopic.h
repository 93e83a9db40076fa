// Gyroscopic and centrifugal forces of what turns freely over a step, so that spin keeps its energy and momentum.
//
// A root that turns about all axes, a free base, a free body or a ball joint on the world, has with the joints beyond it held
// an inertia I and an angular momentum L = I w + l about its centre of mass (ball: its anchor), l the joints' own. Of Euler's
//   I dw/dt + w x L = torque
// the bias takes w x L at the beginning of the step, and energy then grows by the square of h times the rate of nutation. Here
// it is the torque of the implicit midpoint rule,
//   I d + h (w + d/2) x (L + I d/2) = h torque,
// which keeps w . I w and |L|. One Newton step from d = 0, in which the square of d is left out, nearly keeps both (Kahan's
// discretisation; of Euler's top, Hirota and Kimura 2000); scaling w + d to the energy of w makes it so for any h.
// `torque`: gravity's about a ball's anchor. All else turns the root on top, by A, which stays as it is.
//
// The centre of mass of a free root itself, at c from its origin, keeps its own velocity, v + w x c, in the free motion, and after the
// solve goes straight with it while c turns to c': the origin moves by h (v + w x c) - (c' - c) and then has v + w x c - w x c'
// (move_centres). So nothing depends on where a body's frame is, whatever a contact does to its spin.
//
// The joints' own Coriolis forces, ball joints that hang from something that moves, and the turning of roots that carry joints, where
// nothing closes loops: dynamics/coriolis.h.
#pragma once
#include "kinematics/fk.h"

namespace stiction {

/// d for `torque` (N m), the explicit part -w x L aside; all in any axes.
template <class Real, class S>
HD Vec3<Real> midpoint_turn(const SymMat3<Real>& I, const Vec3<Real>& l, const Vec3<Real>& w, const Vec3<Real>& torque,
                            S h) {
  const Real zero(0), one(1), size = I.xx + I.yy + I.zz;
  const Mask<Real> turns = size > zero;
  const Real unit = select(turns, one / select(turns, size, one), zero);  // I and L as parts of I's trace
  const SymMat3<Real> J{I.xx * unit, I.xy * unit, I.xz * unit, I.yy * unit, I.yz * unit, I.zz * unit};
  const Vec3<Real> Jw = J * w, L = Jw + l * unit, w_half = w * (h / 2), L_half = L * (h / 2);
  auto along = [&](const Vec3<Real>& axis) {
    const Vec3<Real> a = J * axis;
    return a + cross(w_half, a) - cross(L_half, axis);
  };
  const Vec3<Real> a = along({one, zero, zero}), b = along({zero, one, zero}), c = along({zero, zero, one});
  const Vec3<Real> bc = cross(b, c);
  const Real det = dot(a, bc);
  const Mask<Real> solvable = abs(det) > Real(1e-20f);
  const Real inverse = select(solvable, one / select(solvable, det, one), zero);
  auto solved = [&](const Vec3<Real>& r) {
    return Vec3<Real>{dot(r, bc), dot(a, cross(r, c)), dot(a, cross(b, r))} * inverse;
  };
  const Vec3<Real> next = w + solved(cross(L, w) * h);
  const Real energy = dot(w, Jw), found = dot(next, J * next);
  const Mask<Real> moves = found > zero;
  const Real scale = sqrt(select(moves, energy / select(moves, found, one), one));
  return next * scale - w + solved(torque * (unit * h));
}

/// a / mass; 0 where there is none.
template <class Real>
HD Real over_mass(const Real& a, const Real& mass) {
  const Mask<Real> heavy = mass > Real(0);
  return select(heavy, a / select(heavy, mass, Real(1)), Real(0));
}

/// A limb that begins with a free joint: three slides, then a ball.
template <class L>
HD bool is_free_body(const LimbView<L>& limb) {
  return !limb.on_trunk() && limb.t.leading == 3 && limb.links() > 5 && limb.link(3).kind == kBallLink &&
         limb.link(0).joint == limb.link(3).joint;
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

/// m times what makes of w the velocity w x c of the centre of mass about the origin, c that of a free base or a free body with all it
/// carries: blocks of A. w about the axes of the turning, c in world axes.
template <class L, class Real = typename L::Real>
HD Mat3<Real> moment_of_base(const TreeMatrix<L>& A) {
  const auto& H = A.trunk;
  return {{{H[3][0], H[3][1], H[3][2]}, {H[4][0], H[4][1], H[4][2]}, {H[5][0], H[5][1], H[5][2]}}};
}
template <class Real>
HD Mat3<Real> moment_of_free_body(const Real* H) {
  auto moving = [&](int i) { return Vec3<Real>{H[entry_of(3, i)], H[entry_of(4, i)], H[entry_of(5, i)]}; };
  return {{moving(0), moving(1), moving(2)}};
}

/// Of all links of a limb, and of a free base with all it carries.   kg
template <class L, class Real = typename L::Real>
HD Real mass_of_limb(const LimbView<L>& limb, Place at, const PerLink<L, RigidInertia<Real>>& I) {
  Real mass(0);
  for (int k = 0; k < limb.links(); ++k)
    if (!L::Shape::kAnyJoint || limb.link(k).has_body) mass = mass + I.limb[at.link + k].m;
  return mass;
}
template <class L, class Real = typename L::Real>
HD Real mass_of_base(const typename L::Group& g, const typename L::Model& m, const PerLink<L, RigidInertia<Real>>& I) {
  Real mass(0);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    if (limb.on_trunk()) mass = mass + mass_of_limb<L>(limb, at, I);
  });
  mass = g.sum(mass);
  for (int t = 0; t < m.trunk_links(); ++t) mass = mass + I.trunk[t].m;
  return mass;
}

/// body(column, x...) for the dofs of a free base's tree but its own moving: `column` is what M has of the dof and the moving, its
/// linear momentum per speed.   kg, kg m
template <class L, class Body, class... Vectors>
HD void each_moment_of_base(const typename L::Group& g, const typename L::Model& m, const TreeMatrix<L>& M, Body body,
                            Vectors&... x) {
  using Real = typename L::Real;
  const auto& H = M.trunk;
  UNROLL for (int j = 0; j < 3; ++j) body(false, Vec3<Real>{H[3][j], H[4][j], H[5][j]}, x.trunk[j]...);
  UNROLL for (int u = 6; u < m.trunk_dofs(); ++u) body(false, Vec3<Real>{H[u][3], H[u][4], H[u][5]}, x.trunk[u]...);
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    if (!limb.on_trunk()) return;
    UNROLL for (int k = 0; k < limb.links(); ++k) {
      const Real* row = M.cross[at.link + k];
      body(true, Vec3<Real>{row[3], row[4], row[5]}, x.limb[at.link + k]...);
    }
  });
}
/// Inverse dynamics for the acceleration -v0 / h of a tree on a free root, tau, loses what Coriolis forces accelerate its centre of mass
/// by, a, as if its origin had been accelerated by -a and carried all along: then the centre goes straight while nothing acts. tau, v0: of
/// the origin's moving; each(body): body(column, tau, v0) of all other dofs, column being what M has of the dof and the moving;
/// gathered: sums over lanes.
template <class Real, class S, class Each, class Gather>
HD void hold_centre(const Real& mass, const Vec3<Real>& gravity, S h, Real* tau, const Real* v0, Each each, Gather gathered) {
  const Real zero(0);
  Vec3<Real> shared{zero, zero, zero}, own = shared;
  each([&](bool is_own, const Vec3<Real>& column, Real&, Real v) {
    Vec3<Real>& sum = is_own ? own : shared;
    sum = sum + column * v;
  });
  const Vec3<Real> momentum = Vec3<Real>{v0[0], v0[1], v0[2]} * mass + shared + gathered(own),
                   a = (Vec3<Real>{tau[0], tau[1], tau[2]} + momentum * (1 / h)) * over_mass(Real(1), mass) + gravity;
  each([&](bool, const Vec3<Real>& column, Real& t, Real) { t = t - dot(column, a); });
  tau[0] = tau[0] - a.x * mass, tau[1] = tau[1] - a.y * mass, tau[2] = tau[2] - a.z * mass;
}
/// Of trees on free roots, and of bodies on their own if `lone`. M: off its diagonal A will do.
template <class L, class Real = typename L::Real>
HD void hold_centres(const typename L::Group& g, const typename L::Model& m, const PerLink<L, RigidInertia<Real>>& I, const TreeMatrix<L>& M, Scalar<Real> h, const TreeVector<L>& v0,
                     bool lone, TreeVector<L>& tau) {
  const Vec3<Real> gravity = vec<Real>(m.gravity);
  if (m.free_base() && (lone || has_jointed_trunk<L>(m))) {
    auto each = [&](auto body) {
      each_moment_of_base<L>(
          g, m, M, [&](bool own, const Vec3<Real>& column, Real& t, const Real& v) { body(own, column, t, v); }, tau, v0);
    };
    hold_centre(mass_of_base<L>(g, m, I), gravity, h, tau.trunk + 3, v0.trunk + 3, each, [&](const Vec3<Real>& x) {
      return Vec3<Real>{g.sum(x.x), g.sum(x.y), g.sum(x.z)};
    });
  }
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!is_free_body(limb) || (is_lone_body(limb) && !lone)) return;
      const Real* H = M.limb + at.entry;
      Real* t = tau.limb + at.link;
      const Real* v = v0.limb + at.link;
      auto each = [&](auto body) {
        for (int k = 3; k < limb.links(); ++k) {
          const Real* row = H + entry_of(k, 0);
          body(false, Vec3<Real>{row[0], row[1], row[2]}, t[k], v[k]);
        }
      };
      hold_centre(mass_of_limb<L>(limb, at, I), gravity, h, t, v, each, [](const Vec3<Real>& x) { return x; });
    });
}
/// h times the torque of the implicit midpoint rule on a free root, less the explicit one; about the axes of its turning.
/// J, m, moment: its blocks of M, [J moment'; moment m]. p: momentum of its joints' own motion, turning and moving.
template <class Real, class S>
HD Vec3<Real> gyroscopic_impulse(const SymMat3<Real>& J, const Mat3<Real>& moment, const Real& mass, const Force<Real>& p,
                                 const Vec3<Real>& w, S h) {
  const Real zero(0), inverse = over_mass(Real(1), mass);
  auto carried = [&](const Vec3<Real>& f) { return transposed_times(moment, f * inverse); };  // torque of f at the centre
  const Vec3<Real> x = carried(column(moment, 0)), y = carried(column(moment, 1)), z = carried(column(moment, 2));
  const SymMat3<Real> I{J.xx - x.x, J.xy - x.y, J.xz - x.z, J.yy - y.y, J.yz - y.z, J.zz - z.z};
  const Vec3<Real> l = p.n - carried(p.f), d = midpoint_turn(I, l, w, Vec3<Real>{zero, zero, zero}, h);
  return I * d + cross(w, I * w + l) * h;
}

/// Puts it into the bias, and holds centres of mass: M without armature, bias as inverse_dynamics gives it for a = -v / h.
template <class L>
HD void add_gyroscopic(const typename L::Group& g, const typename L::Model& m, Scalar<typename L::Real> h,
                       const PerLink<L, RigidInertia<typename L::Real>>& I, const State<L>& x,
                       const TreeMatrix<L>& M, TreeVector<L>& bias) {
  using Real = typename L::Real;
  const Real zero(0);
  const Scalar<Real> per_step = -1 / h;
  hold_centres<L>(g, m, I, M, h, x.v, true, bias);
  if (m.free_base() && (m.has_loops || !has_jointed_trunk<L>(m))) {
    Real p[6] = {zero, zero, zero, zero, zero, zero};
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!limb.on_trunk()) return;
      UNROLL for (int k = 0; k < limb.links(); ++k)
        UNROLL for (int t = 0; t < 6; ++t) p[t] = p[t] + M.cross[at.link + k][t] * x.v.limb[at.link + k];
    });
    UNROLL for (int t = 0; t < 6; ++t) p[t] = g.sum(p[t]);
    UNROLL for (int u = 6; u < m.trunk_dofs(); ++u)
      UNROLL for (int t = 0; t < 6; ++t) p[t] = p[t] + M.trunk[u][t] * x.v.trunk[u];
    const auto& H = M.trunk;
    const SymMat3<Real> J{H[0][0], H[1][0], H[2][0], H[1][1], H[2][1], H[2][2]};
    const Vec3<Real> n = gyroscopic_impulse(J, moment_of_base<L>(M), H[3][3], Force<Real>{{p[0], p[1], p[2]}, {p[3], p[4], p[5]}},
                                            twist(x.v.trunk).w, h);
    bias.trunk[0] = bias.trunk[0] + n.x * per_step, bias.trunk[1] = bias.trunk[1] + n.y * per_step,
    bias.trunk[2] = bias.trunk[2] + n.z * per_step;
  }
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      const bool free_body = is_free_body(limb);
      const bool ball = !limb.on_trunk() && limb.link(0).kind == kBallLink;
      if ((!free_body && !ball) || (is_jointed(limb) && !m.has_loops)) return;
      const int first = free_body ? 3 : 0;  // of the ball's three links, about the axes of its body
      const Real *H = M.limb + at.entry, *v = x.v.limb + at.link;
      Real* to = bias.limb + at.link;
      Vec3<Real> n{zero, zero, zero}, f = n;
      for (int k = first + 3; k < limb.links(); ++k) {
        const Real* row = H + entry_of(k, 0);
        n = n + Vec3<Real>{row[first], row[first + 1], row[first + 2]} * v[k];
        if (free_body) f = f + Vec3<Real>{row[0], row[1], row[2]} * v[k];
      }
      auto turning = [&](int i, int j) { return H[entry_of(first + i, first + j)]; };
      const SymMat3<Real> J{turning(0, 0), turning(1, 0), turning(2, 0), turning(1, 1), turning(2, 1), turning(2, 2)};
      const Vec3<Real> w{v[first], v[first + 1], v[first + 2]};
      if (free_body) {
        n = gyroscopic_impulse(J, moment_of_free_body(H), H[entry_of(0, 0)], Force<Real>{n, f}, w, h);
      } else {
        const Vec3<Real> L0 = J * w + n, impulse = Vec3<Real>{to[0], to[1], to[2]} * (-h) - L0;  // of all there is
        const Vec3<Real> torque = impulse * (1 / h) + cross(w, L0);
        n = J * midpoint_turn(J, n, w, torque, h) - impulse;
      }
      to[first] = to[first] + n.x * per_step, to[first + 1] = to[first + 1] + n.y * per_step,
      to[first + 2] = to[first + 2] + n.z * per_step;
    });
}

/// How a body turns within a step: about `axis`, by an angle of which these are the sine and 1 - cosine. World axes.
template <class Real>
struct RootTurn {
  Vec3<Real> axis;
  Real rate, sine, versed;

  template <class S>
  HD RootTurn(const Vec3<Real>& w, S h) : rate(sqrt(dot(w, w) + Real(1e-20f))) {
    Real s, c;
    sincos(rate * (h / 2), s, c);
    axis = w * (Real(1) / rate), sine = s * c * S(2), versed = s * s * S(2);
  }
  /// What this turn adds to x where y is axis x x.
  HD Vec3<Real> change(const Vec3<Real>& y) const { return y * sine + cross(axis, y) * versed; }
  /// What the velocity of an origin loses, from which that of the centre is u = w x c on: docs/theory.md, (2.5).
  HD Vec3<Real> lost(const Vec3<Real>& u) const { return change(cross(axis, u)); }
  /// The mean of x while it turns in h: at w x that for as long it gets where the turn takes it.
  template <class S>
  HD Vec3<Real> mean(const Vec3<Real>& x, S h) const {
    const Real per_angle = Real(1) / (rate * h);
    const Vec3<Real> y = cross(axis, x);
    return x + y * (versed * per_angle) + cross(axis, y) * (Real(1) - sine * per_angle);
  }
};

/// Sums over the links of trees on free roots, and what of them a step keeps.
template <class Real>
struct TreeCentre {
  Vec3<Real> moment, momentum;  // mass times the centre from the root's origin; of all dofs but the origin's moving   kg m, N s
};
template <class L, class Real = typename L::Real>
HD TreeCentre<Real> centre_of_base(const typename L::Group& g, const typename L::Model& m, const PerLink<L, RigidInertia<Real>>& I,
                                   const PerLink<L, Motion<Real>>& V) {
  const Real zero(0);
  TreeCentre<Real> all{{zero, zero, zero}, {zero, zero, zero}};
  auto add = [&](const RigidInertia<Real>& i, const Motion<Real>& v) {
    all.moment = all.moment + i.h, all.momentum = all.momentum + v.v * i.m + cross(v.w, i.h);
  };
  each_limb<L>(g, m, [&](const auto& limb, Place at) {
    if (!limb.on_trunk()) return;
    for (int k = 0; k < limb.links(); ++k)
      if (!L::Shape::kAnyJoint || limb.link(k).has_body) add(I.limb[at.link + k], V.limb[at.link + k]);
  });
  auto gathered = [&](const Vec3<Real>& x) { return Vec3<Real>{g.sum(x.x), g.sum(x.y), g.sum(x.z)}; };
  all = {gathered(all.moment), gathered(all.momentum)};
  for (int t = 0; t < m.trunk_links(); ++t) add(I.trunk[t], V.trunk[t]);
  return all;
}
/// Of the velocities v that a step has found, those of free roots' origins: `along` moves positions, as they turn with it, `end`
/// (v on entry) is there when they have. `along` is v on entry, too, but where overlaps are recovered.
template <class L, class Real = typename L::Real>
HD void move_centres(const typename L::Group& g, const typename L::Model& m, Scalar<Real> h, const Kinematics<L>& kin,
                     TreeVector<L>& along, TreeVector<L>& end) {
  // p, v: three numbers each, of `along` and `end`; w, w_end: theirs.
  auto move = [&](const Vec3<Real>& c, const Vec3<Real>& w, const Vec3<Real>& w_end, Real* p, Real* v) {
    const RootTurn<Real> turn(w, h);
    const Vec3<Real> u = cross(w, c), mean = u - turn.change(u) * (Real(1) / (turn.rate * h)), less = turn.lost(cross(w_end, c));
    p[0] = p[0] + mean.x, p[1] = p[1] + mean.y, p[2] = p[2] + mean.z;
    v[0] = v[0] - less.x, v[1] = v[1] - less.y, v[2] = v[2] - less.z;
  };
  if (m.free_base())
    move(centre_of_base<L>(m, kin), twist(along.trunk).w, twist(end.trunk).w, along.trunk + 3, end.trunk + 3);
  if constexpr (L::Shape::kAnyJoint)
    each_limb<L>(g, m, [&](const auto& limb, Place at) {
      if (!is_free_body(limb)) return;
      Real *p = along.limb + at.link, *v = end.limb + at.link;
      const Mat3<Real>& R = kin.pose.limb[at.link + 3].R;
      move(centre_of_free_body(limb, at, kin), R * Vec3<Real>{p[3], p[4], p[5]}, R * Vec3<Real>{v[3], v[4], v[5]}, p, v);
    });
}

}  // namespace stiction
