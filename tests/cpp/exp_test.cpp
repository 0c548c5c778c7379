// The exponential kernel itself, in every lane. What it does to a softmax is in attention_exponential_test.cpp.

#include "kernels/exp.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "support/random.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

namespace {

using Arch = kernels::DefaultArch;
constexpr int kLanes = kernels::kLanes<Arch>;

/// exp of `x` in one lane, of ordinary numbers in the others.
float exp_in_lane(float x, int lane) {
  float values[kLanes];
  for (float& v : values) v = -1.0F;
  values[lane] = x;
  kernels::store<Arch>(values, kernels::ExpNonPositive<Arch>{}(kernels::load<Arch>(values)));
  return values[lane];
}

}  // namespace

TEST_CASE("N28: exp on -100..0 in steps of 0.001 and at random", "[exponential]") {
  Random random("exp");
  bool good = true;
  double worst = 0;
  const auto check = [&](float x, int lane) {
    const double want = std::exp(double{x});
    const double got = exp_in_lane(x, lane);
    const double error = std::fabs(got - want);
    if (double{x} > kExpLimit) worst = std::max(worst, error / want);
    good = good && got >= 0 && error <= (double{x} > kExpLimit ? kExpRelative * want : kExpAbsolute);
  };
  for (int n = 0; n <= 100000; ++n) check(static_cast<float>(-0.001 * n), n % kLanes);
  for (int n = 0; n < 100000; ++n) check(random.real(-88, 0), n % kLanes);
  for (int n = 0; n < 20000; ++n) check(-std::ldexp(random.real(0.5, 1), -random.integer(0, 140)), n % kLanes);  // near 0
  INFO("worst relative error above -87: " << worst);
  CHECK(good);
}

TEST_CASE("exp at the ends: 1 at 0, 0 far below, NaN stays NaN", "[exponential][nan]") {
  for (int lane = 0; lane < kLanes; ++lane) {
    CHECK(exp_in_lane(0.0F, lane) == 1.0F);
    CHECK(exp_in_lane(-0.0F, lane) == 1.0F);
    for (const float x : {-104.0F, -1e4F, -1e30F, -std::numeric_limits<float>::max(), -std::numeric_limits<float>::infinity()}) {
      CHECK(exp_in_lane(x, lane) == 0.0F);
    }
    CHECK(std::isnan(exp_in_lane(std::numeric_limits<float>::quiet_NaN(), lane)));
    CHECK(std::isnan(exp_in_lane(-std::numeric_limits<float>::quiet_NaN(), lane)));
  }
}
