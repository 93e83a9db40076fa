// Which geoms may touch: MuJoCo's filters.
#include <algorithm>
#include <set>
#include <utility>

#include "host/model/compile.h"
#include "model/parameters.h"

namespace stiction {

namespace {

/// Of condim `dim`, with what friction there is by it.
GeomPair pair_of(int a, int b, int dim, int rule, double sliding, double torsion, double rolling) {
  return {a, b, dim == 1 ? 0 : sliding, dim < 4 ? 0 : torsion, dim < 6 ? 0 : rolling, dim == 1 ? 3 : rule, dim};
}

/// Two geoms' friction combines by priority, else the larger counts, as does condim.
GeomPair pair_of(const Model& m, int a, int b) {
  const int p1 = m.geom_priority[a], p2 = m.geom_priority[b], rule = p1 > p2 ? 1 : p2 > p1 ? 2 : 0;
  const int dim = friction_of(rule, m.geom_condim[a], m.geom_condim[b], 1);
  auto of = [&](int k) { return friction_of(rule, m.geom_friction[3 * a + k], m.geom_friction[3 * b + k], 0.0); };
  return pair_of(a, b, dim, rule, of(0), of(1), of(2));
}

}  // namespace

std::vector<GeomPair> collision_pairs(const Model& m) {
  std::vector<GeomPair> pairs;
  if (m.disableflags & kDisableContact) return pairs;
  std::set<std::pair<int, int>> taken, excluded;
  auto ordered = [&](int a, int b) {  // by type, then by number
    return m.geom_type[a] <= m.geom_type[b] ? std::pair(a, b) : std::pair(b, a);
  };
  for (int i = 0; i < m.npair; ++i) {
    auto [a, b] = ordered(m.pair_geom1[i], m.pair_geom2[i]);
    if (m.body_weldid[m.geom_bodyid[a]] == 0 && m.body_weldid[m.geom_bodyid[b]] == 0) continue;
    if (!taken.insert({a, b}).second) continue;
    const double* f = &m.pair_friction[3 * i];
    pairs.push_back(pair_of(a, b, m.pair_condim[i], 3, f[0], f[1], f[2]));
  }
  for (int i = 0; i < m.nexclude; ++i) excluded.insert(std::minmax(m.exclude_body1[i], m.exclude_body2[i]));

  for (int i = 0; i < m.ngeom; ++i)
    for (int j = i + 1; j < m.ngeom; ++j) {
      if (!((m.geom_contype[i] & m.geom_conaffinity[j]) || (m.geom_contype[j] & m.geom_conaffinity[i]))) continue;
      int b1 = m.geom_bodyid[i], b2 = m.geom_bodyid[j], w1 = m.body_weldid[b1], w2 = m.body_weldid[b2];
      if (w1 == w2) continue;  // both static, or moving together
      int up1 = m.body_weldid[m.body_parentid[w1]], up2 = m.body_weldid[m.body_parentid[w2]];
      bool related = w1 != 0 && w2 != 0 && (w1 == up2 || w2 == up1);
      if (related && !(m.disableflags & kDisableFilterparent)) continue;
      if (excluded.count(std::minmax(b1, b2))) continue;
      auto [a, b] = ordered(i, j);
      if (taken.count({a, b})) continue;
      pairs.push_back(pair_of(m, a, b));
    }
  std::stable_sort(pairs.begin(), pairs.end(), [](const GeomPair& x, const GeomPair& y) {
    return std::pair(x.geom1, x.geom2) < std::pair(y.geom1, y.geom2);
  });
  return pairs;
}

}  // namespace stiction
