#include "host/reference/certificate.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace stiction::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double contact_residual(const Vector3d& l, const Vector3d& sigma, double mu, double w, bool corrected) {
  Vector3d s = sigma;
  if (corrected) s.z() += mu * sigma.head<2>().norm();
  return w * (l - project_cone(l - s / w, mu)).norm();
}

/// V of every contact.
std::vector<double> contact_scales(const Delassus& d, const Vector& l) {
  double all = d.q.size() > 0 ? d.q.cwiseAbs().maxCoeff() : 0;
  if (d.bare) return std::vector<double>(d.contacts(), all);
  auto trees = [&](int i) { return d.trees.empty() ? std::vector<int>{0} : d.trees[i]; };
  std::map<int, double> fastest;
  for (int i = 0; i < d.contacts(); ++i)
    for (int tree : trees(i)) {
      double& V = fastest.try_emplace(tree, d.speed_floor).first->second;
      if (!l.segment<3>(3 * i).isZero(0) || d.phi[i] <= 0) V = std::max(V, d.q.segment<3>(3 * i).cwiseAbs().maxCoeff());
    }
  std::vector<double> scales;
  for (int i = 0; i < d.contacts(); ++i) {
    scales.push_back(d.speed_floor);
    for (int tree : trees(i)) scales.back() = std::max(scales.back(), fastest[tree]);
  }
  return scales;
}

/// The trees that each contact acts on: dofs that A couples, by the number of their first.
std::vector<std::vector<int>> trees_of_contacts(const ContactProblem& p) {
  const int n = static_cast<int>(p.A.rows());
  std::vector<int> tree(n);
  for (int i = 0; i < n; ++i) {
    tree[i] = i;
    for (int j = 0; j < i; ++j)
      if (p.A(i, j) != 0) {
        const int from = std::max(tree[i], tree[j]), to = std::min(tree[i], tree[j]);
        std::replace(tree.begin(), tree.begin() + i + 1, from, to);
      }
  }
  std::vector<std::vector<int>> found(p.mu.size());
  for (int c = 0; c < static_cast<int>(found.size()); ++c)
    for (int k = 0; k < n; ++k)
      if (!p.J.block(3 * c, k, 3, 1).isZero(0)) found[c].push_back(tree[k]);
  return found;
}

/// Everything but r_dyn, from w = J v over all rows.
Certificate certify_rows(const Delassus& d, const Vector& w, const Vector& l) {
  Certificate c;
  Vector s = w + d.e + d.R.cwiseProduct(l);
  const std::vector<double> scales = contact_scales(d, l);
  c.scale = scales.empty() ? (d.bare ? 0 : d.speed_floor) : *std::max_element(scales.begin(), scales.end());
  double worst = 0, worst_convex = 0;  // over V_i
  for (int i = 0; i < d.contacts(); ++i) {
    Vector3d impulse = l.segment<3>(3 * i), sigma = s.segment<3>(3 * i);
    c.penetration = std::max(c.penetration, -d.phi[i]);
    double mass = d.mean_inverse_mass(i);
    if (!(mass > 0)) {
      c.degenerate = true;
      if (!impulse.isZero(0)) c.r_con = worst = worst_convex = kInfinity;
      continue;
    }
    if (!(scales[i] > 0)) continue;
    const double con = contact_residual(impulse, sigma, d.mu[i], mass, true);
    if (con / scales[i] > worst) worst = con / scales[i], c.r_con = con, c.scale = scales[i];
    worst_convex = std::max(worst_convex, contact_residual(impulse, sigma, d.mu[i], mass, false) / scales[i]);
    const double cone = std::max(impulse.head<2>().norm() - d.mu[i] * impulse.z(), -impulse.z());
    c.r_cone = std::max(c.r_cone, mass * cone / scales[i]);
  }
  c.r_ccp = std::max(c.r_ccp, worst_convex * c.scale);
  for (int r = 0; r < d.rows(); ++r) {
    int i = 3 * d.contacts() + r;
    double mass = d.mean_inverse_mass(d.contacts() + r);
    if (!(mass > 0)) {
      c.degenerate = true;
      if (l[i] != 0) c.r_row = c.r_row_relative = kInfinity;
      continue;
    }
    double residual = mass * std::abs(l[i] - std::clamp(l[i] - s[i] / mass, d.lower[r], d.upper[r]));
    c.r_row = std::max(c.r_row, residual);
    c.r_row_relative = std::max(c.r_row_relative, residual / std::max(std::abs(d.q[i]), d.speed_floor));
  }
  // A NaN escapes every maximum: say so.
  if (!l.allFinite() || !s.allFinite()) c.r_con = c.r_ccp = c.r_row = c.r_row_relative = kInfinity;
  return c;
}

