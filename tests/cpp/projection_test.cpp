// y = x · Wᵀ + b on packed matrices.

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "attn/projection.h"
#include "reference/half.h"
#include "reference/projection_reference.h"
#include "support/buffer.h"
#include "support/half.h"
#include "support/random.h"
#include "support/scratch.h"
#include "support/tolerance.h"

using namespace attn;
using namespace attn::test;

namespace {

/// A weight matrix with its memory, packed; `transposed` stores [in, out].
struct Weights {
  Weights(Random& random, int groups, int group_dim, int in_dim, WeightType type = WeightType::f32, bool transposed = false,
          bool with_bias = true)
      : out_dim(groups * group_dim),
        f32(static_cast<std::size_t>(out_dim * in_dim)),
        f16(f32.size()),
        bias(with_bias ? static_cast<std::size_t>(out_dim) : 0),
        packed(packed_elements(groups, group_dim, in_dim) * sizeof(float)) {
    for (std::size_t i = 0; i < f32.size(); ++i) {
      f32[i] = random.real(-1, 1);
      f16[i] = type == WeightType::bf16 ? to_bfloat16(f32[i]) : to_half(f32[i]);
    }
    for (float& b : bias) b = random.real(-1, 1);
    view.data = type == WeightType::f32 ? static_cast<const void*>(f32.data()) : f16.data();
    view.type = type;
    view.num_groups = groups;
    view.group_dim = group_dim;
    view.in_dim = in_dim;
    view.out_stride = transposed ? 1 : in_dim;
    view.in_stride = transposed ? out_dim : 1;
    REQUIRE(pack_matrix(view, bias.data(), static_cast<float*>(packed.data())) == Status::ok);
    CHECK(packed.intact());
  }
  Weights(const Weights&) = delete;

  int out_dim;
  Buffer<float> f32;
  Buffer<std::uint16_t> f16;
  Buffer<float> bias;
  Scratch packed;
  MatrixView view;
};

ProjectionParams dense_call(const Weights& w, const Buffer<float>& x, Buffer<float>& y, int batch, int rows, const float* packed) {
  ProjectionParams p;
  p.x = x.data();
  p.x_row_stride = w.view.in_dim;
  p.x_batch_stride = std::ptrdiff_t{rows} * w.view.in_dim;
  p.packed = packed;
  p.y = y.data();
  p.y_row_stride = w.out_dim;
  p.y_batch_stride = std::ptrdiff_t{rows} * w.out_dim;
  p.y_group_stride = w.view.group_dim;
  p.batch_size = batch;
  p.rows = rows;
  p.num_groups = w.view.num_groups;
  p.group_dim = w.view.group_dim;
  p.in_dim = w.view.in_dim;
  return p;
}

Buffer<float> random_rows(Random& random, int rows, int width) {
  Buffer<float> x(static_cast<std::size_t>(rows * width));
  for (float& value : x) value = random.real(-1, 1);
  return x;
}

/// Tolerance per element: rounding relative to the sum of magnitudes.
void check_projection(Random& random, Weights& w, int rows) {
  const int in_dim = w.view.in_dim;
  const Buffer<float> x = random_rows(random, rows, in_dim);
  Buffer<float> y(static_cast<std::size_t>(rows * w.out_dim));
  const Buffer<float> x_before = x;
  REQUIRE(project(dense_call(w, x, y, 1, rows, static_cast<const float*>(w.packed.data()))) == Status::ok);
  CHECK(y.intact());
  CHECK(x == x_before);
  const std::vector<double> want = reference::project(x.data(), rows, w.view, w.bias.data());
  bool good = true;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double magnitude = 1 + in_dim / 4.0;  // of a sum of products of numbers in -1..1, and a bias
    good = good && std::fabs(double{y[i]} - want[i]) <= projection_error(in_dim) * magnitude;
  }
  INFO("rows " << rows << ", groups " << w.view.num_groups << ", group_dim " << w.view.group_dim << ", in_dim " << in_dim << ", type "
               << static_cast<int>(w.view.type));
  CHECK(good);
}

}  // namespace

