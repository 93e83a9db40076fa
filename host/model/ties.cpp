#include "host/model/ties.h"

#include <algorithm>
#include <stdexcept>

namespace stiction {
namespace {

class Ties {
 public:
  Ties(const Model& m, const Room& room, const std::function<int(int)>& link) : m_(m), room_(room), link_(link) {}

  std::vector<TieModel<double>> run() {
    for (int e = 0; e < m_.neq && !(m_.disableflags & kDisableEquality); ++e)
      if (m_.eq_active[e]) equality(e);
    for (int t = 0; t < m_.ntendon; ++t) tendon(t);
    for (int j = 0; j < m_.njnt && !(m_.disableflags & kDisableLimit); ++j)
      if (m_.jnt_limited[j] && m_.jnt_type[j] == static_cast<int>(JointType::kBall)) {
        TieModel<double> tie;
        tie.kind = kTieBallLimit, tie.terms = 3;
        for (int i = 0; i < 3; ++i) tie.link[i] = link_(j) + i;
        push(tie);
      }
    return std::move(out_);
  }

 private:
  void push(const TieModel<double>& tie) {
    require_at_most("rows over several dofs (equalities of joints and tendons, tendons, limits of ball joints)",
                    static_cast<int>(out_.size()) + 1, room_, &Room::ties);
    out_.push_back(tie);
  }

  /// sum += coef q of a joint.
  void add_term(int joint, double coef, double (TieModel<double>::*sum)[Capacity::kTieTerms], TieModel<double>& tie) {
    const int flat = link_(joint);
    int i = static_cast<int>(std::find(tie.link, tie.link + tie.terms, flat) - tie.link);
    if (i == tie.terms) {
      require_at_most("joints on one tendon or equality", ++tie.terms, room_, &Room::tie_terms);
      tie.link[i] = flat, tie.q0[i] = m_.qpos0[m_.jnt_qposadr[joint]];
    }
    (tie.*sum)[i] += coef;
  }
  void add_tendon(int t, double (TieModel<double>::*sum)[Capacity::kTieTerms], TieModel<double>& tie) {
    for (int w = m_.tendon_adr[t]; w < m_.tendon_adr[t] + m_.tendon_num[t]; ++w)
      add_term(m_.wrap_jntid[w], m_.wrap_coef[w], sum, tie);
  }

  void equality(int e) {
    const auto type = static_cast<Equality>(m_.eq_type[e]);
    if (type != Equality::kJoint && type != Equality::kTendon) return;
    TieModel<double> tie;
    tie.kind = kTieEquality;
    auto add = [&](int obj, auto sum) {
      if (obj < 0) return;
      if (type == Equality::kJoint) add_term(obj, 1, sum, tie);
      else add_tendon(obj, sum, tie);
    };
    add(m_.eq_obj1id[e], &TieModel<double>::coef), add(m_.eq_obj2id[e], &TieModel<double>::second);
    std::copy_n(&m_.eq_data[11 * e], 5, tie.poly);
    push(tie);
  }

  void tendon(int t) {
    TieModel<double> base;
    add_tendon(t, &TieModel<double>::coef, base);
    auto add = [&](int kind, auto fill) {
      TieModel<double> tie = base;
      tie.kind = kind;
      fill(tie);
      push(tie);
    };
    if (m_.tendon_limited[t] && !(m_.disableflags & kDisableLimit))
      add(kTieLimit, [&](auto& x) { x.lower = m_.tendon_range[2 * t], x.upper = m_.tendon_range[2 * t + 1]; });
    if (m_.tendon_frictionloss[t] > 0 && !(m_.disableflags & kDisableFrictionloss))
      add(kTieFriction, [&](auto& x) { x.friction = m_.tendon_frictionloss[t]; });
    double k = m_.disableflags & kDisableSpring ? 0 : m_.tendon_stiffness[t];
    double d = m_.disableflags & kDisableDamper ? 0 : m_.tendon_damping[t];
    if (k != 0 || d != 0)
      add(kTieSpring, [&](auto& x) {
        x.stiffness = k, x.damping = d;
        x.lower = m_.tendon_lengthspring[2 * t], x.upper = m_.tendon_lengthspring[2 * t + 1];
      });
    const size_t first = out_.size();
    const bool bounded = m_.tendon_actfrclimited[t];
    for (int a = 0; a < m_.nu && !(m_.disableflags & kDisableActuation); ++a)
      if (static_cast<Transmission>(m_.actuator_trntype[a]) == Transmission::kTendon && m_.actuator_trnid[a] == t)
        add(kTieActuator, [&](auto& x) {
          const double gear = m_.actuator_gear[6 * a];
          x.actuator = actuator_of(m_, a, gear), x.force_lower = -kUnlimited, x.force_upper = kUnlimited;
          if (!bounded) return;
          const auto [low, high] =
              std::minmax({gear * m_.tendon_actfrcrange[2 * t], gear * m_.tendon_actfrcrange[2 * t + 1]});
          x.force_lower = low, x.force_upper = high;
        });
    for (size_t i = first; i < out_.size() && bounded; ++i) {
      const ActuatorModel<double>&one = out_[first].actuator, &other = out_[i].actuator;
      if (other.gear != one.gear || (i > first && (one.clamp_force || other.clamp_force)))
        throw std::invalid_argument("tendon " + std::to_string(t) +
                                    ": several actuators under its force range with different gears, or force ranges "
                                    "of their own, are not supported");
      out_[i].actuators = i == first ? static_cast<int>(out_.size() - first) : 0;
    }
  }

