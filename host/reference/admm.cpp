// Proximal NCP-ADMM of solvers.h (docs/theory.md, section 13), in the scaled variables f = l / S, z = S sigma with
// S = 1 / sqrt(w_i) per contact or row:
//
//   s <- Gamma(z);  f <- -(S W S + S R S + (eta + rho) I)^-1 (S g + s - eta f- - rho y - z);  y <- P_K(f - z / rho);
//   z <- z - rho (f - y)
//
// with g = q + e. The scaling is isotropic per contact, so the cone and its dual stay what they are.
#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "host/reference/solvers.h"

namespace stiction::reference {
namespace {

constexpr double kEta = 1e-6, kFirstRho = 0.1;
constexpr int kBalanceEvery = 25, kScoreEvery = 5, kStallIterations = 300;

double largest_entry(const Vector& x) { return x.size() > 0 ? x.cwiseAbs().maxCoeff() : 0; }

class Admm {
 public:
  Admm(const Delassus& problem, const SolverOptions& options, const Vector& start) : d_(problem), options_(options) {
    int n = static_cast<int>(d_.q.size());
    scale_ = Vector::Zero(n);
    for (int i = 0; i < d_.contacts() + d_.rows(); ++i) {
      double w = d_.mean_inverse_mass(i), s = w > 0 ? 1 / std::sqrt(w) : 0;
      if (i < d_.contacts()) scale_.segment<3>(3 * i).setConstant(s);
      else scale_[2 * d_.contacts() + i] = s;
    }
    G_ = scale_.asDiagonal() * d_.W * scale_.asDiagonal();
    G_.diagonal() += scale_.cwiseAbs2().cwiseProduct(d_.R);
    g_ = scale_.cwiseProduct(d_.q + d_.e);
    f_ = y_ = start.cwiseProduct(scale_.unaryExpr([](double s) { return s > 0 ? 1 / s : 0; }));
    z_ = G_ * y_ + g_;
    z_ += cascade(z_);
    largest_ = std::max(1e-300, largest_eigenvalue());
    set_rho(kFirstRho);
    best_ = {start, score(d_, start, options.law), 0, false, "admm"};
  }

  ImpulseSolution run() {
    double mark = best_.score;
    int stalls = 0, since = 0;
    for (int i = 1; i <= options_.iterations && best_.score > options_.tolerance; ++i) {
      iterate();
      best_.iterations = i;
      if (i % kScoreEvery == 0) keep_best();
      if (i % kBalanceEvery == 0) balance();
      if (best_.score < 0.7 * mark) mark = best_.score, since = i;
      if (i - since >= kStallIterations) {
        if (stalls < 4) set_rho(stalls == 0 ? rho_ / 5 : rho_ * 5);
        ++stalls;
        mark = best_.score;
        since = i;
      }
    }
    best_.converged = best_.score <= options_.tolerance;
    return best_;
  }

 private:
  void set_rho(double rho) {
    rho_ = std::clamp(rho, 1e-12 * largest_, 1e3 * largest_);
    Matrix shifted = G_;
    shifted.diagonal().array() += kEta + rho_;
    factor_.compute(shifted);
  }

  Vector cascade(const Vector& z) const {
    Vector s = Vector::Zero(z.size());
    if (options_.law == Law::kCoulomb)
      for (int i = 0; i < d_.contacts(); ++i) s[3 * i + 2] = d_.mu[i] * z.segment<2>(3 * i).norm();
    return s;
  }

  Vector project(const Vector& x) const {
    Vector p(x.size());
    for (int i = 0; i < d_.contacts(); ++i) p.segment<3>(3 * i) = project_cone(x.segment<3>(3 * i), d_.mu[i]);
    for (int r = 0; r < d_.rows(); ++r) {
      int i = 3 * d_.contacts() + r;
      p[i] = scale_[i] > 0 ? std::clamp(x[i], d_.lower[r] / scale_[i], d_.upper[r] / scale_[i]) : 0;
    }
    return p;
  }

  void iterate() {
    Vector before_f = f_, before_y = y_;
    f_ = -factor_.solve(g_ + cascade(z_) - kEta * f_ - rho_ * y_ - z_);
    y_ = project(f_ - z_ / rho_);
    z_ -= rho_ * (f_ - y_);
    primal_ = largest_entry(f_ - y_) / std::max(largest_entry(f_), 1e-300);
    dual_ = largest_entry(kEta * (f_ - before_f) + rho_ * (y_ - before_y)) /
            std::max({largest_entry(z_), largest_entry(g_), 1e-300});
  }

  void keep_best() {
    Vector impulse = scale_.cwiseProduct(y_);
    double now = score(d_, impulse, options_.law);
    if (now < best_.score) best_.score = now, best_.impulse = impulse;
  }

  void balance() {
    if (primal_ < 10 * 2.2e-16 && dual_ < 10 * 2.2e-16) return;
    double t = std::clamp(std::sqrt(primal_ / std::max(dual_, 1e-300)), 0.1, 10.0);
    if (t > 3 || t < 1 / 3.0) set_rho(rho_ * t);
  }

  double largest_eigenvalue() const {
    Vector x = Vector::LinSpaced(g_.size(), 1, 2);
    double value = 0;
    for (int i = 0; i < 50 && x.norm() > 0; ++i) {
      x.normalize();
      x = (G_ * x).eval();
      value = x.norm();
    }
    return value;
  }

  const Delassus& d_;
  SolverOptions options_;
  Vector scale_, g_, f_, y_, z_;
  Matrix G_;
  Eigen::LLT<Matrix> factor_;
  double rho_ = kFirstRho, largest_ = 1, primal_ = 0, dual_ = 0;
  ImpulseSolution best_;
};

}  // namespace

ImpulseSolution admm(const Delassus& problem, const SolverOptions& options, const Vector& start) {
  require_size("start", start, static_cast<int>(problem.q.size()));
  if (problem.q.size() == 0) return {start, 0, 0, true, "admm"};
  return Admm(problem, options, start).run();
}

}  // namespace stiction::reference