Vector stacked(const Vector& a, const Vector& b) {
  Vector x(a.size() + b.size());
  x << a, b;
  return x;
}

}  // namespace

double Delassus::mean_inverse_mass(int i) const {
  return i < contacts() ? W.diagonal().segment<3>(3 * i).sum() / 3 : W(2 * contacts() + i, 2 * contacts() + i);
}

Delassus delassus(const ContactProblem& p) {
  check_sizes(p);
  Matrix J(p.J.rows() + p.J_row.rows(), p.b.size());
  J << p.J, p.J_row;
  Eigen::LLT<Matrix> factor(p.A);
  Delassus d;
  d.W = Matrix::Zero(J.rows(), J.rows());
  if (J.rows() > 0) d.W = J * factor.solve(J.transpose());  // Eigen does not solve for no right-hand side
  d.W = (0.5 * (d.W + d.W.transpose())).eval();
  d.q = J * factor.solve(p.b);
  d.e = stacked(p.e, p.e_row);
  d.R = stacked(p.R, p.R_row);
  d.mu = p.mu;
  d.phi = p.phi;
  d.lower = p.lower;
  d.upper = p.upper;
  d.trees = trees_of_contacts(p);
  d.speed_floor = std::max(1e-4, p.gravity * p.timestep);
  return d;
}

Delassus bare_delassus(const Matrix& W, const Vector& q, const Vector& mu) {
  require_size("q", q, static_cast<int>(3 * mu.size()));
  require_size("diagonal of W", W.diagonal(), static_cast<int>(q.size()));
  Delassus d;
  d.W = 0.5 * (W + W.transpose());
  d.q = q;
  d.e = d.R = Vector::Zero(q.size());
  d.mu = mu;
  d.phi = Vector::Zero(mu.size());
  d.speed_floor = 0;
  d.bare = true;
  return d;
}

Vector3d project_cone(const Vector3d& l, double mu) {
  double r = l.head<2>().norm();
  if (r <= mu * l.z()) return l;
  if (mu * r <= -l.z()) return Vector3d::Zero();
  double n = (l.z() + mu * r) / (1 + mu * mu);
  Vector3d p(0, 0, n);
  if (r > 0) p.head<2>() = mu * n / r * l.head<2>();
  return p;
}

Certificate certify(const Delassus& d, const Vector& impulse) {
  require_size("impulse", impulse, static_cast<int>(d.q.size()));
  return certify_rows(d, d.W * impulse + d.q, impulse);
}

Certificate certify(const ContactProblem& p, const Vector& v, const Vector& impulse, const Vector& row_impulse) {
  check_sizes(p);
  require_size("v", v, static_cast<int>(p.b.size()));
  require_size("impulse", impulse, static_cast<int>(p.J.rows()));
  require_size("row_impulse", row_impulse, p.rows());
  Certificate c = certify_rows(delassus(p), stacked(p.J * v, p.J_row * v), stacked(impulse, row_impulse));
  Vector D = p.A.diagonal().cwiseSqrt().cwiseInverse();
  Vector push = p.J.transpose() * impulse + p.J_row.transpose() * row_impulse;
  double size = std::max(
      {D.cwiseProduct(p.b).norm(), D.cwiseProduct(push).norm(), std::sqrt(p.mean_mass) * p.gravity * p.timestep});
  double error = D.cwiseProduct(p.A * v - p.b - push).norm();
  c.r_dyn = error > 0 ? error / size : 0;
  return c;
}

}  // namespace stiction::reference
