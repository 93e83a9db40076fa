// Tables in double to tables of another number.
#include "host/model/compile.h"
#include "model/number_cast.h"

namespace stiction {
namespace {

template <class S, class From>
auto all(const std::vector<From>& from) {
  std::vector<decltype(number_cast<S>(from[0]))> result;
  for (const From& x : from) result.push_back(number_cast<S>(x));
  return result;
}

}  // namespace

template <class S>
void ModelTables<S>::link() {
  view.probe = probe.data(), view.plane = plane.data(), view.geom = geom.data(), view.pair = pair.data();
  view.link_pair = link_pair.data(), view.actuator = actuator.data(), view.tie = tie.data(), view.body = body.data();
  view.bond = bond.data();
  view.site = site.data(), view.hull = hull.data(), view.mass = mass.data();
  int first = 0;
  for (HullView<S>& h : hull) {
    h.vert = hull_vert.data() + 3 * first;
    h.edgeadr = hull_edgeadr.empty() ? nullptr : hull_edgeadr.data() + first;
    h.edge = hull_edge.data();
    first += h.count;
  }
}

template <class S>
std::unique_ptr<ModelTables<S>> convert(const ModelTables<double>& from) {
  auto out = std::make_unique<ModelTables<S>>();
  cast_view(from.view, out->view);
  out->probe = all<S>(from.probe), out->plane = all<S>(from.plane), out->geom = all<S>(from.geom);
  out->pair = all<S>(from.pair), out->link_pair = from.link_pair, out->actuator = all<S>(from.actuator);
  out->tie = all<S>(from.tie), out->body = all<S>(from.body), out->site = all<S>(from.site);
  out->mass = all<S>(from.mass), out->bond = all<S>(from.bond);
  for (const auto& h : from.hull) out->hull.push_back({nullptr, nullptr, nullptr, h.count});
  out->hull_vert.assign(from.hull_vert.begin(), from.hull_vert.end());
  out->hull_edgeadr = from.hull_edgeadr, out->hull_edge = from.hull_edge;
  out->link();
  return out;
}

template struct ModelTables<float>;
template struct ModelTables<double>;
template std::unique_ptr<ModelTables<float>> convert(const ModelTables<double>&);
template std::unique_ptr<ModelTables<double>> convert(const ModelTables<double>&);

}  // namespace stiction
