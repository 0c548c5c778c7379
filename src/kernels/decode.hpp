#pragma once

#include "kernels/online_softmax.hpp"

// Kernels for few queries and many keys: here the time goes into reading the key/value cache, so each key and value row is loaded as
// vectors along its width, once for all queries that share it. Scores lie row by row, [query][key].

namespace attn::kernels {

/// sums[i] = sum over the lanes of v[i], i < kLanes.
template <class Arch>
[[gnu::always_inline]] inline Vec<Arch> sum_lanes(const Vec<Arch>* v) {
  using V = Vec<Arch>;
  if constexpr (kLanes<Arch> == 4) {
    // Two rounds of interleave and add: (a, b, c, d) -> (a0+a2, b0+b2, a1+a3, b1+b3), ... -> (sum a, sum b, sum c, sum d).
    const V ab = xsimd::zip_lo(v[0], v[1]) + xsimd::zip_hi(v[0], v[1]);
    const V cd = xsimd::zip_lo(v[2], v[3]) + xsimd::zip_hi(v[2], v[3]);
    using D = xsimd::batch<double, Arch>;
    const D ab2 = xsimd::bitwise_cast<double>(ab);
    const D cd2 = xsimd::bitwise_cast<double>(cd);
    return xsimd::bitwise_cast<float>(xsimd::zip_lo(ab2, cd2)) + xsimd::bitwise_cast<float>(xsimd::zip_hi(ab2, cd2));
  } else {
    alignas(64) float sums[kLanes<Arch>];
    for (int i = 0; i < kLanes<Arch>; ++i) sums[i] = xsimd::reduce_add(v[i]);
    return V::load_aligned(sums);
  }
}

/// scores[r][j] = scale-free dot(query[r], key[j]) for Rows queries and kLanes keys of which `num_keys` exist. Every dot product is
/// summed in the same order whatever Rows is, so results do not depend on how queries are grouped.
template <class Arch, int Rows>
[[gnu::always_inline]] inline void dot_block(const float* query, std::ptrdiff_t query_stride, const float* key, std::ptrdiff_t key_stride,
                                             int head_dim, float* scores, std::ptrdiff_t scores_stride) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  constexpr int kKeys = 4;
  V sum[Rows][kKeys];
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < kKeys; ++j) sum[r][j] = V(0.0F);
  }
  const int whole = head_dim - head_dim % kW;
  ATTN_NO_UNROLL
  for (int d = 0; d < whole; d += kW) {
    V q[Rows];
    for (int r = 0; r < Rows; ++r) q[r] = load<Arch>(query + r * query_stride + d);
    for (int j = 0; j < kKeys; ++j) {
      const V k = load<Arch>(key + j * key_stride + d);
      for (int r = 0; r < Rows; ++r) sum[r][j] = madd<Arch>(q[r], k, sum[r][j]);
    }
  }
  if (whole < head_dim) {
    // The rows of the query scratch are padded with 0 to whole vectors; those of the keys are not ours to read past.
    for (int j = 0; j < kKeys; ++j) {
      float rest[kW] = {};
      for (int d = whole; d < head_dim; ++d) rest[d - whole] = key[j * key_stride + d];
      const V k = load<Arch>(rest);
      for (int r = 0; r < Rows; ++r) sum[r][j] = madd<Arch>(load<Arch>(query + r * query_stride + whole), k, sum[r][j]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    if constexpr (kW == kKeys) {
      store<Arch>(scores + r * scores_stride, sum_lanes<Arch>(sum[r]));
    } else {
      for (int j = 0; j < kKeys; ++j) scores[r * scores_stride + j] = xsimd::reduce_add(sum[r][j]);
    }
  }
}

/// One key alone, summed in the same order as in dot_block.
template <class Arch>
inline float dot_single(const float* query, const float* key, int head_dim) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  V sum(0.0F);
  const int whole = head_dim - head_dim % kW;
  for (int d = 0; d < whole; d += kW) sum = madd<Arch>(load<Arch>(query + d), load<Arch>(key + d), sum);
  if (whole < head_dim) {
    float rest[kW] = {};
    for (int d = whole; d < head_dim; ++d) rest[d - whole] = key[d];
    sum = madd<Arch>(load<Arch>(query + whole), load<Arch>(rest), sum);
  }
  if constexpr (kW == 4) {
    const V lanes[4] = {sum, V(0.0F), V(0.0F), V(0.0F)};
    return sum_lanes<Arch>(lanes).get(0);
  } else {
    return xsimd::reduce_add(sum);
  }
}

