#pragma once

#include "kernels/simd.hpp"

namespace attn::kernels {

/// Packs `count` queries into panels [head_dim][kPanel], each element times `scale`, so that the kernel reads kPanel queries of one
/// dimension as two vectors. Missing queries of the last panel are 0.
template <class Arch>
ATTN_KERNEL inline void pack_queries(const float* const* query, int count, int head_dim, float scale, float* panels) {
  constexpr int kP = kPanel<Arch>;
  for (int r0 = 0; r0 < count; r0 += kP) {
    float* panel = panels + static_cast<std::ptrdiff_t>(r0) * head_dim;
    const int rows = count - r0 < kP ? count - r0 : kP;
    for (int r = 0; r < rows; ++r) {
      const float* q = query[r0 + r];
      for (int d = 0; d < head_dim; ++d) panel[d * kP + r] = q[d] * scale;
    }
    for (int r = rows; r < kP; ++r) {
      for (int d = 0; d < head_dim; ++d) panel[d * kP + r] = 0.0F;
    }
  }
}

}  // namespace attn::kernels
