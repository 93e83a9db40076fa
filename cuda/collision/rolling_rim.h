// What rolls on a plane with a smooth surface or a rim: what a step's J misses of it.
//
// The point that touches is another one at the end of the step, and r, from the centre of mass to it, another vector: J v = 0 with the r of
// the beginning is no rolling. A contact there that neither slides nor hits has the bend
//
//   b = w x (r+ - r) / 2,   b_n = n.(r+ - r) / h - n.(w x r)                                         docs/theory.md, (3.1e)
//
// in e, r+ and w those of the free motion: (J v + b) is the mean over the step, and along the normal what closes in it. It acts where
// it touches at the beginning, by J: at the middle of the step it would brake, by twice as much as without a bend.
#pragma once
#include "collision/slots.h"
#include "collision/static_pairs.h"

namespace stiction {

/// The bends of a station's contacts that roll on static geoms, body: on its own. Of what has several round geoms each is looked at.
template <class L, class Real = typename L::Real>
HD void bend_rolling(const typename L::Model& m, const StationModel& st, const Pose<Real>& link,
                     const Reach<Real>& reach, const Turning<Real>& body, Scalar<Real> h, int slots,
                     ContactPoint<Real>* slot) {
  using S = Scalar<Real>;
  if (!body.bends || !any(norm(body.turn) > Real(kLeastRoll))) return;
  for (int i = st.static_begin; i < st.static_begin + st.statics; ++i) {
    const auto& geom = m.geom[own_geom<L>(m, i)];
    const bool rim = geom.type == GeomKind::kCylinder;
    if (!rim && geom.type != GeomKind::kEllipsoid) continue;
    const PlacedGeom<Real> own = carried_geom<L>(m, geom, link);
    for (int c = 0; c < slots; ++c) {
      ContactPoint<Real>& x = slot[c];
      const Mask<Real> of = x.active & (x.id >= Real(S(m.pair[i].id))) &
                            (x.id < Real(S(m.pair[i].id + m.pair[i].candidates - m.pair[i].middle)));
      if (!any(of)) continue;
      const Vec3<Real> n = x.frame.row[2], at = x.p + n * (x.gap * S(0.5));
      for (int k = 0; k < (rim ? 2 : 1); ++k) {
        const Round<Real> round = rim ? cap_of(own, k) : as_round<Real>(own);
        const Rolling<Real> rolls = rolling_on(round, n, reach, body);
        const Real off = norm(at - rolls.at), near = max(own.size.x, own.size.y) * S(1e-3) + norm(rolls.moves);
        x.bend = select(of & (off < near), rolls.bend * (rolls.part * S(1 / h)), x.bend);
      }
    }
  }
}

}  // namespace stiction
