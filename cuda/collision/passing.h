// Whether what would touch on a straight way passes by: open candidates act only where ways meet.
//
// Beside an edge the shortest distance closes though nothing will touch, and what turns goes round. The way of one geom is looked
// at from the other, in axes that turn with that: the hull of where it is now and at the end of the free motion, besides which it is
// nowhere farther than the arcs of its points are high. docs/theory.md, section 3.
#pragma once
#include "collision/convex/gjk.h"
#include "collision/reach.h"
#include "math/turn.h"

namespace stiction {

/// The part of its way by which what passes must be clear: what is nearer may touch.
inline constexpr double kClearOfWay = 3e-4;

/// Worlds where b turns far, and as a ball about its hub, which is that high above a plane with normal n, stays above it.
template <class Real>
HD Mask<Real> stays_above(const Vec3<Real>& n, const Real& height, const Reach<Real>& reach) {
  const Hub<Real>& hub = *reach.hub_b;
  return turns_far(reach.turns_b) & (height > hub.radius + max(-dot(n, hub.way), Real(0)) + reach.turned);
}
/// Whether what turns far, as a ball about its hub, is clear of the other geom, wherever both go.   pre: something has a hub
template <class Real, class S>
HD bool stays_apart(ConvexLane<S> x, int i, const Reach<Real>& reach) {
  double clear = double(lane(reach.turned, i));
  auto take = [&](ConvexShape<double, S>& s, const Hub<Real>* hub, double turns) {
    Vec3<double> way{0, 0, 0};
    if (hub != nullptr) {
      const double r = lane(hub->radius, i);
      way = lane_of<double>(hub->way, i);
      if (turns > kFarTurn)
        s.type = GeomKind::kSphere, s.size = {r, r, r}, s.pose.p = lane_of<double>(hub->at, i) - x.origin;
      else clear += turns * r;
    }
    clear += radius(s);
    return way;
  };
  const Vec3<double> way_a = take(x.a, reach.hub_a, lane(reach.turns_a, i));
  x.b.way = take(x.b, reach.hub_b, lane(reach.turns_b, i)) - way_a;
  Vec3<double> on_a, on_b;
  return closest_points(x.a, x.b, 0.0, clear + norm(x.b.way) * kClearOfWay, on_a, on_b) == Distance::kBeyond;
}

/// Where a geom goes in the free motion, about the origin of its lane. Its axes do not turn about one of symmetry: that moves no
/// surface. Times the step, and its square.   rad, m
struct GeomPath {
  Vec3<double> p, v, bend;  // its origin, its velocity, and what that changes by besides turning with the link
  Vec3<double> turn;        // of the link
  Vec3<double> w, dw;       // of its axes

