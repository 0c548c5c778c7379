#pragma once

#include <cstdint>

#include "attn/attention.h"
#include "core/visibility.h"

namespace attn::core {

/// Most queries that one tile holds. A multiple of every panel width (8 for four lanes, 32 for sixteen).
inline constexpr int kQueryTile = 32;

/// The queries of one tile: which they are, and what each of them sees. All of them read the same keys and values.
/// Rows beyond `count`, up to kQueryTile, are padding that sees everything, so that it forces no masking.
struct RowTile {
  int count = 0;
  std::int32_t batch = 0;
  std::int32_t kv_head = 0;
  std::int32_t head[kQueryTile];
  std::int32_t query[kQueryTile];
  const float* query_row[kQueryTile];
  /// visible_range of each row
  alignas(64) std::int32_t begin[kQueryTile];
  alignas(64) std::int32_t end[kQueryTile];
  /// query_position, for distances; exact up to 2^24, more keys than fit in memory with heads of any use
  alignas(64) float position[kQueryTile];
  alignas(64) float slope[kQueryTile];
  /// first element of the row's mask and bias; null without one
  const std::uint8_t* mask_row[kQueryTile];
  const float* bias_row[kQueryTile];
  /// all rows have the same mask (bias): padding masks, mostly
  bool shared_mask = false;
  bool shared_bias = false;
  /// keys that some row sees, and keys that every row sees, going by range alone
  KeyRange some{0, 0};
  KeyRange every{0, 0};
};

/// Rows of one query head: queries first_query ... first_query + count - 1 of head `head`.
void fill_head_rows(const AttentionParams& params, std::int32_t batch, std::int32_t head, std::int32_t first_query, int count,
                    RowTile& tile);

/// Rows of all the query heads that share a key head, head by head: row r is query r % seq_len_q of head r / seq_len_q of the group.
void fill_group_rows(const AttentionParams& params, std::int32_t batch, std::int32_t kv_head, std::int32_t first_row, int count,
                     RowTile& tile);

}  // namespace attn::core
