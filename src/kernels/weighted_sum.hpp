#pragma once

#include "kernels/half.hpp"
#include "kernels/key_span.hpp"
#include "kernels/read_ahead.hpp"

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
  const float* const end = weights + num_keys * layout.key_stride;
  ATTN_NO_UNROLL
  for (; weights != end; weights += layout.key_stride, value += value_stride) {
    V row[Vectors];
    for (int v = 0; v < Vectors; ++v) row[v] = load<Arch>(value + v * kW);
    for (int r = 0; r < Rows; ++r) {
      const V weight = load_splat<Arch>(weights + r * layout.query_stride);
      for (int v = 0; v < Vectors; ++v) sum[r][v] = madd<Arch>(weight, row[v], sum[r][v]);
    }
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
template <class Arch, class T>
ATTN_KERNEL inline void pack_value_tail(const T* value, std::ptrdiff_t value_stride, int num_keys, int width, float* tail) {
  constexpr int kW = kLanes<Arch>;
  for (int j = 0; j < num_keys; ++j) {
    for (int c = 0; c < kW; ++c) tail[j * kW + c] = c < width ? float_one(value + j * value_stride + c) : 0.0F;
  }
}

/// sum[r][:] += sum_k weight[r][k] * value[k][:] for Rows queries and Keys keys, key by key; width is a multiple of kLanes.
/// sum: [width / kLanes][Rows][kLanes], so that one address leads to the sums of all queries.
template <class Arch, int Rows, int Keys, class T>
[[gnu::always_inline]] inline void add_weighted_rows(const float* weights, WeightLayout layout, const T* value, std::ptrdiff_t value_stride,
                                                     int width, float* sum) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  const LoadScaled<Arch, T> load_scaled;
  V weight[Rows][Keys];
  for (int r = 0; r < Rows; ++r) {
    for (int k = 0; k < Keys; ++k) weight[r][k] = V(weights[r * layout.query_stride + k * layout.key_stride] * kScale<T>);
  }
  ATTN_NO_UNROLL
  for (int c = 0; c < width; c += kW) {
    V row[Keys];
    for (int k = 0; k < Keys; ++k) row[k] = load_scaled(value + k * value_stride + c);
    for (int r = 0; r < Rows; ++r) {
      V s = load<Arch>(sum + r * kW);
      for (int k = 0; k < Keys; ++k) s = madd<Arch>(weight[r][k], row[k], s);
      store<Arch>(sum + r * kW, s);
    }
    sum += Rows * kW;
  }
}

/// The same for any number of keys.
template <class Arch, int Rows, class T>
[[gnu::always_inline]] inline void add_all_weighted_rows(const float* weights, WeightLayout layout, int num_keys, const T* value,
                                                         std::ptrdiff_t value_stride, int width, float* sum) {
  // As many weights as leave registers for the sums and the values.
  constexpr int kKeys = Rows == 1 ? 8 : Rows == 2 ? 4 : 2;
  ReadAhead<T> ahead(value, value_stride, num_keys, width);
  int j = 0;
  for (; j + kKeys <= num_keys; j += kKeys) {
    ahead.up_to(j + kKeys);
    add_weighted_rows<Arch, Rows, kKeys>(weights + j * layout.key_stride, layout, value + j * value_stride, value_stride, width, sum);
  }
  for (; j < num_keys; ++j) {
    add_weighted_rows<Arch, Rows, 1>(weights + j * layout.key_stride, layout, value + j * value_stride, value_stride, width, sum);
  }
}

