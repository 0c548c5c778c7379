#pragma once

#include <cstdint>

#include "attn/attention.h"
#include "core/attention_plan.h"
#include "core/row_tile.h"
#include "kernels/simd.hpp"

namespace attn::core {

using Arch = kernels::DefaultArch;

/// One thread's scratch memory, cut up as the plan says.
struct Workspace {
  /// [key][kQueryTile] in tiles, [query][scores_stride] when decoding
  float* scores;
  /// bias of the tile, [key][kQueryTile]
  float* bias_t;
  /// packed panels in tiles, kernels::DecodeQueries when decoding
  float* queries;
  /// when decoding with float16 keys: the queries for keys that are 2^-112 times too small, and what the dot products lack then
  float* f16_queries;
  float f16_score_factor;
  /// [query][acc_stride]
  float* acc;
  /// what a tile of keys adds to acc where it is summed row by row: kernels::weighted_sum_rows
  float* tile_sum;
  /// [key][kLanes]: the last columns of values whose width is no multiple of kLanes
  float* tail;
  float* row_max;
  float* row_sum;
  /// what row_sum holds too much (Kahan)
  float* row_error;
  float* rescale;
  /// values of a tile as one query sees them, for `careful_weighted_sum`
  float* seen_value;
  /// the key head, over all batches, whose values lie in packed_values, and these: packed_values.h; null where values are not packed
  std::int32_t* packed_head;
  float* packed_values;
  /// float16 keys and values of a tile as float32
  float* key_f32;
  float* value_f32;
};

/// What all items of one call share.
struct AttentionWork {
  const AttentionParams& params;
  AttentionPlan plan;
  float* thread_scratch;
  float* partials;
  /// [batch_size, num_heads, seq_len_q] each, for the matrix of weights; null when it is not wanted
  float* row_max;
  float* row_sum;

  [[nodiscard]] Workspace workspace(std::int32_t thread) const;
  /// scratch of the partial result of one item: row_max [kQueryTile], row_sum [kQueryTile], acc [kQueryTile][acc_stride]
  [[nodiscard]] float* partial(std::int64_t item) const;
};

/// Whether the yes/no mask lets any query of the tile see any key in [first, first + count).
bool mask_shows_any(const AttentionParams& params, const RowTile& tile, std::int32_t first, int count);

/// Starts the row statistics of a tile: the sink, if there is one and this is the first chunk, is a score that has been seen already.
void start_rows(const AttentionParams& params, const RowTile& tile, bool first_chunk, Workspace& ws);

/// acc += weights * value, with 0 in place of values that a query does not see, and of their weights, which may not have been calculated:
/// the values may hold NaN or infinity, and 0 * NaN is NaN.
/// value: rows of keys [first, first + count). weight of row r and key j = ws.scores[r * query_stride + j * key_stride]. Slow; only for tiles
/// with such values.
void careful_weighted_sum(const AttentionWork& work, const RowTile& tile, Workspace& ws, std::ptrdiff_t query_stride,
                          std::ptrdiff_t key_stride, std::int32_t first, int count, const float* value, std::ptrdiff_t value_stride,
                          bool first_tile);

/// Element at which key, or value, `first` of the tile's key head begins.
[[nodiscard]] constexpr std::ptrdiff_t row_offset(const Strides& strides, const RowTile& tile, std::int32_t first) {
  return tile.batch * strides.batch + tile.kv_head * strides.head + first * strides.row;
}

/// Keys or values of a tile as float32: where they are, or, from float16, converted into scratch.
struct FloatRows {
  const float* data;
  std::ptrdiff_t stride;
};
FloatRows key_rows(const AttentionParams& params, const RowTile& tile, std::int32_t first, int count, Workspace& ws);
FloatRows value_rows(const AttentionParams& params, const RowTile& tile, std::int32_t first, int count, Workspace& ws);

/// Whether values [first, first + count) of the tile's key head hold neither infinity nor NaN.
bool values_are_finite(const AttentionParams& params, const RowTile& tile, std::int32_t first, int count);

/// Writes output, lse and statistics of the tile's rows from row_max, row_sum and acc.
void finish_rows(const AttentionWork& work, const RowTile& tile, const float* row_max, const float* row_sum, const float* acc);

/// Keeps the results of a chunk for `merge_chunks`. `touched`: acc has been written.
void keep_partial(const AttentionWork& work, std::int64_t item, const RowTile& tile, const Workspace& ws, bool touched);

/// Attention of the tile's queries over keys [first, last): prefill by tiles, and decoding by rows.
void run_tile(const AttentionWork& work, const RowTile& tile, KeyRange keys, bool first_chunk, Workspace& ws, bool& touched);
void run_decode(const AttentionWork& work, const RowTile& tile, KeyRange keys, bool first_chunk, Workspace& ws, bool& touched);

/// Prepares the queries of a tile in ws.queries, then computes scores of keys [first, first + count) up to `stage`, into ws.scores:
/// [key][kQueryTile] by tiles, [query][decode_scores_stride] by decoding. Used for the matrices that callers ask for.
void prepare_tile_queries(const AttentionWork& work, const RowTile& tile, Workspace& ws);
void tile_scores(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, MatrixStage stage, Workspace& ws);
void prepare_decode_queries(const AttentionWork& work, const RowTile& tile, Workspace& ws);
void decode_scores(const AttentionWork& work, const RowTile& tile, std::int32_t first, int count, MatrixStage stage, Workspace& ws);

/// Distance between the rows of scores when decoding: whole vectors, whatever their width.
constexpr std::ptrdiff_t decode_scores_stride(const AttentionPlan& plan) { return (plan.key_tile + 15) / 16 * 16; }

/// The extra output AttentionParams::matrix, from the statistics that the main pass has left.
void write_matrix(const AttentionWork& work);

}  // namespace attn::core
