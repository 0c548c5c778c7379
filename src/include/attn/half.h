#pragma once

#include <cstddef>
#include <cstdint>

namespace attn {

/// float16 bits (IEEE binary16) to float32, exactly, for all patterns.
void half_to_float(const std::uint16_t* source, float* target, std::ptrdiff_t count) noexcept;

/// float32 to float16 bits, rounded to nearest with ties to even; too large becomes infinity, NaN stays NaN.
void float_to_half(const float* source, std::uint16_t* target, std::ptrdiff_t count) noexcept;

}  // namespace attn
