// Penetration of two overlapping convex cores: the expanding polytope [Bergen2001], on signed distances.
//
// With h(n) the support function of A - B the depth is the least h(n) over all unit n. The polytope, a triangulated
// hull of support points of A - B, grows at the face of least signed distance d <= h until h - d is below a tolerance;
// the answer is the best n *evaluated*, so that -depth is always the true overlap along the returned normal, and an
// upper bound of the least. Signed distances need no polytope around the origin: cores that only touch, and flat ones,
// are ordinary input. At most kVertices support points. Polytopes end exactly; smooth shapes are polished by Newton
// steps on n afterwards. Flat differences (both cores in one plane, or points): depth 0 along the normal of the plane.
#pragma once
#include "collision/convex/gjk.h"

namespace stiction {

template <class T> struct Penetration {
  Vec3<T> normal;  // from A to B
  T depth;         // overlap of the cores along the normal
  Vec3<T> on_a, on_b;
};

template <class T> struct Polytope {
  static constexpr int kVertices = 64, kFaces = 2 * kVertices;
  SupportPoint<T> point[kVertices];
  int corner[kFaces][3];  // counter-clockwise from outside
  Vec3<T> normal[kFaces];
  T offset[kFaces];  // signed distance of the face's plane from the origin; 1e300 where the face has no area
  int points, faces;
};

/// Adds the triangle (i, j, k). False when full.
template <class T> HD bool add_face(Polytope<T>& p, int i, int j, int k) {
  if (p.faces == Polytope<T>::kFaces) return false;
  int f = p.faces++;
  p.corner[f][0] = i, p.corner[f][1] = j, p.corner[f][2] = k;
  Vec3<T> e = p.point[j].w - p.point[i].w, g = p.point[k].w - p.point[i].w, n = cross(e, g);
  T square = dot(n, n);
  bool flat = !(square > T(1e-24) * dot(e, e) * dot(g, g)) || !(square > 0);
  p.normal[f] = flat ? Vec3<T>{0, 0, 0} : n * (T(1) / sqrt(square));
  p.offset[f] = flat ? T(1e300) : dot(p.normal[f], p.point[i].w);
  return true;
}

/// Four support points in general position. False where A - B is flat: then `normal` is perpendicular to it.
template <class T, class S>
HD_CALL bool first_tetrahedron(ConvexShape<T, S>& a, ConvexShape<T, S>& b, T scale, Polytope<T>& p, Vec3<T>& normal) {
  SupportPoint<T> probe[6];
  T longest = -1, tiny = scale * T(1e-9);
  for (int i = 0; i < 3; ++i) {
    Vec3<T> d = {T(i == 0), T(i == 1), T(i == 2)};
    probe[2 * i] = support_difference(a, b, d), probe[2 * i + 1] = support_difference(a, b, -d);
    Vec3<T> span = probe[2 * i].w - probe[2 * i + 1].w;
    if (dot(span, span) > longest) longest = dot(span, span), p.point[0] = probe[2 * i], p.point[1] = probe[2 * i + 1];
  }
  normal = {0, 0, 1};
  if (!(longest > tiny * tiny)) return false;
  Vec3<T> u = (p.point[1].w - p.point[0].w) * (T(1) / sqrt(longest));
  Mat3<T> frame = frame_of_normal(u);
  T widest = tiny * tiny;
  auto widen = [&](const SupportPoint<T>& x) {
    Vec3<T> off = cross(x.w - p.point[0].w, u);
    if (dot(off, off) > widest * T(1.0001)) widest = dot(off, off), p.point[2] = x;
  };
  for (int i = 0; i < 10; ++i)
    widen(i < 6 ? probe[i] : support_difference(a, b, frame.row[(i - 6) / 2] * T((i & 1) != 0 ? -1 : 1)));
  normal = frame.row[0];
  if (!(widest > tiny * tiny)) return false;
  Vec3<T> n = cross(p.point[1].w - p.point[0].w, p.point[2].w - p.point[0].w);
  n = n * (T(1) / norm(n));
  T tallest = tiny, side = 0;
  for (int i = 0; i < 8; ++i) {
    SupportPoint<T> x = i < 6 ? probe[i] : support_difference(a, b, i == 6 ? n : -n);
    T height = dot(n, x.w - p.point[0].w);
    if (abs(height) > tallest * T(1.0001)) tallest = abs(height), side = height, p.point[3] = x;
  }
  normal = n;
  if (side == 0) return false;
  p.points = 4, p.faces = 0;
  if (side > 0) {  // the fourth on the inner side of (0, 1, 2)
    SupportPoint<T> swap = p.point[1];
    p.point[1] = p.point[2], p.point[2] = swap;
  }
  add_face(p, 0, 1, 2), add_face(p, 0, 3, 1), add_face(p, 1, 3, 2), add_face(p, 2, 3, 0);
  return true;
}

/// Replaces the faces that the last point sees by the fan from their border. False when full: the polytope is then
/// spent.
template <class T> HD_CALL bool expand(Polytope<T>& p, T tiny) {
  constexpr int kEdges = Polytope<T>::kFaces;
  int from[kEdges], to[kEdges], edges = 0, apex = p.points - 1;
  Vec3<T> x = p.point[apex].w;
  for (int f = p.faces - 1; f >= 0; --f) {
    const int* c = p.corner[f];
    if (!(dot(p.normal[f], x - p.point[c[0]].w) > tiny)) continue;
    for (int i = 0; i < 3; ++i) {
      int start = c[i], end = c[(i + 1) % 3], match = -1;
      for (int e = 0; e < edges; ++e)
        if (from[e] == end && to[e] == start) match = e;
      if (match >= 0) --edges, from[match] = from[edges], to[match] = to[edges];
      else if (edges == kEdges) return false;
      else from[edges] = start, to[edges] = end, ++edges;
    }
    int last = --p.faces;
    for (int i = 0; i < 3; ++i) p.corner[f][i] = p.corner[last][i];
    p.normal[f] = p.normal[last], p.offset[f] = p.offset[last];
  }
  for (int e = 0; e < edges; ++e)
    if (!add_face(p, from[e], to[e], apex)) return false;
  return edges > 0;
}

/// Where h has a kink at n: how the support point jumps there, across n, as from one end of an edge to the other; else 0.
template <class T, class S>
HD_CALL Vec3<T> kink_across(ConvexShape<T, S>& a, ConvexShape<T, S>& b, T scale, Vec3<T> n) {
  const T delta = T(1e-6);
  const Mat3<T> frame = frame_of_normal(n);
  Vec3<T> kink = {0, 0, 0};
  T longest = scale * T(1e-4);
  for (int k = 0; k < 2; ++k) {
    const Vec3<T> off = frame.row[k] * delta;
    Vec3<T> jump = support_difference(a, b, n + off).w - support_difference(a, b, n - off).w;
    jump = jump - n * dot(n, jump);
    if (norm(jump) > longest) longest = norm(jump), kink = jump;
  }
  return kink;
}

/// Least h(n) near best.normal, by Newton on the sphere where h is smooth and convex there, where it has a kink, as at the edge of a
/// box, by Newton along that, and by gradient steps elsewhere; each step is taken only if h falls. With t the part of the support point
/// w(n) across n, the gradient, and its change along two tangents by differences, a step solves H x = -t in the tangent plane. Works for
/// h < 0 (cores apart) as well.
template <class T, class S>
HD_CALL void polish(ConvexShape<T, S>& a, ConvexShape<T, S>& b, T scale, Penetration<T>& best) {
  constexpr int kSteps = 32;
  const T delta = T(1e-6);
  SupportPoint<T> x = support_difference(a, b, best.normal);
  best.depth = dot(best.normal, x.w);
  T step = T(0.5), gt = 0, gu = 0, slope = 0, tt = 0, uu = 0, tu = 0, det = 0;
  Vec3<T> t{}, u{};
  bool fell = true;
  for (int i = 0; i < kSteps && step > T(1e-8); ++i) {
    const bool moved = fell;  // else all is as it was but for the step
    if (moved) {
      Mat3<T> frame = frame_of_normal(best.normal);
      t = frame.row[0], u = frame.row[1];
      gt = dot(t, x.w), gu = dot(u, x.w), slope = sqrt(gt * gt + gu * gu);
      if (!(slope > scale * T(1e-11))) break;
      Vec3<T> nt = best.normal + t * delta, nu = best.normal + u * delta;
      Vec3<T> wt = support_difference(a, b, nt).w - x.w, wu = support_difference(a, b, nu).w - x.w;
      tt = dot(t, wt) / delta - best.depth, uu = dot(u, wu) / delta - best.depth;
      tu = (dot(u, wt) + dot(t, wu)) * T(0.5) / delta, det = tt * uu - tu * tu;
    }
    fell = false;
    auto take = [&](Vec3<T> n) {
      n = n * (T(1) / norm(n));
      const SupportPoint<T> y = support_difference(a, b, n);
      const T h = dot(n, y.w);
      fell = h < best.depth - scale * T(1e-14);
      if (fell) best.normal = n, best.depth = h, x = y;
    };
    if (moved && tt > 0 && det > T(1e-12) * tt * uu)
      take(best.normal + t * (-(uu * gt - tu * gu) / det) + u * (-(tt * gu - tu * gt) / det));
    if (moved && !fell) {
      const Vec3<T> kink = kink_across(a, b, scale, best.normal), along = cross(best.normal, kink);
      if (const T jump = norm(along); jump > 0) {
        const Vec3<T> d = along * (T(1) / jump);
        const T bends = dot(d, support_difference(a, b, best.normal + d * delta).w - x.w) / delta - best.depth;
        if (bends > 0) take(best.normal - d * (dot(d, x.w) / bends));
      }
    }
    if (!fell) take(best.normal - (t * gt + u * gu) * (step / slope));
    if (!fell) step = step * T(0.3);
  }
}

/// The points of both cores that are deepest: of the faces at least distance (a facet may be many), that which holds
/// the projection of the origin.
template <class T> HD_CALL void deepest_points(const Polytope<T>& p, T tolerance, Penetration<T>& best) {
  T least = T(1e300), miss = T(1e300);
  for (int f = 0; f < p.faces; ++f) least = min(least, p.offset[f]);
  for (int f = 0; f < p.faces; ++f) {
    if (!(p.offset[f] <= least + tolerance)) continue;
    T weight[3];
    const SupportPoint<T>&i = p.point[p.corner[f][0]], &j = p.point[p.corner[f][1]], &k = p.point[p.corner[f][2]];
    nearest_on_triangle(i.w, j.w, k.w, weight);
    Vec3<T> off = i.w * weight[0] + j.w * weight[1] + k.w * weight[2] - p.normal[f] * p.offset[f];
    if (!(dot(off, off) < miss)) continue;
    miss = dot(off, off);
    best.on_a = i.a * weight[0] + j.a * weight[1] + k.a * weight[2];
    best.on_b = i.b * weight[0] + j.b * weight[1] + k.b * weight[2];
  }
}

template <class T, class S>
HD_CALL Penetration<T> penetration(ConvexShape<T, S>& a, ConvexShape<T, S>& b, T scale, T tolerance) {
  Polytope<T> p;
  Penetration<T> best = {{0, 0, 1}, 0, a.pose.p, b.pose.p};
  if (!first_tetrahedron(a, b, scale, p, best.normal)) {
    SupportPoint<T> x = support_difference(a, b, best.normal);
    best.depth = dot(best.normal, x.w), best.on_a = x.a, best.on_b = x.b;
    return best;
  }
  best.depth = T(1e300);
  while (true) {
    int f = 0;
    for (int i = 1; i < p.faces; ++i)
      if (p.offset[i] < p.offset[f]) f = i;
    Vec3<T> n = p.normal[f];
    SupportPoint<T> x = support_difference(a, b, n);
    T h = dot(n, x.w), gain = h - p.offset[f];
    if (h < best.depth) best.normal = n, best.depth = h;
    if (!(gain > tolerance) || p.points == Polytope<T>::kVertices) break;
    p.point[p.points++] = x;
    if (!expand(p, scale * T(1e-12))) break;
  }
  deepest_points(p, tolerance, best);
  return best;
}

}  // namespace stiction
