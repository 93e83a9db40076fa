// What collision speaks of: a geometry with its pose, a candidate contact, and the choice of K candidates out of many.
//
// A pair of geometry types has a fixed number of candidates (narrow_phase.h), each with a fixed meaning: its index is
// the feature by which a contact is recognised in the next step. A candidate that does not exist has dist = kFar, pos =
// 0 and normal = (0, 0, 1), so that whatever reads it stays finite.
//
// Deviations from MuJoCo: none in the conventions (half sizes, pos halfway between both surfaces, normal from geom 1 to
// geom 2, dist < 0 overlapping); there are no tangents here, and which points of a manifold are kept differs by pair.
#pragma once
#include "math/pose.h"
#include "model/model_view.h"

namespace stiction {

/// MuJoCo's numbers, as in host/model.
struct GeomKind {
  enum : int {
    kPlane = 0,
    kHeightfield = 1,
    kSphere = 2,
    kCapsule = 3,
    kEllipsoid = 4,
    kCylinder = 5,
    kBox = 6,
    kMesh = 7
  };
};

/// The distance of a candidate that does not exist; margins are below it.   m
inline constexpr float kFar = 1e6f;

/// One geometry. `pose` is relative to an origin that the caller chose near both bodies, which keeps floats exact. size
/// (m): sphere (r, -, -), capsule and cylinder (r, half length, -) along z, box and ellipsoid three half sizes; plane,
/// mesh: unused.
template <class Real> struct GeomPose {
  Vec3<Real> size;
  Pose<Real> pose;
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

/// Chooses up to K of n candidates with dist < margin: the deepest, then again and again the one farthest from those
/// already chosen. A candidate replaces an earlier one only if it is deeper by 1 % of the margin, or farther by 1 %: a
/// resting foot does not flicker. The chosen come in the order of `in`, so with at most K active candidates they are
/// just these, in order. feature[k] is the index of out[k] in `in`, or -1 where out[k] is absent.   n < 1e6, cost about
/// n K^2 distances.
template <class Real, int K>
HD void select_spread(const Candidate<Real>* in, int n, Real margin, Candidate<Real>* out, Real* feature) {
  const Real none(1e7f), zero(0);
  Real deeper = max(margin, zero) * Real(0.01f), best(kFar);
  for (int k = 0; k < K; ++k) {
    out[k] = absent<Real>();
    feature[k] = none;
  }
  for (int i = 0; i < n; ++i) {
    Mask<Real> active = in[i].dist < margin;
    Mask<Real> take = active & (in[i].dist < select(feature[0] == none, Real(2 * kFar), best - deeper));
    best = select(take, in[i].dist, best);
    out[0] = select<Real>(take, in[i], out[0]);
    feature[0] = select(take, Real(static_cast<float>(i)), feature[0]);
  }
  for (int k = 1; k < K; ++k) {
    Real farthest(-1);
    for (int i = 0; i < n; ++i) {
      Real nearest(1e30f), index(static_cast<float>(i));
      Mask<Real> active = in[i].dist < margin;
      for (int j = 0; j < k; ++j) {
        Vec3<Real> d = in[i].pos - out[j].pos;
        active = active & negate(Mask<Real>(feature[j] == index));
        nearest = min(nearest, dot(d, d));
      }
      Mask<Real> take = active & (nearest > farthest * Real(1.01f));
      farthest = select(take, nearest, farthest);
      out[k] = select<Real>(take, in[i], out[k]);
      feature[k] = select(take, index, feature[k]);
    }
  }
  for (int pass = 1; pass < K; ++pass)  // in the order of `in`, absent ones last
    for (int k = 0; k + pass < K; ++k) {
      Mask<Real> swap = feature[k] > feature[k + 1];
      Candidate<Real> low = select<Real>(swap, out[k + 1], out[k]), high = select<Real>(swap, out[k], out[k + 1]);
      Real f = select(swap, feature[k + 1], feature[k]), g = select(swap, feature[k], feature[k + 1]);
      out[k] = low, out[k + 1] = high, feature[k] = f, feature[k + 1] = g;
    }
  for (int k = 0; k < K; ++k) feature[k] = select(feature[k] == none, Real(-1), feature[k]);
}

}  // namespace stiction
