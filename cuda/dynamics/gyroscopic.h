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
// Centres of mass of what moves freely keep their velocities: dynamics/centres.h. The joints' own Coriolis forces, ball joints that hang
// from something that moves, and the turning of roots that carry joints, where nothing closes loops: dynamics/coriolis.h.
#pragma once
#include "dynamics/centres.h"

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

/// h times the torque of the implicit midpoint rule on a free root, less the explicit one; about the axes of its turning.
/// J, m, moment: its blocks of M, [J moment'; moment m]. p: momentum of its joints' own motion, turning and moving.
template <class Real, class S>
HD Vec3<Real> gyroscopic_impulse(const SymMat3<Real>& J, const Mat3<Real>& moment, const Real& mass,
                                 const Force<Real>& p, const Vec3<Real>& w, S h) {
  const Real zero(0), inverse = over_mass(Real(1), mass);
  auto carried = [&](const Vec3<Real>& f) {
    return transposed_times(moment, f * inverse);
  };  // torque of f at the centre
  const Vec3<Real> x = carried(column(moment, 0)), y = carried(column(moment, 1)), z = carried(column(moment, 2));
  const SymMat3<Real> I{J.xx - x.x, J.xy - x.y, J.xz - x.z, J.yy - y.y, J.yz - y.z, J.zz - z.z};
  const Vec3<Real> l = p.n - carried(p.f), d = midpoint_turn(I, l, w, Vec3<Real>{zero, zero, zero}, h);
  return I * d + cross(w, I * w + l) * h;
}

/// Puts it into the bias, and holds centres of mass: M without armature, bias as inverse_dynamics gives it for a = 0 of what is weightless.
template <class L>
HD void add_gyroscopic(const typename L::Group& g, const typename L::Model& m, Scalar<typename L::Real> h,
                       const PerLink<L, RigidInertia<typename L::Real>>& I, const State<L>& x, const TreeMatrix<L>& M,
                       TreeVector<L>& bias) {
  using Real = typename L::Real;
  const Real zero(0);
  const Scalar<Real> per_step = -1 / h;
  hold_centres<L>(g, m, I, M, true, [&](const auto&) { return Vec3<Real>{zero, zero, zero}; }, bias);
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
        const Vec3<Real> L0 = J * w + n, impulse = Vec3<Real>{to[0], to[1], to[2]} * (-h);  // of all there is
        const Vec3<Real> torque = impulse * (1 / h) + cross(w, L0);
        n = J * midpoint_turn(J, n, w, torque, h) - impulse;
      }
      to[first] = to[first] + n.x * per_step, to[first + 1] = to[first + 1] + n.y * per_step,
      to[first + 2] = to[first + 2] + n.z * per_step;
    });
}

}  // namespace stiction
