#include "attn/half.h"

#include "kernels/half.hpp"

namespace attn {

void half_to_float(const std::uint16_t* source, float* target, std::ptrdiff_t count) noexcept {
  kernels::half_to_float_row<kernels::DefaultArch>(source, target, count);
}

void float_to_half(const float* source, std::uint16_t* target, std::ptrdiff_t count) noexcept {
  kernels::float_to_half_row<kernels::DefaultArch>(source, target, count);
}

}  // namespace attn
