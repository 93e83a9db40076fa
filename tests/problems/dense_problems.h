// Contact problems with known answers, as owners of the arrays that DenseProblem views. Double throughout; `Whitened` gives the
// same as half-solved rows in any number type, one world or several in the lanes of a pack.
#pragma once
#include <Eigen/Dense>
#include <memory>
#include <random>
#include <vector>

#include "contact/dense.h"
#include "contact/law.h"
#include "contact/row_problem.h"

namespace stiction::problems {

template <class T>
struct Dense {
  int nv = 0;
  std::vector<T> A, b, J, e, R, mu, impulse, J_row, e_row, R_row, lower, upper, row_impulse;

  int contacts() const { return static_cast<int>(mu.size()); }
  int rows() const { return static_cast<int>(e_row.size()); }

  DenseProblem<T> view() {
    return {nv,           contacts(),   rows(),       A.data(),          b.data(),     J.data(),
            e.data(),     R.data(),     mu.data(),    impulse.data(),    J_row.data(), e_row.data(),
            R_row.data(), lower.data(), upper.data(), row_impulse.data()};
  }
  template <class S>
  Dense<S> cast() const {
    auto to = [](const std::vector<T>& x) { return std::vector<S>(x.begin(), x.end()); };
    return {nv,          to(A),     to(b),     to(J),     to(e),     to(R),     to(mu),
            to(impulse), to(J_row), to(e_row), to(R_row), to(lower), to(upper), to(row_impulse)};
  }
  void add_contact(const Eigen::Matrix<double, 3, Eigen::Dynamic>& jacobian, double friction,
                   Eigen::Vector3d bias = {0, 0, 0}, double compliance = 0) {
    for (int a = 0; a < 3; ++a) {
      for (int k = 0; k < nv; ++k) J.push_back(T(jacobian(a, k)));
      e.push_back(T(bias[a])), R.push_back(T(compliance)), impulse.push_back(T(0));
    }
    mu.push_back(T(friction));
  }
  void add_row(const Eigen::VectorXd& jacobian, double low, double high, double bias = 0, double compliance = 0) {
    for (int k = 0; k < nv; ++k) J_row.push_back(T(jacobian[k]));
    e_row.push_back(T(bias)), R_row.push_back(T(compliance)), row_impulse.push_back(T(0));
    lower.push_back(T(low)), upper.push_back(T(high));
  }
};

inline Dense<double> bodies(const Eigen::MatrixXd& A, const Eigen::VectorXd& free_velocity) {
  Dense<double> d;
  d.nv = static_cast<int>(A.rows());
  Eigen::VectorXd b = A * free_velocity;
  for (int i = 0; i < d.nv; ++i) {
    d.b.push_back(b[i]);
    for (int j = 0; j < d.nv; ++j) d.A.push_back(A(i, j));
  }
  return d;
}

/// One contact of a bare (W, q) given in the order n, t1, t2 of public collections; |q| is its V.
struct OneContact {
  Dense<double> problem;
  double scale;
  Eigen::Vector3d coulomb, convex, dissipative;  // impulses by the laws, t1, t2, n