  const Model& m_;
  const Room& room_;
  const std::function<int(int)>& link_;
  std::vector<TieModel<double>> out_;
  static constexpr double kUnlimited = 1e30;
};

const Pose<double> kNowhere{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, {0, 0, 0}};

}  // namespace

std::vector<TieModel<double>> ties_of(const Model& model, const Room& room, const std::function<int(int)>& link) {
  return Ties(model, room, link).run();
}

void bound_pulls(ModelView<Capacity, double>& view, std::vector<TieModel<double>>& ties) {
  for (TieModel<double>& tie : ties) {
    if (tie.kind != kTieActuator || tie.actuators == 0) continue;
    for (int j = 0; j < tie.terms; ++j) {
      const int limb_link = tie.link[j] - kLimbsFrom<Capacity>;
      LinkModel<double>& link = limb_link < 0 ? view.trunk[tie.link[j]] : view.link[limb_link];
      if (link.force_lower < -1e29 && link.force_upper > 1e29) continue;
      ++tie.ranged, ++link.pulls, view.has_pulls = view.has_ranges = 1;
    }
  }
}

int mocap_of(const Model& m, int body) {
  while (body > 0 && m.body_jntnum[body] == 0 && m.body_mocapid[body] < 0) body = m.body_parentid[body];
  return body > 0 && m.body_jntnum[body] == 0 ? m.body_mocapid[body] : -1;
}

Pose<double> in_carrier(const Model& m, const LinkGraph& graph, int body) {
  const Pose<double>& x = graph.place[body].pose;
  const int mocap = mocap_of(m, body);
  if (mocap < 0) return x;
  const auto root = std::find(m.body_mocapid.begin(), m.body_mocapid.end(), mocap) - m.body_mocapid.begin();
  const Pose<double>& at = graph.place[root].pose;
  return {transposed(at.R) * x.R, transposed_times(at.R, x.p - at.p)};
}

std::vector<BondModel<double>> bonds_of(const Model& m, const LinkGraph& graph, const Room& room,
                                        const std::function<int(int)>& link) {
  std::vector<BondModel<double>> out;
  auto push = [&](const BondModel<double>& bond) {
    require_at_most("threes of rows between bodies (a connect is one, a weld two)", static_cast<int>(out.size()) + 1,
                    room, &Room::bonds);
    out.push_back(bond);
  };
  for (int e = 0; e < m.neq && !(m.disableflags & kDisableEquality); ++e) {
    const auto type = static_cast<Equality>(m.eq_type[e]);
    if (!m.eq_active[e] || (type != Equality::kConnect && type != Equality::kWeld)) continue;
    const int body[2] = {m.eq_obj1id[e], m.eq_obj2id[e]}, flat[2] = {link(body[0]), link(body[1])};
    if (flat[0] == flat[1]) continue;
    const double* data = &m.eq_data[11 * e];
    const Vec3<double> first{data[0], data[1], data[2]}, second{data[3], data[4], data[5]};
    // Of each end in its body's frame. A weld's first point is on body 2.
    Pose<double> local[2] = {kNowhere, kNowhere};
    const bool weld = type == Equality::kWeld;
    local[0].p = weld ? second : first, local[1].p = weld ? first : second;
    if (weld) local[0].R = rotation(normalized(Quat<double>{data[6], data[7], data[8], data[9]}));
    BondModel<double> bond;
    for (int end = 0; end < 2; ++end) {
      bond.still[end] = flat[end] < 0, bond.link[end] = flat[end] < 0 ? flat[1 - end] : flat[end];
      bond.mocap[end] = mocap_of(m, body[end]), bond.body[end] = body[end];
      bond.frame[end] = in_carrier(m, graph, body[end]) * local[end];
    }
    push(bond);
    if (!weld || data[10] == 0) continue;
    bond.kind = kBondTurn, bond.scale = data[10];
    push(bond);
  }
  return out;
}

}  // namespace stiction