TEST_CASE("N27: identity, with and without bias", "[projection]") {
  Random random("identity");
  for (const bool with_bias : {false, true}) {
    Weights w(random, 1, 2, 2, WeightType::f32, false, with_bias);
    w.f32[0] = w.f32[3] = 1.0F;
    w.f32[1] = w.f32[2] = 0.0F;
    if (with_bias) {
      w.bias[0] = 10.0F;
      w.bias[1] = 20.0F;
    }
    REQUIRE(pack_matrix(w.view, w.bias.data(), static_cast<float*>(w.packed.data())) == Status::ok);
    Buffer<float> x(2);
    x[0] = 1.0F;
    x[1] = 2.0F;
    Buffer<float> y(2);
    REQUIRE(project(dense_call(w, x, y, 1, 1, static_cast<const float*>(w.packed.data()))) == Status::ok);
    CHECK(y[0] == (with_bias ? 11.0F : 1.0F));
    CHECK(y[1] == (with_bias ? 22.0F : 2.0F));
  }
}

TEST_CASE("every width 1..70 in and out, and every number of rows, agrees with the reference", "[projection]") {
  Random random("every width");
  for (int n = 1; n <= 70; ++n) {
    const int in_dim = 1 + (n * 27) % 70;
    const int rows = 1 + (n * 11) % 70;
    Weights one(random, 1, n, in_dim);
    check_projection(random, one, rows);
    Weights heads(random, 1 + n % 4, 1 + (n * 43) % 70, in_dim, WeightType::f32, n % 2 == 0, n % 3 != 0);
    check_projection(random, heads, 1 + n % 9);
  }
  for (const int width : {127, 128, 129, 255, 256, 257, 768}) {
    Weights w(random, 2, width / 2, width);
    check_projection(random, w, 5);
  }
}

TEST_CASE("weights in float16 and bfloat16, [out, in] and [in, out]", "[projection]") {
  Random random("weight types");
  for (const WeightType type : {WeightType::f32, WeightType::f16, WeightType::bf16}) {
    for (const bool transposed : {false, true}) {
      Weights w(random, 3, 5, 37, type, transposed);
      check_projection(random, w, 9);
    }
  }
}

TEST_CASE("every float16 and bfloat16 bit pattern is packed as its value", "[projection]") {
  Random random("bit patterns");
  for (const WeightType type : {WeightType::f16, WeightType::bf16}) {
    for (int high = 0; high < 256; ++high) {
      Weights w(random, 1, 1, 256, type, false, false);
      for (int low = 0; low < 256; ++low) w.f16[static_cast<std::size_t>(low)] = static_cast<std::uint16_t>(high * 256 + low);
      auto* packed = static_cast<float*>(w.packed.data());
      REQUIRE(pack_matrix(w.view, nullptr, packed) == Status::ok);
      const std::size_t panel = w.packed.bytes() / sizeof(float) / 257;  // bias, then 256 inputs
      bool good = true;
      for (int low = 0; low < 256; ++low) {
        MatrixView one = w.view;
        one.in_dim = 1;
        one.data = w.f16.data() + low;
        const float x = 1.0F;
        const double want = reference::project(&x, 1, one, nullptr)[0];
        const float got = packed[(1 + static_cast<std::size_t>(low)) * panel];
        good = good && (std::isnan(want) ? std::isnan(got) : got == static_cast<float>(want));
      }
      CHECK(good);
    }
  }
}

TEST_CASE("the packed form: bias, then the transposed matrix, panel by panel, padded with 0", "[projection]") {
  Random random("packed form");
  const std::size_t panel = packed_elements(1, 1, 1) / 2;
  REQUIRE(panel >= 1);
  for (const int group_dim : {1, 3, 4, 7, 8, 9, 16, 17}) {
    Weights w(random, 2, group_dim, 5);
    const std::size_t panels = (static_cast<std::size_t>(group_dim) + panel - 1) / panel;
    REQUIRE(packed_elements(2, group_dim, 5) == 2 * panels * panel * 6);
    const auto* at = static_cast<const float*>(w.packed.data());
    bool good = true;
    for (std::size_t g = 0; g < 2; ++g) {
      for (std::size_t first = 0; first < panels * panel; first += panel) {
        for (std::size_t i = 0; i < 6; ++i) {
          for (std::size_t o = first; o < first + panel; ++o, ++at) {
            const std::size_t out = g * static_cast<std::size_t>(group_dim) + o;
            const bool inside = o < static_cast<std::size_t>(group_dim);
            good = good && *at == (!inside ? 0.0F : i == 0 ? w.bias[out] : w.f32[out * 5 + i - 1]);
          }
        }
      }
    }
    CHECK(good);
  }
}

