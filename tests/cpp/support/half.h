#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace attn::test {

/// Nearest binary16 of a finite float, ties to even; too large becomes infinity. The inverse of reference/half.h.
inline std::uint16_t to_half(float value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isnan(magnitude)) return 0x7E00;
  if (magnitude >= 65520.0) return sign | 0x7C00;
  int exponent = -14;  // subnormals and zero share the smallest exponent
  if (magnitude >= 0x1p-14) exponent = std::ilogb(magnitude);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));  // 1024..2048, or less when subnormal
  return static_cast<std::uint16_t>(sign + (((exponent + 14) << 10) + steps));
}

inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace attn::test
