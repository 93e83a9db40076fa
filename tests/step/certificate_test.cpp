// What is not a number stays one in a certificate, whatever is judged or gathered after it.
#include "tests/step/batch_run.h"

namespace stiction {
namespace {

template <class Real>
struct NaNStays : ::testing::Test {
  static Real nan() { return Real(std::nanf("")); }
  static bool lost(const Real& x) { return std::isfinite(static_cast<double>(lane(x, 0))); }
};
using Numbers = ::testing::Types<float, double, Pack<float, 8>, Pack<float, 16>>;
TYPED_TEST_SUITE(NaNStays, Numbers);

TYPED_TEST(NaNStays, InTheMaximum) {
  using Real = TypeParam;
  const Real one(1);
  EXPECT_FALSE(this->lost(maximum(this->nan(), one)));
  EXPECT_FALSE(this->lost(maximum(one, this->nan())));
  EXPECT_EQ(lane(maximum(one, Real(2)), 0), 2);
  EXPECT_EQ(lane(maximum(Real(2), one), 0), 2);
}

TYPED_TEST(NaNStays, AmongTheContactsOfAStep) {
  using Real = TypeParam;
  const Real zero(0), one(1);
  ContactPoint<Real> point{};
  point.active = mask_of<Real>(true), point.mu = one, point.gap = zero;
  ContactRow<Real> row{};
  row.W_t = row.W_n = one;
  for (int component = 0; component < 3; ++component) {
    Vec3<Real> w{zero, zero, zero};
    (component == 0 ? w.x : component == 1 ? w.y : w.z) = this->nan();
    Certificate<Real> worst{};
    const Vec3<Real> push{zero, zero, one}, none{zero, zero, zero};
    const Real mobility = mean_mobility(row);
    auto judge = [&](const ContactResidual<Real>& r) { judge_contact(Law::kCoulomb, point, r, one, one, one, worst); };
    auto of = [&](Vec3<Real> velocity) {
      return contact_residual(push, slip_of(row, velocity, push), point.mu, mobility);
    };
    judge(of(w)), judge(of(none));
    EXPECT_FALSE(this->lost(worst.r_con)) << component;
    EXPECT_FALSE(this->lost(worst.r_split)) << component;
    EXPECT_FALSE(this->lost(worst.r_ccp)) << component;
    worst = {};  // of its couple
    judge(contact_residual(SixVec<Real>{push, none}, SixVec<Real>{none, w}, point.mu, mobility)), judge(of(none));
    EXPECT_FALSE(this->lost(worst.r_con)) << component;
    EXPECT_FALSE(this->lost(worst.r_split)) << component;
  }
  EXPECT_FALSE(this->lost(row_residual(one, this->nan(), zero, Real(2), one)));
}

TYPED_TEST(NaNStays, AmongTheStepsOfACall) {
  using Real = TypeParam;
  using C = Certificate<Real>;
  const auto yes = mask_of<Real>(true);
  for (Real C::* field : {&C::r_dyn, &C::r_con, &C::r_split, &C::r_ccp, &C::r_mdp, &C::r_row, &C::r_cone, &C::scale}) {
    Outcome<Real> out = fresh_outcome<Real>();
    C good{}, bad{};
    good.scale = bad.scale = Real(1), good.r_con = bad.r_con = Real(0.5f);
    bad.*field = this->nan();
    gather_worst(yes, yes, good, Real(1), out);
    gather_worst(yes, yes, bad, Real(1), out);
    good.r_con = Real(2);
    gather_worst(yes, yes, good, Real(1), out);
    EXPECT_FALSE(this->lost(out.certificate.*field));
  }
}

TYPED_TEST(NaNStays, OutOfWhatConverges) {
  using Real = TypeParam;
  using C = Certificate<Real>;
  const StepOptions<Scalar<Real>> options;
  C good{};
  good.scale = Real(1);
  EXPECT_TRUE(lane(converges(options, good), 0));
  for (Real C::* field : {&C::r_dyn, &C::r_con, &C::r_split, &C::r_row, &C::scale}) {
    C bad = good;
    bad.*field = this->nan();
    EXPECT_FALSE(lane(converges(options, bad), 0));
  }
  good.r_dyn = Real(2e-4f);
  EXPECT_TRUE(lane(solves(options, good), 0));
  EXPECT_FALSE(lane(converges(options, good), 0)) << "no solver mends r_dyn";
}

}  // namespace
}  // namespace stiction
