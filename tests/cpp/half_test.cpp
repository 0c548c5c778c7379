// Conversion of float16 bits, against the definition of the format.

#include "attn/half.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "reference/half.h"
#include "support/buffer.h"
#include "support/half.h"
#include "support/random.h"

using namespace attn;
using namespace attn::test;

TEST_CASE("every float16 pattern becomes its value, and goes back to itself", "[half]") {
  Buffer<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  Buffer<float> values(65536);
  Buffer<std::uint16_t> back(65536);
  half_to_float(bits.data(), values.data(), 65536);
  float_to_half(values.data(), back.data(), 65536);
  bool good = true;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const float want = reference::half_by_definition(bits[i]);
    if (std::isnan(want)) {
      good = good && std::isnan(values[i]) && std::isnan(reference::half_by_definition(back[i]));
    } else {
      good = good && values[i] == want && std::signbit(values[i]) == std::signbit(want) && back[i] == bits[i];
    }
  }
  CHECK(good);
  CHECK((values.intact() && back.intact()));
}

TEST_CASE("float32 rounds to the nearest float16, ties to even", "[half]") {
  Random random("to half");
  std::vector<float> values = {0.0F,     -0.0F,           65504.0F,   65519.9F, 65520.0F,     65536.0F,     1e30F,  -1e30F, 0x1p-24F,
                               0x1p-25F, 0x1.000002p-25F, 0x1.8p-24F, 0x1p-14F, 0x1.ffcp-15F, 0x1.ffep-15F, 1e-30F, -1e-30F};
  const float inf = std::numeric_limits<float>::infinity();
  values.push_back(inf);
  values.push_back(-inf);
  for (std::uint32_t i = 0; i + 1 < 0x7C00; ++i) {
    // halfway between neighbours, and one step of float32 to either side
    const float low = reference::half_by_definition(static_cast<std::uint16_t>(i));
    const float high = reference::half_by_definition(static_cast<std::uint16_t>(i + 1));
    const float middle = (low + high) / 2;
    const float sign = i % 2 == 0 ? 1.0F : -1.0F;
    for (const float x : {middle, std::nextafter(middle, low), std::nextafter(middle, high)}) values.push_back(sign * x);
  }
  for (int n = 0; n < 20000; ++n) values.push_back(std::ldexp(random.real(-1, 1), random.integer(-30, 20)));
  std::vector<std::uint16_t> got(values.size());
  float_to_half(values.data(), got.data(), static_cast<std::ptrdiff_t>(values.size()));
  bool good = true;
  for (std::size_t i = 0; i < values.size(); ++i) good = good && got[i] == to_half(values[i]);
  CHECK(good);
}

TEST_CASE("every length 0..40 converts exactly its elements", "[half]") {
  for (int count = 0; count <= 40; ++count) {
    const auto size = static_cast<std::size_t>(count);
    Buffer<float> from(size);
    for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<float>(i) + 0.5F;
    Buffer<std::uint16_t> halves(size);
    float_to_half(from.data(), halves.data(), count);
    Buffer<float> to(size);
    half_to_float(halves.data(), to.data(), count);
    CHECK(to == from);
    CHECK((halves.intact() && to.intact()));
  }
}
