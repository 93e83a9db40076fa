// (X X' + D)^-1 of numbers in double by a factor in float and steps of iterative refinement, of which the products alone are in
// double:
//
//   f <- F^-1 r;   then so many times   f <- f + F^-1 (r - (X X' + D) f)
//
// Each takes the error down by (eps of float) x (condition of X X' + D). Of floats the factor is what it is. There is room for both
// factors, whichever is made.
#pragma once
#include "solvers/admm/shifted_inverse.h"

namespace stiction {

template <class Real, bool kIsDouble = sizeof(Scalar<Real>) == 8>
class RefinedInverse : public ShiftedInverse<Real> {
 public:
  /// refinements: 0 is a factor in double.
  HD RefinedInverse(const RowProblem<Real>& problem, int /*refinements*/) : ShiftedInverse<Real>(problem) {}
};

template <class Real>
class RefinedInverse<Real, true> : public ShiftedInverse<Real> {
  using Base = ShiftedInverse<Real>;
  using Float = typename RealTraits<Real>::template Of<float, kWidth<Real>>;

 public:
  HD RefinedInverse(const RowProblem<Real>& problem, int refinements)
      : Base(problem),
        refinements_(refinements),
        n_(problem.rows()),
        width_(problem.width),
        shape_(shape_of(problem)),
        rough_(shape_) {}
  HD void carve(Arena<Real>& arena) {
    Base::carve(arena);
    rest_ = arena.take(n_), sum_ = arena.take(n_), u_ = arena.take(width_);
    Arena<Float> measure;
    rough_.carve(measure), measure.take(n_);
    Arena<Float> own(reinterpret_cast<Float*>(arena.take((measure.used() + 1) / 2)));
    rough_.carve(own), narrow_ = own.take(n_);
  }
  HD void prepare(Real used) {
    if (refinements_ == 0) return Base::prepare(used);
    for (int64_t i = 0; i < static_cast<int64_t>(n_) * width_; ++i) rough_.X[i] = as<Float>(Base::X[i]);
    rough_.prepare(as<Float>(used));
  }
  HD Mask<Real> factor(const Mask<Real>& changed, Real shift) {
    if (refinements_ == 0) return Base::factor(changed, shift);
    for (int i = 0; i < n_; ++i) rough_.D[i] = as<Float>(Base::D[i]);
    const Float others = as<Float>(select(changed, Real(1), Real(0)));
    const Mask<Float> anew = rough_.factor(others > Float(0), as<Float>(shift));
    return as<Real>(select(anew, Float(1), Float(0))) > Real(0);
  }
  HD_ONCE void solve(Real* r) {
    if (refinements_ == 0) return Base::solve(r);
    for (int i = 0; i < n_; ++i) rest_[i] = r[i], sum_[i] = Real(0);
    for (int k = 0;; ++k) {
      for (int i = 0; i < n_; ++i) narrow_[i] = as<Float>(rest_[i]);
      rough_.solve(narrow_);
      for (int i = 0; i < n_; ++i) sum_[i] = sum_[i] + as<Real>(narrow_[i]);
      if (k == refinements_) break;
      for (int a = 0; a < width_; ++a) u_[a] = Real(0);
      for (int i = 0; i < n_; ++i)
        for (int a = 0; a < width_; ++a) u_[a] = u_[a] + Base::row(i)[a] * sum_[i];
      for (int i = 0; i < n_; ++i) rest_[i] = r[i] - Base::D[i] * sum_[i] - dot(width_, Base::row(i), u_);
    }
    for (int i = 0; i < n_; ++i) r[i] = sum_[i];
  }

 private:
  template <class To, class From>
  HD static To as(const From& x) {
    To to(0);
    for (int w = 0; w < kWidth<Real>; ++w) set_lane(to, w, static_cast<Scalar<To>>(lane(x, w)));
    return to;
  }
  /// The problem's columns and what touches them.
  HD static RowProblem<Float> shape_of(const RowProblem<Real>& problem) {
    RowProblem<Float> shape;
    static_cast<RowCounts&>(shape) = problem;
    shape.blocks = problem.blocks, shape.touched = problem.touched, shape.columns = as<Float>(problem.columns);
    return shape;
  }

  const int refinements_, n_, width_;
  const RowProblem<Float> shape_;
  ShiftedInverse<Float> rough_;
  Real *rest_, *sum_, *u_;  // (n), (n), (width)
  Float* narrow_;           // (n)
};

}  // namespace stiction