  HD Vec3<double> acceleration() const { return bend + cross(turn, v); }
  /// After that part of the step, to third order of what joints turn it by; exact for one joint, or a free body's centre of mass.
  HD Vec3<double> at(double t) const {
    return t > 0 ? p + RootTurn<double>(turn, t).mean(v, t) * t + bend * (t * t / 2) : p;
  }
  HD Mat3<double> turned(double t) const { return rotation(integrated(Quat<double>{1, 0, 0, 0}, w + dw * (t / 2), t)); }
};
template <class Real, class S>
HD GeomPath geom_path(const ConvexShape<double, S>& geom, const LinkPath<Real>* link, int i, Vec3<double> origin) {
  GeomPath path{geom.pose.p, {}, {}, {}, {}, {}};
  if (link == nullptr) return path;
  const Closing<double> way = lane_of<double>(link->way, i), bend = lane_of<double>(link->bend, i);
  const Vec3<double> x = geom.pose.p + origin, axis = column(geom.pose.R, 2);
  path.v = velocity_at(way, x), path.bend = velocity_at(bend, x), path.turn = way.w;
  if (geom.type == GeomKind::kSphere) return path;
  path.w = way.w, path.dw = bend.w;
  if (geom.type == GeomKind::kCapsule || geom.type == GeomKind::kCylinder) {
    const Vec3<double> spin = axis * dot(axis, way.w);
    path.w = way.w - spin, path.dw = bend.w - axis * dot(axis, bend.w) + cross(spin, path.w);
  }
  return path;
}
/// The pose of a geom with axes R on `small`, in the axes of `large`, after a part of the step.
HD Pose<double> seen_after(double t, const GeomPath& large, const GeomPath& small, const Mat3<double>& R) {
  const Mat3<double> back = transposed(large.turned(t));
  return {back * (small.turned(t) * R), large.p + back * (small.at(t) - large.at(t))};
}
/// How it goes there: at first by v, which changes by `bend`, and its axes by `turn`. None of its points is farther than `arc` from the
/// chord of its way; in parts of the step less, by the square of that part. unsure: what seen_after leaves out. turns: of both.   rad, m
struct Arcs {
  Vec3<double> v, bend, turn;
  double arc, unsure;
};
template <class S>
HD Arcs arcs_of(const GeomPath& large, const GeomPath& small, double turns, const ConvexShape<double, S>& geom) {
  const Vec3<double> r = small.p - large.p, v = small.v - large.v - cross(large.w, r), at_r = cross(large.dw, r),
                     carried = large.acceleration() + at_r + cross(large.w, cross(large.w, r));
  const Vec3<double> a = small.acceleration() - carried - cross(large.w, v) * 2.0,
                     dw = small.dw - large.dw - cross(large.w, small.w), turn = small.w - large.w + dw * 0.5;
  const double goes = norm(v), bends = norm(a), least = max(goes, bends);
  const double rate = max(turns, least > 0 ? bends / least : 0.0);
  return {v, a, turn, (bends * (1 + rate) + turns_by(geom, turn) * norm(turn) + turns_by(geom, dw)) / 8,
          norm(small.bend - large.bend - at_r) * rate / 3};
}

/// What turns by less goes straight, but for that turn.   rad
inline constexpr double kLeastTwist = 5e-3;
/// A way that bends by more than that part of it is looked at in halves, too.
inline constexpr double kBentWay = 4e-3;

/// Whether a geom that goes as `path` stays clear of `other` by that part of its way, what bends it, and `clear`.
template <class S>
HD bool stays_clear(ConvexShape<double, S> other, const GeomPath& of_other, ConvexShape<double, S> geom,
                    const GeomPath& path, double turns, double clear) {
  const Pose<double> here = geom.pose;
  const Arcs way = arcs_of(of_other, path, turns, geom);
  const double goes = norm(way.v);
  clear += radius(other) + radius(geom) + goes * kClearOfWay + way.unsure;
  auto is_apart = [&](double by) {
    Vec3<double> on_a, on_b;
    return closest_points(other, geom, by, by, on_a, on_b) == Distance::kBeyond;
  };
  if (turns < kLeastTwist) {
    geom.way = way.v + way.bend * 0.5;
    return is_apart(clear + way.arc + turns_by(geom, way.turn));
  }
  auto is_clear = [&](double from, double to) {
    const Pose<double> then = seen_after(to, of_other, path, here.R);
    geom.pose = from > 0 ? seen_after(from, of_other, path, here.R) : here;
    geom.way = then.p - geom.pose.p, geom.turned = then.R, geom.turns = true;
    return is_apart(clear + way.arc * (to - from) * (to - from));
  };
  return is_clear(0, 1) || (way.arc > goes * kBentWay && is_clear(0, 0.5) && is_clear(0.5, 1));
}

/// Whether the point x of a geom ends in the other one, or no farther from it than `by`.
template <class S>
HD bool ends_in(ConvexShape<double, S> other, const GeomPath& of_other, Vec3<double> x, const GeomPath& path,
                double by) {
  ConvexShape<double, S> point = other;
  point.type = GeomKind::kSphere;
  point.pose.p =
      of_other.p + transposed_times(of_other.turned(1), path.at(1) + path.turned(1) * (x - path.p) - of_other.at(1));
  Vec3<double> on_a, on_b;
  by += radius(other);
  return closest_points(other, point, by, by, on_a, on_b) != Distance::kBeyond;
}

/// Whether the ways of two geoms that are apart in world `i` do not meet, as either one sees it: what goes round the other may leave the
/// hull of its own turn, but not that of the other's. c: where their surfaces are near each other; or null.
template <class Real>
HD_CALL bool passes_by(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, int i, const Reach<Real>& reach,
                       const Candidate<Real>* c) {
  ConvexLane<Scalar<Real>> x = convex_lane(a, b, i, reach.way);
  const double turns_a = lane(reach.turns_a, i), turns_b = lane(reach.turns_b, i), turns = turns_a + turns_b;
  const double clear = lane(reach.turned, i);
  if (max(turns_a, turns_b) > kFarTurn && stays_apart(x, i, reach)) return true;
  const GeomPath path_a = geom_path(x.a, reach.path_a, i, x.origin), path_b = geom_path(x.b, reach.path_b, i, x.origin);
  const bool small_a = extent(x.a) < extent(x.b);
  if (c != nullptr &&
      max(a.type, b.type) > GeomKind::kSphere) {  // most do meet, there; spheres have the normal of their hit
    const Candidate<double> near = lane_of<double>(*c, i);
    const Vec3<double> to_b = near.normal * (near.dist * 0.5), middle = near.pos - x.origin;
    if (small_a ? ends_in(x.b, path_b, middle - to_b, path_a, clear)
                : ends_in(x.a, path_a, middle + to_b, path_b, clear))
      return false;
  }
  for (const bool goes_a : {small_a, !small_a}) {
    if (goes_a ? stays_clear(x.b, path_b, x.a, path_a, turns, clear)
               : stays_clear(x.a, path_a, x.b, path_b, turns, clear))
      return true;
    if (turns < kLeastTwist) return false;
  }
  return false;
}
/// The open ones of n candidates.
template <class Real>
HD void drop_open(const Mask<Real>& which, int n, Candidate<Real>* out) {
  for (int k = 0; k < n; ++k) out[k] = select<Real>(which & (out[k].dist > Real(0)), absent<Real>(), out[k]);
}
/// Where a candidate closes within the step.
template <class Real>
HD Mask<Real> will_act(const Candidate<Real>& c, const Reach<Real>& reach) {
  return (c.dist < reach.margin) & (reach.end_gap(c) <= Real(0));
}
/// In wanted worlds where one of them would act and is_clear(i, c), in world i, c the nearest that does.
template <class Real, class Clear>
HD void drop_clear(const Mask<Real>& wanted, const Reach<Real>& reach, int n, Clear is_clear, Candidate<Real>* out) {
  auto acts = mask_of<Real>(false), clear = acts;
  Candidate<Real> nearest = absent<Real>();
  for (int k = 0; k < n; ++k) {
    const Mask<Real> own = wanted & (out[k].dist > Real(0)) & will_act(out[k], reach);
    if (!any(own)) continue;
    acts = acts | own;
    nearest = select<Real>(own & (out[k].dist < nearest.dist), out[k], nearest);
  }
  if (!any(acts)) return;
  for_each_lane<Real>(acts, [&](int i) {
    const int world = min(i, reach.lanes - 1);
    if (world < i ? lane(clear, world) != 0 : is_clear(i, nearest)) set_lane(clear, i, kWidth<Real> == 1 ? 1 : -1);
  });
  if (reach.passed != nullptr) *reach.passed = *reach.passed | clear;
  drop_open(clear, n, out);
}
/// Those of two geoms that pass by each other.
template <class Real>
HD void drop_passing(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, const Mask<Real>& wanted,
                     const Reach<Real>& reach, int n, Candidate<Real>* out) {
  auto passes = [&](int i, const Candidate<Real>& c) { return passes_by(a, b, i, reach, &c); };
  drop_clear(wanted, reach, n, passes, out);
}
/// The middle of one of them, where it passes by, too: of that the n others tell already where one of them acts.
template <class Real>
HD void drop_passing_middle(const PlacedGeom<Real>& a, const PlacedGeom<Real>& b, const Mask<Real>& wanted,
                            const Reach<Real>& reach, int n, const Candidate<Real>* others, Candidate<Real>& middle) {
  Mask<Real> alone = wanted & (middle.dist > Real(0)) & will_act(middle, reach);
  for (int k = 0; k < n && any(alone); ++k) alone = alone & negate(will_act(others[k], reach));
  auto passes = [&](int i, const Candidate<Real>&) { return passes_by<Real>(a, b, i, reach, nullptr); };
  if (any(alone)) drop_clear(alone, reach, 1, passes, &middle);
}

}  // namespace stiction
