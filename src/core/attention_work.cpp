#include "core/attention_work.h"

#include <algorithm>
#include <cmath>

#include "kernels/half.hpp"

namespace attn::core {
namespace {

std::ptrdiff_t padded(std::ptrdiff_t floats) { return (floats + 15) / 16 * 16; }

bool any_nonzero(const std::uint8_t* mask, std::ptrdiff_t stride, int count) {
  for (int j = 0; j < count; ++j) {
    if (mask[j * stride] != 0) return true;
  }
  return false;
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
  ws.tail = take(static_cast<std::ptrdiff_t>(plan.key_tile) * kernels::kLanes<Arch>);
  ws.row_max = take(kQueryTile);
  ws.row_sum = take(kQueryTile);
  ws.rescale = take(kQueryTile);
  if (params.kv_type == KvType::f16 && !plan.decode) {
    ws.key_f32 = take(static_cast<std::ptrdiff_t>(plan.key_tile) * params.head_dim);
    ws.value_f32 = take(static_cast<std::ptrdiff_t>(plan.key_tile) * params.value_dim);
  }
  return ws;
}

float* AttentionWork::partial(std::int64_t item) const {
  return partials + item * padded(static_cast<std::ptrdiff_t>(plan.acc_stride + 2) * kQueryTile);
}

bool may_hide(const AttentionParams& params, const RowTile& tile, std::int32_t first, int count) {
  return params.mask != nullptr || params.bias != nullptr || first < tile.every.begin || first + count > tile.every.end;
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
  }
}

template <class T>
void careful_weighted_sum(const AttentionWork& work, const RowTile& tile, Workspace& ws, std::ptrdiff_t query_stride,
                          std::ptrdiff_t key_stride, std::int32_t first, int count, bool first_tile) {
  const AttentionParams& p = work.params;
  for (int r = 0; r < tile.count; ++r) {
    float* acc = ws.acc + r * work.plan.acc_stride;
    for (std::int32_t c = 0; c < p.value_dim; ++c) acc[c] = first_tile ? 0.0F : acc[c] * ws.rescale[r];
    for (int j = 0; j < count; ++j) {
      if (first + j < tile.begin[r] || first + j >= tile.end[r]) continue;
      if (!passes_mask(p, tile.batch, tile.head[r], tile.query[r], first + j)) continue;
      const float weight = ws.scores[r * query_stride + j * key_stride];
      const T* value = kv_row<T>(p.value, p.value_strides, tile, first + j);
      for (std::int32_t c = 0; c < p.value_dim; ++c) {
        if constexpr (sizeof(T) == sizeof(float)) {
          acc[c] += weight * value[c];
        } else {
          acc[c] += weight * kernels::half_to_float_one(value[c]);
        }
      }
    }
  }
}

template void careful_weighted_sum<float>(const AttentionWork&, const RowTile&, Workspace&, std::ptrdiff_t, std::ptrdiff_t, std::int32_t, int,
                                          bool);
template void careful_weighted_sum<std::uint16_t>(const AttentionWork&, const RowTile&, Workspace&, std::ptrdiff_t, std::ptrdiff_t,
                                                  std::int32_t, int, bool);

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
