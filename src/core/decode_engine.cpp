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

void weighted_sum(const AttentionWork& work, const RowTile& tile, int count, FloatRows value, bool first_tile, Workspace& ws) {
  const std::ptrdiff_t stride = decode_scores_stride(work.plan);
  const auto rows = [&](auto kernel) {
    kernel(ws.scores, kernels::WeightLayout{stride, 1}, count, value.data, value.stride, work.params.value_dim, ws.rescale, ws.acc,
           work.plan.acc_stride, first_tile, ws.tail);
  };
  static_assert(kMaxDecodeRows == 4);
  switch (tile.count) {
    case 1: rows(kernels::weighted_sum_rows<Arch, 1>); break;
    case 2: rows(kernels::weighted_sum_rows<Arch, 2>); break;
    case 3: rows(kernels::weighted_sum_rows<Arch, 3>); break;
    default: rows(kernels::weighted_sum_rows<Arch, 4>);
  }
}

}  // namespace

void prepare_decode_queries(const AttentionWork& work, const RowTile& tile, Workspace& ws) {
  const AttentionParams& p = work.params;
  for (int r = 0; r < tile.count; ++r) {
    float* to = ws.queries + r * work.plan.query_stride;
    for (std::int32_t d = 0; d < p.head_dim; ++d) to[d] = tile.query_row[r][d] * p.scale;
    for (std::int32_t d = p.head_dim; d < work.plan.query_stride; ++d) to[d] = 0.0F;
  }
}

void decode_scores(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, MatrixStage stage, Workspace& ws) {
  const AttentionParams& p = work.params;
  const std::ptrdiff_t stride = decode_scores_stride(work.plan);
  const FloatRows key = key_rows(p, tile, first, count, ws);
  kernels::dot_rows<Arch>(ws.queries, work.plan.query_stride, tile.count, key.data, key.stride, count, p.head_dim, ws.scores, stride);
  for (int r = 0; r < tile.count; ++r) finish_scores(p, tile, r, first, count, stage, ws.scores + r * stride);
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
    if (p.output != nullptr) {
      const FloatRows value = value_rows(p, tile, first, count, ws);
      if (may_hide(p, tile, first, count) && !kernels::all_finite<Arch>(value.data, value.stride, count, p.value_dim)) {
        careful_weighted_sum(work, tile, ws, stride, 1, first, count, value.data, value.stride, !touched);
      } else {
        weighted_sum(work, tile, count, value, !touched, ws);
      }
    }
    touched = true;
  }
  for (int r = 0; r < tile.count; ++r) ws.row_sum[r] = xsimd::reduce_add(kernels::load<Arch>(sums + r * kW));
}

}  // namespace attn::core