  const Eigen::Vector3d& impulse(Law law) const {
    return law == Law::kConvex ? convex : law == Law::kDissipation ? dissipative : coulomb;
  }
};
inline OneContact one_contact(const Eigen::Matrix3d& W_ntt, Eigen::Vector3d q, double mu, Eigen::Vector3d coulomb,
                              Eigen::Vector3d convex, Eigen::Vector3d dissipative) {
  auto ours = [](Eigen::Vector3d x) { return Eigen::Vector3d(x[1], x[2], x[0]); };
  Eigen::Matrix3d P = Eigen::Matrix3d::Zero();
  P(0, 1) = P(1, 2) = P(2, 0) = 1;
  Eigen::MatrixXd A = (P * W_ntt * P.transpose()).inverse();
  OneContact c{bodies(0.5 * (A + A.transpose()), Eigen::Vector3d::Zero()), q.cwiseAbs().maxCoeff(), ours(coulomb),
               ours(convex), ours(dissipative)};
  c.problem.add_contact(Eigen::Matrix3d::Identity(), mu, ours(q));
  return c;
}
/// FCLIB's FrictionContact3D_1c and FrictionContact3D_RR_1c with their solutions.
inline OneContact fclib_1c() {
  Eigen::Matrix3d W;
  W << 15, -1, -2, -1, 14, 1, -2, 1, 16;
  return one_contact(W, {-1, 2, 3}, 0.1, {0.065695682898, -0.003678614907, -0.005443070814},
                     {0.087179279122, -0.004897451945, -0.007212297244},
                     {0.0656959224018, -0.0036889144291, -0.0054361247720});
}
inline OneContact fclib_rr_1c() {
  Eigen::Matrix3d W;
  W << .01344, -9.421e-7, .001486, -9.421e-7, .1061, 1.733e-4, .001486, 1.733e-4, .001442;
  return one_contact(W, {-.1458, -.2484, -.1515}, 0.6, {10.205876055695, 1.931888367688, 5.810798010421},
                     {15.176884257173, 2.071826962683, 8.867307748619},
                     {10.206623804526, 1.9534787294937, 5.8040487479672});
}

/// Velocity Jacobian of point p (from the centre) of a free body whose first degree of freedom is `at`; world axes as frame.
inline Eigen::Matrix<double, 3, Eigen::Dynamic> point(int nv, int at, Eigen::Vector3d p) {
  Eigen::Matrix<double, 3, Eigen::Dynamic> J = Eigen::MatrixXd::Zero(3, nv);
  J.block<3, 3>(0, at).setIdentity();
  J.block<3, 3>(0, at + 3) << 0, p[2], -p[1], -p[2], 0, p[0], p[1], -p[0], 0;
  return J;
}
inline Eigen::MatrixXd box_inertia(double mass, double half) {
  Eigen::VectorXd d(6);
  d << mass, mass, mass, Eigen::Vector3d::Constant(mass * half * half * 2 / 3);
  return d.asDiagonal();
}

/// A cube of 1 m on a plane, touching with its four lower corners (hyperstatic), each given `copies` times.
inline Dense<double> box_on_plane(double mass, Eigen::Vector3d free_velocity, double mu, int copies = 1,
                                  bool reversed = false) {
  Eigen::VectorXd v = Eigen::VectorXd::Zero(6);
  v.head(3) = free_velocity;
  Dense<double> d = bodies(box_inertia(mass, 0.5), v);
  for (int c = 0; c < 4 * copies; ++c) {
    int corner = (reversed ? 4 * copies - 1 - c : c) % 4;
    d.add_contact(point(6, 0, {corner & 1 ? 0.5 : -0.5, corner & 2 ? 0.5 : -0.5, -0.5}), mu);
  }
  return d;
}

/// How it moves then, along the plane and off it, if it is to move at `speed` and `up` without the contacts.
struct Motion { double speed, up; };
inline Motion sliding_box(Law law, Motion free, double mu) {
  if (law == Law::kConvex) {  // what slides takes off at mu |v_t|
    if (free.up >= mu * free.speed) return free;
    const double speed = std::max(free.speed + mu * free.up, 0.0) / (1 + mu * mu);
    return {speed, mu * speed};
  }
  return free.up >= 0 ? free : Motion{std::max(free.speed + mu * free.up, 0.0), 0};
}

/// Cubes of 1 m on one another, masses from the ground up, all falling at `fall`; four contacts per level.
inline Dense<double> stack(const std::vector<double>& masses, double fall, double mu) {
  int n = static_cast<int>(masses.size());
  Eigen::MatrixXd A = Eigen::MatrixXd::Zero(6 * n, 6 * n);
  Eigen::VectorXd v = Eigen::VectorXd::Zero(6 * n);
  for (int i = 0; i < n; ++i) A.block<6, 6>(6 * i, 6 * i) = box_inertia(masses[i], 0.5), v[6 * i + 2] = -fall;
  Dense<double> d = bodies(A, v);
  for (int i = 0; i < n; ++i)
    for (int corner = 0; corner < 4; ++corner) {
      double x = corner & 1 ? 0.5 : -0.5, y = corner & 2 ? 0.5 : -0.5;
      Eigen::Matrix<double, 3, Eigen::Dynamic> J = point(6 * n, 6 * i, {x, y, -0.5});
      if (i > 0) J -= point(6 * n, 6 * (i - 1), {x, y, 0.5});
      d.add_contact(J, mu);
    }
  return d;
}

/// Random A, J, v*, mu, half the contacts compliant where `compliant`; rank-deficient when 3 contacts + rows > nv.
inline Dense<double> random_problem(int nv, int contacts, unsigned seed, bool rows = false, bool compliant = false) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0.1, 1.0);
  auto matrix = [&](int r, int c) -> Eigen::MatrixXd {
    return Eigen::MatrixXd::NullaryExpr(r, c, [&] { return normal(generator); });
  };
  Eigen::MatrixXd B = matrix(nv, nv), A = B * B.transpose() / nv + 0.1 * Eigen::MatrixXd::Identity(nv, nv);
  Dense<double> d = bodies(A, matrix(nv, 1));
  for (int i = 0; i < contacts; ++i) {
    double mu = uniform(generator), gap = 0.2 * normal(generator);
    d.add_contact(matrix(3, nv), mu, {0, 0, gap}, compliant && i % 2 ? 0.3 * uniform(generator) : 0.0);
  }
  if (rows) {
    d.add_row(matrix(nv, 1), 0, kUnbounded, 0.1);                 // limit
    d.add_row(matrix(nv, 1), -0.2, 0.2);                          // dry friction
    d.add_row(matrix(nv, 1), -kUnbounded, kUnbounded);            // bilateral
    d.add_row(matrix(nv, 1), -kUnbounded, kUnbounded, 0.3, 2.0);  // soft
  }
  return d;
}

