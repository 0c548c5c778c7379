#include "core/row_tile.h"

#include <algorithm>
#include <limits>

namespace attn::core {
namespace {

void set_row(const AttentionParams& p, RowTile& tile, int r, std::int32_t head, std::int32_t query) {
  const std::int32_t b = tile.batch;
  tile.head[r] = head;
  tile.query[r] = query;
  tile.query_row[r] = p.query + b * p.query_strides.batch + head * p.query_strides.head + query * p.query_strides.row;
  const KeyRange range = visible_range(p, b, query);
  tile.begin[r] = range.begin;
  tile.end[r] = range.end;
  tile.position[r] = static_cast<float>(query_position(p, b, query));
  tile.slope[r] = p.alibi_slopes != nullptr ? p.alibi_slopes[head] : 0.0F;
  const ScoreStrides& m = p.mask_strides;
  tile.mask_row[r] = p.mask != nullptr ? p.mask + b * m.batch + head * m.head + query * m.query : nullptr;
  const ScoreStrides& a = p.bias_strides;
  tile.bias_row[r] = p.bias != nullptr ? p.bias + b * a.batch + head * a.head + query * a.query : nullptr;
}

void finish_rows(const AttentionParams& p, RowTile& tile) {
  KeyRange some{std::numeric_limits<std::int32_t>::max(), 0};
  KeyRange every{0, key_count(p, tile.batch)};
  tile.shared_mask = tile.shared_bias = true;
  for (int r = 0; r < tile.count; ++r) {
    if (tile.begin[r] < tile.end[r]) {
      some.begin = std::min(some.begin, tile.begin[r]);
      some.end = std::max(some.end, tile.end[r]);
    }
    every.begin = std::max(every.begin, tile.begin[r]);
    every.end = std::min(every.end, tile.end[r]);
    tile.shared_mask = tile.shared_mask && tile.mask_row[r] == tile.mask_row[0];
    tile.shared_bias = tile.shared_bias && tile.bias_row[r] == tile.bias_row[0];
  }
  tile.some = some.begin < some.end ? some : KeyRange{0, 0};
  tile.every = every;
  for (int r = tile.count; r < kQueryTile; ++r) {
    tile.head[r] = tile.head[0];
    tile.query[r] = tile.query[0];
    tile.query_row[r] = tile.query_row[0];
    tile.begin[r] = 0;
    tile.end[r] = std::numeric_limits<std::int32_t>::max();
    tile.position[r] = 0.0F;
    tile.slope[r] = 0.0F;
    tile.mask_row[r] = tile.mask_row[0];
    tile.bias_row[r] = tile.bias_row[0];
  }
}

}  // namespace

void fill_head_rows(const AttentionParams& params, std::int32_t batch, std::int32_t head, std::int32_t first_query, int count,
                    RowTile& tile) {
  tile.count = count;
  tile.batch = batch;
  tile.kv_head = head / (params.num_heads / params.num_kv_heads);
  for (int r = 0; r < count; ++r) set_row(params, tile, r, head, first_query + r);
  finish_rows(params, tile);
}

void fill_group_rows(const AttentionParams& params, std::int32_t batch, std::int32_t kv_head, std::int32_t first_row, int count,
                     RowTile& tile) {
  tile.count = count;
  tile.batch = batch;
  tile.kv_head = kv_head;
  const std::int32_t first_head = kv_head * (params.num_heads / params.num_kv_heads);
  for (int r = 0; r < count; ++r) {
    const std::int32_t row = first_row + r;
    set_row(params, tile, r, first_head + row / params.seq_len_q, row % params.seq_len_q);
  }
  finish_rows(params, tile);
}

}  // namespace attn::core
