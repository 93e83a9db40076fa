// Tables in double to tables of another number.
#include "host/model/compile.h"
#include "model/tables.h"

namespace stiction {

template <class S>
void ModelTables<S>::link() {
  each_table(view, [](int, auto& address, auto& own) { address = own.data(); }, view, *this);
  view.hull = hull.data();
  int first = 0;
  for (HullView<S>& h : hull) {
    h.vert = hull_vert.data() + 3 * first;
    h.edgeadr = hull_edgeadr.empty() ? nullptr : hull_edgeadr.data() + first;
    h.edge = hull_edge.data(), h.start = hull_start.data() + kHullWays * (&h - hull.data());
    first += h.count;
  }
}

template <class S>
std::unique_ptr<ModelTables<S>> convert(const ModelTables<double>& from) {
  auto out = std::make_unique<ModelTables<S>>();
  cast_view(from.view, out->view);
  auto cast = [](int, auto& to, const auto& all) {
    for (const auto& x : all) to.push_back(number_cast<S>(x));
  };
  each_table(from.view, cast, *out, from);
  for (const auto& h : from.hull)
    out->hull.push_back({nullptr, nullptr, nullptr, h.count, static_cast<S>(h.radius), nullptr, number_cast<S>(h.low),
                         number_cast<S>(h.high)});
  out->hull_vert.assign(from.hull_vert.begin(), from.hull_vert.end());
  out->hull_edgeadr = from.hull_edgeadr, out->hull_edge = from.hull_edge, out->hull_start = from.hull_start;
  out->link();
  return out;
}

template struct ModelTables<float>;
template struct ModelTables<double>;
template std::unique_ptr<ModelTables<float>> convert(const ModelTables<double>&);
template std::unique_ptr<ModelTables<double>> convert(const ModelTables<double>&);

}  // namespace stiction
