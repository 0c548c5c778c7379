#include "core/attention_work.h"

#include <algorithm>
#include <cmath>

#include "kernels/half.hpp"
#include "kernels/tile_scores.hpp"
#include "kernels/weighted_sum.hpp"

namespace attn::core {
namespace {

std::ptrdiff_t padded(std::ptrdiff_t floats) { return (floats + 15) / 16 * 16; }

bool any_nonzero(const std::uint8_t* mask, std::ptrdiff_t stride, int count) {
  for (int j = 0; j < count; ++j) {
    if (mask[j * stride] != 0) return true;
  }
  return false;
}

FloatRows float_rows(const AttentionParams& p, const void* data, const Strides& strides, const RowTile& tile, std::int32_t first, int count,
                     std::int32_t width, float* scratch) {
  const std::ptrdiff_t offset = row_offset(strides, tile, first);
  if (p.kv_type == KvType::f32) return {static_cast<const float*>(data) + offset, strides.row};
  const std::uint16_t* source = static_cast<const std::uint16_t*>(data) + offset;
  const bool finite = p.kv_finite || kernels::all_finite<Arch>(source, strides.row, count, width);
  const auto convert = finite ? kernels::half_to_float_row<Arch, true> : kernels::half_to_float_row<Arch>;
  if (strides.row == width) {
    convert(source, scratch, static_cast<std::ptrdiff_t>(count) * width);
  } else {
    for (int j = 0; j < count; ++j) convert(source + j * strides.row, scratch + static_cast<std::ptrdiff_t>(j) * width, width);
  }
  return {scratch, width};
}

}  // namespace

Workspace AttentionWork::workspace(std::int32_t thread) const {
  float* next = thread_scratch + static_cast<std::ptrdiff_t>(thread) * static_cast<std::ptrdiff_t>(plan.thread_floats);
  const auto take = [&next](std::ptrdiff_t floats) {
    float* const p = next;
    next += padded(floats);
    return p;
  };
  Workspace ws{};
  ws.scores = take(static_cast<std::ptrdiff_t>(plan.key_tile) * kQueryTile);
  ws.bias_t = take(static_cast<std::ptrdiff_t>(plan.key_tile) * kQueryTile);
  ws.queries = take(static_cast<std::ptrdiff_t>(plan.query_stride) * kQueryTile);
  ws.acc = take(static_cast<std::ptrdiff_t>(plan.acc_stride) * kQueryTile);
  ws.tile_sum = take(static_cast<std::ptrdiff_t>(plan.acc_stride) * kMaxDecodeRows);
  ws.tail = take(static_cast<std::ptrdiff_t>(plan.key_tile) * kernels::kLanes<Arch>);
  ws.row_max = take(kQueryTile);
  ws.row_sum = take(kQueryTile);
  ws.row_error = take(kQueryTile);
  ws.rescale = take(kQueryTile);
  ws.seen_value = take(static_cast<std::ptrdiff_t>(plan.key_tile) * params.value_dim);
  if (plan.packed_floats > 0) {
    ws.packed_head = reinterpret_cast<std::int32_t*>(take(1));
    ws.packed_values = take(plan.packed_floats);
  }
  if (params.kv_type == KvType::f16) {
    ws.key_f32 = take(static_cast<std::ptrdiff_t>(plan.key_tile) * params.head_dim);
    ws.value_f32 = take(static_cast<std::ptrdiff_t>(plan.key_tile) * params.value_dim);
  }
  return ws;
}

float* AttentionWork::partial(std::int64_t item) const {
  return partials + item * padded(static_cast<std::ptrdiff_t>(plan.acc_stride + 2) * kQueryTile);
}

bool mask_shows_any(const AttentionParams& params, const RowTile& tile, std::int32_t first, int count) {
  const std::ptrdiff_t stride = params.mask_strides.key;
  const int rows = tile.shared_mask ? 1 : tile.count;
  for (int r = 0; r < rows; ++r) {
    if (any_nonzero(tile.mask_row[r] + first * stride, stride, count)) return true;
  }
  return false;
}

void start_rows(const AttentionParams& params, const RowTile& tile, bool first_chunk, Workspace& ws) {
  for (int r = 0; r < kQueryTile; ++r) {
    const float sink = params.sinks != nullptr && first_chunk && r < tile.count ? params.sinks[tile.head[r]] : -kernels::kInfinity;
    ws.row_max[r] = sink;
    ws.row_sum[r] = sink == -kernels::kInfinity ? 0.0F : 1.0F;
    ws.row_error[r] = 0.0F;
  }
}

void careful_weighted_sum(const AttentionWork& work, const RowTile& tile, Workspace& ws, std::ptrdiff_t query_stride,
                          std::ptrdiff_t key_stride, std::int32_t first, int count, const float* value, std::ptrdiff_t value_stride,
                          bool first_tile) {
  const AttentionParams& p = work.params;
  const std::ptrdiff_t width = p.value_dim;
  for (int r = 0; r < tile.count; ++r) {
    for (int j = 0; j < count; ++j) {
      float* const to = ws.seen_value + j * width;
      const bool seen =
          first + j >= tile.begin[r] && first + j < tile.end[r] && passes_mask(p, tile.batch, tile.head[r], tile.query[r], first + j);
      if (seen) {
        std::copy_n(value + j * value_stride, width, to);
      } else {
        std::fill_n(to, width, 0.0F);
        ws.scores[r * query_stride + j * key_stride] = 0.0F;
      }
    }
    kernels::weighted_sum_rows<Arch, 1, float>(ws.scores + r * query_stride, {query_stride, key_stride}, count, ws.seen_value, width,
                                               p.value_dim, ws.tile_sum, ws.tail);
    kernels::add_sum_rows<Arch>(ws.tile_sum, 1, p.value_dim, ws.rescale + r, ws.acc + r * work.plan.acc_stride, work.plan.acc_stride,
                                first_tile);
  }
}

FloatRows key_rows(const AttentionParams& params, const RowTile& tile, std::int32_t first, int count, Workspace& ws) {
  return float_rows(params, params.key, params.key_strides, tile, first, count, params.head_dim, ws.key_f32);
}

FloatRows value_rows(const AttentionParams& params, const RowTile& tile, std::int32_t first, int count, Workspace& ws) {
  return float_rows(params, params.value, params.value_strides, tile, first, count, params.value_dim, ws.value_f32);
}

bool values_are_finite(const AttentionParams& params, const RowTile& tile, std::int32_t first, int count) {
  const std::ptrdiff_t offset = row_offset(params.value_strides, tile, first);
  const std::ptrdiff_t stride = params.value_strides.row;
  if (params.kv_type == KvType::f32) {
    return kernels::all_finite<Arch>(static_cast<const float*>(params.value) + offset, stride, count, params.value_dim);
  }
  return params.kv_finite ||
         kernels::all_finite<Arch>(static_cast<const std::uint16_t*>(params.value) + offset, stride, count, params.value_dim);
}

void finish_rows(const AttentionWork& work, const RowTile& tile, const float* row_max, const float* row_sum, const float* acc) {
  using V = kernels::Vec<Arch>;
  constexpr int kW = kernels::kLanes<Arch>;
  const AttentionParams& p = work.params;
  const std::int32_t b = tile.batch;
  for (int r = 0; r < tile.count; ++r) {
    const std::int32_t h = tile.head[r];
    const std::int32_t t = tile.query[r];
    float sum = row_sum[r];
    // A sum of 0 means that no key is seen, and then 0 is the answer; or that every key seen has a score of -inf by its own data, where IEEE says NaN.
    if (sum == 0.0F && sees_any(p, b, h, t)) sum = std::numeric_limits<float>::quiet_NaN();
    const std::ptrdiff_t row = (static_cast<std::ptrdiff_t>(b) * p.num_heads + h) * p.seq_len_q + t;
    if (p.lse != nullptr) p.lse[row] = sum == 0.0F ? -kernels::kInfinity : row_max[r] + std::log(sum);
    if (work.row_max != nullptr) {
      work.row_max[row] = row_max[r];
      work.row_sum[row] = sum;
    }
    if (p.output == nullptr) continue;
    float* out = p.output + b * p.output_strides.batch + h * p.output_strides.head + t * p.output_strides.row;
    const float* in = acc + r * work.plan.acc_stride;
    if (sum == 0.0F) {
      for (std::int32_t c = 0; c < p.value_dim; ++c) out[c] = 0.0F;
      continue;
    }
    const float inverse = 1.0F / sum;
    std::int32_t c = 0;
    for (; c + kW <= p.value_dim; c += kW) kernels::store<Arch>(out + c, kernels::load<Arch>(in + c) * V(inverse));
    for (; c < p.value_dim; ++c) out[c] = in[c] * inverse;
  }
}

void keep_partial(const AttentionWork& work, std::int64_t item, const RowTile& tile, const Workspace& ws, bool touched) {
  float* const to = work.partial(item);
  std::copy_n(ws.row_max, kQueryTile, to);
  std::copy_n(ws.row_sum, kQueryTile, to + kQueryTile);
  const std::ptrdiff_t floats = static_cast<std::ptrdiff_t>(tile.count) * work.plan.acc_stride;
  if (touched) {
    std::copy_n(ws.acc, floats, to + 2 * kQueryTile);
  } else {
    std::fill_n(to + 2 * kQueryTile, floats, 0.0F);
  }
}

}  // namespace attn::core