/// A problem's half-solved rows, by Eigen's Cholesky; lane i of Real holds worlds[i], all of one size.
template <class Real>
struct Whitened {
  RowArrays<Real> rows;
  Real least_velocity, scale;

  explicit Whitened(const std::vector<Dense<double>>& worlds, double least = 1e-4)
      : rows(counts(worlds[0])), least_velocity(Real(Scalar<Real>(least))), scale(least_velocity) {
    numbers_.assign(static_cast<size_t>(RowArrays<Real>::size(rows)), Real(0));
    Arena<Real> arena(numbers_.data());
    rows.carve(arena);
    rows.near = rows.contacts;
    for (int lane = 0; lane < kWidth<Real>; ++lane) fill(worlds[static_cast<size_t>(lane) % worlds.size()], lane);
  }
  RowProblem<Real> view() const { return rows.view(least_velocity, scale); }

  /// Columns in blocks of so many; what rows touch, by what is not 0.
  void divide(int size) {
    ColumnBlocks& b = rows.blocks;
    for (b.count = 0; b.begin[b.count] < rows.width; ++b.count)
      b.begin[b.count + 1] = std::min(b.begin[b.count] + size, rows.width);
    for (int i = 0; i < rows.rows(); ++i)
      for (int a = 0; a < rows.width; ++a)
        if (any(abs(rows.Y[i * rows.width + a]) > Real(0)))
          rows.touched[i < 3 * rows.contacts ? i / 3 : i - 2 * rows.contacts] |= uint32_t(1) << a / size;
    rows.apart = true;
  }

  /// Impulses of a lane into the problem it came from.
  void take(Dense<double>& d, int at = 0) const {
    for (int i = 0; i < 3 * rows.contacts; ++i) d.impulse[i] = lane(rows.impulse[i], at);
    for (int r = 0; r < rows.scalars; ++r) d.row_impulse[r] = lane(rows.impulse[3 * rows.contacts + r], at);
  }

 private:
  std::vector<Real> numbers_;

  static RowCounts counts(const Dense<double>& d) {
    RowCounts c;
    c.contacts = d.contacts(), c.scalars = d.rows(), c.width = d.nv;
    return c;
  }
  void fill(const Dense<double>& d, int at) {
    using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const int nc = d.contacts(), nr = d.rows(), n = 3 * nc + nr;
    Matrix A = Eigen::Map<const Matrix>(d.A.data(), d.nv, d.nv), J(n, d.nv);
    if (nc) J.topRows(3 * nc) = Eigen::Map<const Matrix>(d.J.data(), 3 * nc, d.nv);
    if (nr) J.bottomRows(nr) = Eigen::Map<const Matrix>(d.J_row.data(), nr, d.nv);
    const Eigen::LLT<Matrix> llt(A);
    const Matrix Y = n ? Matrix(llt.matrixL().solve(J.transpose()).transpose()) : J;
    const Eigen::VectorXd free = J * llt.solve(Eigen::Map<const Eigen::VectorXd>(d.b.data(), d.nv));
    auto put = [at](Real& x, double value) { set_lane(x, at, Scalar<Real>(value)); };
    double V = lane(least_velocity, at);
    for (int i = 0; i < n; ++i) {
      const bool contact = i < 3 * nc;
      const int r = i - 3 * nc;
      put(rows.free[i], free[i]), put(rows.e[i], contact ? d.e[i] : d.e_row[r]);
      put(rows.R[i], contact ? d.R[i] : d.R_row[r]);
      put(rows.impulse[i], contact ? d.impulse[i] : d.row_impulse[r]);
      put(rows.W[i], Y.row(i).squaredNorm());
      for (int k = 0; k < d.nv; ++k) put(rows.Y[i * d.nv + k], Y(i, k));
      if (contact && d.e[i / 3 * 3 + 2] <= 0) V = std::max(V, std::abs(free[i]));
    }
    for (int i = 0; i < nc; ++i) {
      put(rows.mu[i], d.mu[i]);
      const double t = 0.5 * (Y.row(3 * i).squaredNorm() + Y.row(3 * i + 1).squaredNorm());
      put(rows.W[3 * i], t), put(rows.W[3 * i + 1], t);
    }
    for (int r = 0; r < nr; ++r) put(rows.lower[r], d.lower[r]), put(rows.upper[r], d.upper[r]);
    put(scale, V);
  }
};

}  // namespace stiction::problems
