// One contact alone, s = W l + c, by the one angle that is unknown when it slides: [Hwangbo2018], section III. docs/theory.md,
// section 15. W is W_ii + diag(R), rows t1, t2, n.
//
//   open   c_n >= 0                              l = 0
//   stick  p = -W^-1 c in the cone               l = p
//   slide  s_n = 0 on the border of the cone: l_n = f / q, l_t = mu l_n d, f = -c_n / W_nn, q = 1 + mu k.d, k = W_nt / W_nn,
//          d the zero of G = q s_t . perp(d + mu k) that is least in energy         maximum dissipation
//          d a zero of   G = q s_t . perp(d) with s_t against d                     Coulomb
//          k of the first G may be another, `bend`: then the arc below may have no zero, and its better end is taken
//
// With the normal eliminated, S = W_tt - W_tn k', q s_t = S (mu f d - q p_t): no difference of large numbers. Angles are those
// against p_t, and are kept as unit vectors of half of them, P = (cos, sin)(angle / 2), d = (P_x^2 - P_y^2, 2 P_x P_y): no sine,
// no arcus, and half a turn is nothing special. README.md proves of both laws that G changes its sign once or more on the arc:
//
//   maximum dissipation  what p sees of the conic, |angle| <= acos(mu p_n / |p_t|), where q > 0; G has one zero there
//   Coulomb              from p_t to S p_t, less than a quarter turn away, where q > 0
#pragma once
#include "math/vec3.h"

namespace stiction {

/// Ways to the zero of G. S: plain number.
template <class S>
struct SlipSearch {
  int coulomb = 0;   // the exact law instead of maximum dissipation
  int stepping = 0;  // the paper's: steps of 0.1 rad, halved and doubled, then bisection; else Illinois' false position
  int evaluations = 64;  // of G, at most
};

/// W_ii + diag(R) with the normal eliminated.
template <class Real>
struct ContactBlock {
  Real S_xx, S_xy, S_yy;  // W_tt + R_t - W_tn W_nt / W_nn, at least rounding
  Vec2<Real> coupling;    // W_nt / W_nn
  Real W_nn;              // with R_n
  Vec2<Real> bend;        // W_nt / W_nn of the law of maximum dissipation; `coupling`, but where other rows follow
};

/// least_n: floor of W_nn. Pivots below 1e-12 of the trace, or rounding, are that.
template <class Real>
HD ContactBlock<Real> contact_block(const SymMat3<Real>& W, Real R_t, Real R_n, Real least_n) {
  using S = Scalar<Real>;
  const Real one(1), floor = (W.xx + W.yy + W.zz) * max(S(1e-12), 4 * kEpsilon<S>);
  ContactBlock<Real> b;
  b.W_nn = max(W.zz, least_n) + R_n;
  const Mask<Real> used = b.W_nn > Real(0);
  const Real inverse = one / select(used, b.W_nn, one);
  b.coupling = b.bend = {W.xz * inverse, W.yz * inverse};
  b.S_xx = max(W.xx + R_t - W.xz * b.coupling.x, floor), b.S_xy = W.xy - W.xz * b.coupling.y;
  b.S_yy = max(W.yy + R_t - W.yz * b.coupling.y, floor);
  const Mask<Real> sound = b.S_xx > Real(0);
  b.S_yy = max(b.S_yy, b.S_xy * b.S_xy / select(sound, b.S_xx, one) + floor);
  return b;
}

namespace slip_detail {

/// a, scaled to length 1; (1, 0) for 0.
template <class Real>
HD Vec2<Real> unit(Vec2<Real> a) {
  const Real square = a.x * a.x + a.y * a.y;
  const Mask<Real> some = square > Real(0);
  const Real scale = Real(1) / sqrt(select(some, square, Real(1)));
  return {select(some, a.x * scale, Real(1)), a.y * scale};
}
template <class Real>
HD Real cross(Vec2<Real> a, Vec2<Real> b) {
  return a.x * b.y - a.y * b.x;
}
template <class Real>
HD Vec2<Real> direction(Vec2<Real> P) {
  return {P.x * P.x - P.y * P.y, P.x * P.y * Real(2)};
}

/// A sliding contact in the frame whose first axis is along p_t.
template <class Real>
struct Slide {
  using S = Scalar<Real>;

  Real S_xx, S_xy, S_yy;
  Vec2<Real> tilt;    // mu k
  Vec2<Real> normal;  // mu k, or 0 for Coulomb's law
  Real reach, held;   // mu f, |p_t|

