#pragma once

#include "kernels/simd.hpp"

namespace attn::kernels {

/// scores_t[j][c] = dot(key[j, :], query[c, :]) for Rows keys and one panel of queries.
///
/// Scores are kept transposed, keys down and queries across. So keys are read where they are, one splat at a time; only the few queries of
/// a tile are packed; and all the softmax does afterwards goes down the columns, without a horizontal step.
/// key: Rows rows, key_stride elements apart, head_dim contiguous. panel: queries packed as [head_dim][kPanel].
/// 4 rows x 2 vectors keep 8 sums, 2 query vectors and a splat: what fits the 16 registers of x86-64.
template <class Arch, int Rows>
[[gnu::always_inline]] inline void score_block(const float* key, std::ptrdiff_t key_stride, const float* panel, int head_dim,
                                               float* scores_t, std::ptrdiff_t scores_stride) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  V sum[Rows][2];
  for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = V(0.0F);

  ATTN_NO_UNROLL
  for (int d = 0; d < head_dim; ++d) {
    const V q0 = load<Arch>(panel + d * kPanel<Arch>);
    const V q1 = load<Arch>(panel + d * kPanel<Arch> + kW);
    for (int r = 0; r < Rows; ++r) {
      const V k = load_splat<Arch>(key + r * key_stride + d);
      sum[r][0] = madd<Arch>(k, q0, sum[r][0]);
      sum[r][1] = madd<Arch>(k, q1, sum[r][1]);
    }
  }

  for (int r = 0; r < Rows; ++r) {
    store<Arch>(scores_t + r * scores_stride, sum[r][0]);
    store<Arch>(scores_t + r * scores_stride + kW, sum[r][1]);
  }
}

/// The same for any number of keys and whole panels of queries: scores_t [num_keys][scores_stride].
template <class Arch>
ATTN_KERNEL inline void score_tile(const float* key, std::ptrdiff_t key_stride, int num_keys, const float* panels, int num_panels,
                                   int head_dim, float* scores_t, std::ptrdiff_t scores_stride) {
  const std::ptrdiff_t panel_size = static_cast<std::ptrdiff_t>(head_dim) * kPanel<Arch>;
  for (int j = 0; j < num_keys; j += 4) {
    for (int p = 0; p < num_panels; ++p) {
      const float* k = key + j * key_stride;
      const float* q = panels + p * panel_size;
      float* s = scores_t + j * scores_stride + p * kPanel<Arch>;
      switch (num_keys - j) {
        case 1: score_block<Arch, 1>(k, key_stride, q, head_dim, s, scores_stride); break;
        case 2: score_block<Arch, 2>(k, key_stride, q, head_dim, s, scores_stride); break;
        case 3: score_block<Arch, 3>(k, key_stride, q, head_dim, s, scores_stride); break;
        default: score_block<Arch, 4>(k, key_stride, q, head_dim, s, scores_stride);
      }
    }
  }
}

}  // namespace attn::kernels
