#include "linalg/wide_sum.h"

#include <gtest/gtest.h>

namespace stiction {
namespace {

template <class Sum, class Real>
Real cancelling(Real small) {
  Sum sum(Real(1));
  sum.add(Real(3), Real(4096)), sum.add(small, small), sum.add(Real(-12289), Real(1));
  return sum.rounded();
}

TEST(WideSum, KeepsWhatCancels) {
  const float small = 1e-3f;
  EXPECT_NEAR((cancelling<WideSum<float>>(small)), 1e-6, 1e-11);
  EXPECT_GT(std::abs(cancelling<PlainSum<float>>(small) - 1e-6f), 1e-7f);
}

TEST(WideSum, RestIsWhatRoundingLeaves) {
  WideSum<float> sum(1.0f);
  sum.add(1e-5f, 1e-5f);
  EXPECT_EQ(sum.rounded(), 1.0f);
  EXPECT_EQ(sum.rest(sum.rounded()), static_cast<float>((1.0 + double(1e-5f) * 1e-5f) - 1.0));
}

TEST(WideSum, LanesAreWorldsAlone) {
  using Wide = Pack<float, 16>;
  Wide small(0.0f), rest;
  for (int i = 0; i < 16; ++i) set_lane(small, i, 1e-3f * static_cast<float>(i + 1));
  const Wide got = cancelling<WideSum<Wide>>(small);
  WideSum<Wide> sum(small);
  sum.add(small, small);
  rest = sum.rest(small);
  for (int i = 0; i < 16; ++i) {
    const float x = lane(small, i);
    EXPECT_EQ(lane(got, i), (cancelling<WideSum<float>>(x)));
    WideSum<float> alone(x);
    alone.add(x, x);
    EXPECT_EQ(lane(rest, i), alone.rest(x));
  }
}

}  // namespace
}  // namespace stiction
