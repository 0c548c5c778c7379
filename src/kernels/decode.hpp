#pragma once

#include "kernels/half.hpp"
#include "kernels/online_softmax.hpp"
#include "kernels/read_ahead.hpp"

// Kernels for few queries and many keys: here the time goes into reading the key/value cache, so each key and value row is loaded as
// vectors along its width and serves all queries that share it. Scores lie row by row, [query][key].

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

/// Where the queries of a decode step lie, so that one address leads to all of them: lane l of dimension block b of query r is
/// [(b * num_queries + r) * kLanes + l], padded with 0 to whole vectors.
struct DecodeQueries {
  const float* data;
  int num_queries;
};

/// scores[r][j] = factor * dot(query[r], key[j]) for Rows queries from `first` on, and Keys keys. Every dot product is summed in the same
/// order whatever Rows and Keys are, so results do not depend on how queries are grouped (with float16 keys: while all are below 2^64).
template <class Arch, int Rows, int Keys, class T>
[[gnu::always_inline]] inline void dot_block(DecodeQueries queries, int first, const T* key, std::ptrdiff_t key_stride, int head_dim,
                                             float factor, float* scores, std::ptrdiff_t scores_stride) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  V sum[Rows][Keys];
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < Keys; ++j) sum[r][j] = V(0.0F);
  }
  const LoadScaled<Arch, T> load_scaled;
  const float* query = queries.data + first * kW;
  const int whole = head_dim - head_dim % kW;
  ATTN_NO_UNROLL
  for (int d = 0; d < whole; d += kW) {
    V k[Keys];
    for (int j = 0; j < Keys; ++j) k[j] = load_scaled(key + j * key_stride + d);
    for (int r = 0; r < Rows; ++r) {
      const V q = load<Arch>(query + r * kW);
      for (int j = 0; j < Keys; ++j) sum[r][j] = madd<Arch>(q, k[j], sum[r][j]);
    }
    query += queries.num_queries * kW;
  }
  if (whole < head_dim) {
    // The queries are padded; the rows of the keys are not ours to read past.
    for (int j = 0; j < Keys; ++j) {
      float rest[kW] = {};
      for (int d = whole; d < head_dim; ++d) rest[d - whole] = float_one(key + j * key_stride + d) * (1.0F / kScale<T>);
      const V k = load<Arch>(rest);
      for (int r = 0; r < Rows; ++r) sum[r][j] = madd<Arch>(load<Arch>(query + r * kW), k, sum[r][j]);
    }
  }
  if constexpr (Keys == kW) {
    for (int r = 0; r < Rows; ++r) store<Arch>(scores + r * scores_stride, sum_lanes<Arch>(sum[r]) * V(factor));
  } else {
    // As many sums as lanes are added up at a time: a key's, for all queries.
    static_assert(Rows <= kW);
    for (int j = 0; j < Keys; ++j) {
      V column[kW];
      for (int r = 0; r < kW; ++r) column[r] = r < Rows ? sum[r < Rows ? r : 0][j] : V(0.0F);
      alignas(64) float rows[kW];
      (sum_lanes<Arch>(column) * V(factor)).store_aligned(rows);
      for (int r = 0; r < Rows; ++r) scores[r * scores_stride + j] = rows[r];
    }
  }
}

/// scores [num_queries][scores_stride] = factor * dot products with num_keys keys: float32, or finite float16, which give 1 / kScale of the
/// dot product.
template <class Arch, class T>
ATTN_KERNEL inline void dot_rows(DecodeQueries queries, const T* key, std::ptrdiff_t key_stride, int num_keys, int head_dim, float factor,
                                 float* scores, std::ptrdiff_t scores_stride) {
  const int n = queries.num_queries;
  ReadAhead<T> ahead(key, key_stride, num_keys, head_dim);
  int j = 0;
  // 8 sums at a time. Four queries take two keys: each key is read once, and few rows are read side by side.
  for (; n == 4 && j + 2 <= num_keys; j += 2) {
    ahead.up_to(j + 2);
    dot_block<Arch, 4, 2>(queries, 0, key + j * key_stride, key_stride, head_dim, factor, scores + j, scores_stride);
  }
  for (; j + 4 <= num_keys; j += 4) {
    ahead.up_to(j + 4);
    const T* k = key + j * key_stride;
    int r = 0;
    for (; r + 2 <= n; r += 2) {
      dot_block<Arch, 2, 4>(queries, r, k, key_stride, head_dim, factor, scores + r * scores_stride + j, scores_stride);
    }
    if (r < n) dot_block<Arch, 1, 4>(queries, r, k, key_stride, head_dim, factor, scores + r * scores_stride + j, scores_stride);
  }
  for (; j < num_keys; ++j) {
    for (int r = 0; r < n; ++r) {
      dot_block<Arch, 1, 1>(queries, r, key + j * key_stride, key_stride, head_dim, factor, scores + r * scores_stride + j, scores_stride);
    }
  }
}

/// One step of the online softmax for one query; like online_softmax_panel, along a row of scores [num_keys]. row_sum and row_error hold
/// a partial sum for each lane, [kLanes].
template <class Arch>
ATTN_KERNEL inline void online_softmax_row(float* scores, int num_keys, float* row_max, float* row_sum, float* row_error, float* rescale) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  const ExpNonPositive<Arch> exp;
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
  const V alpha = exp(V(old - shift));
  V sum = load<Arch>(row_sum) * alpha;
  V error = load<Arch>(row_error) * alpha;
  for (j = 0; j + kW <= num_keys;) {
    const int end = num_keys - j < kSumBlock * kW ? num_keys : j + kSumBlock * kW;
    V part(0.0F);
    ATTN_NO_UNROLL
    for (; j + kW <= end; j += kW) {
      const V w = exp(load<Arch>(scores + j) - V(shift));
      store<Arch>(scores + j, w);
      part += w;
    }
    add_compensated<Arch>(sum, error, part);
  }
  if (j < num_keys) {
    alignas(64) float rest[kW];
    for (int i = 0; i < kW; ++i) rest[i] = j + i < num_keys ? scores[j + i] : -kInfinity;
    const V w = exp(load<Arch>(rest) - V(shift));
    store<Arch>(rest, w);
    for (int i = 0; j + i < num_keys; ++i) scores[j + i] = rest[i];
    add_compensated<Arch>(sum, error, w);
  }
  *rescale = alpha.get(0);
  store<Arch>(row_sum, sum);
  store<Arch>(row_error, error);
}

}  // namespace attn::kernels