TEST_CASE("results go where the strides say, and nowhere else", "[projection]") {
  // Written heads first, [batch, groups, rows, group_dim], into a larger buffer with gaps.
  Random random("strides");
  const int batch = 2;
  const int rows = 11;
  Weights w(random, 3, 5, 13);
  const Buffer<float> x = random_rows(random, batch * rows * 2, 13);  // every second row is used
  Buffer<float> y(static_cast<std::size_t>(batch * 3 * (rows * 7 + 4)));
  ProjectionParams p = dense_call(w, x, y, batch, rows, static_cast<const float*>(w.packed.data()));
  p.x_row_stride = 26;
  p.x_batch_stride = 26 * rows;
  p.y_row_stride = 7;
  p.y_group_stride = rows * 7 + 4;
  p.y_batch_stride = 3 * p.y_group_stride;
  REQUIRE(project(p) == Status::ok);
  CHECK(y.intact());
  std::vector<bool> element(y.size());
  bool good = true;
  for (int b = 0; b < batch; ++b) {
    for (int r = 0; r < rows; ++r) {
      const std::vector<double> want = reference::project(x.data() + b * p.x_batch_stride + r * p.x_row_stride, 1, w.view, w.bias.data());
      for (int g = 0; g < 3; ++g) {
        for (int o = 0; o < 5; ++o) {
          const auto at = static_cast<std::size_t>(b * p.y_batch_stride + g * p.y_group_stride + r * 7 + o);
          element[at] = true;
          good = good && std::fabs(double{y[at]} - want[static_cast<std::size_t>(g * 5 + o)]) <= 1e-5;
        }
      }
    }
  }
  for (std::size_t i = 0; i < y.size(); ++i) good = good && y.written(i) == element[i];
  CHECK(good);
}

TEST_CASE("a row's result does not depend on the rows projected with it, bit for bit", "[projection][laws]") {
  Random random("rows apart");
  for (const int rows : {2, 3, 4, 5, 8, 9, 33}) {
    Weights w(random, 2, 9, 50);
    const Buffer<float> x = random_rows(random, rows, 50);
    Buffer<float> together(static_cast<std::size_t>(rows * 18));
    Buffer<float> apart(together.size());
    const auto* packed = static_cast<const float*>(w.packed.data());
    REQUIRE(project(dense_call(w, x, together, 1, rows, packed)) == Status::ok);
    for (int r = 0; r < rows; ++r) {
      ProjectionParams p = dense_call(w, x, apart, 1, 1, packed);
      p.x += r * 50;
      p.y += r * 18;
      REQUIRE(project(p) == Status::ok);
    }
    CHECK(together == apart);
    // as batch rows of one row each
    Buffer<float> batched(together.size());
    REQUIRE(project(dense_call(w, x, batched, rows, 1, packed)) == Status::ok);
    CHECK(together == batched);
  }
}

TEST_CASE("NaN and infinity stay in their row and in their output", "[projection][nan]") {
  Random random("projection NaN");
  Weights w(random, 1, 11, 7);
  w.f32[4 * 7 + 2] = std::numeric_limits<float>::quiet_NaN();
  REQUIRE(pack_matrix(w.view, w.bias.data(), static_cast<float*>(w.packed.data())) == Status::ok);
  Buffer<float> x = random_rows(random, 9, 7);
  x[5 * 7 + 3] = std::numeric_limits<float>::infinity();
  x[6 * 7 + 3] = std::numeric_limits<float>::quiet_NaN();
  Buffer<float> y(9 * 11);
  REQUIRE(project(dense_call(w, x, y, 1, 9, static_cast<const float*>(w.packed.data()))) == Status::ok);
  bool good = true;
  for (std::size_t r = 0; r < 9; ++r) {
    for (std::size_t o = 0; o < 11; ++o) {
      const float got = y[r * 11 + o];
      const bool nan = o == 4 || r == 6;
      good = good && std::isnan(got) == nan && (nan || std::isinf(got) == (r == 5));
    }
  }
  CHECK(good);
}

