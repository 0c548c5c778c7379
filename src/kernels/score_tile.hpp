#pragma once

#include "kernels/key_span.hpp"
#include "kernels/simd.hpp"

namespace attn::kernels {

/// scores_t[j][c] = dot(key[j, :], query[c, :]) for Rows keys and one panel of queries.
///
/// Scores are kept transposed, keys down and queries across. So keys are read where they are, one splat at a time; only the few queries of
/// a tile are packed; and all the softmax does afterwards goes down the columns, without a horizontal step.
/// key: Rows rows, key_stride elements apart, head_dim contiguous. panel: queries packed as [head_dim][kPanel].
/// 4 rows x 2 vectors keep 8 sums, 2 query vectors and a splat: what fits the 16 registers of x86-64. (5 rows: 7 % faster in Node 24, but a
/// quarter slower in Node 20, whose V8 loads all splats first and runs out of registers.)
template <class Arch, int Rows>
[[gnu::always_inline]] inline void score_block(const float* key, std::ptrdiff_t key_stride, const float* panel, int head_dim,
                                               float* scores_t, std::ptrdiff_t scores_stride) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  V sum[Rows][2];
  for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = V(0.0F);

  const float* const end = key + head_dim;
  ATTN_NO_UNROLL
  for (; key != end; ++key, panel += kPanel<Arch>) {
    const V q0 = load<Arch>(panel);
    const V q1 = load<Arch>(panel + kW);
    for (int r = 0; r < Rows; ++r) {
      const V k = load_splat<Arch>(key + r * key_stride);
      sum[r][0] = madd<Arch>(k, q0, sum[r][0]);
      sum[r][1] = madd<Arch>(k, q1, sum[r][1]);
    }
  }

  for (int r = 0; r < Rows; ++r) {
    store<Arch>(scores_t + r * scores_stride, sum[r][0]);
    store<Arch>(scores_t + r * scores_stride + kW, sum[r][1]);
  }
}

/// The same for any number of keys and whole panels of queries: scores_t [num_keys][scores_stride]. Of each panel's keys those of its span are
/// calculated, rounded out to blocks. Stride: distance of the key rows where the compiler is to know it, 0 where it is any_stride. Known, the
/// four rows are offsets in the loads and not four additions a step, which a core whose other hyperthread is busy has no room for (measured
/// there: 24 -> 34 GFLOP/s; alone: 35 -> 37).
template <class Arch, int Stride>
ATTN_KERNEL inline void score_tile_of(const float* key, std::ptrdiff_t any_stride, int num_keys, const float* panels, const KeySpan* spans,
                                      int num_panels, int head_dim, float* scores_t, std::ptrdiff_t scores_stride) {
  const std::ptrdiff_t key_stride = Stride != 0 ? Stride : any_stride;
  const std::ptrdiff_t panel_size = static_cast<std::ptrdiff_t>(head_dim) * kPanel<Arch>;
  const auto panels_of = [&]<int Rows>(std::integral_constant<int, Rows>, int j) {
    for (int p = 0; p < num_panels; ++p) {
      if (j + Rows <= spans[p].first || j >= spans[p].last) continue;
      score_block<Arch, Rows>(key + j * key_stride, key_stride, panels + p * panel_size, head_dim,
                              scores_t + j * scores_stride + p * kPanel<Arch>, scores_stride);
    }
  };
  using std::integral_constant;
  int j = 0;
  for (; j + 4 <= num_keys; j += 4) panels_of(integral_constant<int, 4>{}, j);
  switch (num_keys - j) {
    case 1: panels_of(integral_constant<int, 1>{}, j); break;
    case 2: panels_of(integral_constant<int, 2>{}, j); break;
    case 3: panels_of(integral_constant<int, 3>{}, j); break;
    default: break;
  }
}

/// The same, whatever the distance of the key rows; the usual widths of a head have loops of their own.
template <class Arch>
inline void score_tile(const float* key, std::ptrdiff_t key_stride, int num_keys, const float* panels, const KeySpan* spans, int num_panels,
                       int head_dim, float* scores_t, std::ptrdiff_t scores_stride) {
  const auto run = [&](auto kernel) { kernel(key, key_stride, num_keys, panels, spans, num_panels, head_dim, scores_t, scores_stride); };
  switch (key_stride) {
    case 32: run(score_tile_of<Arch, 32>); break;
    case 64: run(score_tile_of<Arch, 64>); break;
    case 80: run(score_tile_of<Arch, 80>); break;
    case 96: run(score_tile_of<Arch, 96>); break;
    case 128: run(score_tile_of<Arch, 128>); break;
    default: run(score_tile_of<Arch, 0>);
  }
}

}  // namespace attn::kernels