/// scores [num_queries][scores_stride] for num_keys keys. query: rows query_stride apart, padded with 0 to whole vectors.
template <class Arch>
ATTN_KERNEL inline void dot_rows(const float* query, std::ptrdiff_t query_stride, int num_queries, const float* key,
                                 std::ptrdiff_t key_stride, int num_keys, int head_dim, float* scores, std::ptrdiff_t scores_stride) {
  int j = 0;
  for (; j + 4 <= num_keys; j += 4) {
    const float* k = key + j * key_stride;
    int r = 0;
    for (; r + 2 <= num_queries; r += 2) {
      dot_block<Arch, 2>(query + r * query_stride, query_stride, k, key_stride, head_dim, scores + r * scores_stride + j, scores_stride);
    }
    if (r < num_queries) {
      dot_block<Arch, 1>(query + r * query_stride, query_stride, k, key_stride, head_dim, scores + r * scores_stride + j, scores_stride);
    }
  }
  for (; j < num_keys; ++j) {
    for (int r = 0; r < num_queries; ++r) {
      scores[r * scores_stride + j] = dot_single<Arch>(query + r * query_stride, key + j * key_stride, head_dim);
    }
  }
}

/// One step of the online softmax for one query; like online_softmax_panel, along a row of scores [num_keys]. row_sum and row_error hold
/// a partial sum for each lane, [kLanes].
template <class Arch>
ATTN_KERNEL inline void online_softmax_row(float* scores, int num_keys, float* row_max, float* row_sum, float* row_error, float* rescale) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  const float old = *row_max;
  V max0(old);
  V max1(old);
  int j = 0;
  for (; j + 2 * kW <= num_keys; j += 2 * kW) {
    max0 = max_any_nan<Arch>(max0, load<Arch>(scores + j));
    max1 = max_any_nan<Arch>(max1, load<Arch>(scores + j + kW));
  }
  float now = xsimd::reduce_max(max_any_nan<Arch>(max0, max1));
  for (; j < num_keys; ++j) now = scores[j] > now ? scores[j] : now;
  *row_max = now;

  const float shift = now == -kInfinity ? 0.0F : now;
  const V alpha = exp_nonpositive<Arch>(V(old - shift));
  V sum = load<Arch>(row_sum) * alpha;
  V error = load<Arch>(row_error) * alpha;
  for (j = 0; j + kW <= num_keys;) {
    const int end = num_keys - j < kSumBlock * kW ? num_keys : j + kSumBlock * kW;
    V part(0.0F);
    ATTN_NO_UNROLL
    for (; j + kW <= end; j += kW) {
      const V w = exp_nonpositive<Arch>(load<Arch>(scores + j) - V(shift));
      store<Arch>(scores + j, w);
      part += w;
    }
    add_compensated<Arch>(sum, error, part);
  }
  if (j < num_keys) {
    alignas(64) float rest[kW];
    for (int i = 0; i < kW; ++i) rest[i] = j + i < num_keys ? scores[j + i] : -kInfinity;
    const V w = exp_nonpositive<Arch>(load<Arch>(rest) - V(shift));
    store<Arch>(rest, w);
    for (int i = 0; j + i < num_keys; ++i) scores[j + i] = rest[i];
    add_compensated<Arch>(sum, error, w);
  }
  *rescale = alpha.get(0);
  store<Arch>(row_sum, sum);
  store<Arch>(row_error, error);
}

}  // namespace attn::kernels
