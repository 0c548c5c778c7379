#pragma once

#include "kernels/simd.hpp"

namespace attn::kernels {

/// rows[i] lane j -> rows[j] lane i, for kLanes vectors of 4 lanes.
template <class Arch>
[[gnu::always_inline]] inline void transpose4(Vec<Arch>* rows) {
  static_assert(kLanes<Arch> == 4);
  using D = xsimd::batch<double, Arch>;
  const auto pairs = [](Vec<Arch> x) { return xsimd::bitwise_cast<double>(x); };
  const D low01 = pairs(xsimd::zip_lo(rows[0], rows[1]));
  const D high01 = pairs(xsimd::zip_hi(rows[0], rows[1]));
  const D low23 = pairs(xsimd::zip_lo(rows[2], rows[3]));
  const D high23 = pairs(xsimd::zip_hi(rows[2], rows[3]));
  rows[0] = xsimd::bitwise_cast<float>(xsimd::zip_lo(low01, low23));
  rows[1] = xsimd::bitwise_cast<float>(xsimd::zip_hi(low01, low23));
  rows[2] = xsimd::bitwise_cast<float>(xsimd::zip_lo(high01, high23));
  rows[3] = xsimd::bitwise_cast<float>(xsimd::zip_hi(high01, high23));
}

/// Packs `count` queries into panels [head_dim][kPanel], each element times `scale`, so that the kernel reads kPanel queries of one
/// dimension as two vectors. Missing queries of the last panel are 0.
template <class Arch>
ATTN_KERNEL inline void pack_queries(const float* const* query, int count, int head_dim, float scale, float* panels) {
  constexpr int kP = kPanel<Arch>;
  for (int r0 = 0; r0 < count; r0 += kP) {
    float* panel = panels + static_cast<std::ptrdiff_t>(r0) * head_dim;
    const int rows = count - r0 < kP ? count - r0 : kP;
    int whole = 0;
    if constexpr (kLanes<Arch> == 4) {
      if (rows == kP) whole = head_dim - head_dim % 4;
      for (int half = 0; half < kP; half += 4) {
        const float* const* q = query + r0 + half;
        for (int d = 0; d < whole; d += 4) {
          Vec<Arch> block[4];
          for (int r = 0; r < 4; ++r) block[r] = load<Arch>(q[r] + d) * Vec<Arch>(scale);
          transpose4<Arch>(block);
          for (int i = 0; i < 4; ++i) store<Arch>(panel + (d + i) * kP + half, block[i]);
        }
      }
    }
    for (int r = 0; r < rows; ++r) {
      const float* q = query[r0 + r];
      for (int d = whole; d < head_dim; ++d) panel[d * kP + r] = q[d] * scale;
    }
    for (int r = rows; r < kP; ++r) {
      for (int d = 0; d < head_dim; ++d) panel[d * kP + r] = 0.0F;
    }
  }
}

}  // namespace attn::kernels
