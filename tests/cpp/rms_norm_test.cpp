#include "attn/rms_norm.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "reference/rms_norm_reference.h"
#include "support/problem.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

TEST_CASE("rms norm of every width 1..70 agrees with the reference", "[rms_norm]") {
  Random random("rms norm");
  for (int head_dim = 1; head_dim <= 70; ++head_dim) {
    const Layout layout = random.pick({Layout::bhsd, Layout::bshd, Layout::gaps});
    const Placement place = Placement::of(layout, 2, 3, 4, head_dim);
    Buffer<float> x(place.elements);
    const double size = random.pick({1e-3, 1.0, 1e4});
    for (float& value : x) value = random.real(-size, size);
    const Buffer<float> before = x;
    Buffer<float> weight(static_cast<std::size_t>(head_dim));
    for (float& value : weight) value = random.real(-2, 2);
    const float epsilon = random.pick({0.0F, 1e-6F, 1.0F});
    REQUIRE(rms_norm({x.data(), place.strides, 2, 3, 4, head_dim, weight.data(), epsilon}) == Status::ok);
    CHECK((x.intact() && weight.intact()));
    std::vector<bool> element(x.size());
    bool good = true;
    for (int b = 0; b < 2; ++b) {
      for (int h = 0; h < 3; ++h) {
        for (int t = 0; t < 4; ++t) {
          const std::ptrdiff_t at = b * place.strides.batch + h * place.strides.head + t * place.strides.row;
          const std::vector<double> row(before.data() + at, before.data() + at + head_dim);
          const auto want = reference::rms_norm_row(row, weight.data(), double{epsilon});
          for (int i = 0; i < head_dim; ++i) {
            const double error = std::fabs(double{x[static_cast<std::size_t>(at + i)]} - want[static_cast<std::size_t>(i)]);
            good = good && error <= (6 + std::sqrt(head_dim)) * kEpsilon * std::fabs(want[static_cast<std::size_t>(i)]);
            element[static_cast<std::size_t>(at + i)] = true;
          }
        }
      }
    }
    for (std::size_t i = 0; i < x.size(); ++i) good = good && (element[i] || x[i] == before[i]);
    INFO("head_dim " << head_dim << ", size " << size << ", epsilon " << epsilon);
    CHECK(good);
  }
}

TEST_CASE("rms norms that are refused", "[rms_norm][status]") {
  float x[4] = {1, 2, 3, 4};
  const float weight[4] = {1, 1, 1, 1};
  CHECK(rms_norm({x, {4, 4, 4}, 1, 1, 1, -4, weight, 0.0F}) == Status::invalid_shape);
  CHECK(rms_norm({x, {4, 4, 4}, 1, 1, 1, 4, weight, -1.0F}) == Status::invalid_option);
  CHECK(rms_norm({x, {4, 4, 4}, 1, 1, 1, 4, weight, NAN}) == Status::invalid_option);
  CHECK(rms_norm({x, {4, 4, 4}, 1, 1, 1, 4, nullptr, 0.0F}) == Status::missing_pointer);
  CHECK(rms_norm({nullptr, {4, 4, 4}, 1, 1, 1, 4, weight, 0.0F}) == Status::missing_pointer);
  CHECK((x[0] == 1.0F && x[3] == 4.0F));
}
