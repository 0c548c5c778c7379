// Decoding: a handful of queries against many keys. Keys and values are streamed once for all queries of a group of heads.

#include <algorithm>
#include <cmath>

#include "core/attention_work.h"
#include "kernels/decode.hpp"
#include "kernels/tile_scores.hpp"

namespace attn::core {
namespace {

constexpr int kMaxRows = 4;

/// Everything between q·k and the softmax, up to `stage`, on the scores of one query [count].
void finish_scores(const AttentionParams& p, const RowTile& tile, int r, std::int32_t first, int count, MatrixStage stage, float* scores) {
  if (stage == MatrixStage::scaled_scores) return;
  constexpr int kW = kernels::kLanes<Arch>;
  if (p.softcap > 0.0F) kernels::softcap_tile<Arch>(scores, 0, 1, (count + kW - 1) / kW * kW, p.softcap);
  if (stage == MatrixStage::softcapped_scores) return;
  if (p.alibi_slopes != nullptr) {
    for (int j = 0; j < count; ++j) {
      scores[j] -= tile.slope[r] * static_cast<float>(std::abs(tile.position[r] - (first + j)));
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

template <class T>
void scores_of_keys(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, MatrixStage stage, Workspace& ws) {
  const AttentionParams& p = work.params;
  const std::ptrdiff_t stride = decode_scores_stride(work.plan);
  kernels::dot_rows<Arch>(ws.queries, work.plan.query_stride, tile.count, kv_row<T>(p.key, p.key_strides, tile, first), p.key_strides.row,
                          count, p.head_dim, ws.scores, stride);
  for (int r = 0; r < tile.count; ++r) finish_scores(p, tile, r, first, count, stage, ws.scores + r * stride);
}

bool values_finite(const float* rows, std::ptrdiff_t stride, int count, std::int32_t width) {
  return kernels::all_finite<Arch>(rows, stride, count, width);
}

/// float16: an exponent of all ones is infinity or NaN.
bool values_finite(const std::uint16_t* rows, std::ptrdiff_t stride, int count, std::int32_t width) {
  for (int j = 0; j < count; ++j) {
    for (std::int32_t c = 0; c < width; ++c) {
      if ((rows[j * stride + c] & 0x7C00U) == 0x7C00U) return false;
    }
  }
  return true;
}

template <class T>
void run(const AttentionWork& work, const RowTile& tile, KeyRange keys, Workspace& ws, bool& touched) {
  const AttentionParams& p = work.params;
  const std::ptrdiff_t stride = decode_scores_stride(work.plan);
  const std::ptrdiff_t acc_stride = work.plan.acc_stride;
  for (std::int32_t first = keys.begin; first < keys.end; first += work.plan.key_tile) {
    const int count = std::min(work.plan.key_tile, keys.end - first);
    if (p.mask != nullptr && !mask_shows_any(p, tile, first, count)) continue;
    scores_of_keys<T>(work, tile, first, count, MatrixStage::masked_scores, ws);
    for (int r = 0; r < tile.count; ++r) {
      kernels::online_softmax_row<Arch>(ws.scores + r * stride, count, ws.row_max + r, ws.row_sum + r, ws.rescale + r);
    }
    if (p.output != nullptr) {
      const T* value = kv_row<T>(p.value, p.value_strides, tile, first);
      const std::ptrdiff_t value_stride = p.value_strides.row;
      T* const tail = reinterpret_cast<T*>(ws.tail);
      if (may_hide(p, tile, first, count) && !values_finite(value, value_stride, count, p.value_dim)) {
        careful_weighted_sum<T>(work, tile, ws, stride, 1, first, count, !touched);
      } else {
        switch (tile.count) {
          case 1:
            kernels::weighted_sum_rows<Arch, 1>(ws.scores, stride, count, value, value_stride, p.value_dim, ws.rescale, ws.acc, acc_stride,
                                                !touched, tail);
            break;
          case 2:
            kernels::weighted_sum_rows<Arch, 2>(ws.scores, stride, count, value, value_stride, p.value_dim, ws.rescale, ws.acc, acc_stride,
                                                !touched, tail);
            break;
          case 3:
            kernels::weighted_sum_rows<Arch, 3>(ws.scores, stride, count, value, value_stride, p.value_dim, ws.rescale, ws.acc, acc_stride,
                                                !touched, tail);
            break;
          default:
            kernels::weighted_sum_rows<Arch, kMaxRows>(ws.scores, stride, count, value, value_stride, p.value_dim, ws.rescale, ws.acc,
                                                       acc_stride, !touched, tail);
        }
      }
    }
    touched = true;
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
  if (work.params.kv_type == KvType::f32) {
    scores_of_keys<float>(work, tile, first, count, stage, ws);
  } else {
    scores_of_keys<std::uint16_t>(work, tile, first, count, stage, ws);
  }
}

void run_decode(const AttentionWork& work, const RowTile& tile, KeyRange keys, bool first_chunk, Workspace& ws, bool& touched) {
  prepare_decode_queries(work, tile, ws);
  start_rows(work.params, tile, first_chunk, ws);
  touched = false;
  if (work.params.kv_type == KvType::f32) {
    run<float>(work, tile, keys, ws, touched);
  } else {
    run<std::uint16_t>(work, tile, keys, ws, touched);
  }
}

}  // namespace attn::core