TEST_CASE("error against float64 is at most twice that of plain float32 loops", "[projection][accuracy]") {
  Random random("projection accuracy");
  double kernel = 0;
  double plain = 0;
  for (const int in_dim : {64, 768, 3072}) {
    Weights w(random, 1, 24, in_dim);
    const Buffer<float> x = random_rows(random, 12, in_dim);
    Buffer<float> y(12 * 24);
    REQUIRE(project(dense_call(w, x, y, 1, 12, static_cast<const float*>(w.packed.data()))) == Status::ok);
    const auto want = reference::project(x.data(), 12, w.view, w.bias.data());
    const auto by_hand = reference::project_plain_f32(x.data(), 12, w.view, w.bias.data());
    for (std::size_t i = 0; i < want.size(); ++i) {
      kernel = std::max(kernel, std::fabs(double{y[i]} - want[i]));
      plain = std::max(plain, std::fabs(double{by_hand[i]} - want[i]));
    }
    INFO("in_dim " << in_dim << ": kernel " << kernel << ", plain " << plain);
    CHECK(kernel <= kTimesPlain * plain);
  }
}

TEST_CASE("sizes and pointers that are refused", "[projection][status]") {
  CHECK(packed_elements(0, 1, 1) == 0);
  CHECK(packed_elements(1, 0, 1) == 0);
  CHECK(packed_elements(1, 1, 0) == 0);
  CHECK(packed_elements(-1, 1, 1) == 0);
  CHECK(packed_elements(1 << 16, 1 << 16, 1 << 16) == 0);
  CHECK(packed_elements(1 << 11, 1 << 11, 1 << 10) == 0);  // 2^32: wraps around to 0 in 32 bits

  Random random("refused");
  Weights w(random, 2, 3, 4);
  auto* packed = static_cast<float*>(w.packed.data());
  CHECK(pack_matrix(w.view, nullptr, nullptr) == Status::missing_pointer);
  const auto pack = [&](auto spoil) {
    MatrixView view = w.view;
    spoil(view);
    return pack_matrix(view, nullptr, packed);
  };
  CHECK(pack([](MatrixView& v) { v.data = nullptr; }) == Status::missing_pointer);
  CHECK(pack([](MatrixView& v) { v.group_dim = -1; }) == Status::invalid_shape);
  CHECK(pack([](MatrixView& v) { v.in_dim = -1; }) == Status::invalid_shape);
  CHECK(pack([](MatrixView& v) { v.num_groups = -1; }) == Status::invalid_shape);
  CHECK(pack([](MatrixView& v) { v.type = static_cast<WeightType>(3); }) == Status::invalid_option);

  const Buffer<float> x = random_rows(random, 5, 4);
  Buffer<float> y(5 * 6);
  const Buffer<float> untouched = y;
  const auto run = [&](auto spoil) {
    ProjectionParams p = dense_call(w, x, y, 1, 5, packed);
    spoil(p);
    return project(p);
  };
  CHECK(run([](ProjectionParams& p) { p.x = nullptr; }) == Status::missing_pointer);
  CHECK(run([](ProjectionParams& p) { p.packed = nullptr; }) == Status::missing_pointer);
  CHECK(run([](ProjectionParams& p) { p.y = nullptr; }) == Status::missing_pointer);
  CHECK(run([](ProjectionParams& p) { p.rows = -1; }) == Status::invalid_shape);
  CHECK(run([](ProjectionParams& p) { p.batch_size = -1; }) == Status::invalid_shape);
  CHECK(run([](ProjectionParams& p) { p.in_dim = -4; }) == Status::invalid_shape);
  CHECK(run([](ProjectionParams& p) { p.group_dim = -3; }) == Status::invalid_shape);
  CHECK(run([](ProjectionParams& p) { p.rows = 0; }) == Status::ok);
  CHECK(run([](ProjectionParams& p) { p.batch_size = 0; }) == Status::ok);
  CHECK(y == untouched);
}
