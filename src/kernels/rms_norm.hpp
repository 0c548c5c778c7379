#pragma once

#include <cmath>

#include "kernels/simd.hpp"

namespace attn::kernels {

/// x = x / sqrt(mean of x² + epsilon) * weight, over one row.
template <class Arch>
inline void rms_norm_row(float* x, const float* weight, int count, float epsilon) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  V sums(0.0F);
  int i = 0;
  for (; i + kW <= count; i += kW) {
    const V a = load<Arch>(x + i);
    sums = madd<Arch>(a, a, sums);
  }
  float sum = xsimd::reduce_add(sums);
  for (int t = i; t < count; ++t) sum += x[t] * x[t];
  const float factor = 1.0F / std::sqrt(sum / static_cast<float>(count) + epsilon);
  for (i = 0; i + kW <= count; i += kW) store<Arch>(x + i, load<Arch>(x + i) * V(factor) * load<Arch>(weight + i));
  for (; i < count; ++i) x[i] = x[i] * factor * weight[i];
}

}  // namespace attn::kernels
