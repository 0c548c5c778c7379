#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace attn::reference {

/// The value of an IEEE 754 binary16 bit pattern: sign, 5 bits of exponent (bias 15), 10 bits of fraction.
inline float half_by_definition(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  float magnitude = 0.0F;
  if (exponent == 31) {
    magnitude = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);  // subnormal: no hidden bit
  } else {
    magnitude = std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The same, looked up: ldexp is slow, and the reference reads each key once per query.
inline float half_value(std::uint16_t bits) {
  static const auto table = [] {
    std::array<float, 65536> values{};
    for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = half_by_definition(static_cast<std::uint16_t>(i));
    return values;
  }();
  return table[bits];
}

}  // namespace attn::reference
