#include "projection_reference.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "half.h"

namespace attn::reference {
namespace {

/// A bfloat16 is the upper half of a float32.
float bfloat16_value(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0.0F;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

float weight_value(const MatrixView& weight, std::ptrdiff_t at) {
  switch (weight.type) {
    case WeightType::f16: return half_value(static_cast<const std::uint16_t*>(weight.data)[at]);
    case WeightType::bf16: return bfloat16_value(static_cast<const std::uint16_t*>(weight.data)[at]);
    default: return static_cast<const float*>(weight.data)[at];
  }
}

template <typename Real>
std::vector<Real> run(const float* x, int rows, const MatrixView& weight, const float* bias) {
  const std::ptrdiff_t out_dim = std::ptrdiff_t{weight.num_groups} * weight.group_dim;
  std::vector<Real> y;
  for (std::ptrdiff_t r = 0; r < rows; ++r) {
    for (std::ptrdiff_t o = 0; o < out_dim; ++o) {
      Real sum = bias != nullptr ? static_cast<Real>(bias[o]) : Real{0};
      for (std::ptrdiff_t i = 0; i < weight.in_dim; ++i) {
        sum += static_cast<Real>(x[r * weight.in_dim + i]) *
               static_cast<Real>(weight_value(weight, o * weight.out_stride + i * weight.in_stride));
      }
      y.push_back(sum);
    }
  }
  return y;
}

}  // namespace

std::vector<double> project(const float* x, int rows, const MatrixView& weight, const float* bias) {
  return run<double>(x, rows, weight, bias);
}
std::vector<float> project_plain_f32(const float* x, int rows, const MatrixView& weight, const float* bias) {
  return run<float>(x, rows, weight, bias);
}

}  // namespace attn::reference
