#include "host/reference/one_contact.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

namespace stiction::reference {
namespace {

using Eigen::Matrix2d;
using Eigen::Vector2d;

constexpr int kMostHalvings = 2100;  // from the largest to the smallest double

/// The zero of a function that is positive at 0 and negative far out, to the last bit.
template <class F>
double bisect(F f, double guess) {
  double low = 0, high = guess;
  for (int i = 0; i < 1000 && f(high) > 0; ++i) low = high, high *= 2;
  for (int i = 0; i < kMostHalvings; ++i) {
    double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    (f(middle) > 0 ? low : high) = middle;
  }
  return high;
}

/// a -> -(S + a I)^-1 s, for S symmetric positive semidefinite.
struct Resolvent {
  Matrix2d axes;
  Vector2d values, s;
  Resolvent(const Matrix2d& S, const Vector2d& rhs) {
    Eigen::SelfAdjointEigenSolver<Matrix2d> eigen(S);
    axes = eigen.eigenvectors();
    values = eigen.eigenvalues().cwiseMax(0);
    s = axes.transpose() * rhs;
  }
  Vector2d operator()(double a) const {
    Vector2d r;
    for (int i = 0; i < 2; ++i) r[i] = s[i] == 0 ? 0 : -s[i] / (values[i] + a);
    return axes * r;
  }
};

/// The tangential part of the convex problem at a given normal impulse, and the derivative of its value with respect to p.
Vector2d best_tangential(const Matrix3d& W, const Vector3d& c, double mu, double p, double& derivative) {
  Resolvent r(W.topLeftCorner<2, 2>(), c.head<2>() + W.topRightCorner<2, 1>() * p);
  auto excess = [&](double a) {
    double length = r(a).norm();
    return std::isfinite(length) ? length - mu * p : 1.0;
  };
  double a = excess(0) > 0 && p > 0 ? bisect(excess, W.trace()) : 0;
  Vector2d tangential = p > 0 ? r(a) : Vector2d::Zero();
  double slip = p > 0 ? a * tangential.norm() : c.head<2>().norm();
  derivative = W(2, 2) * p + W.bottomLeftCorner<1, 2>().dot(tangential) + c.z() - mu * slip;
  return tangential;
}

}  // namespace

Vector3d solve_one_coulomb(const Matrix3d& W, const Vector3d& c, double mu) {
  if (!(c.z() < 0) || !(W(2, 2) > 0)) return Vector3d::Zero();
  if (mu == 0) return {0, 0, -c.z() / W(2, 2)};
  Vector2d coupling = W.topRightCorner<2, 1>();
  Resolvent r(W.topLeftCorner<2, 2>() - coupling * coupling.transpose() / W(2, 2),
              c.head<2>() - coupling * (c.z() / W(2, 2)));
  auto normal = [&](const Vector2d& t) { return -(c.z() + coupling.dot(t)) / W(2, 2); };
  auto excess = [&](double a) {
    Vector2d t = r(a);
    return t.allFinite() ? t.norm() - mu * normal(t) : 1.0;
  };
  Vector2d t = r(0);
  if (!(excess(0) > 0)) return {t.x(), t.y(), normal(t)};
  t = r(bisect(excess, W.trace()));
  return {t.x(), t.y(), t.norm() / mu};
}

Vector3d solve_one_convex(const Matrix3d& W, const Vector3d& c, double mu) {
  if (c.z() >= mu * c.head<2>().norm() || !(W(2, 2) > 0)) return Vector3d::Zero();
  if (mu == 0) return {0, 0, -c.z() / W(2, 2)};
  double derivative;
  auto falling = [&](double p) {
    best_tangential(W, c, mu, p, derivative);
    return -derivative;
  };
  double p = bisect(falling, (std::abs(c.z()) + mu * c.head<2>().norm()) / W(2, 2));
  Vector2d t = best_tangential(W, c, mu, p, derivative);
  return {t.x(), t.y(), p};
}

}  // namespace stiction::reference
