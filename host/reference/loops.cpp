#include "host/reference/loops.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "host/reference/centres.h"

namespace stiction::reference {
namespace {

/// The vector part of (0, u) q as a matrix times u.
Matrix3d turned_by(const Quaterniond& q) {
  Matrix3d M;
  M << q.w(), q.z(), -q.y(), -q.z(), q.w(), q.x(), q.y(), -q.x(), q.w();
  return M;
}

/// Whether a mocap body is one of the two, or what it carries.
bool pulls(const Model& model, int i) {
  for (int b : {model.eq_obj1id[i], model.eq_obj2id[i]})
    for (; b > 0; b = model.body_parentid[b])
      if (model.body_mocapid[b] >= 0) return true;
  return false;
}

void add_bodies(const Model& model, const Kinematics& k, int i, std::vector<EqualityRows>& list) {
  const bool weld = model.eq_type[i] == static_cast<int>(Equality::kWeld);
  const int b1 = model.eq_obj1id[i], b2 = model.eq_obj2id[i];
  if (model.body_weldid[b1] == model.body_weldid[b2]) return;
  const double* data = &model.eq_data[11 * i];
  const Vector3d first(data[0], data[1], data[2]), second(data[3], data[4], data[5]);
  const Vector3d p1 = k.body_pos[b1] + k.body_rot[b1] * (weld ? second : first);
  const Vector3d p2 = k.body_pos[b2] + k.body_rot[b2] * (weld ? first : second);
  list.push_back({point_jacobian(model, k, b1, p1) - point_jacobian(model, k, b2, p2), p1 - p2});
  if (!weld || data[10] == 0) return;
  const Quaterniond relative(data[6], data[7], data[8], data[9]);
  Quaterniond turn = k.body_quat[b2].conjugate() * k.body_quat[b1] * relative.normalized();
  if (turn.w() < 0) turn.coeffs() *= -1;
  const Matrix spin = angular_jacobian(model, k, b1) - angular_jacobian(model, k, b2);
  list.push_back(
      {0.5 * data[10] * turned_by(turn) * k.body_rot[b2].transpose() * spin, data[10] * turn.vec(), turn.w()});
}

}  // namespace

std::vector<EqualityRows> equalities(const Model& model, const Vector& q, const Matrix& A) {
  std::vector<EqualityRows> list;
  if (disabled(model, kDisableEquality)) return list;
  const Kinematics k = forward_kinematics(model, q);
  for (int i = 0; i < model.neq; ++i) {
    if (!model.eq_active[i]) continue;
    const auto type = static_cast<Equality>(model.eq_type[i]);
    if (type == Equality::kConnect || type == Equality::kWeld) {
      const std::size_t before = list.size();
      add_bodies(model, k, i, list);
      for (std::size_t j = before; j < list.size(); ++j) {
        const double W = (list[j].J * A.llt().solve(list[j].J.transpose())).trace() / 3;
        list[j].R = 1e-5 * W, list[j].pulled = pulls(model, i) ? W : 0;
      }
      continue;
    }
    // How far a joint, or a tendon's length, is from where it is at qpos0, and its row.
    auto moved = [&](int object, Vector& J) {
      if (type == Equality::kTendon) {
        J = tendon_row(model, object);
        const Vector start = Eigen::Map<const Vector>(model.qpos0.data(), model.nq);
        return tendon_length(model, object, q) - tendon_length(model, object, start);
      }
      const int at = model.jnt_qposadr[object];
      J = Vector::Unit(model.nv, model.jnt_dofadr[object]);
      return q[at] - model.qpos0[at];
    };
    const double* c = &model.eq_data[11 * i];
    Vector J, J2;
    double violation = moved(model.eq_obj1id[i], J) - c[0];
    if (model.eq_obj2id[i] >= 0) {
      const double x = moved(model.eq_obj2id[i], J2);
      violation -= x * (c[1] + x * (c[2] + x * (c[3] + x * c[4])));
      J -= (c[1] + x * (2 * c[2] + x * (3 * c[3] + x * 4 * c[4]))) * J2;
    }
    list.push_back({J.transpose(), Vector::Constant(1, violation)});
  }
  return list;
}

void close_loops(const Model& model, const Vector& q, const Vector& v, const std::vector<EqualityRows>& loops,
                 FreeMotion& m, ContactProblem& problem) {
  const double h = problem.timestep;
  int n = 0;
  for (const EqualityRows& x : loops) n += static_cast<int>(x.x.size());
  const double before = v.cwiseAbs().sum();
  if (n == 0 || before * h <= 1e-3) return;

  const int all = problem.rows();
  const Matrix& J = problem.J_row;
  Matrix W = J * m.A.llt().solve(J.transpose());
  W.diagonal() += problem.R_row.cwiseMax(1e-5 * Vector(W.diagonal()));
  const Vector first = m.b, e = problem.e_row;
  auto each = [&](auto visit) {
    for (int i = 0, at = 0; i < static_cast<int>(loops.size()); at += static_cast<int>(loops[i++].x.size()))
      visit(i, at, static_cast<int>(loops[i].x.size()));
  };
  auto parted = [&](const Vector& u) {
    Vector along = u, end = u, bend = Vector::Zero(all);
    move_centres(model, q, h, along, end);
    const std::vector<EqualityRows> there = equalities(model, integrate(model, q, along, h), m.A);
    each([&](int i, int at, int size) {
      Vector later = there[i].x;
      if (loops[i].lever < 1 && (later + loops[i].x).norm() < (later - loops[i].x).norm())
        later = -later;  // half a turn
      bend.segment(at, size) = (later - loops[i].x) / h - loops[i].J * u;
    });
    return bend;
  };
  // Impulses of f = J v* + e, by trying which rows are at a bound: 0 none, -1 the lower, 1 the upper.
  std::vector<int> at(all, 0);
  auto impulses = [&](const Vector& f) {
    Vector l = Vector::Zero(all);
    for (int tries = 0; tries < 3 * all; ++tries) {
      std::vector<int> inside, outside;
      for (int i = 0; i < all; ++i) (at[i] ? outside : inside).push_back(i);
      for (int i : outside) l[i] = at[i] < 0 ? problem.lower[i] : problem.upper[i];
      Vector rest = f;
      for (int i : outside) rest += W.col(i) * l[i];
      l(inside) = -Matrix(W(inside, inside)).ldlt().solve(Vector(rest(inside)));
      const Vector s = f + W * l;
      bool moved = false;
      for (int i = 0; i < all; ++i) {
        int now = at[i];
        if (now == 0) now = l[i] < problem.lower[i] ? -1 : l[i] > problem.upper[i];
        else if (now * s[i] > 0) now = 0;
        moved = moved || now != at[i], at[i] = now;
      }
      if (!moved) break;
    }
    return l;
  };
  const Vector plain =
      m.A.llt().solve(first) + m.A.llt().solve(J.transpose() * impulses(J * m.A.llt().solve(first) + e));
  Vector bend = Vector::Zero(all);
  m.at_mean = false;
  for (const bool bends : {true, false}) {
    Vector now = v;
    double changed = 0, size = 1;
    bend.setZero(), m.b = first;
    for (int pass = 0; pass < 40; ++pass) {
      if (bends) bend = parted(now);
      if (pass > 0) m.coriolis = coriolis_change(model, q, v, (v + now) / 2, h, m), m.b = first + m.coriolis;
      const Vector free = m.A.llt().solve(m.b);
      const Vector next = free + m.A.llt().solve(J.transpose() * impulses(J * free + e + bend));
      changed = (next - now).cwiseAbs().sum(), size = before + next.cwiseAbs().sum();
      now = next;
      if (changed <= 1e-14 * size) break;
    }
    const double far = (now - plain).cwiseAbs().sum() / (before + plain.cwiseAbs().sum());
    m.at_mean = changed <= 1e-2 * size && (!bends || far <= std::min(0.25, h * before / 2));
    if (m.at_mean) break;
  }
  if (!m.at_mean) m.coriolis = coriolis_change(model, q, v, 0 * v, h, m), m.b = first + m.coriolis;
  m.v_free = m.A.llt().solve(m.b);
  problem.e_row += bend;
}

}  // namespace stiction::reference