/// sum[r][:] = sum_j weight[r][j] * value[j][:] for Rows queries and the whole value width. For few queries: values are read once, row after
/// row, as they stream in from memory, and the sums stay in L1. value: float32, or finite float16. What each element is added up from, and
/// in which order, does not depend on Rows.
/// sum: [value_dim rounded up / kLanes][Rows][kLanes]. tail [num_keys][kLanes]: scratch.
template <class Arch, int Rows, class T>
ATTN_KERNEL inline void weighted_sum_rows(const float* weights, WeightLayout layout, int num_keys, const T* value,
                                          std::ptrdiff_t value_stride, int value_dim, float* sum, float* tail) {
  constexpr int kW = kLanes<Arch>;
  const int whole = value_dim - value_dim % kW;
  for (int c = 0; c < value_dim; c += kW) {
    for (int r = 0; r < Rows; ++r) store<Arch>(sum + static_cast<std::ptrdiff_t>(c) * Rows + r * kW, Vec<Arch>(0.0F));
  }
  add_all_weighted_rows<Arch, Rows>(weights, layout, num_keys, value, value_stride, whole, sum);
  if (whole < value_dim) {
    pack_value_tail<Arch>(value + whole, value_stride, num_keys, value_dim - whole, tail);
    add_all_weighted_rows<Arch, Rows>(weights, layout, num_keys, tail, kW, kW, sum + static_cast<std::ptrdiff_t>(whole) * Rows);
  }
}

/// acc[r][:] = acc[r][:] * rescale[r] + sum[r][:] with sum as `weighted_sum_rows` leaves it. `first`: acc holds nothing yet and is only
/// written. acc_stride is at least value_dim rounded up to kLanes.
template <class Arch>
ATTN_KERNEL inline void add_sum_rows(const float* sum, int num_rows, int value_dim, const float* rescale, float* acc,
                                     std::ptrdiff_t acc_stride, bool first) {
  using V = Vec<Arch>;
  constexpr int kW = kLanes<Arch>;
  for (int r = 0; r < num_rows; ++r) {
    const V factor = load_splat<Arch>(rescale + r);
    float* const to = acc + r * acc_stride;
    for (int c = 0; c < value_dim; c += kW) {
      const V s = load<Arch>(sum + static_cast<std::ptrdiff_t>(c) * num_rows + r * kW);
      store<Arch>(to + c, first ? s : madd<Arch>(load<Arch>(to + c), factor, s));
    }
  }
}

/// `weighted_sum_block` for a tile of queries, rounded up to 4 rows of acc, `Vectors` vectors of the value width, and of each panel of queries
/// the keys of its span. weights_t [num_keys][weights_stride].
template <class Arch, int Vectors>
[[gnu::always_inline]] inline void weighted_sum_columns(const float* weights_t, std::ptrdiff_t weights_stride, int num_queries,
                                                        const KeySpan* spans, const float* value, std::ptrdiff_t value_stride,
                                                        const float* rescale, float* acc, std::ptrdiff_t acc_stride, bool first) {
  for (int r = 0; r < num_queries; r += 4) {
    const KeySpan keys = spans[r / kPanel<Arch>];
    weighted_sum_block<Arch, 4, Vectors>(weights_t + keys.first * weights_stride + r, {1, weights_stride}, keys.last - keys.first,
                                         value + keys.first * value_stride, value_stride, rescale + r, acc + r * acc_stride, acc_stride,
                                         first);
  }
}

/// The same for the whole value width. tail [num_keys][kLanes]: scratch.
template <class Arch>
ATTN_KERNEL inline void weighted_sum_tile(const float* weights_t, std::ptrdiff_t weights_stride, int num_queries, int num_keys,
                                          const KeySpan* spans, const float* value, std::ptrdiff_t value_stride, int value_dim,
                                          const float* rescale, float* acc, std::ptrdiff_t acc_stride, bool first, float* tail) {
  constexpr int kW = kLanes<Arch>;
  const auto columns = [&]<int Vectors>(std::integral_constant<int, Vectors>, int c, const float* from, std::ptrdiff_t stride) {
    weighted_sum_columns<Arch, Vectors>(weights_t, weights_stride, num_queries, spans, from, stride, rescale, acc + c, acc_stride, first);
  };
  using One = std::integral_constant<int, 1>;
  using Two = std::integral_constant<int, 2>;
  int c = 0;
  for (; c + 2 * kW <= value_dim; c += 2 * kW) columns(Two{}, c, value + c, value_stride);
  if (c + kW <= value_dim) {
    columns(One{}, c, value + c, value_stride);
    c += kW;
  }
  if (c < value_dim) {
    pack_value_tail<Arch>(value + c, value_stride, num_keys, value_dim - c, tail);
    columns(One{}, c, tail, kW);
  }
}

}  // namespace attn::kernels
