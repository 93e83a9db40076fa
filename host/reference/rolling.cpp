#include "host/reference/rolling.h"

#include <algorithm>
#include <set>

#include "host/model/fields.h"
#include "host/reference/centres.h"

namespace stiction::reference {
namespace {

/// A disc, a ball or an ellipsoid of half sizes `size` about `middle`.
struct Round {
  Vector3d size, middle;
  Matrix3d axes;

  Vector3d lowest(const Vector3d& up) const {
    const Vector3d scaled = size.cwiseProduct(axes.transpose() * up);
    return middle - axes * size.cwiseProduct(scaled) / std::max(scaled.norm(), 1e-12);
  }
};

/// Gaps below that touch: a tenth of the margin.   m
constexpr double kTouching = 2e-4;

/// The geom of a contact whose other one stands still, of a body on its own that has no other that may touch anything; else -1.
int rolling_geom(const Model& model, const Contact& c) {
  const bool first = model.body_weldid[model.geom_bodyid[c.geom2]] == 0;
  const int geom = first ? c.geom1 : c.geom2, other = first ? c.geom2 : c.geom1;
  const auto type = static_cast<GeomType>(model.geom_type[geom]);
  const std::set<GeomType> round{GeomType::kCylinder, GeomType::kEllipsoid, GeomType::kSphere, GeomType::kCapsule};
  if (!round.count(type)) return -1;
  const int root = model.body_weldid[model.geom_bodyid[geom]];
  if (model.body_weldid[model.geom_bodyid[other]] != 0 || lone_joint(model, root) < 0) return -1;
  for (int g = 0; g < model.ngeom; ++g)
    if (g != geom && model.body_weldid[model.geom_bodyid[g]] == root && may_collide(model, g)) return -1;
  return geom;
}

/// Of one contact: its bend as if all of it acted, and by which part it rolls.
struct Roll {
  Vector3d bend = Vector3d::Zero();
  double part = 0;
};
Roll roll_of(const Model& model, const Kinematics& k, const Vector& v, const Vector& v_free, const Contact& c, int geom,
             double h) {
  const int joint = lone_joint(model, model.geom_bodyid[geom]), dof = model.jnt_dofadr[joint];
  const Matrix3d R = k.body_rot[model.jnt_bodyid[joint]];
  const Vector3d origin = k.body_pos[model.jnt_bodyid[joint]];
  const Vector3d n = c.frame.row(2).transpose() * (geom == c.geom1 ? -1 : 1);
  const Vector3d centre = centre_on(model, dof, k);
  auto velocity = [&](const Vector& u, const Vector3d& x) -> Vector3d {
    return u.segment<3>(dof) + (R * u.segment<3>(dof + 3)).cross(x - origin);
  };
  const Vector3d w = R * v_free.segment<3>(dof + 3);
  Roll found;
  if (!(w.norm() * h > 1e-4)) return found;
  const auto type = static_cast<GeomType>(model.geom_type[geom]);
  const bool rim = type == GeomType::kCylinder, sphere = type == GeomType::kSphere, rod = type == GeomType::kCapsule;
  const double* own = &model.geom_size[3 * geom];
  const Matrix3d turn = Eigen::AngleAxisd(w.norm() * h, w.normalized()).toRotationMatrix(), axes = k.geom_rot[geom];
  const Vector3d gains = velocity(v_free, centre) - velocity(v, centre),
                 size =
                     sphere || rod ? Vector3d::Constant(own[0]) : Vector3d{own[0], own[rim ? 0 : 1], rim ? 0 : own[2]};
  for (int side = rim || rod ? -1 : 0; side < 2; side += 2) {
    const Round round{size, k.geom_pos[geom] + axes.col(2) * (side * own[1]), axes};
    const double off = sphere || rod ? (round.middle - centre).norm() : 0, half = rim ? own[1] : 0;
    if (sphere && off <= 1e-3 * own[0]) return found;  // alike all around
    const Vector3d at = round.lowest(n), arm = at - centre,
                   moves = turn * (round.lowest(turn.transpose() * n) - centre) - arm;
    if ((c.pos + n * (c.dist / 2) - at).norm() >= 1e-3 * std::max(size.x(), size.y()) + moves.norm()) continue;
    Vector3d bend = w.cross(moves) / 2;
    bend += n * (n.dot(moves) / h - n.dot(w.cross(arm)) - n.dot(bend));
    const double slip = velocity(v, at).squaredNorm() / std::max(4 * bend.squaredNorm() + gains.squaredNorm(), 1e-30);
    const double lies = half / (size.x() * (10 * std::abs(n.dot(axes.col(2))) + 0.05));
    const double far = moves.norm() / std::max(size.maxCoeff(), off),
                 per_turn = std::clamp(160 * far, 1 / 0.5, 1 / 0.15);
    const double most = std::max({slip, 4 * far, w.norm() * h * per_turn, lies});
    found.part = std::clamp(2 - most, 0.0, 1.0);
    found.bend = moves.norm() > 1e-12 * size.maxCoeff() ? bend : Vector3d::Zero();
  }
  return found;
}

}  // namespace

Rolling rolling_of(const Model& model, const Kinematics& k, const Vector& v, const Vector& v_free,
                   const std::vector<Contact>& contacts, double h) {
  Rolling rolling{std::vector<Vector3d>(contacts.size(), Vector3d::Zero()), Vector::Zero(model.njnt)};
  if (has_loops(model)) return rolling;
  Vector least = Vector::Ones(model.njnt);
  std::vector<bool> touches(model.njnt), moving(model.njnt);
  std::vector<int> rolls(contacts.size(), -1);  // the joint of what rolls there
  std::vector<double> own(contacts.size());     // and its part
  for (size_t i = 0; i < contacts.size(); ++i) {
    const Contact& c = contacts[i];
    const int geom = rolling_geom(model, c);
    if (geom < 0) {
      for (int g : {c.geom1, c.geom2})
        if (const int joint = lone_joint(model, model.geom_bodyid[g]); joint >= 0) moving[joint] = true;
      continue;
    }
    const int joint = rolls[i] = lone_joint(model, model.geom_bodyid[geom]);
    const Roll roll = roll_of(model, k, v, v_free, c, geom, h);
    rolling.bend[i] = roll.bend, own[i] = roll.part;
    if (c.dist < kTouching) least[joint] = std::min(least[joint], roll.part), touches[joint] = true;
  }
  for (int j = 0; j < model.njnt; ++j) {
    if (!touches[j]) least[j] = 0;
    if (!moving[j]) rolling.part[j] = least[j];
  }
  for (size_t i = 0; i < contacts.size(); ++i)
    if (rolls[i] >= 0) rolling.bend[i] *= std::min(own[i], least[rolls[i]]);
  return rolling;
}

}  // namespace stiction::reference
