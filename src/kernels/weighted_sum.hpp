#pragma once

#include "kernels/simd.hpp"

namespace attn::kernels {

/// Where the weights of a tile lie: weight of query r and key j = data[r * query_stride + j * key_stride].
struct WeightLayout {
  std::ptrdiff_t query_stride;
  std::ptrdiff_t key_stride;
};

/// acc[r][:] = acc[r][:] * rescale[r] + sum_j weight[r][j] * value[j][:] for Rows queries and Vectors vectors of the value width.
/// `first`: acc holds nothing yet and is only written. The sum over the tile starts from 0 and is added once, so that the rounding errors of
/// small weights do not pile up on a large sum.
template <class Arch, int Rows, int Vectors>
[[gnu::always_inline]] inline void weighted_sum_block(const float* weights, WeightLayout layout, int num_keys, const float* value,
                                                      std::ptrdiff_t value_stride, const float* rescale, float* acc,
                                                      std::ptrdiff_t acc_stride, bool first) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  V sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) sum[r][v] = V(0.0F);
  }
  ATTN_NO_UNROLL
  for (int j = 0; j < num_keys; ++j) {
    V row[Vectors];
    for (int v = 0; v < Vectors; ++v) row[v] = load<Arch>(value + v * kW);
    for (int r = 0; r < Rows; ++r) {
      const V weight = load_splat<Arch>(weights + r * layout.query_stride);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = madd<Arch>(weight, row[v], sum[r][v]);
    }
    weights += layout.key_stride;
    value += value_stride;
  }
  for (int r = 0; r < Rows; ++r) {
    const V factor = load_splat<Arch>(rescale + r);
    for (int v = 0; v < Vectors; ++v) {
      float* const to = acc + r * acc_stride + v * kW;
      store<Arch>(to, first ? sum[r][v] : madd<Arch>(load<Arch>(to), factor, sum[r][v]));
    }
  }
}

/// Copies the last `width` < kLanes columns of `num_keys` value rows to tail [num_keys][kLanes], padded with 0, so that no load leaves a row.
template <class Arch>
ATTN_KERNEL inline void pack_value_tail(const float* value, std::ptrdiff_t value_stride, int num_keys, int width, float* tail) {
  constexpr int kW = kLanes<Arch>;
  for (int j = 0; j < num_keys; ++j) {
    for (int c = 0; c < kW; ++c) tail[j * kW + c] = c < width ? value[j * value_stride + c] : 0.0F;
  }
}

/// The same for Rows queries and the whole value width; what each element of acc is added up from, and in which order, does not depend on Rows.
/// acc_stride is at least value_dim rounded up to kLanes. tail: [num_keys][kLanes] scratch.
template <class Arch, int Rows>
ATTN_KERNEL inline void weighted_sum_rows(const float* weights, WeightLayout layout, int num_keys, const float* value,
                                          std::ptrdiff_t value_stride, int value_dim, const float* rescale, float* acc,
                                          std::ptrdiff_t acc_stride, bool first, float* tail) {
  constexpr int kW = kLanes<Arch>;
  // As many sums as the registers take, together with a vector of values each and a splat.
  constexpr int kVectors = Rows == 1 ? 6 : Rows == 2 ? 4 : 2;
  int c = 0;
  for (; c + kVectors * kW <= value_dim; c += kVectors * kW) {
    weighted_sum_block<Arch, Rows, kVectors>(weights, layout, num_keys, value + c, value_stride, rescale, acc + c, acc_stride, first);
  }
  for (; c + kW <= value_dim; c += kW) {
    weighted_sum_block<Arch, Rows, 1>(weights, layout, num_keys, value + c, value_stride, rescale, acc + c, acc_stride, first);
  }
  if (c < value_dim) {
    pack_value_tail<Arch>(value + c, value_stride, num_keys, value_dim - c, tail);
    weighted_sum_block<Arch, Rows, 1>(weights, layout, num_keys, tail, kW, rescale, acc + c, acc_stride, first);
  }
}

/// The same for a tile of queries, rounded up to 4 rows of acc, with weights [num_keys][weights_stride].
template <class Arch>
ATTN_KERNEL inline void weighted_sum_tile(const float* weights_t, std::ptrdiff_t weights_stride, int num_queries, int num_keys,
                                          const float* value, std::ptrdiff_t value_stride, int value_dim, const float* rescale, float* acc,
                                          std::ptrdiff_t acc_stride, bool first, float* tail) {
  constexpr int kW = kLanes<Arch>;
  const WeightLayout layout{1, weights_stride};
  int c = 0;
  for (; c + 2 * kW <= value_dim; c += 2 * kW) {
    for (int r = 0; r < num_queries; r += 4) {
      weighted_sum_block<Arch, 4, 2>(weights_t + r, layout, num_keys, value + c, value_stride, rescale + r, acc + r * acc_stride + c,
                                     acc_stride, first);
    }
  }
  if (c + kW <= value_dim) {
    for (int r = 0; r < num_queries; r += 4) {
      weighted_sum_block<Arch, 4, 1>(weights_t + r, layout, num_keys, value + c, value_stride, rescale + r, acc + r * acc_stride + c,
                                     acc_stride, first);
    }
    c += kW;
  }
  if (c < value_dim) {
    pack_value_tail<Arch>(value + c, value_stride, num_keys, value_dim - c, tail);
    for (int r = 0; r < num_queries; r += 4) {
      weighted_sum_block<Arch, 4, 1>(weights_t + r, layout, num_keys, tail, kW, rescale + r, acc + r * acc_stride + c, acc_stride, first);
    }
  }
}

}  // namespace attn::kernels
