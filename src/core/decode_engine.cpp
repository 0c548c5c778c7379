// Decoding: a handful of queries against many keys. Keys and values are streamed once for all queries of a group of heads.

#include <algorithm>
#include <cmath>

#include "core/attention_work.h"
#include "kernels/decode.hpp"
#include "kernels/tile_scores.hpp"
#include "kernels/weighted_sum.hpp"

namespace attn::core {
namespace {

constexpr int kW = kernels::kLanes<Arch>;

/// Everything between q·k and the softmax, up to `stage`, on the scores of one query [count].
void finish_scores(const AttentionParams& p, const RowTile& tile, int r, std::int32_t first, int count, MatrixStage stage, float* scores) {
  if (stage == MatrixStage::scaled_scores) return;
  if (p.softcap > 0.0F) kernels::softcap_tile<Arch>(scores, 0, 1, (count + kW - 1) / kW * kW, p.softcap);
  if (stage == MatrixStage::softcapped_scores) return;
  if (p.alibi_slopes != nullptr) {
    for (int j = 0; j < count; ++j) {
      scores[j] -= tile.slope[r] * std::fabs(tile.position[r] - static_cast<float>(first + j));
    }
  }
  if (p.bias != nullptr) {
    const std::ptrdiff_t stride = p.bias_strides.key;
    const float* bias = tile.bias_row[r] + first * stride;
    for (int j = 0; j < count; ++j) {
      const float b = bias[j * stride];
      scores[j] = b == -kernels::kInfinity ? -kernels::kInfinity : scores[j] + b;
    }
  }
  if (p.mask != nullptr) {
    const std::ptrdiff_t stride = p.mask_strides.key;
    const std::uint8_t* mask = tile.mask_row[r] + first * stride;
    for (int j = 0; j < count; ++j) scores[j] = mask[j * stride] != 0 ? scores[j] : -kernels::kInfinity;
  }
  const int begin = std::clamp(tile.begin[r] - first, 0, count);
  const int end = std::clamp(tile.end[r] - first, begin, count);
  std::fill(scores, scores + begin, -kernels::kInfinity);
  std::fill(scores + end, scores + count, -kernels::kInfinity);
}

/// Of dimension d of query r, in ws.queries.
std::ptrdiff_t decode_query_index(int num_queries, int r, std::int32_t d) {
  return (static_cast<std::ptrdiff_t>(d / kW) * num_queries + r) * kW + d % kW;
}

template <class T>
void weighted_sum(const AttentionWork& work, const RowTile& tile, int count, const T* value, std::ptrdiff_t value_stride, Workspace& ws) {
  const std::ptrdiff_t stride = decode_scores_stride(work.plan);
  const auto rows = [&](auto kernel) {
    kernel(ws.scores, kernels::WeightLayout{stride, 1}, count, value, value_stride, work.params.value_dim, ws.tile_sum, ws.tail);
  };
  static_assert(kMaxDecodeRows == 4);
  switch (tile.count) {
    case 1: rows(kernels::weighted_sum_rows<Arch, 1, T>); break;
    case 2: rows(kernels::weighted_sum_rows<Arch, 2, T>); break;
    case 3: rows(kernels::weighted_sum_rows<Arch, 3, T>); break;
    default: rows(kernels::weighted_sum_rows<Arch, 4, T>);
  }
}

/// Keys or values of a tile in float16, where they lie.
struct HalfRows {
  const std::uint16_t* data;
  std::ptrdiff_t stride;
};
HalfRows half_rows(const void* data, const Strides& strides, const RowTile& tile, std::int32_t first) {
  return {static_cast<const std::uint16_t*>(data) + row_offset(strides, tile, first), strides.row};
}

/// ws.scores = q.k of the tile's queries and `count` keys. Finite float16 is read as it is; whether it was finite is seen afterwards, when it
/// is in L1: looking first would wait for memory without computing.
void dot_products(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, Workspace& ws) {
  const AttentionParams& p = work.params;
  const std::ptrdiff_t stride = decode_scores_stride(work.plan);
  if (p.kv_type == KvType::f16) {
    const HalfRows key = half_rows(p.key, p.key_strides, tile, first);
    kernels::dot_rows<Arch>({ws.f16_queries, tile.count}, key.data, key.stride, count, p.head_dim, ws.f16_score_factor, ws.scores, stride);
    if (p.kv_finite || kernels::all_finite<Arch>(key.data, key.stride, count, p.head_dim)) return;
  }
  const FloatRows key = key_rows(p, tile, first, count, ws);
  kernels::dot_rows<Arch>({ws.queries, tile.count}, key.data, key.stride, count, p.head_dim, 1.0F, ws.scores, stride);
}

/// Whether some query of the tile may not see some key in [first, first + count).
bool may_hide(const AttentionParams& p, const RowTile& tile, std::int32_t first, int count) {
  return p.mask != nullptr || p.bias != nullptr || first < tile.every.begin || first + count > tile.every.end;
}

/// ws.acc = ws.acc * ws.rescale + weights * values of the tile, likewise.
void add_values(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, bool first_tile, Workspace& ws) {
  const AttentionParams& p = work.params;
  bool summed = false;
  if (p.kv_type == KvType::f16) {
    const HalfRows value = half_rows(p.value, p.value_strides, tile, first);
    weighted_sum(work, tile, count, value.data, value.stride, ws);
    summed = values_are_finite(p, tile, first, count);
  }
  if (!summed) {
    const FloatRows value = value_rows(p, tile, first, count, ws);
    if (may_hide(p, tile, first, count) && !values_are_finite(p, tile, first, count)) {
      return careful_weighted_sum(work, tile, ws, decode_scores_stride(work.plan), 1, first, count, value.data, value.stride, first_tile);
    }
    weighted_sum(work, tile, count, value.data, value.stride, ws);
  }
  kernels::add_sum_rows<Arch>(ws.tile_sum, tile.count, p.value_dim, ws.rescale, ws.acc, work.plan.acc_stride, first_tile);
}

}  // namespace

void prepare_decode_queries(const AttentionWork& work, const RowTile& tile, Workspace& ws) {
  const AttentionParams& p = work.params;
  float largest = 0.0F;
  for (int r = 0; r < tile.count; ++r) {
    for (std::int32_t d = 0; d < work.plan.query_stride; ++d) {
      const float q = d < p.head_dim ? tile.query_row[r][d] * p.scale : 0.0F;
      ws.queries[decode_query_index(tile.count, r, d)] = q;
      largest = std::max(largest, std::fabs(q));
    }
  }
  if (p.kv_type != KvType::f16) return;
  // Keys come 2^-112 times too small. 2^56 of that is made up for before the sum, so that no product gets near the smallest floats, where
  // processors are slow (they stay slow where a key itself is among float16's smallest, below 6.1e-5); where a query is too large for that, all
  // of it is made up for afterwards.
  ws.f16_score_factor = largest < 0x1p64F ? 0x1p56F : kernels::kScale<std::uint16_t>;
  const float before = kernels::kScale<std::uint16_t> / ws.f16_score_factor;
  const std::ptrdiff_t floats = tile.count * static_cast<std::ptrdiff_t>(work.plan.query_stride);
  ws.f16_queries = ws.queries + floats;
  for (std::ptrdiff_t i = 0; i < floats; ++i) ws.f16_queries[i] = ws.queries[i] * before;
}

void decode_scores(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, MatrixStage stage, Workspace& ws) {
  const std::ptrdiff_t stride = decode_scores_stride(work.plan);
  dot_products(work, tile, first, count, ws);
  for (int r = 0; r < tile.count; ++r) finish_scores(work.params, tile, r, first, count, stage, ws.scores + r * stride);
}

void run_decode(const AttentionWork& work, const RowTile& tile, KeyRange keys, bool first_chunk, Workspace& ws, bool& touched) {
  const AttentionParams& p = work.params;
  const std::ptrdiff_t stride = decode_scores_stride(work.plan);
  prepare_decode_queries(work, tile, ws);
  start_rows(p, tile, first_chunk, ws);
  // Sums are kept lane by lane until all keys are through; what a sink has brought stands in the first lane.
  alignas(64) float sums[kMaxDecodeRows * kW] = {};
  alignas(64) float errors[kMaxDecodeRows * kW] = {};
  for (int r = 0; r < tile.count; ++r) sums[r * kW] = ws.row_sum[r];
  touched = false;
  for (std::int32_t first = keys.begin; first < keys.end; first += work.plan.key_tile) {
    const int count = std::min(work.plan.key_tile, keys.end - first);
    if (p.mask != nullptr && !mask_shows_any(p, tile, first, count)) continue;
    decode_scores(work, tile, first, count, MatrixStage::masked_scores, ws);
    for (int r = 0; r < tile.count; ++r) {
      kernels::online_softmax_row<Arch>(ws.scores + r * stride, count, ws.row_max + r, sums + r * kW, errors + r * kW, ws.rescale + r);
    }
    if (p.output != nullptr) add_values(work, tile, first, count, !touched, ws);
    touched = true;
  }
  for (int r = 0; r < tile.count; ++r) ws.row_sum[r] = xsimd::reduce_add(kernels::load<Arch>(sums + r * kW));
}

}  // namespace attn::core