  HD Real depth(Vec2<Real> d) const { return Real(1) + tilt.x * d.x + tilt.y * d.y; }  // q
  HD Real value(Vec2<Real> P) const {
    const Vec2<Real> d = direction(P);
    const Real x = reach * d.x - depth(d) * held, y = reach * d.y;
    return (S_xy * x + S_yy * y) * (d.x + normal.x) - (S_xx * x + S_xy * y) * (d.y + normal.y);
  }
  /// What rounding leaves of `value`.
  HD Real noise() const {
    const Real size = Real(1) + abs(tilt.x) + abs(tilt.y);
    return (S_xx + S_yy) * (reach + held * size) * size * kEpsilon<S>;
  }

  /// Half of the angle at which q becomes 0 on the side of `sign`, where `end` is later than that; else `end`.
  HD Vec2<Real> before_infinity(Vec2<Real> end, Real sign) const {
    const Real D = tilt.x * tilt.x + tilt.y * tilt.y - Real(1), b = tilt.y * sign;
    const Vec2<Real> zero{sqrt(max(D, Real(0))) - b,
                          max(Real(1) + tilt.x, Real(kEpsilon<S>))};  // cot of the half angle
    const Mask<Real> earlier = (D > Real(0)) & (zero.x * abs(end.y) > end.x * zero.y);
    const Vec2<Real> there = unit(zero);
    return select(earlier, Vec2<Real>{there.x, there.y * sign}, end);
  }
};

/// A bracket [a, b] of a zero.
template <class Real>
struct Bracket {
  Vec2<Real> a, b;
  Real value_a, value_b;
};

/// The paper's walk from P = (1, 0) downhill, 0.1 rad at first: half the step where it leaves the arc, twice where it has not
/// passed the zero.
template <class Real>
HD void walk(const Slide<Real>& slide, const Mask<Real>& which, int most, Bracket<Real>& k) {
  using S = Scalar<Real>;
  const Vec2<Real> low = k.a, high = k.b;
  Vec2<Real> at{Real(1), Real(0)};
  Real value = slide.value(at), step = Real(S(0.0500417084)) * select(value > Real(0), Real(-1), Real(1));  // tan
  Mask<Real> walking = which;
  for (int i = 0; i < most && any(walking); ++i) {
    const Vec2<Real> next = unit(Vec2<Real>{at.x - at.y * step, at.y + at.x * step});
    const Real there = slide.value(next), square = step * step;
    const Mask<Real> inside = (cross(low, next) >= Real(0)) & (cross(next, high) >= Real(0));
    const Mask<Real> passed = inside & ((there > Real(0)) != (value > Real(0))), found = walking & passed;
    k.a = select(found, at, k.a), k.value_a = select(found, value, k.value_a);
    k.b = select(found, next, k.b), k.value_b = select(found, there, k.value_b);
    walking = walking & negate(passed);
    const Mask<Real> gone = walking & inside;
    at = select(gone, next, at), value = select(gone, there, value);
    const Real half = step / (Real(1) + sqrt(Real(1) + square));
    const Real twice = step * Real(2) / max(Real(1) - square, Real(S(0.1)));
    step = select(inside, twice, half);
  }
}

/// P at the zero of a slide in the bracket, of worlds `which`.
template <class Real>
HD Vec2<Real> zero(const Slide<Real>& slide, const SlipSearch<Scalar<Real>>& search, Mask<Real> which,
                   Bracket<Real> k) {
  using S = Scalar<Real>;
  k.value_a = slide.value(k.a), k.value_b = slide.value(k.b);
  // An end that is itself the zero, or of which rounding thinks so.
  const Mask<Real> nearer = abs(k.value_a) < abs(k.value_b), same = (k.value_a > Real(0)) == (k.value_b > Real(0));
  Vec2<Real> P = select(nearer, k.a, k.b);
  which = which & negate(same);
  if (search.stepping) walk(slide, which, search.evaluations, k);
  const Real noise = slide.noise();
  Real side(0);  // which end the last step replaced: 1 a, -1 b
  for (int i = 2; i < search.evaluations && any(which); ++i) {
    const bool halve = search.stepping || i % 4 == 1;
    const Real t = halve ? Real(S(0.5)) : k.value_a / (k.value_a - k.value_b);
    const Vec2<Real> next = unit(Vec2<Real>{k.a.x + (k.b.x - k.a.x) * t, k.a.y + (k.b.y - k.a.y) * t});
    const Real value = slide.value(next);
    const Mask<Real> at_a = (value > Real(0)) == (k.value_a > Real(0));
    const Mask<Real> here = which & at_a, there = which & negate(at_a);
    const Mask<Real> again_a = here & (side > Real(0)), again_b = there & (side < Real(0));
    k.value_b = select(again_a, k.value_b * S(0.5), k.value_b),
    k.value_a = select(again_b, k.value_a * S(0.5), k.value_a);
    k.a = select(here, next, k.a), k.value_a = select(here, value, k.value_a);
    k.b = select(there, next, k.b), k.value_b = select(there, value, k.value_b);
    side = halve ? Real(0) : select(at_a, Real(1), Real(-1));
    const Real moved = abs(cross(P, next));
    P = select(which, next, P);
    const Mask<Real> close = (abs(value) <= noise) | (abs(cross(k.a, k.b)) <= Real(kEpsilon<S>));
    which = which & negate(close | ((moved <= Real(kEpsilon<S>)) & mask_of<Real>(!halve)));
  }
  return P;
}

}  // namespace slip_detail

/// The impulse of one contact. c_n; reduced: c_t - k c_n. W_nn > 0.
template <class Real>
HD_ONCE Vec3<Real> solve_contact(const ContactBlock<Real>& block, Real c_n, Vec2<Real> reduced, Real mu,
                                 Mask<Real> which, const SlipSearch<Scalar<Real>>& search) {
  using namespace slip_detail;
  using S = Scalar<Real>;
  const Real none(0), one(1), f = -c_n / block.W_nn;
  const Real inverse = one / (block.S_xx * block.S_yy - block.S_xy * block.S_xy);
  const Vec2<Real> p{(block.S_xy * reduced.y - block.S_yy * reduced.x) * inverse,
                     (block.S_xy * reduced.x - block.S_xx * reduced.y) * inverse};
  const Real p_n = f - (block.coupling.x * p.x + block.coupling.y * p.y), length = sqrt(p.x * p.x + p.y * p.y);
  const Mask<Real> open = negate(f > none), stick = length <= mu * p_n, slides = which & negate(open | stick);
  Vec3<Real> l{select(open, none, p.x), select(open, none, p.y), select(open, none, p_n)};
  if (!any(slides)) return l;

  const Vec2<Real> e = unit(p), k = block.coupling;
  Slide<Real> slide;
  const Real xx = e.x * e.x, xy = e.x * e.y, yy = e.y * e.y;
  slide.S_xx = block.S_xx * xx + block.S_xy * xy * Real(2) + block.S_yy * yy;
  slide.S_yy = block.S_xx * yy - block.S_xy * xy * Real(2) + block.S_yy * xx;
  slide.S_xy = (block.S_yy - block.S_xx) * xy + block.S_xy * (xx - yy);
  slide.tilt = {mu * (k.x * e.x + k.y * e.y), mu * (k.y * e.x - k.x * e.y)};
  const Vec2<Real> h = block.bend;
  slide.normal =
      search.coulomb ? Vec2<Real>{none, none} : Vec2<Real>{mu * (h.x * e.x + h.y * e.y), mu * (h.y * e.x - h.x * e.y)};
  slide.reach = mu * f, slide.held = length;

  Bracket<Real> bracket;
  if (search.coulomb) {
    const Vec2<Real> end =
        unit(Vec2<Real>{slide.S_xx + sqrt(slide.S_xx * slide.S_xx + slide.S_xy * slide.S_xy), slide.S_xy});
    const Mask<Real> left = end.y > none;
    const Vec2<Real> start{one, none}, far = slide.before_infinity(end, select(left, one, -one));
    bracket.a = select(left, start, far), bracket.b = select(left, far, start);
  } else {
    const Mask<Real> some = length > none;
    const Real seen = clamp(mu * p_n / select(some, length, one), -one, one);
    const Vec2<Real> half{sqrt((one + seen) * S(0.5)), sqrt((one - seen) * S(0.5))};
    bracket.a = slide.before_infinity({half.x, -half.y}, -one), bracket.b = slide.before_infinity(half, one);
  }
  const Vec2<Real> d = direction(zero(slide, search, slides, bracket));
  const Real l_n = f / max(slide.depth(d), Real(kEpsilon<S>)), l_t = mu * l_n;
  const Vec3<Real> slid{l_t * (d.x * e.x - d.y * e.y), l_t * (d.x * e.y + d.y * e.x), l_n};
  return select(slides, slid, l);
}

}  // namespace stiction
