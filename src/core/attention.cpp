#include "attn/attention.h"

#include <algorithm>
#include <cmath>

#include "attn/parallel.h"
#include "core/attention_plan.h"
#include "core/attention_work.h"
#include "core/packed_values.h"
#include "kernels/simd.hpp"

namespace attn {
namespace core {
namespace {

/// Which tile an item is: (batch, head or key head, row tile, chunk). Late row tiles come first: under a causal mask they are the longest.
struct ItemTile {
  RowTile tile;
  std::int32_t chunk;
};

void find_tile(const AttentionWork& work, std::int64_t item, ItemTile& found) {
  const AttentionParams& p = work.params;
  const AttentionPlan& plan = work.plan;
  found.chunk = static_cast<std::int32_t>(item % plan.chunks);
  item /= plan.chunks;
  const std::int32_t tile_index = plan.row_tiles - 1 - static_cast<std::int32_t>(item % plan.row_tiles);
  item /= plan.row_tiles;
  const std::int32_t heads = plan.grouped_rows ? p.num_kv_heads : p.num_heads;
  const auto head = static_cast<std::int32_t>(item % heads);
  const auto batch = static_cast<std::int32_t>(item / heads);
  const std::int32_t rows = plan.grouped_rows ? p.num_heads / p.num_kv_heads * p.seq_len_q : p.seq_len_q;
  const std::int32_t first_row = tile_index * kQueryTile;
  const int count = std::min(kQueryTile, rows - first_row);
  if (plan.grouped_rows) {
    fill_group_rows(p, batch, head, first_row, count, found.tile);
  } else {
    fill_head_rows(p, batch, head, first_row, count, found.tile);
  }
}

void run_item(void* context, std::int32_t item, std::int32_t thread) {
  const AttentionWork& work = *static_cast<const AttentionWork*>(context);
  Workspace ws = work.workspace(thread);
  ItemTile found;
  find_tile(work, item, found);
  const RowTile& tile = found.tile;
  const std::int32_t chunk_begin = found.chunk * work.plan.chunk_keys;
  const KeyRange keys{std::max(tile.some.begin, chunk_begin), std::min(tile.some.end, chunk_begin + work.plan.chunk_keys)};
  bool touched = false;
  if (work.plan.decode) {
    run_decode(work, tile, keys, found.chunk == 0, ws, touched);
  } else {
    run_tile(work, tile, keys, found.chunk == 0, ws, touched);
  }
  if (work.plan.chunks > 1) {
    keep_partial(work, item, tile, ws, touched);
    return;
  }
  if (!touched) std::fill_n(ws.acc, static_cast<std::ptrdiff_t>(tile.count) * work.plan.acc_stride, 0.0F);
  finish_rows(work, tile, ws.row_max, ws.row_sum, ws.acc);
}

/// Merges the chunks of one tile by their statistics: weights of chunk c count exp(max_c - max) times.
void merge_item(void* context, std::int32_t index, std::int32_t thread) {
  const AttentionWork& work = *static_cast<const AttentionWork*>(context);
  Workspace ws = work.workspace(thread);
  const std::int64_t first_item = static_cast<std::int64_t>(index) * work.plan.chunks;
  ItemTile found;
  find_tile(work, first_item, found);
  const std::int32_t width = work.params.value_dim;
  for (int r = 0; r < found.tile.count; ++r) {
    float largest = -kernels::kInfinity;
    for (std::int32_t c = 0; c < work.plan.chunks; ++c) {
      const float m = work.partial(first_item + c)[r];
      largest = m > largest ? m : largest;
    }
    const float shift = largest == -kernels::kInfinity ? 0.0F : largest;
    float* acc = ws.acc + static_cast<std::ptrdiff_t>(r) * work.plan.acc_stride;
    float sum = 0.0F;
    std::fill_n(acc, work.plan.acc_stride, 0.0F);
    for (std::int32_t c = 0; c < work.plan.chunks; ++c) {
      const float* partial = work.partial(first_item + c);
      const float factor = std::exp(partial[r] - shift);
      sum += partial[kQueryTile + r] * factor;
      const float* from = partial + 2 * kQueryTile + static_cast<std::ptrdiff_t>(r) * work.plan.acc_stride;
      for (std::int32_t d = 0; d < width; ++d) acc[d] += from[d] * factor;
    }
    ws.row_max[r] = largest;
    ws.row_sum[r] = sum;
  }
  finish_rows(work, found.tile, ws.row_max, ws.row_sum, ws.acc);
}

}  // namespace
}  // namespace core

std::size_t attention_scratch_bytes(const AttentionParams& params) noexcept {
  if (core::validate(params) != Status::ok) return 0;
  return core::make_plan(params, thread_count()).total_bytes;
}

Status attention_forward(const AttentionParams& params, void* scratch, std::size_t scratch_bytes) noexcept {
  const Status status = core::validate(params);
  if (status != Status::ok) return status;
  core::AttentionWork work{params, core::make_plan(params, thread_count()), nullptr, nullptr, nullptr, nullptr};
  const core::AttentionPlan& plan = work.plan;
  if (plan.items == 0) return Status::ok;
  if (scratch == nullptr) return Status::missing_pointer;
  if (scratch_bytes < plan.total_bytes) return Status::scratch_too_small;

  work.thread_scratch = static_cast<float*>(scratch);
  work.partials = work.thread_scratch + static_cast<std::size_t>(thread_count()) * plan.thread_floats;
  if (plan.row_floats > 0) {
    work.row_max = work.partials + plan.partial_floats;
    work.row_sum = work.row_max + plan.row_floats / 2;
  }
  for (std::int32_t t = 0; t < thread_count(); ++t) core::forget_packed_values(work, t);
  const double pairs = static_cast<double>(params.batch_size) * params.num_heads * params.seq_len_q * params.seq_len_k;
  parallel_for(static_cast<std::int32_t>(plan.items), pairs * (params.head_dim + params.value_dim + 16), core::run_item, &work);
  if (plan.chunks > 1) parallel_for(static_cast<std::int32_t>(plan.items / plan.chunks), 0.0, core::merge_item, &work);
  if (params.matrix != nullptr) core::write_matrix(work);
  return Status::ok;
}

}  // namespace attn
