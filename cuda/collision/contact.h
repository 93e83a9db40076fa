// What collision speaks of: a geometry with its pose, a candidate contact, and the choice of K candidates out of many.
//
// A pair of geometry types has a fixed number of candidates (narrow_phase.h), each with a fixed meaning: its index is
// the feature by which a contact is recognised in the next step. A candidate that does not exist has dist = kFar, pos =
// 0 and normal = (0, 0, 1), so that whatever reads it stays finite.
//
// Deviations from MuJoCo: none in the conventions (half sizes, pos halfway between both surfaces, normal from geom 1 to
// geom 2, dist < 0 overlapping); there are no tangents here, and which points of a manifold are kept differs by pair.
#pragma once
#include "math/spatial.h"
#include "model/geom_kind.h"
#include "model/model_view.h"

namespace stiction {

/// One geometry. `pose` is relative to an origin that the caller chose near both bodies, which keeps floats exact. size
/// (m): sphere (r, -, -), capsule and cylinder (r, half length, -) along z, box and ellipsoid three half sizes; plane,
/// mesh: unused.
template <class Real> struct GeomPose {
  Vec3<Real> size;
  Pose<Real> pose;
};
/// One of that type; a mesh has a hull.
template <class Real> struct PlacedGeom : GeomPose<Real> {
  int type;
  const HullView<Scalar<Real>>* hull;
};

template <class Real> struct Candidate {
  Vec3<Real> pos;     // halfway between both surfaces        m
  Vec3<Real> normal;  // unit, from geom 1 to geom 2
  Real dist;          // negative when overlapping            m
};

/// Lengths below this part of the sizes are rounding noise.
template <class Real> inline constexpr Scalar<Real> kLengthNoise =
    sizeof(Scalar<Real>) == 4 ? Scalar<Real>(1e-6) : Scalar<Real>(1e-12);

template <class Real> HD Candidate<Real> absent() {
  Real zero(0), one(1);
  return {{zero, zero, zero}, {zero, zero, one}, Real(kFar)};
}
template <class Real> HD Candidate<Real> select(Mask<Real> m, const Candidate<Real>& a, const Candidate<Real>& b) {
  return {select(m, a.pos, b.pos), select(m, a.normal, b.normal), select(m, a.dist, b.dist)};
}

/// How geom 2 moves against geom 1 in the step if nothing stops it: their relative velocity times the step, taken at the
/// origin of their poses.   rad, m
template <class Real> using Closing = Motion<Real>;

/// By how much the gap at x closes in the step, along the normal n from geom 1 to geom 2; 0 where it opens.   m
template <class Real> HD Real closed_by(const Closing<Real>& c, Vec3<Real> n, Vec3<Real> x) {
  return max(Real(0), -dot(n, velocity_at(c, x)));
}

/// Of two places the nearer to touching holds the body: one that is higher by this part of their distance is not chosen
/// for being farther out.                                                                                   rad
inline constexpr double kTilt = 1e-3;

/// What a gap takes from a candidate's worth: its height above the deepest, less what closes in the step, at that tilt.   m
template <class Real> HD Real height_cost(Real gap, Real deepest, Real closed,
                                          Scalar<Real> tilt = Scalar<Real>(kTilt)) {
  return max(Real(0), gap - deepest - closed) * (1 / tilt);
}
/// By how much a point of a body of that size may be higher than its deepest, at `deepest` < 0, and count as no higher: contacts give
/// way by what they carry, which follows from which are kept, and those must not follow that. A point that counts so has sunk by a
/// quarter as much, and comes out, too. No more than a part of the size, or than what the weight lets contacts sink by.     m
template <class Real> HD Real alike_above(Real deepest, Real size) {
  const Scalar<Real> sunk = 1e-6;  // Options::penetration_allowance, as a rule
  return clamp(deepest * Scalar<Real>(-0.75), Real(0), max(size * Scalar<Real>(1e-4), Real(sunk)));
}
/// By how much what is pushed may tilt in the step, a body of that size of which some point falls by `tips`: a point that high costs
/// one size.                                                                                                rad
template <class T> HD T tipping_tilt(T tips, T size) { return max(T(kTilt), tips / size); }

/// What forces press a body with in the step: along a line through `at`, by as much as they would move it. Zero: not known.   m
template <class T> struct Push { Vec3<T> at, along; };

/// A cylinder that leans by less, on a plane or a face, stands on its cap, and turns by less in a step.                            rad
inline constexpr double kLevel = 0.014;

/// Whether what is so pushed would tip over the rim of that cap, in whose plane the push is beyond half of its radius; and where over it.
/// Of what stands near tipping the lowest point of the rim goes round by the least roll: what would be held there alone wobbles, ahead
/// of itself by what it rolls in a step.
template <class T> struct TippingRim {
  Vec3<T> point;
  Mask<T> is;
};
template <class T> HD TippingRim<T> tipping_rim(const Push<T>& push, Vec3<T> middle, Vec3<T> axis, T radius) {
  const T along = dot(axis, push.along), one(1);
  const Mask<T> presses = abs(along) > T(0);
  const Vec3<T> off = push.at - middle, out = off - push.along * (dot(axis, off) / select(presses, along, one));
  const T far = norm(out);
  const Mask<T> is = presses & (far > radius * Scalar<T>(0.5));
  return {middle + out * (radius / select(is, far, one)), is};
}

/// How far what is pushed may tip in the step, and by what.   m
template <class T> struct Tipping {
  T most;
  Push<T> push = {};
};

/// Chooses up to `room` <= K of n candidates with dist < margin, by worth. First the deepest, of several the outermost in a fixed
/// direction, then again and again the one farthest from those chosen, less its height_cost above what touches: what touches or
/// closes in the step comes before what stays apart, and spreads the patch. It closes as it moves now, and in a direction in which
/// nothing touches as in the free motion, too: what is pushed from rest gets there. The distance is that of wrenches: of places, and of normals
/// times the largest distance of places, so that every direction in which the body is held keeps a contact. A candidate
/// replaces an earlier one only if it is worth more by 1 % of that distance: a resting foot does not flicker. The chosen
/// come in the order of `in`, so with at most `room` active candidates they are just these, in order. feature[k] is the
/// index of out[k] in `in`, or -1 where out[k] is absent. Returns where a candidate was left out that comes nearer than
/// `slack` in the step and has none of the chosen in its plane.   n <= kMost <= 255, cost about K
/// distances of each that is active in some world.
template <class Real, int K, int kMost = Capacity::kCandidates>
HD Mask<Real> select_spread(const Candidate<Real>* in, int n, int room, Real margin, const Closing<Real>& now,
                            const Closing<Real>& way, Real slack, Candidate<Real>* out, Real* feature) {
  const Real none(1e7f), zero(0), taken(-1);
  Real deepest(kFar), first(-1e30f), nearest[kMost], cost[kMost], closed[kMost], size2(0);
  uint8_t live[kMost];  // those that are active in some world
  int count = 0;
  for (int i = 0; i < n; ++i)
    if (any(in[i].dist < margin)) live[count++] = static_cast<uint8_t>(i);
  auto each_live = [&](auto body) {
    for (int j = 0; j < count; ++j) body(static_cast<int>(live[j]), Real(static_cast<float>(live[j])));
  };
  for (int k = 0; k < K; ++k) {
    out[k] = absent<Real>();
    feature[k] = none;
  }
  each_live([&](int i, Real) { deepest = min(deepest, in[i].dist); });
  each_live([&](int i, Real index) {
    const Real worth =
        in[i].pos.x + in[i].pos.y * Real(0.31f) + in[i].pos.z * Real(0.17f) - height_cost(in[i].dist, deepest, zero);
    const Mask<Real> take = (in[i].dist < margin) & (worth > first);
    first = select(take, worth, first);
    out[0] = select<Real>(take, in[i], out[0]);
    feature[0] = select(take, index, feature[0]);
  });
  deepest = max(deepest, zero);  // what touches one plane costs nothing because another is overlapped more
  each_live([&](int i, Real) {
    const Vec3<Real> d = in[i].pos - out[0].pos;
    size2 = max(size2, select(in[i].dist < margin, dot(d, d), zero));
    closed[i] = closed_by(now, in[i].normal, in[i].pos);
    const Real pushed = closed_by(way, in[i].normal, in[i].pos);
    Mask<Real> held = (in[i].dist <= slack) | (in[i].dist >= margin) | (pushed <= max(in[i].dist, closed[i]));
    if (!all(held)) {
      each_live(
          [&](int j, Real) { held = held | ((in[j].dist <= slack) & (dot(in[i].normal, in[j].normal) > Real(0.5f))); });
      closed[i] = select(held, closed[i], pushed);
    }
    cost[i] = height_cost(in[i].dist, deepest, closed[i]);
    nearest[i] = Real(1e30f);
  });
  const Real step = sqrt(size2) * Real(0.01f);
  int used = min(1, room);
  for (bool more = true; more && used < room; used += more) {
    const int k = used;
    Real best(-1e30f);
    each_live([&](int i, Real index) {
      const Vec3<Real> d = in[i].pos - out[k - 1].pos, turn = in[i].normal - out[k - 1].normal;
      nearest[i] = select(feature[k - 1] == index, taken, min(nearest[i], dot(d, d) + dot(turn, turn) * size2));
      const Real worth = sqrt(max(nearest[i], zero)) - cost[i];
      const Mask<Real> take = (in[i].dist < margin) & (nearest[i] >= zero) & (worth > best + step);
      best = select(take, worth, best);
      out[k] = select<Real>(take, in[i], out[k]);
      feature[k] = select(take, index, feature[k]);
    });
    more = any(best > Real(-1e30f));  // else all are taken, and marked
  }
  auto left_out = mask_of<Real>(false);
  auto on_static = [](const Candidate<Real>& c) {
    return c.pos - c.normal * (c.dist * Real(0.5f));
  };  // geom 1's surface
  each_live([&](int i, Real index) {
    Mask<Real> missing = (in[i].dist < min(margin, closed[i] + slack)) & (nearest[i] >= zero) &
                         negate(Mask<Real>(feature[room - 1] == index));
    if (!any(missing)) return;
    for (int k = 0; k < used; ++k) {
      const Vec3<Real> d = on_static(in[i]) - on_static(out[k]);
      const Mask<Real> same_plane =
          (dot(in[i].normal, out[k].normal) > Real(0.999f)) & (abs(dot(d, out[k].normal)) < slack);
      missing = missing & negate(Mask<Real>(same_plane & (feature[k] < none)));
    }
    left_out = left_out | missing;
  });
  for (int pass = 1; pass < used; ++pass)  // in the order of `in`, absent ones last
    for (int k = 0; k + pass < used; ++k) {
      Mask<Real> swap = feature[k] > feature[k + 1];
      Candidate<Real> low = select<Real>(swap, out[k + 1], out[k]), high = select<Real>(swap, out[k], out[k + 1]);
      Real f = select(swap, feature[k + 1], feature[k]), g = select(swap, feature[k], feature[k + 1]);
      out[k] = low, out[k + 1] = high, feature[k] = f, feature[k + 1] = g;
    }
  for (int k = 0; k < K; ++k) feature[k] = select(feature[k] == none, Real(-1), feature[k]);
  return left_out;
}

}  // namespace stiction
